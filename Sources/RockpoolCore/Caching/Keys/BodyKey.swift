// Selects the requests that are cached by their body, and defines the part of the request that the digest in the key covers
// (RFC 10008 §2.7; docs/reference/configuration.md#routes).
package import HTTPTypes

/// The part of a cache key that represents a request's content.
package enum BodyKey {
    /// A body is buffered whole before anything is sent, so that the key is known; larger bodies are forwarded and not cached.
    package static let maxBody = ByteCount.kib(64)

    /// The reason why a request is not cached by its body.
    package enum Obstacle: String, CaseIterable, Sendable, Codable {
        /// Neither QUERY nor, on a route with `cache: body` or `read: true`, POST or a safe method that asks by its body.
        case method
        case tooLarge = "too-large"
    }

    /// Methods that a route may declare to be reads by their body: POST, and the safe ones that may have one (RFC 9110 §9.3, RFC 4918,
    /// RFC 3253, RFC 5323).
    package static let declarable: Set<String> = ["POST", "GET", "OPTIONS", "QUERY", "PROPFIND", "REPORT", "SEARCH"]

    /// The obstacle to caching `request` by its body; nil without one. QUERY is always cached by its body, because the method is safe by
    /// definition; others only where the route declares them reads. No route can change the semantics of a method that is not declarable.
    /// - Parameters:
    ///   - isDeclared: True if the route says that its requests are keyed by their body.
    ///   - length: Bytes of the body, or the bytes received so far of a body without an announced length.
    package static func obstacle(_ method: HTTPRequest.Method, isDeclared: Bool, length: Int64) -> Obstacle? {
        guard method.rawValue == "QUERY" || (isDeclared && declarable.contains(method.rawValue)) else { return .method }
        // Without a body it is an ordinary GET.
        if method == .get, length == 0 { return .method }
        return length > maxBody.bytes ? .tooLarge : nil
    }

    /// The digest's input before the body's own bytes: the metadata that defines how the body is interpreted (RFC 9110 §8). Each part is
    /// preceded by its length, so that two different requests never share one text. The digest's hex form is `CacheKey`'s `body`.
    package static func preamble(_ fields: HTTPFields, bodyLength: Int) -> [UInt8] {
        var text = ""
        // `Depth` and `Brief` select what PROPFIND and REPORT answer (RFC 4918 §10.2).
        for name in ["content-type", "content-encoding", "content-language", "content-location", "depth", "brief"] {
            guard let value = fields.value(of: name).map({ normalized($0, of: name) }) else { continue }
            text += "\(name.utf8.count):\(name)\(value.utf8.count):\(value)"
        }
        return Array("\(text)\(bodyLength):".utf8)
    }

    private static func normalized(_ value: String, of name: String) -> String {
        switch name {
        case "content-type": contentType(of: value)
        case "content-encoding", "content-language": FieldList.members(of: value.lowercased()).joined(separator: ", ")
        default: String(FieldList.trimmed(value[...]))
        }
    }

    /// The media type with type and parameter names in lower case, the value of `charset` in lower case too, and no unnecessary quotes
    /// (RFC 9110 §8.3.1, §5.6.6). A value with a separator or an escape within quotes keeps its parameters unchanged.
    private static func contentType(of value: String) -> String {
        let parts = value.split(separator: ";", omittingEmptySubsequences: false).map { FieldList.trimmed($0) }
        let essence = parts.first?.lowercased() ?? ""
        guard parts.dropFirst().allSatisfy({ part in part.utf8.count { $0 == FieldByte.quote } % 2 == 0 && !part.contains("\\") }) else {
            return essence + FieldList.trimmed(value.drop { $0 != ";" })
        }
        return ([essence] + parts.dropFirst().filter { !$0.isEmpty }.map(parameter)).joined(separator: ";")
    }

    private static func parameter(in text: Substring) -> String {
        guard let equals = text.firstIndex(of: "=") else { return text.lowercased() }
        let name = text[..<equals].lowercased()
        var value = text[text.index(after: equals)...]
        let inner = value.dropFirst().dropLast()
        if value.utf8.first == FieldByte.quote, !inner.isEmpty, inner.utf8.allSatisfy(FieldByte.isTokenByte) { value = inner }
        return "\(name)=\(name == "charset" ? value.lowercased() : String(value))"
    }
}
