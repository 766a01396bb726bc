// The report of a recovery as tables (docs/storage.md#recovery).
import RockpoolStore

struct RecoveryReportTable: TabularReport {
    let report: RecoveryReport

    init(from decoder: any Decoder) throws { report = try RecoveryReport(from: decoder) }

    var tables: [TextTable] {
        let operations = report.operations.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
        var facts: [(String, TextTable.Cell)] = [
            ("recovered into", .init(report.into)),
            ("result", report.isWhole ? .init("no known losses", .good) : .init("some data is lost", .bad)),
            ("operations", .init(operations)),
            ("blobs", "\(report.blobs) copied, \(report.lostBlobs.count) lost"), ("copied", .init(report.copied.joined(separator: ", "))),
        ]
        if report.unplacedBlobs > 0 { facts.append(("unplaced blobs", "\(report.unplacedBlobs), in \(report.into)/unplaced-blobs")) }
        if let unplaced = report.unplaced { facts.append(("unplaced rows", .init(unplaced, .bad))) }
        for note in report.notes { facts.append(("note", .init(note))) }
        for error in report.errors { facts.append(("error", .init(error, .bad))) }
        for (number, step) in report.next.enumerated() { facts.append(("next \(number + 1)", .init(step))) }
        let rows = report.tables.map { table -> [TextTable.Cell] in
            let state: TextTable.Cell =
                table.isWhole
                ? "complete" : .init((["some unreadable"] + table.unreadable.map { "\($0)" }).joined(separator: " "), .bad)
            return [.init(table.name), .init("\(table.rows)"), .init("\(table.unplaced)"), state]
        }
        let lost = report.lostBlobs.map { [TextTable.Cell($0.sha256), .init($0.operations.joined(separator: ", "))] }
        return [
            .facts(facts), TextTable(columns: [.text("TABLE"), .number("ROWS"), .number("UNPLACED"), .text("READ")], rows: rows),
            TextTable(columns: [.text("LOST BLOB"), .text("NEEDED BY")], rows: lost),
        ]
    }
}
