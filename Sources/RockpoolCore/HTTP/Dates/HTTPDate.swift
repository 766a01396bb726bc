// The three date formats of HTTP: all are parsed, one is generated (RFC 9110 §5.6.7).

/// Dates in HTTP fields, at a resolution of one second.
package enum HTTPDate {
    private static let longDayNames = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"]

    /// Parses a date in IMF-fixdate, RFC 850 or asctime form; nil for anything else, including a list of dates.
    ///
    /// The weekday must be a valid name but is not compared with the date, and names are matched ignoring case: senders get both wrong, and
    /// nothing depends on them (RFC 9110 §5.6.7 requires robust recipients).
    /// - Parameter now: The reference for two-digit years: a year more than 50 years ahead means the most recent past one.
    package static func parse(_ text: String, now: Timestamp? = nil) -> Timestamp? {
        let civil = fixdate(from: DigitScanner(text)) ?? rfc850(from: DigitScanner(text), now: now) ?? asctime(from: DigitScanner(text))
        guard let civil, civil.isValid else { return nil }
        return Timestamp(seconds: civil.secondsSinceEpoch)
    }

    /// `Sun, 06 Nov 1994 08:49:37 GMT`.
    package static func format(_ moment: Timestamp) -> String {
        let civil = CivilTime(secondsSinceEpoch: moment.seconds)
        var text: [UInt8] = []
        text.reserveCapacity(29)
        text.append(contentsOf: civil.dayName.utf8)
        text.append(contentsOf: ", ".utf8)
        text.append(civil.day, width: 2)
        text.append(0x20)
        text.append(contentsOf: CivilTime.monthNames[civil.month - 1].utf8)
        text.append(0x20)
        text.append(civil.year, width: 4)
        text.append(0x20)
        text.append(civil.hour, width: 2)
        text.append(0x3A)
        text.append(civil.minute, width: 2)
        text.append(0x3A)
        text.append(civil.second, width: 2)
        text.append(contentsOf: " GMT".utf8)
        return String(decoding: text, as: UTF8.self)
    }

    /// `Sun, 06 Nov 1994 08:49:37 GMT`
    private static func fixdate(from text: DigitScanner) -> CivilTime? {
        var text = text
        guard text.index(in: CivilTime.dayNames) != nil, text.take(", "), let day = text.number(width: 2), text.take(" "),
            let month = text.index(in: CivilTime.monthNames), text.take(" "), let year = text.number(width: 4), text.take(" "),
            let time = time(from: &text), text.takeIgnoringCase(" GMT"), text.isAtEnd
        else { return nil }
        return CivilTime(year: year, month: month + 1, day: day, hour: time.hour, minute: time.minute, second: time.second)
    }

    /// `Sunday, 06-Nov-94 08:49:37 GMT`
    private static func rfc850(from text: DigitScanner, now: Timestamp?) -> CivilTime? {
        var text = text
        guard text.index(in: longDayNames) != nil, text.take(", "), let day = text.number(width: 2), text.take("-"),
            let month = text.index(in: CivilTime.monthNames), text.take("-"), let twoDigits = text.number(width: 2), text.take(" "),
            let time = time(from: &text), text.takeIgnoringCase(" GMT"), text.isAtEnd
        else { return nil }
        let year = fullYear(twoDigits, now: now)
        return CivilTime(year: year, month: month + 1, day: day, hour: time.hour, minute: time.minute, second: time.second)
    }

    /// `Sun Nov  6 08:49:37 1994`
    private static func asctime(from text: DigitScanner) -> CivilTime? {
        var text = text
        guard text.index(in: CivilTime.dayNames) != nil, text.take(" "), let month = text.index(in: CivilTime.monthNames), text.take(" "),
            let day = text.take(" ") ? text.number(width: 1) : text.number(width: 2), text.take(" "),
            let time = time(from: &text), text.take(" "), let year = text.number(width: 4), text.isAtEnd
        else { return nil }
        return CivilTime(year: year, month: month + 1, day: day, hour: time.hour, minute: time.minute, second: time.second)
    }

    private static func time(from text: inout DigitScanner) -> (hour: Int, minute: Int, second: Int)? {
        guard let hour = text.number(width: 2), text.take(":"), let minute = text.number(width: 2), text.take(":"),
            let second = text.number(width: 2)
        else { return nil }
        return (hour, minute, second)
    }

    /// Expands a two-digit year; without a reference time to 1970…2069.
    private static func fullYear(_ twoDigits: Int, now: Timestamp?) -> Int {
        guard let now else { return twoDigits < 70 ? 2000 + twoDigits : 1900 + twoDigits }
        let current = CivilTime(secondsSinceEpoch: now.seconds).year
        let sameCentury = current - current % 100 + twoDigits
        if sameCentury > current + 50 { return sameCentury - 100 }
        return sameCentury <= current - 50 ? sameCentury + 100 : sameCentury
    }
}
