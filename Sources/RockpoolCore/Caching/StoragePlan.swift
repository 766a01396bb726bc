// How a response is stored once it may be: in whose partition and without which fields (RFC 9111 §3.1, security.md §3).
package import HTTPTypes

/// The plan for one response.
package struct StoragePlan: Hashable, Sendable {
    package var partition: StoragePartition
    /// Fields that are relayed but not kept.
    package var stripped: [HTTPField.Name]
    /// Whether a lifetime may be guessed: never for an answer to a request with credentials.
    package var allowsHeuristic: Bool

    package init(partition: StoragePartition, stripped: [HTTPField.Name] = [], allowsHeuristic: Bool = true) {
        self.partition = partition
        self.stripped = stripped
        self.allowsHeuristic = allowsHeuristic
    }

    /// The name in the entry's key.
    package var identity: String { partition.name }

    /// What goes into `StoredResponse.assignedTTL`: the named category's ttl, else zero where nothing may be guessed.
    package func assignedTTL(named ttl: TimeSpan?) -> TimeSpan? { ttl ?? (allowsHeuristic ? nil : .zero) }

    /// The head to store: without stripped and connection-bound fields, and with a `Date` (RFC 9110 §6.6.1).
    package func head(of response: ResponseHead, receivedAt: Timestamp) -> ResponseHead {
        let excluded = StoredFields.excluded(from: response.fields)
        var stored = ResponseHead(status: response.status)
        for field in response.fields where !excluded.contains(field.name.canonicalName) && !stripped.contains(field.name) {
            stored.fields.append(field)
        }
        if !stored.fields.contains(.date) { stored.fields[.date] = HTTPDate.format(receivedAt) }
        return stored
    }
}

/// Fields that belong to a connection or to one exchange, not to the representation (RFC 9111 §3.1, RFC 9110 §7.6.1).
enum StoredFields {
    private static let neverStored: Set<String> = [
        "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "proxy-authenticate",
        "proxy-authentication-info", "proxy-authorization", "set-cookie",
    ]

    /// The canonical names of the fields of a message that are not kept, those its `Connection` lists included.
    static func excluded(from fields: HTTPFields) -> Set<String> {
        guard let connection = fields[.connection] else { return neverStored }
        return neverStored.union(FieldList.members(of: connection).map { $0.lowercased() })
    }
}
