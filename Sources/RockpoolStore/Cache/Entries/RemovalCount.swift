// Counts removed entries.

/// The entries and bytes that were (or would be) removed.
package struct RemovalCount: Hashable, Sendable, Codable {
    package var entries: Int
    package var bytes: Int64

    package init(entries: Int = 0, bytes: Int64 = 0) {
        self.entries = entries
        self.bytes = bytes
    }
}
