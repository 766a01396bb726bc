// Who has handled a message: Via (RFC 9110 §7.6.3) and CDN-Loop (RFC 8586), and whether we are among them already.
package import HTTPTypes

/// The marks a proxy leaves on what it forwards.
package enum Via {
    /// Adds `version name` as the last member of Via. `version` is that of the message received, `1.1`; `name` is a token.
    package static func appended(to fields: inout HTTPFields, version: String, name: String) {
        fields.append(HTTPField(name: .via, value: "\(version) \(name)"))
    }

    /// Adds `name` to CDN-Loop of a request, which no customer's rule removes on the way as it may remove Via.
    package static func appendedLoopMark(to fields: inout HTTPFields, name: String) {
        fields.append(HTTPField(name: .cdnLoop, value: name))
    }

    /// Whether the message has passed here before: `name` received it according to Via, or is a member of CDN-Loop.
    package static func containsLoop(_ fields: HTTPFields, name: String) -> Bool {
        let name = name.lowercased()
        if fields.contains(.via), fields[values: .via].contains(where: { receivers($0).contains(name) }) { return true }
        return fields.contains(.cdnLoop) && fields[values: .cdnLoop].contains { members($0).contains(name) }
    }

    /// The second word of each member: `received-protocol RWS received-by [ RWS comment ]`.
    private static func receivers(_ value: String) -> [String] {
        withoutComments(value).split(separator: ",").compactMap { member in
            member.split(omittingEmptySubsequences: true) { $0 == " " || $0 == "\t" }.dropFirst().first?.lowercased()
        }
    }

    /// What stands before the parameters of each member: `cdn-id *( OWS ";" OWS parameter )`.
    private static func members(_ value: String) -> [String] {
        value.split(separator: ",").compactMap { $0.split(separator: ";").first?.trimmingOWS().lowercased() }
    }

    /// A comment may hold commas, quoted parentheses and our name; none of that is a member (RFC 9110 §5.6.5).
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
