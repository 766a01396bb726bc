// `/v1/stats` as tables (docs/reference/admin-api.md#status).

struct StatsReport: TabularReport, Equatable {
    struct Cache: Decodable, Equatable {
        var hits: Int64
        var misses: Int64
        var stale: Int64
        var revalidated: Int64
        var hitRatio: Double?
        var entries: Int64
        var bytes: Int64
        var limitBytes: Int64
        var memoryBytes: Int64
        var evictions: Int64
        var byCategory: [String: CategoryUse]?
    }

    struct Outbox: Decodable, Equatable {
        var pending: Int64
        var inflight: Int64
        var uncertain: Int64
        var conflicted: Int64
        var parked: Int64
        var dead: Int64
        var delivered: Int64
        var oldestPendingSeconds: Double?
        var purgeSoon: Int64?
        var nextPurgeAt: String?
        var telemetry: [Telemetry]?
    }

    /// What waits on a telemetry route, and what was dropped there.
    struct Telemetry: Decodable, Equatable {
        var upstream: String
        var route: Word
        var waiting: Int64
        var refused: Int64
        var bytes: Int64
        var oldestSeconds: Double?
        var dropped: [String: Int64]
    }

    /// How well writes arrive and reads are answered while upstreams are away.
    struct Sync: Decodable, Equatable {
        struct Targets: Decodable, Equatable {
            var successRatio: Double
            var conflictRatio: Double
            var seconds: Double
            var offlineReadRatio: Double
        }

        var successRatio: Double?
        var conflictRatio: Double?
        var meanSeconds: Double?
        var inTimeRatio: Double?
        var offlineReadRatio: Double?
        var targets: Targets
    }

    struct Storage: Decodable, Equatable {
        var cacheBytes: Int64
        var cacheLimitBytes: Int64
        var dataBytes: Int64
        var dataLimitBytes: Int64
        var freeDiskBytes: Int64
        var reclaimableBytes: Int64
    }

    struct Traffic: Decodable, Equatable {
        var name: String?
        var requests: Int64
        var sentBytes: Int64
        var receivedBytes: Int64
        var costBytes: Int64
        var deliveredBytes: Int64
        var savedBytes: Int64
        var via: String?
    }

    /// The traffic of the last minutes.
    struct Window: Decodable, Equatable {
        var minutes: Int
        var requestsPerSecond: Double
        var hitRatio: Double?
        var p50Seconds: Double?
        var p99Seconds: Double?
    }

    /// Connections to one host that were passed on unread.
    struct Tunnels: Decodable, Equatable {
        var host: Word
        var tunnels: Int64
        var refused: Int64
        var sentBytes: Int64
        var receivedBytes: Int64
    }

    var cache: Cache
    var outbox: Outbox
    var sync: Sync?
    var storage: Storage
    var upstreams: [Traffic]?
    var tunnels: [Tunnels]?
    var windows: [Window]?
    var uptimeSeconds: Double

    var tables: [TextTable] {
        let storageFacts = TextTable.facts([
            ("cache", .init(ForPeople.share(storage.cacheBytes, of: storage.cacheLimitBytes))),
            ("data", .init(ForPeople.share(storage.dataBytes, of: storage.dataLimitBytes))),
            ("free disk", .init(ForPeople.bytes(storage.freeDiskBytes))),
            ("reclaimable", .init(ForPeople.bytes(storage.reclaimableBytes))),
            ("uptime", .init(ForPeople.seconds(uptimeSeconds))),
        ])
        return [lately, cacheFacts, categories, outboxFacts, telemetry, syncFacts, storageFacts, traffic, notDecrypted]
    }

    private var lately: TextTable {
        func milliseconds(_ seconds: Double?) -> TextTable.Cell { .init(seconds.map { "\(($0 * 10_000).rounded() / 10) ms" } ?? "–") }
        return TextTable(
            columns: [.text("LAST"), .number("REQUESTS/S"), .number("HITS"), .number("P50"), .number("P99")],
            rows: (windows ?? []).map {
                [
                    "\($0.minutes) min", .init("\(($0.requestsPerSecond * 10).rounded() / 10)"),
                    .init($0.hitRatio.map(ForPeople.percent) ?? "–"), milliseconds($0.p50Seconds), milliseconds($0.p99Seconds),
                ]
            })
    }

    private var notDecrypted: TextTable {
        TextTable(
            columns: [.text("TUNNEL, NOT DECRYPTED"), .number("TUNNELS"), .number("REFUSED"), .number("SENT"), .number("RECEIVED")],
            rows: (tunnels ?? []).map {
                [
                    .init($0.host.text), "\($0.tunnels)", "\($0.refused)", .init(ForPeople.bytes($0.sentBytes)),
                    .init(ForPeople.bytes($0.receivedBytes)),
                ]
            })
    }

