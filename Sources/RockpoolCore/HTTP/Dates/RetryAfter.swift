// The retry time requested by an upstream (RFC 9110 §10.2.3).
package import HTTPTypes

/// The `Retry-After` field.
package enum RetryAfter {
    /// Parses the time in `Retry-After`, from delay-seconds or an HTTP-date; nil when absent or malformed. Not before `now`.
    package static func parse(_ fields: HTTPFields, now: Timestamp) -> Timestamp? {
        guard let value = fields[.retryAfter] else { return nil }
        if !value.isEmpty, value.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            return now + .seconds(Int64(value) ?? .max)
        }
        return HTTPDate.parse(value).map { max($0, now) }
    }
}
