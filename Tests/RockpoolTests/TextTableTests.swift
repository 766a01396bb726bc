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

    // MARK: texts of others

    /// What controls a terminal, ends a line in one, or turns the direction of writing (UAX #9, the property Bidi_Control).
    static let steering: [Unicode.Scalar] =
        [0x061C, 0x200E, 0x200F, 0x2028, 0x2029, 0x85, 0x9B, 0x9D, 0x7F, 0x00, 0x07, 0x08, 0x1B].compactMap { Unicode.Scalar($0) }
        + (0x202A...0x202E).compactMap { Unicode.Scalar($0) } + (0x2066...0x2069).compactMap { Unicode.Scalar($0) }

    @Test(arguments: steering) func noTextSteersATerminal(scalar: Unicode.Scalar) {
        let text = "a\(scalar)b"
        #expect(text.inOneLine == "a b" && TextTable.Cell(text).text == "a b")
        let shown = text.shownOnTerminal
        #expect(!shown.unicodeScalars.contains(scalar) && shown.hasPrefix("a\\u") && shown.utf8.count == 8, "\(shown)")
    }

    @Test(arguments: ["résumé", "שלום", "日本\n語\t", "👩‍👩‍👧", "\u{1B}[1;31mred\u{1B}[0m", "\r\u{1B}[K", "\u{1B}[2J\u{1B}[H"])
    func textsAndOwnSequencesRemain(text: String) {
        #expect(text.shownOnTerminal == text)
    }

    @Test(arguments: ["\u{1B}]0;title\u{7}", "\u{1B}[6n", "\u{1B}P", "\u{1B}[31", "\u{1B}c", "\u{1B}"]) func otherSequencesAreShown(
        text: String
    ) {
        #expect(text.shownOnTerminal.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value < 0x7F })
    }

    /// In JSON the escape means the character.
    @Test func shownJSONIsTheSameJSON() throws {
        let json = "{\"a\": \"x\u{202E}\u{9B}y\"}"
        #expect(json.shownOnTerminal == #"{"a": "x\u202e\u009by"}"#)
        #expect(try JSONSerialization.jsonObject(with: Data(json.shownOnTerminal.utf8)) as? [String: String] == ["a": "x\u{202E}\u{9B}y"])
    }
}
