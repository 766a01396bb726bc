// Why a bundle cannot be read on: one sentence, and where (ISO 28500:2017 §4).

/// A file is no WARC from some record on. What came before it was good.
package struct WARCFault: Error, Hashable, CustomStringConvertible, Sendable {
    /// Counted from 1; one past the last whole record.
    package var record: Int
    /// One sentence; what it quotes is short.
    package var reason: String

    package init(record: Int, reason: String) {
        self.record = record
        self.reason = reason
    }

    /// `record 3: its Content-Length is not a number`.
    package var description: String { "record \(record): \(reason)" }
}
