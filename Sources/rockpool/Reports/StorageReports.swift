// Reports of a cleanup, a scrub and a recovery as tables (docs/storage.md#cleanup).
import RockpoolCore
import RockpoolStore

/// The report of a cleanup as tables (docs/storage.md#cleanup).
struct CleanupReportTable: TabularReport, Equatable {
    struct Removed: Decodable, Equatable {
        var entries: Int64
        var bytes: Int64
        var byCategory: [String: CategoryUse]?
        var byReason: [String: CategoryUse]?
    }

    struct Entry: Decodable, Equatable {
        var key: Word
        var category: String
        var bytes: Int64
        var reason: String
    }

    struct Operations: Decodable, Equatable {
        var purged: Int64
        var kept: Int64
        /// The part of `kept` that waits.
        var waiting: Int64?

        var words: String {
            guard let waiting else { return "\(purged) purged, \(kept) kept" }
            return "\(purged) purged, \(waiting) waiting, \(kept - waiting) ended and kept for their time"
        }
    }

    struct Files: Decodable, Equatable {
        var cacheBefore: Int64
        var cacheAfter: Int64
        var dataBefore: Int64
        var dataAfter: Int64
    }

    struct Vacuum: Decodable, Equatable {
        var ran: Bool
        var why: String?
        var pagesBefore: Int64?
        var pagesAfter: Int64?
    }

    var dryRun: Bool
    var seconds: Double?
    var removed: Removed
    var kept: Removed?
    var held: [String: CategoryUse]?
    var list: [Entry]?
    var operations: Operations?
    var orphans: Int64?
    var foreign: Int64?
    var files: Files?
    var vacuum: Vacuum?
    var notes: [Word]?
    var errors: [Word]?
    var advice: [Word]?

    var tables: [TextTable] {
        var facts: [(String, TextTable.Cell)] = [
            (dryRun ? "would remove" : "removed", "\(removed.entries.counted("entry", "entries")), \(ForPeople.bytes(removed.bytes))")
        ]
        if let kept { facts.append(("kept", "\(kept.entries.counted("entry", "entries")), \(ForPeople.bytes(kept.bytes))")) }
        if let operations { facts.append(("operations", .init(operations.words))) }
        if let orphans, orphans > 0 { facts.append(("orphans", "\(orphans) left by a crash")) }
        if let foreign, foreign > 0 { facts.append(("foreign", "\(foreign.counted("file")) not of Rockpool, not changed")) }
        if let files {
            facts.append(("cache on disk", "\(ForPeople.bytes(files.cacheBefore)) → \(ForPeople.bytes(files.cacheAfter))"))
            facts.append(("data on disk", "\(ForPeople.bytes(files.dataBefore)) → \(ForPeople.bytes(files.dataAfter))"))
        }
        if let vacuum { facts.append(("vacuum", .init(vacuum.text))) }
        if let seconds { facts.append(("took", .init(ForPeople.seconds(seconds)))) }
        for note in notes ?? [] { facts.append(("note", .init(note.text))) }
        for error in errors ?? [] { facts.append(("error", .init(error.text, .bad))) }
        let listed = TextTable(
            columns: [.text("ENTRY"), .text("CATEGORY"), .number("SIZE"), .text("REASON")],
            rows: (list ?? []).map { [.init($0.key.text), .init($0.category), .init(ForPeople.bytes($0.bytes)), .init($0.reason)] })
        let advice = TextTable(columns: [.text("")], rows: (advice ?? []).map { [.init($0.text)] })
        return [.facts(facts), listed, byCategory, Self.parts("REASON", of: removed.byReason), advice]
    }

    /// What was stored in each category before this run, and the part of it that goes.
    private var byCategory: TextTable {
        let (gone, kept) = (removed.byCategory ?? [:], kept?.byCategory ?? [:])
        let names = Set(gone.keys).union(kept.keys).sorted()
        func row(_ name: String, _ removed: [CategoryUse?], of all: [CategoryUse?]) -> [TextTable.Cell] {
            let (entries, bytes) = (all.reduce(0) { $0 + ($1?.entries ?? 0) }, all.reduce(0) { $0 + ($1?.bytes ?? 0) })
            let share = removed.reduce(0) { $0 + ($1?.bytes ?? 0) }
            let part = bytes > 0 ? " (\(ForPeople.percent(Double(share) / Double(bytes))))" : ""
            return [.init(name), .init("\(entries)"), .init(ForPeople.bytes(bytes)), .init(ForPeople.bytes(share) + part)]
        }
        let rows = names.map { row($0, [gone[$0]], of: [gone[$0], kept[$0]]) }
        let total = row("all", names.map { gone[$0] }, of: names.flatMap { [gone[$0], kept[$0]] })
        return TextTable(
            columns: [.text("CATEGORY"), .number("ENTRIES"), .number("SIZE"), .number(dryRun ? "RECLAIMABLE" : "RECLAIMED")],
            rows: rows + (names.count > 1 ? [total] : []))
    }

