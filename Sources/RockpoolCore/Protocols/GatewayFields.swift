// The fields of a request to a gateway that name the gateway: they name the origin before the request is sent
// (RFC 6454 §7, RFC 9110 §10.1.3, RFC 4918 §10.3; docs/reference/configuration.md#upstreams).
package import HTTPTypes

/// Fields of requests at a gateway.
package enum GatewayFields {
    /// Rewrites `Origin`, `Referer`, `Destination` and the tags of `If` as `Host` is: a server compares them with its own name.
    /// - Parameter host: The `Host` that the client used.
    package static func rewrite(_ fields: inout HTTPFields, host: String, origin: OriginAddress) {
        let names = fields.filter { rewritten.contains($0.name.canonicalName) }.map(\.name)
        for name in Set(names) {
            fields[values: name] = fields[values: name].map { value in
                name.canonicalName == "if" ? tagged(value, host: host, origin: origin) : renamed(value, host: host, origin: origin)
            }
        }
    }

    private static let rewritten: Set<String> = ["origin", "referer", "destination", "if"]

    /// The URL under the origin's name; unchanged if it names another host.
    private static func renamed(_ url: String, host: String, origin: OriginAddress) -> String {
        for scheme in ["http://", "https://"] where url.lowercased().hasPrefix(scheme + host.lowercased()) {
            let rest = url.utf8.dropFirst(scheme.utf8.count + host.utf8.count)
            guard rest.isEmpty || [UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#")].contains(rest.first) else { continue }
            return origin.url + String(decoding: rest, as: UTF8.self)
        }
        return url
    }

    /// A value of `If`, whose tagged lists begin with a URL in angle brackets (RFC 4918 §10.4).
    private static func tagged(_ value: String, host: String, origin: OriginAddress) -> String {
        var text = ""
        var rest = value[...]
        while let open = rest.firstIndex(of: "<"), let close = rest[open...].firstIndex(of: ">") {
            let url = rest[rest.index(after: open)..<close]
            text += rest[...open] + renamed(String(url), host: host, origin: origin) + ">"
            rest = rest[rest.index(after: close)...]
        }
        return text + rest
    }

    /// The fields that tell an upstream about its client: `Forwarded` and the `X-Forwarded` family (RFC 7239).
    /// - Parameter address: The client's address, nil if it is unknown.
    package static func forwarded(for address: String?, host: String, scheme: String) -> HTTPFields {
        let node = address.map { $0.contains(":") ? "\"[\($0)]\"" : $0 }
        let quoted = host.utf8.allSatisfy(FieldByte.isTokenByte) ? host : "\"\(host)\""
        let members = [node.map { "for=\($0)" }, "host=\(quoted)", "proto=\(scheme)"].compactMap { $0 }
        var fields = HTTPFields()
        for (name, value) in [
            ("Forwarded", members.joined(separator: ";")), ("X-Forwarded-For", address), ("X-Forwarded-Host", host),
            ("X-Forwarded-Proto", scheme),
        ] {
            if let name = HTTPField.Name(name), let value { fields.append(HTTPField(name: name, value: value)) }
        }
        return fields
    }
}
