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

extension Int64 {
    /// The value with `.min` raised by one, so that its negation is in range.
    fileprivate var clamped: Int64 { Swift.max(self, -.max) }
}
