// Mistyped commands (docs/reference/cli.md#calling) and groups of the outbox (docs/reference/cli.md#outbox-summary).
import Foundation
import Testing

@testable import rockpool

@Suite struct CommandWordsTests {
    @Test(
        arguments: [
            ("status", nil), ("outbox ls --state dead", nil), ("outbox --state dead", nil), ("network offline", nil), ("--version", nil),
            ("", nil),
            ("help outbox", nil), ("statsu", "did you mean: rockpool stat"), ("outbox lst", "did you mean: rockpool outbox ls"),
            ("help conflicts resove", "did you mean: rockpool conflicts resolve"), ("frobnicate", "in rockpool; there are serve, init"),
            ("why https://a/", "did you mean: rockpool cache explain URL (a response)"), ("outbox why", "in rockpool outbox; there are ls"),
            ("cache prefech x", "did you mean: rockpool cache prefetch"),
        ] as [(String, String?)])
    func aMistypedCommandIsAnsweredWithTheNearest(_ line: String, _ expected: String?) {
        let mistake = CommandWords(line.split(separator: " ").map(String.init)).mistake
        #expect(mistake?.contains(expected ?? "") == (expected == nil ? nil : true), "\(mistake ?? "none")")
    }

    @Test func theHelpIsThatOfTheLastNamedCommand() {
        #expect(CommandWords(["outbox", "ls", "--stat"]).help == "rockpool outbox ls --help")
        #expect(CommandWords(["outbox", "lst"]).help == "rockpool outbox --help")
    }

    @Test func writesAreSummedUpByGroup() throws {
        func operation(_ id: Int, _ method: String, _ path: String, _ bytes: Int) -> String {
            #"{"id":"\#(id)","state":"pending","method":"\#(method)","url":"https://a.test\#(path)","upstream":"a","userAgent":"till/7","bodyBytes":\#(bytes),"acceptedAt":"2026-01-0\#(id)T00:00:00Z"}"#
        }
        let list = [
            operation(1, "PUT", "/v1/notes/7?x=1", 10), operation(2, "PUT", "/v1/notes/8", 20), operation(3, "POST", "/v1/notes", 500),
        ]
        let report = try JSONDecoder().decode(OperationListReport.self, from: Data("{\"items\": [\(list.joined(separator: ","))]}".utf8))
        let summary = OutboxSummary(of: report.items)
        #expect(summary.items.map(\.group.path) == ["/v1/notes", "/v1/notes/*"])
        #expect(summary.items.map(\.bodyBytes) == [500, 30] && summary.items.map(\.writes) == [1, 2])
        #expect(summary.items.last?.oldest == "2026-01-01T00:00:00Z" && summary.items.last?.userAgent == "till/7")
        #expect(OutboxSummary(of: []).tables.isEmpty)
    }
}
