// RFC 9110 §5.6.7 and RFC 3339 §5.6: valid and invalid dates; formatting and parsing agree.
import RockpoolCore
import Testing

@Suite struct HTTPDateTests {
    @Test(arguments: [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
        ("Sun Nov  6 08:49:37 1994", 784_111_777), ("Wed Nov 16 08:49:37 1994", 784_975_777),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Wed, 31 Dec 1969 23:59:59 GMT", -1), ("Thu, 29 Feb 2024 12:00:00 GMT", 1_709_208_000),
        ("Tue, 29 Feb 2000 00:00:00 GMT", 951_782_400), ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
        ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800), ("Mon, 06 Nov 1994 08:49:37 GMT", 784_111_777),
        // RFC 9110 §5.6.7: senders must write names in the specified case; recipients accept any case.
        ("sun, 06 nov 1994 08:49:37 gmt", 784_111_777), ("SUN, 06 NOV 1994 08:49:37 GMT", 784_111_777),
        ("SunDay, 06-nOV-94 08:49:37 Gmt", 784_111_777), ("sUN nov  6 08:49:37 1994", 784_111_777),
    ])
    func reads(_ text: String, seconds: Int64) {
        #expect(HTTPDate.parse(text) == Timestamp(seconds: seconds))
    }

    @Test(arguments: [
        "", "0", "-1", "now", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT", "Sun 06 Nov 1994 08:49:37 GMT", "sun, 06 nov 1994 08:49:37 utc",
        "Sun, 31 Feb 1994 08:49:37 GMT", "Thu, 29 Feb 2023 12:00:00 GMT", "Sun, 29 Feb 1900 12:00:00 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:61 GMT", "Sun,  06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT ", "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37Z",
        "Sun Nov 6 08:49:37 1994", "Sun, 06 Noé 1994 08:49:37 GMT", "Sun, 06 Nov 99999999999 08:49:37 GMT",
    ])
    func refuses(_ text: String) {
        #expect(HTTPDate.parse(text) == nil)
    }

    @Test(arguments: [("70", 2070), ("76", 2076), ("77", 1977), ("99", 1999), ("26", 2026), ("00", 2000)])
    func twoDigitYearsAreAtMostFiftyYearsAhead(_ digits: String, year: Int) {
        let parsed = HTTPDate.parse("Sunday, 06-Nov-\(digits) 08:49:37 GMT", now: CachingFixture.start)
        #expect(parsed.map { HTTPDate.format($0).contains(" \(year) ") } == true)
    }

    @Test(arguments: [-62_167_219_200, -86_401, -1, 0, 951_782_399, 951_868_800, 1_767_225_600, 4_107_542_400, 253_402_300_799] as [Int64])
    func writesWhatItReads(_ seconds: Int64) {
        let moment = Timestamp(seconds: seconds)
        #expect(HTTPDate.parse(HTTPDate.format(moment)) == moment)
        #expect(RFC3339.parse(RFC3339.format(moment)) == moment)
    }

    @Test func everyDayOfFourYearsKeepsItsPlace() {
        for day in 0..<1461 {
            let moment = Timestamp(seconds: Int64(day) * 86_400 + 1_000_000_000)
            #expect(HTTPDate.parse(HTTPDate.format(moment)) == moment)
        }
    }

    @Test func momentsBeyondTheCalendarAreHeld() {
        #expect(HTTPDate.format(.distantFuture) == "Fri, 31 Dec 9999 23:59:59 GMT")
        #expect(HTTPDate.format(Timestamp(milliseconds: .min)) == "Sat, 01 Jan 0000 00:00:00 GMT")
    }

    @Test(arguments: [
        ("2026-01-01T00:00:00Z", 1_767_225_600_000), ("2026-01-01t00:00:00.5z", 1_767_225_600_500),
        ("2026-01-01 01:30:00.1239+01:30", 1_767_225_600_123), ("2025-12-31T19:00:00-05:00", 1_767_225_600_000),
    ])
    func readsRFC3339(_ text: String, milliseconds: Int64) {
        #expect(RFC3339.parse(text) == Timestamp(milliseconds: milliseconds))
    }

    @Test(arguments: [
        "", "2026-01-01", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00Z ", "26-01-01T00:00:00Z", "2026-01-01T00:00:00 Z",
    ])
    func refusesRFC3339(_ text: String) {
        #expect(RFC3339.parse(text) == nil)
    }

    @Test func writesMilliseconds() {
        #expect(RFC3339.format(Timestamp(milliseconds: 1_767_225_600_007)) == "2026-01-01T00:00:00.007Z")
        #expect(RFC3339.format(Timestamp(milliseconds: -1)) == "1969-12-31T23:59:59.999Z")
    }
}
