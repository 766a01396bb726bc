// How a storable response is stored: its partition and the omitted fields (RFC 9111 §3.1, docs/security-model.md#partitions).
package import HTTPTypes

/// The plan for one response.
package struct StoragePlan: Hashable, Sendable {
    package var partition: StoragePartition
    /// Fields that are relayed but not stored.
    package var stripped: [HTTPField.Name]
    /// True if a heuristic lifetime is permitted. Responses to credentials get one only if marked `public` or in the `single` partition.
    package var allowsHeuristic: Bool
    /// A POST response that represents its target, so that GET finds it (RFC 9110 §9.3.3).
    package var isForGet: Bool
    /// The identity that a shared response answered, if only the promise to validate it permits sharing (RFC 9111 §3.5): others have it while
    /// it is fresh. Nil for all other responses.
    package var owner: String?

    package init(
        partition: StoragePartition, stripped: [HTTPField.Name] = [], allowsHeuristic: Bool = true, isForGet: Bool = false,
        owner: String? = nil
    ) {
        self.owner = owner
        self.partition = partition
        self.stripped = stripped
        self.allowsHeuristic = allowsHeuristic
        self.isForGet = isForGet
    }

    /// The name in the entry's key.
    package var identity: String { partition.name }

    /// The key to store the response to `request` under.
    /// - Parameter body: A digest of the request's body on routes that cache by body; else empty.
    package func key(for request: RequestHead, body: String = "") -> CacheKey {
        let method = isForGet ? HTTPRequest.Method.get : request.method
        return CacheKey(method: method.rawValue, origin: request.origin, target: request.target, identity: identity, body: body)
    }

    /// The value for `StoredResponse.assignedTTL`: the named category's ttl, else zero if heuristics are not permitted.
    package func assignedTTL(named ttl: TimeSpan?) -> TimeSpan? { ttl ?? (allowsHeuristic ? nil : .zero) }

    /// The head to store: without stripped and connection-specific fields, with a `Date` (RFC 9110 §6.6.1); a 206 of all bytes as a 200.
    package func head(of response: ResponseHead, receivedAt: Timestamp) -> ResponseHead {
        let excluded = StoredFields.excluded(from: response.fields)
        var stored = ResponseHead(status: response.status)
        for field in response.fields where !excluded.contains(field.name.canonicalName) && !stripped.contains(field.name) {
            stored.fields.append(field)
        }
        if !stored.fields.contains(.date) { stored.fields[.date] = HTTPDate.format(receivedAt) }
        return PartialResponse.normalized(stored)
    }
}
