// The fields that are stored (RFC 9111 §3.1).
import HTTPTypes

/// Fields that belong to a connection or to one exchange, not to the representation (RFC 9111 §3.1, RFC 9110 §7.6.1).
enum StoredFields {
    private static let neverStored: Set<String> = [
        "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "proxy-authenticate",
        "proxy-authentication-info", "proxy-authorization", "set-cookie",
    ]

    /// The canonical names of a message's fields that are not stored, including those listed in its `Connection`.
    static func excluded(from fields: HTTPFields) -> Set<String> {
        guard let connection = fields[.connection] else { return neverStored }
        return neverStored.union(FieldList.members(of: connection).map { $0.lowercased() })
    }
}
