// Which requests are cached by what is in their body, and what of them the digest in the key covers (RFC 10008 §2.7; contract §2).
package import HTTPTypes

/// The part of a cache key that stands for a request's content.
package enum BodyKey {
    /// Bodies are held whole before anything is sent, so that the key is known; larger ones are passed on and not cached.
    package static let maxBody = ByteCount.kib(64)

    /// Why a request is not cached by its body.
    package enum Obstacle: String, CaseIterable, Sendable, Codable {
        /// Neither QUERY nor a POST on a route with `cache: body`.
        case method
        case tooLarge = "too-large"
    }

    /// What keeps `request` from being cached by its body; nil when nothing does. QUERY always is, being safe by definition; a POST is
    /// where a route says that it is a search. Other methods have meanings that no route can change.
    /// - Parameter length: Bytes of the body, or what has come of one whose length was not announced.
    package static func obstacle(_ method: HTTPRequest.Method, rule: Route.Cache, length: Int64) -> Obstacle? {
        guard method.rawValue == "QUERY" || (method == .post && rule == .body) else { return .method }
        return length > maxBody.bytes ? .tooLarge : nil
    }

    /// What goes into the digest before the body's own bytes: the metadata that says how to read them (RFC 9110 §8), each part with
    /// its length before it, so that no two requests share one text. The digest's hex form is `CacheKey`'s `body`.
    package static func preamble(_ fields: HTTPFields, bodyLength: Int) -> [UInt8] {
        var text = ""
        for name in ["content-type", "content-encoding", "content-language", "content-location"] {
            guard let value = fields.value(of: name).map({ normalized($0, of: name) }) else { continue }
            text += "\(name.utf8.count):\(name)\(value.utf8.count):\(value)"
        }
        return Array("\(text)\(bodyLength):".utf8)
    }

    private static func normalized(_ value: String, of name: String) -> String {
        switch name {
        case "content-type": contentType(value)
        case "content-encoding", "content-language": FieldList.members(of: value.lowercased()).joined(separator: ", ")
        default: String(FieldList.trimmed(value[...]))
        }
    }

    /// Type and names of parameters in lower case, the value of `charset` too, none quoted without need (RFC 9110 §8.3.1, §5.6.6).
    /// A value whose quotes hide a separator or an escape keeps its parameters as they are.
    private static func contentType(_ value: String) -> String {
        let parts = value.split(separator: ";", omittingEmptySubsequences: false).map { FieldList.trimmed($0) }
        let essence = parts.first?.lowercased() ?? ""
        guard parts.dropFirst().allSatisfy({ part in part.utf8.count { $0 == FieldByte.quote } % 2 == 0 && !part.contains("\\") }) else {
            return essence + FieldList.trimmed(value.drop { $0 != ";" })
        }
        return ([essence] + parts.dropFirst().filter { !$0.isEmpty }.map(parameter)).joined(separator: ";")
    }

    private static func parameter(_ text: Substring) -> String {
        guard let equals = text.firstIndex(of: "=") else { return text.lowercased() }
        let name = text[..<equals].lowercased()
        var value = text[text.index(after: equals)...]
        let inner = value.dropFirst().dropLast()
        if value.utf8.first == FieldByte.quote, !inner.isEmpty, inner.utf8.allSatisfy(FieldByte.isTokenByte) { value = inner }
        return "\(name)=\(name == "charset" ? value.lowercased() : String(value))"
    }
}
