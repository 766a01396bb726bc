// The reason why reading a WARC bundle failed, and the record (ISO 28500:2017 §4).

/// A file that is not valid WARC from some record on. Earlier records were valid.
package struct WARCFault: Error, Hashable, CustomStringConvertible, Sendable {
    /// Counted from 1; one past the last complete record.
    package var record: Int
    /// One sentence with short excerpts at most.
    package var reason: String

    package init(record: Int, reason: String) {
        self.record = record
        self.reason = reason
    }

    /// `record 3: its Content-Length is not a number`.
    package var description: String { "record \(record): \(reason)" }
}