    private static func parts(_ title: String, of parts: [String: CategoryUse]?) -> TextTable {
        TextTable(
            columns: [.text(title), .number("ENTRIES"), .number("SIZE")],
            rows: (parts ?? [:]).sorted { $0.key < $1.key }.map { name, use in
                [.init(name), .init(use.entries.map { "\($0)" } ?? "–"), .init(ForPeople.bytes(use.bytes))]
            })
    }
}

extension CleanupReportTable.Vacuum {
    fileprivate var text: String {
        let reason = why.map { ": \($0)" } ?? ""
        guard ran, let pagesBefore, let pagesAfter else { return (ran ? "ran" : "not run") + reason }
        return "\(pagesBefore) → \(pagesAfter) pages\(reason)"
    }
}

/// The report of a scrub as tables (docs/storage.md#scrub).
struct ScrubReportTable: TabularReport {
    let report: ScrubReport

    init(from decoder: any Decoder) throws { report = try ScrubReport(from: decoder) }

    var tables: [TextTable] {
        var facts: [(String, TextTable.Cell)] = [("result", report.isClean ? .init("sound", .good) : .init("damage found", .bad))]
        if let cache = report.cache { facts += Self.facts(of: cache, dryRun: report.dryRun) }
        if let data = report.data { facts += Self.facts(of: data, dryRun: report.dryRun) }
        facts.append(("took", .init(ForPeople.seconds(report.seconds))))
        for error in report.errors { facts.append(("error", .init(error, .bad))) }
        let blobs = (report.data?.badBlobs ?? []).map { bad -> [TextTable.Cell] in
            [.init(bad.sha256), .init(bad.what), .init(bad.operations.isEmpty ? "–" : bad.operations.joined(separator: ", "))]
        }
        return [.facts(facts), TextTable(columns: [.text("BLOB"), .text("IS"), .text("NEEDED BY")], rows: blobs)]
    }

    private static func facts(of cache: ScrubReport.Cache, dryRun: Bool) -> [(String, TextTable.Cell)] {
        var facts = pages(of: "cache", problems: cache.pages) + [("cache bodies", text(of: cache.bodies))]
        if cache.dropped > 0 {
            facts.append((dryRun ? "would drop" : "dropped", "\(cache.dropped.counted("entry", "entries")), fetched again when asked for"))
        }
        if cache.orphans > 0 { facts.append((dryRun ? "would remove" : "removed", "\(cache.orphans.counted("file")) without an entry")) }
        let drift = cache.drift
        if drift.entries != 0 || drift.entryBytes != 0 || drift.bodyBytes != 0 || drift.references != 0 {
            let what =
                "sums differ by \(drift.entries.counted("entry", "entries")), \((drift.entryBytes + abs(drift.bodyBytes)).counted("byte")), "
                + drift.references.counted("reference")
            facts.append((dryRun ? "would correct" : "corrected", .init(what)))
        }
        if drift.ledgerBytes != 0 { facts.append(("ledger", .init(drift.ledgerBytes.counted("byte") + " different from the disk", .bad))) }
        return facts + foreign(cache.foreign, in: "bodies")
    }

    private static func facts(of data: ScrubReport.Data, dryRun: Bool) -> [(String, TextTable.Cell)] {
        var facts = pages(of: "data", problems: data.pages) + [("data blobs", text(of: data.blobs))]
        if data.strays > 0 { facts.append(("data rows", .init("\(data.strays) without their parent row", .bad))) }
        if data.references > 0 {
            facts.append(("data rows", .init(data.references.counted("blob") + " with a wrong reference count", .bad)))
        }
        if data.orphans > 0 { facts.append((dryRun ? "would remove" : "removed", "\(data.orphans.counted("blob")) without an operation")) }
        return facts + foreign(data.foreign, in: "blobs")
    }

    private static func pages(of store: String, problems: [String]) -> [(String, TextTable.Cell)] {
        if problems.isEmpty { return [("\(store) pages", "sound")] }
        let advice =
            store == "cache"
            ? "stop Rockpool and remove the cache directory: it is created again"
            : "stop Rockpool and run: rockpool doctor --recover DIR"
        var facts: [(String, TextTable.Cell)] = problems.map { ("\(store) pages", TextTable.Cell($0, .bad)) }
        facts.append(("what to do", .init(advice)))
        return facts
    }

    private static func text(of bodies: ScrubReport.Bodies) -> TextTable.Cell {
        let counts = [(bodies.bad, "bad"), (bodies.missing, "missing"), (bodies.unreadable, "unreadable")]
        let wrong = counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        let checked = "\(bodies.checked) checked, \(ForPeople.bytes(bodies.bytes))"
        return wrong.isEmpty ? .init(checked) : .init(([checked] + wrong).joined(separator: ", "), .bad)
    }

    private static func foreign(_ foreign: ScrubReport.Foreign, in directory: String) -> [(String, TextTable.Cell)] {
        guard foreign.count > 0 else { return [] }
        let rest = foreign.count > foreign.names.count ? ", …" : ""
        return [("foreign", .init("\(foreign.count) in \(directory), not changed: \(foreign.names.joined(separator: ", "))\(rest)"))]
    }
}

/// The report of a recovery as tables (docs/storage.md#recovery).
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
