// Hop-by-hop fields, which belong to one connection and are not forwarded (RFC 9110 §7.6.1, §11.7; docs/security-model.md#one-framing).
package import HTTPTypes

/// Fields of one hop.
package enum HopByHop {
    /// The end-to-end fields. Removed are the fields listed in Connection, those of the connection itself, those between a client and its
    /// proxy (RFC 9110 §11.7), and Content-Length, because every hop sets the framing anew. An end-to-end field stays even if Connection
    /// lists it: `Connection: Cache-Control` must not remove `no-store`.
    package static func stripped(_ fields: HTTPFields) -> HTTPFields {
        let listed = options(in: fields).filter { !isForEveryone($0) }
        var kept = HTTPFields()
        kept.reserveCapacity(fields.count)
        for field in fields where !ofTheHop.contains(field.name) && !listed.contains(field.name) { kept.append(field) }
        return kept
    }

    /// The end-to-end fields of an upstream's response, without `Rockpool-*` fields, which clients would take for this proxy's own. The
    /// origin's targeted field `Rockpool-Cache-Control` stays (RFC 9213 §2).
    package static func stripped(answer fields: HTTPFields) -> HTTPFields {
        var kept = stripped(fields)
        for field in fields where isOurs(field.name.canonicalName) { kept[field.name] = nil }
        return kept
    }

    private static func isOurs(_ name: String) -> Bool { name.hasPrefix("rockpool-") && name != "rockpool-cache-control" }

    /// Throws a 400 if Connection lists a field that is meant for all recipients (docs/reference/headers.md#connection): the sender would
    /// make a proxy drop that
    /// field.
    package static func checkConnection(in fields: HTTPFields) throws(Refusal) {
        if let name = options(in: fields).first(where: isForEveryone) {
            throw .badRequest("Connection names \(name.rawName), which is not a field of one connection")
        }
    }

    /// The connection options of all Connection fields that are valid field names.
    static func options(in fields: HTTPFields) -> [HTTPField.Name] {
        guard fields.contains(.connection) else { return [] }
        return fields[values: .connection].flatMap { value in
            value.split(separator: ",").compactMap { HTTPField.Name(String($0.trimmingOWS())) }
        }
    }

    private static let ofTheHop: Set<HTTPField.Name> = [
        .connection, .keepAlive, .proxyConnection, .te, .trailer, .transferEncoding, .upgrade, .http2Settings, .contentLength,
        .proxyAuthorization, .proxyAuthenticate, .proxyAuthenticationInfo,
    ]

    private static func isForEveryone(_ name: HTTPField.Name) -> Bool {
        endToEnd.contains(name) || endToEndPrefixes.contains { name.canonicalName.hasPrefix($0) }
    }

    private static let endToEndPrefixes = ["if-", "content-", "rockpool-"]
    private static let endToEnd: Set<HTTPField.Name> = [
        .hostField, .transferEncoding, .authorization, .cookie, .cacheControl, .range, .expect, .idempotencyKey, .via, .cdnLoop,
        .maxForwards, .age, .date, .eTag, .expires, .lastModified, .location, .setCookie, .vary, .wwwAuthenticate,
    ]
}
