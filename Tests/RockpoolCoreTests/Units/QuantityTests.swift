// Parsing and formatting of sizes, durations and shares.
import Testing

@testable import RockpoolCore

@Suite struct QuantityTests {
    @Test(arguments: [
        ("500 MB", 500_000_000), ("512 KiB", 524_288), ("1.5 GB", 1_500_000_000), ("0", 0), ("1000", 1000), ("10mb", 10_000_000),
        ("7 B", 7),
        ("0.5 MiB", 524_288), (" 2 TiB ", 2_199_023_255_552), ("0.0001 kB", 0), ("9223372036854775807", Int64.max),
        ("1.999999999 kB", 1999),
    ])
    func size(text: String, bytes: Int64) throws {
        #expect(try ByteCount(parsing: text) == ByteCount(bytes))
    }

    @Test(arguments: [
        "", " ", "MB", "-1 MB", "1 QB", "1..5 MB", "1. MB", "5 MB x", "9223372036854775808", "9223372036855 MB", "١ MB",
        "1e3 MB",
    ])
    func noSize(text: String) {
        #expect(throws: UnitError.self) { try ByteCount(parsing: text) }
    }

    @Test(arguments: [
        (500_000_000, "500 MB"), (524_288, "512 KiB"), (1234, "1234 B"), (0, "0 B"), (1_048_576_000, "1000 MiB"),
        (2000, "2 kB"),
    ])
    func sizeInText(bytes: Int64, text: String) throws {
        #expect(ByteCount(bytes).description == text)
        #expect(try ByteCount(parsing: text) == ByteCount(bytes))
    }

    @Test(arguments: [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1_460_000, "1.4 MB"), (999_999_999, "999.9 MB"), (-3, "-3 B")])
    func roundedSize(bytes: Int64, text: String) {
        #expect(ByteCount(bytes).rounded == text)
    }

    @Test(arguments: [
        ("90s", TimeSpan.seconds(90)), ("15m", .minutes(15)), ("7d", .days(7)), ("forever", .forever), ("500ms", .milliseconds(500)),
        ("0.5s", .milliseconds(500)), ("0", .zero), ("0s", .zero), ("2w", .days(14)), ("24 h", .days(1)),
    ])
    func span(text: String, expected: TimeSpan) throws {
        #expect(try TimeSpan(parsing: text) == expected)
    }

    @Test(arguments: ["", "5", "0.5", "s", "5 M", "5 sec", "-5s", "never", "999999999999999999d", "0.0001"])
    func noSpan(text: String) {
        #expect(throws: UnitError.self) { try TimeSpan(parsing: text) }
    }

    @Test(arguments: [
        (TimeSpan.seconds(90), "90s"), (.seconds(900), "15m"), (.hours(24), "1d"), (.forever, "forever"), (.zero, "0s"),
        (.milliseconds(1500), "1500ms"),
        (.days(14), "14d"), (.seconds(-60), "-1m"),
    ])
    func spanInText(span: TimeSpan, text: String) {
        #expect(span.description == text)
    }

    @Test(arguments: [("0%", 0), ("40%", 40), ("100%", 100), (" 5 % ", 5)])
    func percent(text: String, expected: Int) throws {
        #expect(try Percent.parse(text) == expected)
    }

    @Test(arguments: ["", "%", "40", "101%", "-1%", "1.5%", "4 0%", "99999999999999999999%"])
    func noPercent(text: String) {
        #expect(throws: UnitError.self) { try Percent.parse(text) }
    }

    @Test func sharesDoNotOverflow() {
        #expect(Int64(199).percent(50) == 99)
        #expect(Int64.max.percent(100) == .max)
        #expect(Int64.max.percent(50) == Int64.max / 2)
    }

    @Test func errorsSayWhatIsKnown() {
        #expect("\(UnitError.unknownUnit("QB", known: ["kB", "MB"]))" == "unknown unit 'QB'; known are kB, MB")
        #expect(throws: UnitError.missingUnit("5", known: ["ms", "s", "m", "h", "d", "w"])) { try TimeSpan(parsing: "5") }
    }
}
