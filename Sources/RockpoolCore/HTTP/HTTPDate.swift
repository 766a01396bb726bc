// Dates in HTTP fields (RFC 9110 §5.6.7) and in the admin API (RFC 3339), and the calendar behind them.
package import HTTPTypes

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

/// The `Retry-After` field (RFC 9110 §10.2.3).
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

/// Dates and times in the format of the admin API, at a resolution of one millisecond (RFC 3339 §5.6,
/// docs/reference/admin-api.md#conventions).
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

/// A calendar date and time of day in UTC. Years 0…9999.
struct CivilTime: Equatable {
    var year: Int
    /// 1…12.
    var month: Int
    /// 1…31.
    var day: Int
    var hour: Int
    var minute: Int
    /// 0…60: a leap second counts as the first second of the next minute.
    var second: Int

    static let monthNames = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    /// Starts with Thursday, the weekday of the Unix epoch.
    static let dayNames = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]

    /// True if every part is within its range, and the day within its month.
    var isValid: Bool {
        (0...9999).contains(year) && (1...12).contains(month) && (1...daysInMonth).contains(day)
            && (0...23).contains(hour) && (0...59).contains(minute) && (0...60).contains(second)
    }

    private var daysInMonth: Int {
        switch month {
        case 2: (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Seconds since the Unix epoch.
    var secondsSinceEpoch: Int64 {
        // Years are counted from March, so that the leap day is the last of its year; an era is 400 years.
        let marchYear = month <= 2 ? year - 1 : year
        let era = (marchYear >= 0 ? marchYear : marchYear - 399) / 400
        let yearOfEra = marchYear - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        let days = era * 146_097 + dayOfEra - 719_468
        return Int64(days) * 86_400 + Int64(hour * 3600 + minute * 60 + second)
    }
}

extension CivilTime {
    /// Years 0…9999 in seconds since the epoch; times beyond are clamped.
    private static let representable: ClosedRange<Int64> = -62_167_219_200...253_402_300_799

    /// The calendar form of `seconds` since the Unix epoch.
    init(secondsSinceEpoch seconds: Int64) {
        let held = min(max(seconds, Self.representable.lowerBound), Self.representable.upperBound)
        let days = Int((held >= 0 ? held : held - 86_399) / 86_400)
        let secondOfDay = Int(held - Int64(days) * 86_400)
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        day = dayOfYear - (153 * marchMonth + 2) / 5 + 1
        hour = secondOfDay / 3600
        minute = secondOfDay / 60 % 60
        second = secondOfDay % 60
    }

    /// `Mon` … `Sun`.
    var dayName: String {
        let days = CivilTime(year: year, month: month, day: day, hour: 0, minute: 0, second: 0).secondsSinceEpoch / 86_400
        return Self.dayNames[Int((days % 7 + 7) % 7)]
    }
}

/// A cursor over the bytes of a field value. Every step reports whether it matched.
struct DigitScanner {
    private let bytes: [UInt8]
    private var position = 0

    init(_ text: some StringProtocol) { bytes = Array(text.utf8) }

    var isAtEnd: Bool { position == bytes.count }

    /// The next byte, without consuming it.
    var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    /// Consumes `literal`, matched exactly.
    mutating func take(_ literal: StaticString) -> Bool {
        let length = literal.utf8CodeUnitCount
        guard bytes.count - position >= length else { return false }
        let found = literal.withUTF8Buffer { unsafe $0.elementsEqual(bytes[position..<position + length]) }
        if found { position += length }
        return found
    }

    /// Consumes `literal`, ignoring case.
    mutating func takeIgnoringCase(_ literal: String) -> Bool {
        let found = FieldByte.equal(bytes[position...].prefix(literal.utf8.count), literal.utf8)
        if found { position += literal.utf8.count }
        return found
    }

    /// Consumes exactly `width` decimal digits.
    mutating func number(width: Int) -> Int? {
        guard bytes.count - position >= width else { return nil }
        var value = 0
        for byte in bytes[position..<position + width] {
            guard byte >= 0x30, byte <= 0x39 else { return nil }
            value = value * 10 + Int(byte - 0x30)
        }
        position += width
        return value
    }

    /// Consumes one of `names`, ignoring case, and returns its index.
    mutating func index(in names: [String]) -> Int? {
        for (index, name) in names.enumerated() where takeIgnoringCase(name) { return index }
        return nil
    }

    /// Consumes all consecutive ASCII digits; returns at most the first `limit`.
    mutating func digits(keeping limit: Int) -> [UInt8] {
        let start = position
        while let byte = peek, byte >= 0x30, byte <= 0x39 { position += 1 }
        return Array(bytes[start..<position].prefix(limit))
    }
}

extension [UInt8] {
    /// Appends `value` in decimal, padded with zeros to `width` digits.
    mutating func append(_ value: Int, width: Int) {
        let digits = Array(String(value).utf8)
        append(contentsOf: repeatElement(0x30, count: Swift.max(0, width - digits.count)))
        append(contentsOf: digits)
    }
}
