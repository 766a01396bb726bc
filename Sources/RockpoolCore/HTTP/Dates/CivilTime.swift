// Arithmetic of the proleptic Gregorian calendar in UTC, shared by the date formats of HTTP and of the admin API.

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
