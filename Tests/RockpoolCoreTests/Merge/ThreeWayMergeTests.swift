// Every merge rule of a field with its edge cases; digits and order are preserved (docs/outbox.md#fields).
import RockpoolCore
import Testing

private struct Row: Sendable, CustomTestStringConvertible {
    let (base, mine, theirs, merged): (String, String, String, String)
    var rules: [String: String] = [:]
    /// Fields left to a user's decision.
    var open: [String] = []
    var mineIsNewer: Bool?

    init(
        _ base: String, _ mine: String, _ theirs: String, _ merged: String, _ rules: [String: String] = [:], open: [String] = [],
        newer: Bool? = nil
    ) {
        (self.base, self.mine, self.theirs, self.merged) = (base, mine, theirs, merged)
        (self.rules, self.open, mineIsNewer) = (rules, open, newer)
    }

    var testDescription: String { "\(base) · \(mine) · \(theirs) \(rules)" }
}

@Suite struct ThreeWayMergeTests {
    private func merge(_ row: Row) throws -> ThreeWayMerge {
        ThreeWayMerge(
            base: try parsed(row.base), mine: try parsed(row.mine), theirs: try parsed(row.theirs),
            rules: MergeRules(.merging(.fieldMerge, row.rules)), mineIsNewer: row.mineIsNewer)
    }

