// A part of a row as the shared database holds it (docs/fleet.md#shared).

/// The newest version of one part of one row.
struct SharedItem: Sendable {
    var table: String
    /// The primary key, encoded as `RowBytes`.
    var key: [UInt8]
    /// 0 for the row without its bodies; else the number of a body.
    var part: Int
    /// The position in the order of all changes; 0 before it has one.
    var number: Int64 = 0
    /// The word of the commit whose last number this is; nil for any other number, and for a commit of an older version.
    var word: Int64?
    /// Encoded as `RowBytes`; nil when the row is gone.
    var data: [UInt8]?
    /// The columns of an operation that the shared database checks or lists.
    var operation: SharedOperation?

    /// True for the row of a body in a file.
    var isBody: Bool { table == "blob" && data != nil }
    /// True for the row of an operation.
    var isOperation: Bool { table == "op" && part == 0 }
}

/// The columns of an operation that are columns in the shared database too.
struct SharedOperation: Sendable {
    var id: String
    var upstream: String
    var principal: String?
    var clientKey: String?
    var state: String
}

/// A text in an index of the shared database. PostgreSQL refuses a row whose index entry is longer than 2,704 bytes, and with it the whole
/// transaction.
enum IndexedText {
    /// Bytes of a text that is kept as it is.
    static let limit = 2_000
    private static let mark = "sha256:"

    /// The text, or a digest of a long one.
    static func of(_ text: String) -> String {
        text.utf8.count <= limit ? text : mark + CacheStore.digest(of: Array(text.utf8))
    }

    /// The same for a column of text, which takes no NUL.
    static func inColumn(_ text: String) -> String { text.utf8.contains(0) ? mark + CacheStore.digest(of: Array(text.utf8)) : of(text) }

    /// True if a text may be a digest in place of a long one.
    static func mayBeDigest(_ text: String) -> Bool { text.utf8.count == mark.utf8.count + 64 && text.hasPrefix(mark) }
}

/// An operation in flight, with the node that sends it.
struct SharedClaim: Sendable {
    var sequence: Int64
    var upstream: String
    var lane: String
    var node: String
    var epoch: Int64
}
