// Request fields that make frameworks answer for another host, path, method or client, though no cache key holds them (security.md §3).
package import HTTPTypes

/// Known override fields: answers to requests that carry one are not stored.
package enum RequestOverride {
    private static let methods: Set<String> = ["x-http-method-override", "x-http-method", "x-method-override"]
    static let unkeyed: Set<String> = methods.union([
        "forwarded", "x-host", "x-http-host-override", "x-host-override", "x-backend-host", "x-url-scheme", "front-end-https",
        "x-real-ip", "true-client-ip", "client-ip", "x-client-ip", "x-cluster-client-ip", "x-remote-addr", "x-remote-ip",
        "cf-connecting-ip", "fastly-client-ip", "x-proxy-url", "x-wap-profile",
    ])
    /// Families of such fields that frameworks and their plug-ins go on inventing.
    static let unkeyedPrefixes = ["x-forwarded", "x-original-", "x-rewrite-", "x-override-"]

    /// Whether a field may change the response without being part of the key.
    package static func isUnkeyed(_ name: HTTPField.Name) -> Bool {
        let name = name.canonicalName
        return unkeyed.contains(name) || name.utf8.first == 0x78 && unkeyedPrefixes.contains { name.hasPrefix($0) }
    }

    /// Whether the request may be another method in truth, so that nothing stored answers it.
    package static func replacesMethod(_ fields: HTTPFields) -> Bool {
        fields.contains { $0.name.canonicalName.utf8.first == 0x78 && methods.contains($0.name.canonicalName) }
    }
}
