// The report of a cleanup as tables (docs/storage.md#cleanup).
import RockpoolCore

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
