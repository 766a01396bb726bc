// The report of a test of notices.

struct NoticeTestReport: TabularReport, Equatable {
    struct Item: Decodable, Equatable {
        var on: [String]
        var target: String
        /// `sent`, `waiting` or `failed`.
        var outcome: String
        var detail: String?
        var operation: String?
    }

    var items: [Item]

    var tables: [TextTable] {
        let rows = items.map { item in
            [
                TextTable.Cell(item.target),
                .init(item.outcome, item.outcome == "failed" ? .bad : item.outcome == "sent" ? .good : .warning),
                .init(item.detail ?? "–"),
            ]
        }
        return [TextTable(columns: [.text("TARGET"), .text("OUTCOME"), .text("DETAIL")], rows: rows)]
    }
}
