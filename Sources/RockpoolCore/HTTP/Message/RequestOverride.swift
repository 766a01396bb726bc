// Request fields that make frameworks respond for another host, path, method or client, although they are not in the cache key
// (docs/security-model.md#unkeyed-inputs).
package import HTTPTypes

/// Known override fields; responses to requests that carry one are not stored.
package enum RequestOverride {
    private static let methods: Set<String> = ["x-http-method-override", "x-http-method", "x-method-override"]
    static let unkeyed: Set<String> = methods.union([
        "forwarded", "x-host", "x-http-host-override", "x-host-override", "x-backend-host", "x-url-scheme", "front-end-https",
        "x-real-ip", "true-client-ip", "client-ip", "x-client-ip", "x-cluster-client-ip", "x-remote-addr", "x-remote-ip",
        "cf-connecting-ip", "fastly-client-ip", "x-proxy-url", "x-wap-profile",
    ])
    /// Prefixes of such fields, because frameworks and plug-ins keep adding new ones.
    static let unkeyedPrefixes = ["x-forwarded", "x-original-", "x-rewrite-", "x-override-"]

    /// True if a field may change the response without being part of the key.
    package static func isUnkeyed(_ name: HTTPField.Name) -> Bool {
        let name = name.canonicalName
        return unkeyed.contains(name) || name.utf8.first == 0x78 && unkeyedPrefixes.contains { name.hasPrefix($0) }
    }

    /// True if the framework may treat the request as another method, so that no stored response may be served for it.
    package static func replacesMethod(in fields: HTTPFields) -> Bool {
        fields.contains { $0.name.canonicalName.utf8.first == 0x78 && methods.contains($0.name.canonicalName) }
    }
}
