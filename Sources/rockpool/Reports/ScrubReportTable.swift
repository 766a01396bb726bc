// The report of a scrub as tables (docs/storage.md#scrub).
import RockpoolCore
import RockpoolStore

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
