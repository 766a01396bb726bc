// Via (RFC 9110 §7.6.3) and CDN-Loop (RFC 8586): adds this proxy to them and detects loops.
package import HTTPTypes

/// The marks a proxy adds to forwarded messages.
package enum Via {
    /// Adds `version name` as the last member of Via. `version` is that of the message received, `1.1`; `name` is a token.
    package static func appended(to fields: inout HTTPFields, version: String, name: String) {
        fields.append(HTTPField(name: .via, value: "\(version) \(name)"))
    }

    /// Adds `name` to CDN-Loop of a request. A CDN customer's rules cannot remove this field, unlike Via.
    package static func appendedLoopMark(to fields: inout HTTPFields, name: String) {
        fields.append(HTTPField(name: .cdnLoop, value: name))
    }

    /// True if the message has passed here before: `name` received it according to Via, or is a member of CDN-Loop.
    package static func containsLoop(_ fields: HTTPFields, name: String) -> Bool {
        let name = name.lowercased()
        if fields.contains(.via), fields[values: .via].contains(where: { receivers(in: $0).contains(name) }) { return true }
        return fields.contains(.cdnLoop) && fields[values: .cdnLoop].contains { members(in: $0).contains(name) }
    }

    /// The second word of each member: `received-protocol RWS received-by [ RWS comment ]`.
    private static func receivers(in value: String) -> [String] {
        withoutComments(value).split(separator: ",").compactMap { member in
            member.split(omittingEmptySubsequences: true) { $0 == " " || $0 == "\t" }.dropFirst().first?.lowercased()
        }
    }

    /// The part before the parameters of each member: `cdn-id *( OWS ";" OWS parameter )`.
    private static func members(in value: String) -> [String] {
        value.split(separator: ",").compactMap { $0.split(separator: ";").first?.trimmingOWS().lowercased() }
    }

    /// Removes comments, because a comment may contain commas, quoted parentheses and this proxy's name (RFC 9110 §5.6.5).
    private static func withoutComments(_ value: String) -> String {
        guard value.utf8.contains(UInt8(ascii: "(")) else { return value }
        var depth = 0
        var isEscaped = false
        return String(
            value.filter { character in
                if depth > 0, isEscaped {
                    isEscaped = false
                    return false
                }
                switch character {
                case "(": depth += 1
                case ")" where depth > 0:
                    depth -= 1
                    return false
                case "\\" where depth > 0: isEscaped = true
                default: break
                }
                return depth == 0
            })
    }
}