    @Test(
        arguments: [
            Row(#"{"a":1,"b":1}"#, #"{"a":2,"b":1}"#, #"{"a":1,"b":2}"#, #"{"a":2,"b":2}"#),
            Row(#"{"a":1}"#, #"{"a":2}"#, #"{"a":2.0}"#, #"{"a":2.0}"#),
            // Members keep their order, new ones of mine last; digits stay as written.
            Row(#"{"b":1,"a":1}"#, #"{"z":1e2,"a":1.10,"b":1}"#, #"{"n":0,"b":1,"a":1}"#, #"{"n":0,"b":1,"a":1.10,"z":1e2}"#),
            Row(#"{"a":1,"b":1}"#, #"{"b":1}"#, #"{"a":1,"b":2}"#, #"{"b":2}"#),
            Row(#"{"a":{"x":1,"y":1}}"#, #"{"a":{"x":2,"y":1}}"#, #"{"a":{"x":1}}"#, #"{"a":{"x":2}}"#),
            Row(#"{"a":1}"#, #"{"a":null}"#, #"{"a":1}"#, #"{"a":null}"#),
            // An array is one place; so is a value that was not an object and became one on both sides.
            Row(#"{"a":[1]}"#, #"{"a":[1,2]}"#, #"{"a":[1,3]}"#, #"{"a":[1,3]}"#, open: ["/a"]),
            Row(#"{"a":null}"#, #"{"a":{"x":1}}"#, #"{"a":{"y":1}}"#, #"{"a":{"y":1}}"#, open: ["/a"]),
            Row(#"{"a":{"x":1}}"#, #"{}"#, #"{"a":{"x":2}}"#, #"{"a":{"x":2}}"#, open: ["/a"]),
            Row(#"{"é":1}"#, #"{"é":2}"#, #"{"é":1,"e\u0301":3}"#, "{\"é\":2,\"e\u{301}\":3}"),
            // The upstream's own members are taken from theirs, whichever side changed them.
            Row(
                #"{"id":1,"updatedAt":1,"a":1}"#, #"{"id":"x","a":2}"#, #"{"id":1,"updatedAt":2,"a":1}"#,
                #"{"id":1,"updatedAt":2,"a":2}"#),
        ])
    fileprivate func withoutRules(_ row: Row) throws { try check(row) }

    @Test(
        arguments: [
            ("server", "1", "2", "3", "3"), ("client", "1", "2", "3", "2"), ("max", "1", "2", "3", "3"), ("max", "5", "4", "3", "4"),
            ("min", "1", "2", "3", "2"), ("max", "1", "1e2", "99.9", "1e2"),
            ("max", "0", "90071992547409931", "90071992547409930.5", "90071992547409931"),
            ("max", "0", "-1", "-2", "-1"), ("max", "0", "3.0", "2", "3.0"), ("max", "0", #""b""#, "1", nil),
            ("max", #""""#, #""2026-01-01T00:00:00Z""#, #""2026-01-01T01:00:00+02:00""#, #""2026-01-01T00:00:00Z""#),
            ("min", "1", "2e9999", "3", nil),
            ("counter", "5", "7", "6", "8"), ("counter", "1.50", "1.75", "0.5", "0.75"), ("counter", "5", "2", "4", "1"),
            ("counter", "0", "1", "-3", "-2"), ("counter", "1", "0", "0.5", "-0.5"), ("counter", "2", "1", "1e0", "0"),
            ("counter", "0.1", "0.3", "0.2", "0.4"), ("counter", "1e3", "1.5e3", "1", "501"), ("counter", "1e-2", "2E-2", "0.03", "0.04"),
            ("counter", "99999999999999999999", "100000000000000000000", "100000000000000000001", "100000000000000000002"),
            ("counter", "null", "3", "4", "7"), ("counter", "0", "1e1001", "1", nil), ("counter", "0", "1e99999999999999999999", "1", nil),
            ("counter", "0", #""1""#, "2", nil), ("counter", #""0""#, "1", "2", nil),
            ("flag", "null", "true", "false", "true"), ("flag", "null", "false", "true", "true"), ("flag", "0", "false", "null", "false"),
            ("flag", "true", "null", "false", "false"), ("flag", "0", "true", "1", nil),
            ("set", #"["a","b"]"#, #"["b","c"]"#, #"["a","b","d"]"#, #"["b","d","c"]"#), ("set", "[1]", "[]", "[1.0,2]", "[2]"),
            ("set", "[1]", "[1,2,2]", "[]", "[2]"), ("set", "null", "[1]", "[2]", nil), ("set", "[]", "[1]", "{}", nil),
            ("text3", #""a\nb\nc""#, #""A\nb\nc""#, #""a\nb\nC""#, #""A\nb\nC""#),
            ("text3", #""a\nb\nc\n""#, #""x\na\nb\nc\n""#, #""a\nb\nc\ny\n""#, #""x\na\nb\nc\ny\n""#),
            ("text3", #""a\nb""#, #""A\nb""#, #""a\nB""#, nil), ("text3", #""a""#, #""b""#, #""c""#, nil),
            ("text3", #""a\nb\nc\nd""#, #""a\nd""#, #""a\nb\nc\nD""#, nil),
            ("text3", #""a\nb\nc\nd\ne""#, #""a\nc\nd\ne""#, #""a\nb\nc\ne""#, #""a\nc\ne""#),
            // The same change on both sides, and one more in mine.
            ("text3", #""a\nb\nc\nd""#, #""A\nb\nc\nD""#, #""A\nb\nc\nd""#, #""A\nb\nc\nD""#), ("text3", "1", #""b""#, #""c""#, nil),
            ("ask", "1", "2", "3", nil), ("no such word", "1", "2", "3", nil), ("keyed:id", "1", "2", "3", nil),
            ("lww", "1", "2", "3", nil),
        ] as [(String, String, String, String, String?)])
    func rules(_ word: String, _ base: String, _ mine: String, _ theirs: String, _ merged: String?) throws {
        func object(_ value: String) -> String { #"{"f":\#(value)}"# }
        try check(
            Row(
                object(base), object(mine), object(theirs), object(merged ?? theirs), ["/f": word], open: merged == nil ? ["/f"] : []))
    }

    @Test(
        arguments: [
            // An absent member counts as zero for a counter and false for a flag; a removed one is not a number.
            Row("{}", #"{"n":3}"#, #"{"n":5}"#, #"{"n":8}"#, ["/n": "counter"]),
            Row(#"{"n":1}"#, "{}", #"{"n":5}"#, #"{"n":5}"#, ["/n": "counter"], open: ["/n"]),
            Row(#"{"n":false}"#, "{}", #"{"n":true}"#, #"{"n":true}"#, ["/n": "flag"]),
            Row("{}", #"{"t":[1]}"#, #"{"t":[2]}"#, #"{"t":[2,1]}"#, ["/t": "set"]),
            Row(#"{"a":1}"#, "{}", #"{"a":2}"#, "{}", ["/a": "client"]), Row(#"{"a":1}"#, #"{"a":2}"#, "{}", "{}", ["/a": "server"]),
            Row(#"{"a":1}"#, #"{"a":2}"#, #"{"a":3}"#, #"{"a":2}"#, ["/a": "lww"], newer: true),
            Row(#"{"a":1}"#, #"{"a":2}"#, #"{"a":3}"#, #"{"a":3}"#, ["/a": "lww"], newer: false),
            // A rule covers everything below its pointer, unless a deeper rule is given.
            Row(
                #"{"a":{"x":1,"y":1},"b":1}"#, #"{"a":{"x":2,"y":2},"b":2}"#, #"{"a":{"x":3,"y":3},"b":3}"#,
                #"{"a":{"x":2,"y":4},"b":3}"#, ["/a": "client", "/a/y": "counter", "": "server"]),
        ])
    fileprivate func places(_ row: Row) throws { try check(row) }

    @Test(
        arguments: [
            Row(
                #"{"l":[{"id":1,"t":"a","n":1},{"id":2,"t":"b","n":1}]}"#, #"{"l":[{"id":1,"t":"A","n":1},{"id":3,"t":"c"}]}"#,
                #"{"l":[{"id":1,"t":"a","n":2},{"id":2,"t":"b","n":1},{"id":4}]}"#,
                #"{"l":[{"id":1,"t":"A","n":2},{"id":4},{"id":3,"t":"c"}]}"#, ["/l": "keyed:id"]),
            // Removed in mine and changed in theirs, and the other way round.
            Row(
                #"{"l":[{"id":1,"t":"a"},{"id":2}]}"#, #"{"l":[{"id":2}]}"#, #"{"l":[{"id":1,"t":"b"},{"id":2}]}"#,
                #"{"l":[{"id":1,"t":"b"},{"id":2}]}"#, ["/l": "keyed:id"], open: ["/l/0"]),
            Row(
                #"{"l":[{"id":1,"t":"a"},{"id":2}]}"#, #"{"l":[{"id":1,"t":"b"},{"id":2}]}"#, #"{"l":[{"id":2}]}"#,
                #"{"l":[{"id":2}]}"#, ["/l": "keyed:id"], open: ["/l/-"]),
            Row(
                #"{"l":[{"id":1,"t":"a"},{"id":2}]}"#, #"{"l":[{"id":1,"t":"b"},{"id":2}]}"#, #"{"l":[{"id":2}]}"#,
                #"{"l":[{"id":2},{"id":1,"t":"b"}]}"#, ["/l": "keyed:id", "/l/*": "client"]),
            // Rules within elements, and an id at a deeper level.
            Row(
                #"{"l":[{"k":{"id":"x"},"n":1}]}"#, #"{"l":[{"k":{"id":"x"},"n":3}]}"#, #"{"l":[{"k":{"id":"x"},"n":2},{"k":{"id":"y"}}]}"#,
                #"{"l":[{"k":{"id":"x"},"n":4},{"k":{"id":"y"}}]}"#, ["/l": "keyed:/k/id", "/l/*/n": "counter"]),
            // The order of mine if only mine changed it, else that of theirs.
            Row(
                #"{"l":[{"id":1,"n":1},{"id":2}]}"#, #"{"l":[{"id":2},{"id":1,"n":1}]}"#, #"{"l":[{"id":1,"n":2},{"id":2}]}"#,
                #"{"l":[{"id":2},{"id":1,"n":2}]}"#, ["/l": "keyed:id"]),
            Row(
                #"{"l":[{"id":1},{"id":2}]}"#, #"{"l":[{"id":1},{"id":2},{"id":3}]}"#, #"{"l":[{"id":2},{"id":1}]}"#,
                #"{"l":[{"id":2},{"id":1},{"id":3}]}"#, ["/l": "keyed:id"]),
            // Not usable as a keyed list: the same id twice, no id, or an invalid id.
            Row(#"{"l":[]}"#, #"{"l":[{"id":1},{"id":1}]}"#, #"{"l":[{"id":2}]}"#, #"{"l":[{"id":2}]}"#, ["/l": "keyed:id"], open: ["/l"]),
            Row(#"{"l":[]}"#, #"{"l":[{"a":1}]}"#, #"{"l":[{"id":2}]}"#, #"{"l":[{"id":2}]}"#, ["/l": "keyed:id"], open: ["/l"]),
            Row(#"{"l":[]}"#, #"{"l":[{"id":{}}]}"#, #"{"l":[{"id":2}]}"#, #"{"l":[{"id":2}]}"#, ["/l": "keyed:id"], open: ["/l"]),
        ])
    fileprivate func keyedLists(_ row: Row) throws { try check(row) }

    private func check(_ row: Row) throws {
        let merge = try merge(row)
        #expect(written(merge.merged) == row.merged)
        #expect(merge.isResolved == row.open.isEmpty)
        #expect(merge.fields.filter { $0.isConflicting && $0.merged == nil }.map(\.pointer.text).filter(row.open.contains) == row.open)
    }

    @Test func everyPlaceThatDiffersIsListed() throws {
        let merge = try merge(
            Row(
                #"{"id":1,"same":1,"mine":1,"theirs":1,"both":1,"other":1,"gone":1,"deep":{"x":1}}"#,
                #"{"id":1,"same":1,"mine":2,"theirs":1,"both":2,"other":2,"deep":{"x":2},"new":1}"#,
                #"{"id":1,"same":1,"mine":1,"theirs":2,"both":2,"other":3,"deep":{"x":1}}"#, ""))
        let listed = merge.fields.map { "\($0.pointer.text) \(written($0.base)) \(written($0.merged)) \($0.isConflicting)" }
        #expect(
            listed == [
                "/mine 1 2 false", "/theirs 1 2 false", "/both 1 2 false", "/other 1 nothing true", "/deep/x 1 2 false",
                "/new nothing 1 false", "/gone 1 nothing false",
            ])
    }

    @Test func withoutABaseEveryDifferenceIsAPersons() throws {
        let (mine, theirs) = (try parsed(#"{"a":1,"b":1,"c":1}"#), try parsed(#"{"a":1,"b":2,"d":1}"#))
        let merge = ThreeWayMerge(base: nil, mine: mine, theirs: theirs, rules: MergeRules(.merging(.fieldMerge, ["": "client"])))
        #expect(!merge.isResolved && merge.merged == theirs)
        #expect(merge.fields.map(\.pointer.text) == ["/b", "/d", "/c"] && merge.fields.allSatisfy { $0.isConflicting && $0.merged == nil })
        #expect(ThreeWayMerge(base: nil, mine: mine, theirs: mine, rules: MergeRules(.merging())).isResolved)
    }

    /// Large hostile sides: the work is bounded, and beyond the bound the field is left to a decision.
    @Test func hostileTextIsAskedAbout() throws {
        let lines = (0..<9_000).map { "line \($0 % 7)" }
        func text(_ change: (Int) -> Bool, _ mark: String) -> JSONValue {
            ["t": .string(lines.enumerated().map { change($0.offset) ? mark : $0.element }.joined(separator: "\n"))]
        }
        let rules = MergeRules(.merging(.fieldMerge, ["/t": "text3"]))
        func resolves(_ mine: (Int) -> Bool, _ theirs: (Int) -> Bool) -> Bool {
            ThreeWayMerge(base: text({ _ in false }, ""), mine: text(mine, "m"), theirs: text(theirs, "t"), rules: rules).isResolved
        }
        #expect(resolves({ $0 % 100 == 0 }, { $0 % 100 == 50 }))
        #expect(!resolves({ $0 % 2 == 0 }, { $0 == 3 }))
        let many = JSONValue.string(String(repeating: "\n", count: 10_001))
        let merge = ThreeWayMerge(base: ["t": many], mine: ["t": "a"], theirs: ["t": "b"], rules: rules)
        #expect(!merge.isResolved)
    }

    @Test func wordsAreRead() {
        for word in FieldStrategy.words where word != "keyed:ID" { #expect(FieldStrategy(word) != nil, "\(word)") }
        #expect(FieldStrategy("keyed:id") == .keyed(JSONPointer(tokens: ["id"])))
        #expect(FieldStrategy("keyed:/a/id") == .keyed(JSONPointer(tokens: ["a", "id"])))
        for word in ["", "keyed", "keyed:", "keyed:/~2", "LWW", "text"] { #expect(FieldStrategy(word) == nil, "\(word)") }
    }
}
