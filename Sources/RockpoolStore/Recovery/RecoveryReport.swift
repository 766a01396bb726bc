// The data that a recovery saved from a damaged outbox, and the data it could not save (docs/storage.md#recovery).

/// The report of `rockpool doctor --recover`.
package struct RecoveryReport: Hashable, Sendable, Codable {
    package struct Table: Hashable, Sendable, Codable {
        package var name: String
        /// Rows in the new database.
        package var rows = 0
        /// Rows that were read but could not be inserted; they are in the file `unplaced`.
        package var unplaced = 0
        /// True if every page of the table could be read.
        package var isWhole = true
        /// The first ranges of keys under which rows may be missing; none where keys are not integers.
        package var unreadable: [String] = []
    }

    /// A body of an operation with a missing or damaged file.
    package struct LostBlob: Hashable, Sendable, Codable {
        package var sha256: String
        /// Public ids of the operations that reference the blob. They are kept and cannot be sent.
        package var operations: [String]
    }

    /// The damaged directory; not a byte of it was changed.
    package var from: String
    /// The new directory.
    package var into: String
    package var seconds: Double = 0
    package var tables: [Table] = []
    /// Operations in the new database, by state.
    package var operations: [String: Int] = [:]
    package var blobs = 0
    package var lostBlobs: [LostBlob] = []
    /// Blobs that no recovered operation references, kept in `unplaced-blobs`.
    package var unplacedBlobs = 0
    /// Names of other copied files.
    package var copied: [String] = []
    /// Path of the file of rows that could not be inserted, one JSON object per line; nil when there are none.
    package var unplaced: String?
    /// Messages for people about failed steps.
    package var errors: [String] = []
    /// Messages for people about repairs.
    package var notes: [String] = []
    /// Messages for people about the next steps.
    package var next: [String] = []

    /// True if nothing is known to be missing.
    package var isWhole: Bool {
        tables.allSatisfy { $0.isWhole && $0.unplaced == 0 } && lostBlobs.isEmpty && unplacedBlobs == 0 && errors.isEmpty
    }
}
