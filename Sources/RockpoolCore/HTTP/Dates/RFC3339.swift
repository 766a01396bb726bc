// Timestamps of the admin API, the logs and the cursors of delta sync (RFC 3339 §5.6, docs/reference/admin-api.md#conventions).

/// Dates and times in the format of the admin API, at a resolution of one millisecond.
package enum RFC3339 {
    /// `2026-01-02T03:04:05.678Z`, always UTC with milliseconds, so that texts sort in chronological order.
    package static func format(_ moment: Timestamp) -> String {
        let civil = CivilTime(secondsSinceEpoch: moment.seconds)
        let milliseconds = Int((moment.milliseconds % 1000 + 1000) % 1000)
        var text: [UInt8] = []
        text.reserveCapacity(24)
        for (value, width, separator) in [
            (civil.year, 4, "-"), (civil.month, 2, "-"), (civil.day, 2, "T"), (civil.hour, 2, ":"), (civil.minute, 2, ":"),
            (civil.second, 2, "."), (milliseconds, 3, "Z"),
        ] {
            text.append(value, width: width)
            text.append(contentsOf: separator.utf8)
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Parses a timestamp with any offset and any number of fractional digits (those past the third are dropped). Nil for anything else.
    package static func parse(_ text: String) -> Timestamp? {
        var text = DigitScanner(text)
        guard let year = text.number(width: 4), text.take("-"), let month = text.number(width: 2), text.take("-"),
            let day = text.number(width: 2), text.take("T") || text.take("t") || text.take(" "),
            let hour = text.number(width: 2), text.take(":"), let minute = text.number(width: 2), text.take(":"),
            let second = text.number(width: 2)
        else { return nil }
        let civil = CivilTime(year: year, month: month, day: day, hour: hour, minute: minute, second: second)
        guard civil.isValid, let milliseconds = fraction(from: &text), let offset = offsetSeconds(from: &text), text.isAtEnd else {
            return nil
        }
        return Timestamp(seconds: civil.secondsSinceEpoch - offset) + .milliseconds(milliseconds)
    }

    private static func fraction(from text: inout DigitScanner) -> Int64? {
        guard text.take(".") else { return 0 }
        let digits = text.digits(keeping: 3)
        guard !digits.isEmpty else { return nil }
        return zip(digits, [100, 10, 1]).reduce(0) { $0 + Int64($1.0 - 0x30) * $1.1 }
    }

    private static func offsetSeconds(from text: inout DigitScanner) -> Int64? {
        if text.take("Z") || text.take("z") { return 0 }
        let sign: Int64
        if text.take("+") { sign = 1 } else if text.take("-") { sign = -1 } else { return nil }
        guard let hours = text.number(width: 2), hours < 24, text.take(":"), let minutes = text.number(width: 2), minutes < 60
        else { return nil }
        return sign * Int64(hours * 3600 + minutes * 60)
    }
}
