// The server's reports as tables, from the JSON of docs/reference/admin-api.md#status and docs/storage.md#cleanup.
import Foundation
import RockpoolCore
import Testing

@testable import rockpool

@Suite struct ReportTests {
    private func lines<Report: TabularReport>(_ json: String, as type: Report.Type) throws -> [String] {
        try AdminReply(status: 200, body: Data(json.utf8)).decoded(as: type).tables
            .flatMap { $0.lines(on: Display(width: nil, hasColour: false)) }
    }

    @Test func `Status`() throws {
        let json = """
            {"state": "offline", "pending": 2, "conflicts": 0, "failed": 1, "upstreams": [{"name": "notes", "origin": "http://a",
            "reachability": "offline", "since": "2026-11-21T08:00:00.000Z", "lastError": "refused", "bandwidth": "none"}]}
            """
        #expect(
            try lines(json, as: StatusReport.self) == [
                "state      offline", "pending    2", "conflicts  0", "failed     1",
                "UPSTREAM  ORIGIN    REACHABILITY  SINCE                 BANDWIDTH  LAST ERROR",
                "notes     http://a  offline       2026-11-21 08:00:00Z  none       refused",
                "Next: see what was not delivered, and why: rockpool outbox ls --state dead,uncertain,parked",
            ])
        let one = json.replacing(
            "\"failed\": 1,",
            with: """
                "failed": 1, "lastFailed": {"operation": "1", "upstream": "notes", "method": "PUT", "url": "http://a/1",
                "cause": "422: no title", "next": "rockpool outbox show 1"},
                """)
        let shown = try lines(one, as: StatusReport.self)
        #expect(shown.contains("last failed  PUT http://a/1: 422: no title"), "\(shown)")
        let parents =
            #"{"parents": [{"of": "*", "url": "http://a:1", "state": "down", "since": null, "used": false}, "#
            + #"{"of": "*", "url": "http://b:1", "state": "up", "since": null, "used": true}],"#
        let behind = try lines(parents + json.dropFirst(), as: StatusReport.self)
        #expect(behind.contains { $0.hasPrefix("http://a:1  *") && $0.hasSuffix("no") && $0.contains("down") }, "\(behind)")
        #expect(behind.contains { $0.hasPrefix("http://b:1  *") && $0.hasSuffix("yes") }, "\(behind)")
        let connection = #"{"connection": {"kind": "wireless", "interface": "wlan0", "metered": true},"#
        let connected = try lines(connection + json.dropFirst(), as: StatusReport.self)
        #expect(connected.contains("connection  wireless (wlan0), metered"), "\(connected)")
        #expect(shown.last == "Next: see the write and its answer: rockpool outbox show 1")
    }

    /// The word at the top holds for all upstreams: one of several that is away does not make the others so.
    @Test(arguments: [
        (["offline"], "offline"), (["offline", "online", "untried"], "1 of 3 upstreams is away"),
        (["offline", "captive", "online"], "2 of 3 upstreams are away"), (["captive", "offline"], "offline"),
        (["online", "suspect"], "offline"),
    ])
    func theStateHoldsForAllUpstreams(reachability: [String], words: String) throws {
        let upstreams = reachability.map { #"{"name": "\#($0)", "reachability": "\#($0)"}"# }.joined(separator: ", ")
        let json = "{\"state\": \"offline\", \"pending\": 0, \"conflicts\": 0, \"failed\": 0, \"upstreams\": [\(upstreams)]}"
        try #expect(lines(json, as: StatusReport.self).first == "state      \(words)")
    }

    /// A node of a fleet with other settings is named, with the keys.
    @Test func otherSettingsOfANodeAreShown() throws {
        let json = """
            {"state": "synced", "pending": 0, "conflicts": 0, "failed": 0, "upstreams": [], "fleet": {"node": "a", "database": "there",
            "detail": null, "nodes": 2, "held": 0, "survivesDatabaseHost": true, "differences": [{"node": "b", "keys": ["secrets"]}]}}
            """
        let shown = try lines(json, as: StatusReport.self)
        #expect(shown.contains { $0.hasPrefix("settings") && $0.hasSuffix("b has other settings: secrets") }, "\(shown)")
        let nodes = """
            {"items": [{"id": "1", "name": "b", "own": false, "state": "live", "epoch": 1, "renewedSecondsAgo": 1, "behind": 0, "held": 0,
            "inflight": 0, "differs": ["a", "b", "c", "d", "e", "f", "g"]}], "next": null}
            """
        let listed = try lines(nodes, as: FleetReport.self)
        #expect(listed.last == "b has other settings: a, b, c, d, e and 2 more", "\(listed)")
    }

    /// Of an upstream that nobody has asked anything, nothing is known: it is not called synced.
    @Test(arguments: [
        (["untried"], "no write waits; 1 of 1 upstream not tried yet"),
        (["online", "untried"], "no write waits; 1 of 2 upstreams not tried yet"),
        (["online"], "synced"), ([], "synced"),
    ])
    func whatIsNotTriedIsNotCalledSynced(reachability: [String], words: String) throws {
        let upstreams = reachability.map { #"{"name": "\#($0)", "reachability": "\#($0)"}"# }.joined(separator: ", ")
        let json = "{\"state\": \"synced\", \"pending\": 0, \"conflicts\": 0, \"failed\": 0, \"upstreams\": [\(upstreams)]}"
        let shown = try lines(json, as: StatusReport.self)
        #expect(shown.first == "state      \(words)", "\(shown)")
        #expect(shown.contains { $0.hasSuffix("everything is delivered") } == (reachability == ["online"]), "\(shown)")
    }

    @Test func `Stats`() throws {
        let json = """
            {"cache": {"hits": 7, "misses": 1, "stale": 2, "revalidated": 0, "hitRatio": 0.875, "entries": 3, "bytes": 1000, "limitBytes": 500000000,
            "memoryBytes": 900, "evictions": 0, "byCategory": {"critical": {"entries": 1, "bytes": 500}, "assets": 500}},
            "outbox": {"pending": 2, "inflight": 0, "uncertain": 0, "conflicted": 0, "parked": 0, "dead": 0, "delivered": 9,
            "oldestPendingSeconds": 61.5}, "storage": {"cacheBytes": 1000, "cacheLimitBytes": 2000, "dataBytes": 0, "dataLimitBytes": 200000000,
            "freeDiskBytes": 5, "reclaimableBytes": 0}, "requests": {"total": 8}, "uptimeSeconds": 3600}
            """
        let shown = try lines(json, as: StatsReport.self)
        for expected in [
            "hit ratio    87.5%", "critical        1  500 B", "assets          –  500 B", "pending     2, the oldest for 1 min 1 s",
            "cache        1.0 kB of 2.0 kB (50.0%)", "uptime       1 h",
        ] {
            #expect(shown.contains(expected), "\(shown)")
        }
        let sync = """
            "sync": {"successRatio": 0.98, "conflictRatio": 0.005, "meanSeconds": 2, "inTimeRatio": 1, "offlineReadRatio": null,
            "targets": {"successRatio": 0.99, "conflictRatio": 0.01, "seconds": 5, "offlineReadRatio": 0.9}}, "storage":
            """
        let figures = try lines(json.replacing("\"storage\":", with: sync), as: StatsReport.self)
        for expected in [
            "delivered of ended  98.0%, the target is at least 99.0%", "met a conflict      0.5%, the target is at most 1.0%",
            "sent in 5 s         100.0%, the target is at least 99.0%, 2 s on average", "read while away     –",
        ] {
            #expect(figures.contains(expected), "\(figures)")
        }
    }

    @Test func `Sync and entities`() throws {
        #expect(
            try lines(#"{"flushed": 3, "delivered": 2, "open": {"dead": 1}}"#, as: PushedReport.self) == ["delivered  2", "dead       1"])
        let pulled = """
            {"items": [{"upstream": "notes", "resource": "/v1/notes", "identity": "shared", "full": false, "requests": 1, "changed": 2, "gone": 1,
            "written": 1, "removed": 1, "invalidated": 0, "withheld": 0, "conflictsAhead": 0, "error": null}], "next": null}
            """
        #expect(
            try lines(pulled, as: PulledReport.self) == [
                "UPSTREAM  RESOURCE   IDENTITY  CHANGED  GONE  WITHHELD  CONFLICTS AHEAD  RESULT",
                "notes     /v1/notes  shared          2     1         0                0  changes",
            ])
        let log = """
            {"items": [{"at": "2026-11-21T08:00:00.000Z", "operation": null, "event": "pending", "method": "PUT",
            "url": "https://api.test/v1/notes/1?a=b", "client": "3f1c", "userAgent": "till/2", "detail": null}], "next": null}
            """
        #expect(
            try lines(log, as: SyncLogReport.self) == [
                "AT                    OPERATION  DEVICE       METHOD  URL                              EVENT    DETAIL",
                "2026-11-21 08:00:00Z  –          till/2 3f1c  PUT     https://api.test/v1/notes/1?a=b  pending  –",
            ])
        let entities = """
            {"items": [{"upstream": "notes", "resource": "/v1/notes", "cached": 2, "serverCount": null, "pending": 1, "conflicts": 0,
            "lastSync": null, "states": {"pending-update": 1, "pending-create": 2, "pending-pull": 0}, "strategy": "ask"}], "next": null}
            """
        #expect(
            try lines(entities, as: EntitiesReport.self) == [
                "UPSTREAM  RESOURCE   CACHED  UPSTREAM HAS  PENDING  CONFLICTS  LAST SYNC  DIFFERING                           STRATEGY",
                "notes     /v1/notes       2             –        1          0  –          2 pending-create, 1 pending-update  ask",
            ])
    }

    /// The first line is the answer; nothing after it is a second one.
    @Test func `An explanation begins with the answer`() throws {
        let json = """
            {"url": "http://a/1", "key": "GET", "partition": "none", "variants": [], "vary": [], "arithmetic": null, "lines": [], "decision": "forward",
            "reason": "uri-miss", "why": "nothing is stored for the URI", "next": "forwarded to the upstream as it came", "category": null,
            "strategy": "cache-first", "policy": "standard", "reachability": "online", "last": null}
            """
        let shown = try lines(json, as: ExplanationReport.self)
        #expect(shown.first == "answer    forwarded to the upstream as it came, because nothing is stored for the URI", "\(shown)")
        #expect(shown.dropFirst(2).first == "decision  forward (uri-miss)", "\(shown)")
    }

    /// A line of `tail` and the `Cache-Status` of the reply have the same words, and no reason is there twice.
    @Test(arguments: [
        ("stale", "rockpool; hit; ttl=-2; detail=offline", "stale hit", "offline; validate (no-cache); refused: no"),
        ("hit", "rockpool; hit; ttl=9", "hit", "validate (no-cache); refused: no"),
    ])
    func theVerdictOfARequestIsThatOfItsReply(verdict: String, status: String, words: String, reason: String) throws {
        let json = """
            {"id": "1", "at": "2026-11-30T10:00:00.000Z", "method": "GET", "url": "http://a/1", "status": 200, "verdict": "\(verdict)",
            "cacheStatus": "\(status)", "why": "validate (no-cache); refused: no", "error": "refused", "bytes": 5, "headSeconds": 0,
            "seconds": 0, "steps": [], "represents": 1}
            """
        let item = try JSONDecoder().decode(ExchangeItem.self, from: Data(json.utf8))
        let line = ExchangePrinter(format: .text, on: Display(width: nil, hasColour: false)).line(of: item)
        #expect(line.hasPrefix("10:00:00.000 200 \(words) ") && line.hasSuffix(" http://a/1  \(reason)"), "\(line)")
    }

    @Test func `Cleanup, dry and done`() throws {
        let json = """
            {"dryRun": true, "aggressive": false, "startedAt": "2026-11-21T08:00:00Z", "seconds": 0.5,
            "removed": {"entries": 2, "bytes": 1500, "byCategory": {"assets": {"entries": 2, "bytes": 1500}}, "byReason": {}},
            "kept": {"entries": 3, "bytes": 4000, "byCategory": {"assets": {"entries": 1, "bytes": 1500}, "critical": {"entries": 2, "bytes": 2500}}}, "operations": {"purged": 1, "kept": 4, "waiting": 1}, "orphans": 2, "foreign": 0,
            "files": {"cacheBefore": 2000, "cacheAfter": 500, "dataBefore": 1, "dataAfter": 1},
            "vacuum": {"ran": false, "why": "dry run", "pagesBefore": 3, "pagesAfter": 3}, "errors": ["EIO"]}
            """
        let shown = try lines(json, as: CleanupReportTable.self)
        #expect(shown.first == "would remove   2 entries, 1.5 kB")
        #expect(shown.contains("kept           3 entries, 4.0 kB"))
        #expect(shown.contains("operations     1 purged, 1 waiting, 3 ended and kept for their time"))
        #expect(shown.contains("orphans        2 left by a crash"))
        #expect(!shown.contains { $0.hasPrefix("foreign") })
        #expect(shown.contains("cache on disk  2.0 kB → 500 B"))
        #expect(shown.contains("vacuum         not run: dry run"))
        #expect(shown.contains("error          EIO"))
        let table = try #require(shown.firstIndex { $0.hasPrefix("CATEGORY") })
        #expect(
            shown[table..<(table + 4)].elementsEqual([
                "CATEGORY  ENTRIES    SIZE     RECLAIMABLE", "assets          3  3.0 kB  1.5 kB (50.0%)",
                "critical        2  2.5 kB      0 B (0.0%)", "all             5  5.5 kB  1.5 kB (27.3%)",
            ]), "\(shown)")
        let one = json.replacing(#""removed": {"entries": 2,"#, with: #""removed": {"entries": 1,"#)
        #expect(try lines(one, as: CleanupReportTable.self).first == "would remove   1 entry, 1.5 kB")
        #expect(
            try lines(json.replacing("\"dryRun\": true", with: "\"dryRun\": false"), as: CleanupReportTable.self).first?.hasPrefix(
                "removed  ") == true)
    }

    @Test func `Operations, listed and one`() throws {
        let operation = """
            {"id": "01", "state": "parked", "reason": "auth", "method": "POST", "url": "http://a/n", "upstream": "a", "attempts": 3,
            "acceptedAt": "2026-11-21T08:00:00Z", "lastError": null, "dependsOn": [], "result": {"status": 401}}
            """
        #expect(
            try lines("{\"items\": [\(operation)], \"next\": null}", as: OperationListReport.self).last
                == "01  parked (auth)  POST http://a/n         3  2026-11-21 08:00:00Z  –")
        #expect(try lines(operation, as: OperationReport.self).contains("state     parked (auth)"))
        #expect(try lines("{\"items\": []}", as: OperationListReport.self).count == 1)
    }

    @Test func `The way back from offline, and how long what was fetched can be read`() throws {
        let network = #"{"mode": "offline", "upstreams": [{"name": "notes", "reachability": "offline", "mode": "offline"}]}"#
        #expect(try lines(network, as: NetworkReport.self).last == "Next: send again, and what waits too: rockpool network auto")
        let untried = #"{"mode": "auto", "upstreams": [{"name": "notes", "reachability": "untried", "mode": "auto"}]}"#
        #expect(try lines(untried, as: NetworkReport.self).contains { $0.hasPrefix("notes ") && $0.contains("not tried yet") })
        let fetched = """
            {"items": [{"url": "http://a/1", "status": 200, "stored": true, "bytes": 5, "pinned": true, "offlineUntil": "2026-12-27T00:00:00.000Z"},
            {"url": "http://a/2", "status": 200, "stored": true, "bytes": 5, "pinned": false, "offlineUntil": null},
            {"url": "http://a/3", "status": 200, "stored": false, "reason": "no-store", "bytes": 5, "pinned": false}], "stored": 2}
            """
        #expect(
            try lines(fetched, as: PrefetchReport.self) == [
                "URL         STATUS  SIZE  OFFLINE UNTIL         STORED", "http://a/1     200   5 B  2026-12-27 00:00:00Z  pinned",
                "http://a/2     200   5 B  always                yes", "http://a/3     200   5 B  –                     no: no-store",
            ])
    }

    @Test func `An answer that is something else is a failure, not a crash`() {
        #expect(throws: CommandFailure.self) { try lines("[]", as: StatusReport.self) }
    }

    @Test func `What a cleanup asks the server`() {
        #expect(
            CleanupRequest(dryRun: true, category: "assets", olderThan: .days(7)).body
                == .map([
                    .init("aggressive", .bool(false)), .init("dryRun", .bool(true)), .init("vacuum", .bool(false)),
                    .init("category", .text("assets")),
                    .init("olderThanSeconds", .int(604_800)),
                ]))
    }
}
