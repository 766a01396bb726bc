// Trailer fields that pass from an upstream to a client that accepts them (RFC 9110 §6.5).
package import HTTPTypes

/// The fields after a body.
package enum Trailers {
    /// The request field that announces trailers, without any other option of the hop, for a call of gRPC, which fails without it; nil for
    /// any other request: `TE` concerns one connection only (RFC 9110 §10.1.4).
    package static func accepted(_ fields: HTTPFields) -> String? {
        guard fields[.contentType]?.lowercased().hasPrefix("application/grpc") == true else { return nil }
        let options = fields[values: .te].flatMap { FieldList.members(of: $0) }
        return options.contains { $0.lowercased() == "trailers" } ? "trailers" : nil
    }

    /// Trailers without the fields that must precede the body: framing, routing, conditions, caching, authentication
    /// (RFC 9110 §6.5.1).
    package static func forwardable(_ fields: HTTPFields) -> HTTPFields {
        var kept = HTTPFields()
        for field in HopByHop.stripped(answer: fields) where !isBound(field.name.canonicalName) { kept.append(field) }
        return kept
    }

    private static func isBound(_ name: String) -> Bool {
        name.hasPrefix("content-") && name != "content-digest" || name.hasPrefix("if-") || name.hasPrefix("proxy-") || bound.contains(name)
    }

    private static let bound: Set<String> = [
        "host", "authorization", "www-authenticate", "set-cookie", "cookie", "cache-control", "expires", "age", "date", "vary", "location",
        "range", "accept-ranges", "retry-after", "via", "cache-status", "max-forwards", "expect", "pragma", "warning",
    ]
}
