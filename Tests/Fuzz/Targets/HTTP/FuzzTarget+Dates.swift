// Dates and times: a moment that was parsed and written is parsed as the same moment.
import RockpoolCore

extension FuzzTarget {
    /// Lines: a date, milliseconds since the epoch.
    static func dates(_ input: FuzzInput) throws(BrokenProperty) {
        let text = input.text(0)
        let now = Timestamp(milliseconds: input.number(1))
        for date in [HTTPDate.parse(text), HTTPDate.parse(text, now: now)].compactMap(\.self) where isWritable(date) {
            try hold(HTTPDate.parse(HTTPDate.format(date)) == date, "a date is read back: \(HTTPDate.format(date))")
        }
        for moment in [RFC3339.parse(text), now].compactMap(\.self) where isWritable(moment) {
            try hold(RFC3339.parse(RFC3339.format(moment)) == moment, "a time is read back: \(RFC3339.format(moment))")
            let second = Timestamp(seconds: moment.seconds)
            try hold(HTTPDate.parse(HTTPDate.format(second)) == second, "a date is read back: \(HTTPDate.format(second))")
        }
        try hold(RFC3339.format(now).utf8.count == 24 && HTTPDate.format(now).utf8.count == 29, "dates have one length")
        if let other = RFC3339.parse(text), isWritable(other), isWritable(now) {
            try hold((RFC3339.format(other) < RFC3339.format(now)) == (other < now), "texts sort as the moments do")
        }
    }

    /// Years 0…9999; moments outside are written as the first or the last of them.
    private static func isWritable(_ moment: Timestamp) -> Bool { (-62_167_219_200...253_402_300_799).contains(moment.seconds) }
}
