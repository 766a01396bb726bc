// `rockpool outbox`: its options, edited files, and the output for the server's responses (docs/reference/cli.md#outbox).
import Foundation
import RockpoolCore
import Testing

@testable import rockpool

@Suite struct OutboxCommandTests {
    private func json(_ text: String) throws -> JSONValue { try JSONValue.parse(Array(text.utf8)) }

    private func document() throws -> EditDocument {
        EditDocument(
            try json(
                #"{"id": "1", "state": "dead", "method": "PUT", "url": "http://a/n", "headers": {"a": "1", "b": "2"}, "body": {"n": 1.50}}"#
            ))
    }

    @Test func `An unchanged document is no edit, whatever its spaces`() throws {
        let document = try document()
        #expect(document.original.object?.names == ["method", "url", "headers", "body"])
        #expect(try document.changes(in: json(document.original.indented())) == nil)
        #expect(document.original.indented().contains("\n  \"body\": {\n    \"n\": 1.50\n  }"))
    }

    @Test(arguments: [
        (#"{"method": "PATCH", "url": "http://a/n", "headers": {"a": "1", "b": "2"}, "body": {"n": 1.50}}"#, #"{"method": "PATCH"}"#),
        (
            #"{"method": "PUT", "url": "http://a/n", "headers": {"a": "1", "c": "3"}, "body": {"n": 2}}"#,
            #"{"headers": {"c": "3", "b": null}, "body": {"n": 2}}"#
        ),
        (#"{"headers": {"a": "1", "b": "2"}, "bodyBase64": "AA=="}"#, #"{"bodyBase64": "AA=="}"#),
    ])
    func `Only what differs is sent`(_ edited: String, _ changes: String) throws {
        #expect(try document().changes(in: json(edited)) == json(changes))
    }

    @Test func `An export is taken in by places, in parts, and a bad line is named`() throws {
        func line(_ id: Int, place: Int, bytes: Int = 0) -> String {
            #"{"id": "\#(id)", "row": {"order": [\#(place), \#(id)]}, "body": "\#(String(repeating: "x", count: bytes))"}"#
        }
        // 3 is an edit of 1.
        let export = try ExportedLines(
            Data([line(1, place: 1), "", line(2, place: 2), line(3, place: 1)].joined(separator: "\n").utf8), file: "f")
        #expect(export.lines.map(\.id) == ["1", "3", "2"] && export.lines.map(\.number) == [1, 4, 3])
        #expect(export.parts.count == 1)
        let many = (1...300).map { line($0, place: $0, bytes: $0 == 280 ? 2_000_000 : 0) }.joined(separator: "\n") + "\n"
        #expect(try ExportedLines(Data(many.utf8), file: "f").parts.map(\.count) == [256, 23, 1, 20])
        #expect(try ExportedLines(Data(), file: "f").parts.isEmpty)
        for bad in ["{", "{}", "[]", #"{"id": "1"}"#] {
            let failure = try #require(throws: CommandFailure.self) {
                try ExportedLines(Data("\(line(1, place: 1))\n\(bad)\n".utf8), file: "f")
            }
            #expect(failure.message.hasPrefix("f:2: "), "\(failure)")
        }
    }

    @Test func `Header options set and remove`() throws {
        #expect(try EditDocument.headers(from: ["A: b: c", "D:"]) == json(#"{"A": "b: c", "D": null}"#))
        #expect(throws: (any Error).self) { try EditDocument.headers(from: ["no colon"]) }
    }

    @Test func `The editor's file is private, and its failure keeps the text`() throws {
        setenv("VISUAL", "false", 1)
        defer { unsetenv("VISUAL") }
        let file = try EditorFile(Array("text".utf8), suffix: ".json")
        defer { file.remove() }
        #expect(try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int == 0o600)
        let failure = try #require(throws: CommandFailure.self) { try file.edit() }
        #expect(failure.message.contains(file.path) && FileManager.default.contents(atPath: file.path) == Data("text".utf8))
        setenv("VISUAL", "printf more >>", 1)
        #expect(try file.edit() == Data("textmore".utf8))
    }

    @Test func `A file is whole or not there, private, and never replaced unasked`() throws {
        let path = FileManager.default.temporaryDirectory.path + "/rockpool-\(UUID().uuidString)"
        defer { unlink(path) }
        let dropped = try NewFile(path, replacing: false)
        try dropped.write("half")
        dropped.discard()
        #expect(!FileManager.default.fileExists(atPath: path))
        let file = try NewFile(path, replacing: false)
        try file.write("one")
        try file.finish()
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
        #expect(throws: CommandFailure.self) { try NewFile(path, replacing: false) }
        let other = try NewFile(path, replacing: true)
        try other.write("two")
        try other.finish()
        #expect(FileManager.default.contents(atPath: path) == Data("two".utf8))
    }

    @Test func `A refusal with dependants names them`() {
        let body = #"{"title": "No", "detail": "x", "dependants": [{"id": "a", "state": "pending", "method": "PUT", "url": "http://a/"}]}"#
        guard case .needed(let others) = AdminFailure(status: 409, body: Data(body.utf8)) else {
            Issue.record("expected .needed, got another failure")
            return
        }
        #expect(others.map(\.id) == ["a"])
    }

    @Test func `A lane's retry says what was left alone`() {
        #expect(LaneRetryReport(retried: [], uncertain: []).lines(of: "lane l") == ["nothing to retry in lane l"])
        let lines = LaneRetryReport(retried: ["a"], uncertain: ["b"]).lines(of: "lane l")
        #expect(lines.first == "a will be retried" && lines.last?.hasPrefix("b is not retried") == true)
    }

    @Test func `Attempts and coming purges are shown`() throws {
        let text = """
            {"id": "a", "state": "dead", "method": "PUT", "url": "http://a/", "waiting": "it needs you", "purgeAt": "2026-11-21T08:00:00Z",
            "blockedBy": {"id": "b", "state": "dead"}, "attemptLog": [{"number": 1, "startedAt": "2026-11-20T08:00:00Z", "endedAt": null,
            "status": 422, "error": null, "sent": "yes", "bytesSent": 12, "freshConnection": true}]}
            """
        let plain = Display(width: nil, hasColour: false)
        let shown = try AdminReply(status: 200, body: Data(text.utf8)).decoded(as: OperationReport.self).tables.flatMap {
            $0.lines(on: plain)
        }
        #expect(shown.contains { $0.hasPrefix("why") && $0.hasSuffix("it needs you") })
        #expect(shown.contains { $0.hasPrefix("blocked by") && $0.hasSuffix("b (dead)") })
        #expect(shown.last == "      1  2026-11-20 08:00:00Z  –      422     yes      12  new")
        let list = try AdminReply(status: 200, body: Data("{\"items\": [\(text)]}".utf8)).decoded(as: OperationListReport.self)
        #expect(
            list.tables.last?.lines(on: plain) == ["1 failed will be purged, the first at 2026-11-21 08:00:00Z: retry, edit or export them"]
        )
    }
}
