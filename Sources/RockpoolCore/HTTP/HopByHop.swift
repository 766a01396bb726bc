// Which fields belong to one connection and go no further (RFC 9110 §7.6.1, §11.7; security.md §2).
package import HTTPTypes

/// Fields of one hop.
package enum HopByHop {
    /// The end-to-end fields. Gone are those named in Connection, the connection's own, those between a client and its proxy
    /// (RFC 9110 §11.7), and Content-Length, because framing is set anew on every hop.
    /// A field that must reach everybody stays although Connection names it: `Connection: Cache-Control` must not undo `no-store`.
    package static func stripped(_ fields: HTTPFields) -> HTTPFields {
        let listed = options(fields).filter { !isForEveryone($0) }
        var kept = HTTPFields()
        kept.reserveCapacity(fields.count)
        for field in fields where !ofTheHop.contains(field.name) && !listed.contains(field.name) { kept.append(field) }
        return kept
    }

    /// The end-to-end fields of an upstream's answer, without those by which we tell clients what became of a request: they would take an
    /// upstream's for ours. What an origin tells us by its targeted field stays (RFC 9213 §2).
    package static func stripped(answer fields: HTTPFields) -> HTTPFields {
        var kept = stripped(fields)
        for field in fields where isOurs(field.name.canonicalName) { kept[field.name] = nil }
        return kept
    }

    private static func isOurs(_ name: String) -> Bool { name.hasPrefix("rockpool-") && name != "rockpool-cache-control" }

    /// Throws a 400 when Connection names a field that is meant for all recipients (contract §6): whoever sends that wants a proxy
    /// to forget it.
    package static func checkConnection(_ fields: HTTPFields) throws(Refusal) {
        if let name = options(fields).first(where: isForEveryone) {
            throw .badRequest("Connection names \(name.rawName), which is not a field of one connection")
        }
    }

    /// The connection options of all Connection fields, where they can name fields.
    static func options(_ fields: HTTPFields) -> [HTTPField.Name] {
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
