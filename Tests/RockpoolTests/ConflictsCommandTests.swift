// `rockpool conflicts`: its options and the output for the server's responses (docs/reference/cli.md#conflicts).
import ArgumentParser
import Foundation
import RockpoolCore
import Testing

@testable import rockpool

@Suite struct ConflictsCommandTests {
    private static let head = """
        "id": "c1", "operation": "op1", "upstream": "notes", "url": "http://a/n/1", "entity": "/n/1", "kind": "edit-edit",
        "strategy": "field-merge", "detection": "weak", "openedAt": "2026-11-21T08:00:00.000Z"
        """
    private static let open = #""closedAt": null, "resolution": null, "decidedBy": null"#

    private func view(_ members: String, standing: String = open) throws -> ConflictView {
        try ConflictView(AdminReply(status: 200, body: Data("{\(Self.head), \(standing), \(members)}".utf8)))
    }

    private func closed(_ resolution: String, by decider: String) -> String {
        #""closedAt": "2026-11-21T09:00:00.000Z", "resolution": \#(resolution), "decidedBy": "\#(decider)""#
    }

    private let plain = Display(width: nil, hasColour: false)

    @Test func `Fields stand side by side, to the digit, a mark on those that wait for a decision`() throws {
        let view = try view(
            """
            "base": {}, "mine": {}, "theirs": {}, "merged": null, "fields": [
                {"pointer": "/price", "base": 1.50, "mine": 12345678901234567890, "theirs": 2, "merged": null, "conflicting": true},
                {"pointer": "/tags", "base": null, "mine": ["a"], "theirs": null, "merged": ["a"], "conflicting": false},
                {"pointer": "/count", "base": 1, "mine": 2, "theirs": 3, "merged": 4, "conflicting": true}]
            """)
        #expect(
            view.fields.lines(on: plain) == [
                "   FIELD   BASE  MINE                  THEIRS  MERGED",
                "!  /price  1.50  12345678901234567890  2       –",
                "   /tags   –     [\"a\"]                 –       [\"a\"]",
                "   /count  1     2                     3       4",
            ])
        #expect(view.sides.isEmpty)
        #expect(view.fields.lines(on: Display(width: 40, hasColour: false)).allSatisfy { $0.count <= 40 })
    }

    @Test func `Without fields the sides are whole, and cannot steer the terminal`() throws {
        let view = try view(#""base": null, "mine": "one\r\ntwo\u001B[2J\n", "theirs": {"n": 1.50}, "merged": "x", "fields": []"#)
        #expect(view.sides == ["base: –", "mine:\n  one\n  two [2J\n  ", "theirs:\n  {\n    \"n\": 1.50\n  }", "merged:\n  x"])
        #expect(view.fields.rows.isEmpty)
    }

    @Test func `A side may be as deep as any JSON`() throws {
        let deep = String(repeating: "[", count: JSONValue.depthLimit) + String(repeating: "]", count: JSONValue.depthLimit)
        let field = #"{"pointer": "", "base": null, "mine": \#(deep), "theirs": null, "merged": null, "conflicting": false}"#
        #expect(try view(#""mine": \#(deep), "fields": [\#(field)]"#).fields.rows.count == 1)
    }

    @Test func `What stands, who decided, and what can be done`() throws {
        for (standing, outcome, advice) in [
            (Self.open, "open", "resolve it: rockpool conflicts resolve c1 --keep"),
            (closed(#""merged""#, by: "strategy"), "merged by field-merge", "rockpool conflicts undo c1"),
            (closed(#""theirs""#, by: "person"), "theirs by a person", "rockpool conflicts undo c1"),
            (closed(#""both""#, by: "person"), "both by a person", nil),
            (closed("null", by: "person"), "left to the next attempt by a person", nil),
        ] as [(String, String, String?)] {
            let report = try view(#""fields": []"#, standing: standing).report
            #expect(report.outcome == outcome)
            #expect(report.advice.map { $0.contains(advice ?? "nothing") } == advice.map { _ in true })
            let facts = report.tables.flatMap { $0.lines(on: plain) }
            #expect(facts.contains { $0.hasPrefix("outcome ") && $0.hasSuffix(outcome) })
            #expect(facts.contains { $0.hasPrefix("detection ") && $0.contains("weak: a change after") })
        }
    }

    @Test func `The list is one line each`() throws {
        let text = "{\"items\": [{\(Self.head), \(Self.open)}], \"next\": null}"
        let list = try AdminReply(status: 200, body: Data(text.utf8)).decoded(as: ConflictListReport.self)
        #expect(
            list.tables.flatMap { $0.lines(on: plain) } == [
                "ID  KIND       ENTITY  DETECTION  OPENED                OUTCOME",
                "c1  edit-edit  /n/1    weak       2026-11-21 08:00:00Z  open",
            ])
    }

    @Test func `An operation in conflict points to it`() throws {
        let text = #"{"id": "a", "state": "conflicted", "method": "PUT", "url": "http://a/", "conflict": "c1"}"#
        let report = try AdminReply(status: 200, body: Data(text.utf8)).decoded(as: OperationReport.self)
        #expect(
            report.tables.flatMap { $0.lines(on: plain) }.contains {
                $0.hasPrefix("conflict ") && $0.hasSuffix("rockpool conflicts show c1")
            })
    }

    @Test func `Arguments reach the command`() async throws {
        let resolve = try await #require(
            Rockpool.asyncParseAsRoot(["conflicts", "resolve", "c1", "--keep", "both"]) as? ConflictsCommand.Resolve)
        #expect(resolve.id == "c1" && resolve.keep == .both && resolve.merged == nil)
        let list = try await #require(
            Rockpool.asyncParseAsRoot(["conflicts", "--state", "all", "--format", "json"]) as? ConflictsCommand.List)
        #expect(list.state == .all && list.options.format == .json)
    }

    @Test(arguments: [
        ["conflicts", "resolve", "c1"], ["conflicts", "resolve", "c1", "--keep", "mine", "--merged", "f"],
        ["conflicts", "resolve", "c1", "--keep", "merged"], ["conflicts", "show"], ["conflicts", "undo"],
        ["conflicts", "ls", "--state", "dead"],
    ])
    func `Bad usage ends with 64`(arguments: [String]) async {
        let error = await #expect(throws: (any Error).self) { _ = try await Rockpool.asyncParseAsRoot(arguments) }
        #expect(error.map { Rockpool.exitCode(for: $0).rawValue } == 64)
    }
}
