// Tables that fit the terminal, formatted numbers, and colours only where allowed (docs/reference/cli.md#common-options).
import Foundation
import Testing

@testable import rockpool

@Suite struct TextTableTests {
    private let table = TextTable(
        columns: [.text("NAME"), .number("SIZE"), .text("URL")],
        rows: [["a", "1.0 kB", "https://api.example.com/v1/notes"], [.init("long", .bad), "12 B", "–"]])

    @Test func `Columns are as wide as their content; a pipe gets them whole`() {
        #expect(
            table.lines(on: Display(width: nil, hasColour: false)) == [
                "NAME    SIZE  URL", "a     1.0 kB  https://api.example.com/v1/notes", "long    12 B  –",
            ])
    }

    @Test(arguments: [36, 40, 45])
    func `A narrow terminal gets the widest column on a line of its own, and all of it`(width: Int) {
        #expect(
            table.lines(on: Display(width: width, hasColour: false)) == [
                "NAME    SIZE", "a     1.0 kB", "    url  https://api.example.com/v1/notes", "long    12 B",
            ])
    }

    @Test func `A first column that does not fit stands above its row`() {
        let table = TextTable(columns: [.text("URL"), .number("SIZE")], rows: [["https://api.example.com/v1/notes", "1 B"]])
        #expect(
            table.lines(on: Display(width: 30, hasColour: false)) == ["    SIZE", "https://api.example.com/v1/notes", "     1 B"])
    }

    @Test func `A long fact continues under itself`() {
        let facts = TextTable.facts([("next", "see what was not delivered, and why: rockpool outbox ls")])
        #expect(
            facts.lines(on: Display(width: 34, hasColour: false)) == [
                "next  see what was not delivered,", "      and why: rockpool outbox ls",
            ])
    }

    @Test func `Colours are put around the text, not the padding`() {
        let lines = table.lines(on: Display(width: nil, hasColour: true))
        #expect(lines[0].hasPrefix("\u{1B}[1mNAME\u{1B}[0m  "))
        #expect(lines[2].hasPrefix("\u{1B}[31mlong\u{1B}[0m    12 B"))
    }

    @Test(arguments: [[:], ["NO_COLOR": "1"]] as [[String: String]])
    func `A file is neither wide nor coloured`(environment: [String: String]) throws {
        let file = try #require(FileHandle(forReadingAtPath: "/dev/null"))
        let display = Display(descriptor: file.fileDescriptor, environment: environment)
        #expect(display.width == nil)
        #expect(!display.hasColour)
    }

    @Test func `Control characters cannot steer the terminal`() {
        #expect(TextTable.Cell("a\u{1B}[2Jb\nc").text == "a [2Jb c")
    }

    @Test func `Facts have no title`() {
        #expect(
            TextTable.facts([("state", "synced"), ("pending", "2")]).lines(on: Display(width: nil, hasColour: false)) == [
                "state    synced", "pending  2",
            ])
    }

    @Test(arguments: [
        (0.0, "0 s"), (0.2, "under 1 s"), (59.9, "59 s"), (60, "1 min"), (7500, "2 h 5 min"), (86401, "1 d"), (.infinity, "–"),
    ])
    func `Durations`(seconds: Double, expected: String) {
        #expect(ForPeople.seconds(seconds) == expected)
    }

    @Test(arguments: [(0.0, "0.0%"), (0.8754, "87.5%"), (1, "100.0%"), (.nan, "–")])
    func `Ratios`(ratio: Double, expected: String) {
        #expect(ForPeople.percent(ratio) == expected)
    }

    @Test func `Shares and times`() {
        #expect(ForPeople.share(12_300_000, of: 500_000_000) == "12.3 MB of 500.0 MB (2.5%)")
        #expect(ForPeople.share(12_300_000, of: 0) == "12.3 MB")
        #expect(ForPeople.time("2026-11-21T08:25:03.123Z") == "2026-11-21 08:25:03Z")
        #expect(ForPeople.time("soon") == "soon")
        #expect(ForPeople.time(nil) == "–")
    }
}
