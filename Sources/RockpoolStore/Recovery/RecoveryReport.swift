// What a recovery brought out of a damaged outbox, and what not (storage.md §7).

/// The report of `rockpool doctor --recover`.
package struct RecoveryReport: Hashable, Sendable, Codable {
    package struct Table: Hashable, Sendable, Codable {
        package var name: String
        /// Rows that are in the new database.
        package var rows = 0
        /// Rows that were read and cannot be in it: they are lines of `unplaced`.
        package var unplaced = 0
        /// Whether every page of it could be read.
        package var isWhole = true
        /// Keys under which rows may be missing, the first of them; none where keys are no numbers.
        package var unreadable: [String] = []
    }

    /// A body of an operation whose file is gone or no longer what it was.
    package struct LostBlob: Hashable, Sendable, Codable {
        package var sha256: String
        /// Public ids of the operations that name it. They are kept, and cannot be sent.
        package var operations: [String]
    }

    /// The damaged directory; not a byte of it was changed.
    package var from: String
    /// The new directory.
    package var into: String
    package var seconds: Double = 0
    package var tables: [Table] = []
    /// Of the new database, by state.
    package var operations: [String: Int] = [:]
    package var blobs = 0
    package var lostBlobs: [LostBlob] = []
    /// Blobs that no recovered operation names, kept in `unplaced-blobs`.
    package var unplacedBlobs = 0
    /// What else was copied, by name.
    package var copied: [String] = []
    /// The file of rows that could not be placed, a JSON object a line; nil: there are none.
    package var unplaced: String?
    /// In words; what could not be done.
    package var errors: [String] = []
    /// In words; what was mended on the way.
    package var notes: [String] = []
    /// What to do now, in words.
    package var next: [String] = []

    /// Whether nothing is known to be missing.
    package var isWhole: Bool {
        tables.allSatisfy { $0.isWhole && $0.unplaced == 0 } && lostBlobs.isEmpty && unplacedBlobs == 0 && errors.isEmpty
    }
}
