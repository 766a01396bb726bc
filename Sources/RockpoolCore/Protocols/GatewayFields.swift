// The fields of a request to a gateway that name the gateway: they name the origin before the request is sent
// (RFC 6454 §7, RFC 9110 §10.1.3, RFC 4918 §10.3; docs/reference/configuration.md#upstreams).
package import HTTPTypes

/// Fields of requests at a gateway.
package enum GatewayFields {
    /// Rewrites `Origin`, `Referer`, `Destination` and the tags of `If` as `Host` is: a server compares them with its own name.
    /// - Parameters:
    ///   - host: The `Host` that the client used.
    ///   - prefix: The beginning of the origin's paths at the gateway.
    ///   - basePath: What stands before these paths at the origin.
    package static func rewrite(
        _ fields: inout HTTPFields, host: String, origin: OriginAddress, prefix: String = "", basePath: String = ""
    ) {
        guard fields.contains(where: { rewritten.contains($0.name.canonicalName) }) else { return }
        let place = Place(host: host, origin: origin, prefix: prefix, basePath: basePath)
        let names = fields.filter { rewritten.contains($0.name.canonicalName) }.map(\.name)
        for name in Set(names) {
            fields[values: name] = fields[values: name].map { value in
                name.canonicalName == "if" ? tagged(value, at: place) : renamed(value, at: place)
            }
        }
    }

    private struct Place {
        let host: String
        let origin: OriginAddress
        let prefix: String
        let basePath: String
    }

    private static let rewritten: Set<String> = ["origin", "referer", "destination", "if"]

    /// The URL under the origin's name; unchanged if it names another host, or a path of the gateway outside the prefix.
    private static func renamed(_ url: String, at place: Place) -> String {
        for scheme in ["http://", "https://"] where url.lowercased().hasPrefix(scheme + place.host.lowercased()) {
            let rest = url.utf8.dropFirst(scheme.utf8.count + place.host.utf8.count)
            if rest.isEmpty { return place.origin.url }
            guard rest.starts(with: place.prefix.utf8) else { continue }
            let path = rest.dropFirst(place.prefix.utf8.count)
            guard path.isEmpty || [UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#")].contains(path.first) else { continue }
            return place.origin.url + place.basePath + String(decoding: path, as: UTF8.self)
        }
        return url
    }

    /// A value of `If`, whose tagged lists begin with a URL in angle brackets (RFC 4918 §10.4).
    private static func tagged(_ value: String, at place: Place) -> String {
        var text = ""
        var rest = value[...]
        while let open = rest.firstIndex(of: "<"), let close = rest[open...].firstIndex(of: ">") {
            let url = rest[rest.index(after: open)..<close]
            text += rest[...open] + renamed(String(url), at: place) + ">"
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
