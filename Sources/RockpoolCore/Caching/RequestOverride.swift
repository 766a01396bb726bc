// Request fields that make frameworks answer for another host, path or method, though no cache key holds them (security.md §3).
package import HTTPTypes

/// Known override fields: answers to requests that carry one are not stored.
package enum RequestOverride {
    private static let methods: Set<String> = ["x-http-method-override", "x-http-method", "x-method-override"]
    static let unkeyed: Set<String> = methods.union([
        "x-forwarded-host", "x-forwarded-scheme", "x-forwarded-proto", "x-forwarded-server", "x-forwarded-prefix", "x-forwarded-port",
        "x-original-url", "x-rewrite-url", "x-host", "forwarded",
    ])

    /// Whether a field may change the response without being part of the key.
    package static func isUnkeyed(_ name: HTTPField.Name) -> Bool { unkeyed.contains(name.canonicalName) }

    /// Whether the request may be another method in truth, so that nothing stored answers it.
    package static func replacesMethod(_ fields: HTTPFields) -> Bool {
        fields.contains { $0.name.canonicalName.utf8.first == 0x78 && methods.contains($0.name.canonicalName) }
    }
}