    private var cacheFacts: TextTable {
        .facts([
            ("hit ratio", .init(cache.hitRatio.map(ForPeople.percent) ?? "–")),
            ("hits", "\(cache.hits), \(cache.stale) of them stale"),
            ("misses", "\(cache.misses)"),
            ("revalidated", "\(cache.revalidated)"),
            ("entries", "\(cache.entries), \(ForPeople.share(cache.bytes, of: cache.limitBytes))"),
            ("in memory", .init(ForPeople.bytes(cache.memoryBytes))),
            ("evictions", "\(cache.evictions)"),
        ])
    }

    private var traffic: TextTable {
        TextTable(
            columns: [
                .text("UPSTREAM"), .number("REQUESTS"), .number("SENT"), .number("RECEIVED"), .number("OF IT UNASKED"),
                .number("DELIVERED"),
                .number("SAVED"), .text("VIA"),
            ],
            rows: (upstreams ?? []).map { upstream in
                let bytes = [
                    upstream.sentBytes, upstream.receivedBytes, upstream.costBytes, upstream.deliveredBytes, upstream.savedBytes,
                ]
                return [.init(upstream.name ?? "others"), "\(upstream.requests)"] + bytes.map { .init(ForPeople.bytes($0)) }
                    + [.init(upstream.via ?? "–")]
            })
    }

    private var categories: TextTable {
        TextTable(
            columns: [.text("CATEGORY"), .number("ENTRIES"), .number("SIZE")],
            rows: (cache.byCategory ?? [:]).sorted { $0.key < $1.key }.map { name, use in
                [.init(name), .init(use.entries.map { "\($0)" } ?? "–"), .init(ForPeople.bytes(use.bytes))]
            })
    }

    private var telemetry: TextTable {
        TextTable(
            columns: [
                .text("TELEMETRY"), .text("ROUTE"), .number("WAITING"), .number("REFUSED"), .number("SIZE"), .text("OLDEST"),
                .number("DROPPED"),
            ],
            rows: (outbox.telemetry ?? []).map { queue in
                let dropped = queue.dropped.values.reduce(0, +)
                return [
                    .init(queue.upstream), .init(queue.route.text), "\(queue.waiting)", "\(queue.refused)",
                    .init(ForPeople.bytes(queue.bytes)),
                    .init(queue.oldestSeconds.map(ForPeople.seconds) ?? "–"), .init("\(dropped)", dropped > 0 ? .warning : nil),
                ]
            })
    }

    private var syncFacts: TextTable {
        guard let sync else { return .facts([]) }
        func fact(_ name: String, of value: Double?, target: Double, atLeast: Bool) -> (String, TextTable.Cell) {
            guard let value else { return (name, "–") }
            let isMet = atLeast ? value >= target : value <= target
            let text = "\(ForPeople.percent(value)), the target is \(atLeast ? "at least" : "at most") \(ForPeople.percent(target))"
            return (name, .init(text, isMet ? nil : .warning))
        }
        var inTime = fact(
            "sent in \(ForPeople.seconds(sync.targets.seconds))", of: sync.inTimeRatio, target: sync.targets.successRatio, atLeast: true)
        inTime.1.text += sync.meanSeconds.map { ", \(ForPeople.seconds($0)) on average" } ?? ""
        return .facts([
            fact("delivered of ended", of: sync.successRatio, target: sync.targets.successRatio, atLeast: true),
            fact("met a conflict", of: sync.conflictRatio, target: sync.targets.conflictRatio, atLeast: false), inTime,
            fact("read while away", of: sync.offlineReadRatio, target: sync.targets.offlineReadRatio, atLeast: true),
        ])
    }

    private var outboxFacts: TextTable {
        let pending = outbox.oldestPendingSeconds.map { ", the oldest for \(ForPeople.seconds($0))" } ?? ""
        var facts: [(String, TextTable.Cell)] = [
            ("pending", "\(outbox.pending)\(outbox.pending > 0 ? pending : "")"),
            ("in flight", "\(outbox.inflight)"),
            ("uncertain", .init("\(outbox.uncertain)", outbox.uncertain > 0 ? .warning : nil)),
            ("conflicted", .init("\(outbox.conflicted)", outbox.conflicted > 0 ? .warning : nil)),
            ("parked", .init("\(outbox.parked)", outbox.parked > 0 ? .warning : nil)),
            ("dead", .init("\(outbox.dead)", outbox.dead > 0 ? .bad : nil)),
            ("delivered", "\(outbox.delivered)"),
        ]
        if let soon = outbox.purgeSoon, soon > 0 {
            facts.append(("purged soon", .init("\(soon), the first at \(ForPeople.time(outbox.nextPurgeAt))", .warning)))
        }
        return .facts(facts)
    }
}

/// The usage of one category: a number of bytes, or an object that contains it.
struct CategoryUse: Decodable, Equatable {
    var bytes: Int64
    var entries: Int64?

    private enum CodingKeys: String, CodingKey { case bytes, entries }

    init(from decoder: any Decoder) throws {
        if let bytes = try? decoder.singleValueContainer().decode(Int64.self) {
            self.bytes = bytes
        } else {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            bytes = try container.decode(Int64.self, forKey: .bytes)
            entries = try container.decodeIfPresent(Int64.self, forKey: .entries)
        }
    }
}
