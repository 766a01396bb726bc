// Cursors and the requests built from them (docs/outbox.md#delta-pull; docs/reference/configuration.md#delta).
import RockpoolCore
import Testing

@Suite struct DeltaCursorTests {
    static let members: [(JSONValue, String, String)] = [
        ("2026-01-02T03:04:05.678Z", "time 2026-01-02T03:04:05.678Z", "2026-01-02T03:03:05.678Z"),
        ("2026-01-02T03:04:05.678901+01:00", "time 2026-01-02T03:04:05.678901+01:00", "2026-01-02T02:03:05.678Z"),
        (1_767_323_045, "seconds 1767323045", "1767322985"), ("1767323045", "seconds 1767323045", "1767322985"),
        (1_767_323_045_678, "milliseconds 1767323045678", "1767322985678"), (42, "number 42", "42"),
        ("01HX yz", "text 01HX yz", "01HX yz"),
    ]

    @Test(arguments: members) func aMemberIsReadKeptAndAskedFor(_ member: JSONValue, _ stored: String, _ asked: String) throws {
        let cursor = try #require(DeltaCursor(member: member))
        #expect(cursor.stored == stored && DeltaCursor(stored: stored) == cursor && cursor.asked() == asked)
    }

    @Test(arguments: [JSONValue.null, "", 1.5.json, [], true]) func whatHasNoOrderIsNone(_ member: JSONValue) {
        #expect(DeltaCursor(member: member) == nil)
    }

    @Test(arguments: ["", "time", "never 1"]) func whatWasNeverStoredIsNone(_ text: String) { #expect(DeltaCursor(stored: text) == nil) }

    @Test func theUpstreamsOwnIsUsedAsItIs() {
        #expect(DeltaCursor(issued: "1767323045")?.asked() == "1767323045" && DeltaCursor(issued: "") == nil)
    }

    @Test(
        arguments: [
            ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00+01:00", 0), ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", 1), (9, 10, 1),
            (1_767_323_045, 1_767_323_045_999, 1), ("b", "a", 0), ("2026-01-01T00:00:00Z", 7, 1),
        ] as [(JSONValue, JSONValue, Int)]) func theLaterOfTwo(_ a: JSONValue, _ b: JSONValue, _ later: Int)
    {
        let cursors = [a, b].map { DeltaCursor(member: $0) }
        #expect(DeltaCursor.later(cursors[0], cursors[1]) == cursors[later])
        #expect(DeltaCursor.later(nil, cursors[1]) == cursors[1] && DeltaCursor.later(cursors[0], nil) == cursors[0])
    }

    @Test(arguments: [
        ("/n?updatedAfter={cursor}", "a b&c=+/~", "/n?updatedAfter=a%20b%26c%3D%2B%2F~"), ("/n?updatedAfter={cursor}", nil, "/n"),
        ("/n?limit=9&since={cursor}", nil, "/n?limit=9"), ("/n?limit=9&since={cursor}", "x", "/n?limit=9&since=x"), ("/n", "x", "/n"),
        ("/n?q=gt:{cursor}", "ü", "/n?q=gt:%C3%BC"),
    ]) func templates(_ template: String, _ cursor: String?, _ target: String) {
        #expect(DeltaTemplate(template).target(after: cursor) == target)
    }
}

extension Double {
    fileprivate var json: JSONValue { JSONNumber(literal: "\(self)").map { .number($0) } ?? .null }
}
