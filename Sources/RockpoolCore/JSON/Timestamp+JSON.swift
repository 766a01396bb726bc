// Times as APIs write them into members such as `updatedAt` and `deletedAt`.

extension Timestamp {
    /// Parses the time in a member such as `updatedAt`; nil for another value. Formats: RFC 3339, an HTTP date, seconds or
    /// milliseconds since the epoch.
    package init?(stated value: JSONValue) {
        if let text = value.string, let moment = RFC3339.parse(text) ?? HTTPDate.parse(text) {
            self = moment
        } else if let number = value.integer {
            // Below 1e11: seconds until the year 5138; from there on: milliseconds since 1973.
            self = abs(number.clamped) < 100_000_000_000 ? Timestamp(seconds: number) : Timestamp(milliseconds: number)
        } else {
            return nil
        }
    }
}

extension Timestamp {
    /// How far a stated time may lie ahead of the clock of the server that states it.
    package static let tolerance = TimeSpan.minutes(5)

    /// True if a server that shows the time `now` cannot have made a change at this time: it orders no changes (docs/outbox.md#times).
    /// - Parameter now: nil where the server shows no time.
    package func isImpossible(at now: Timestamp?) -> Bool { now.map { self > $0 + Self.tolerance } ?? false }
}

extension Int64 {
    /// The value with `.min` raised by one, so that its negation is in range.
    fileprivate var clamped: Int64 { Swift.max(self, -.max) }
}
