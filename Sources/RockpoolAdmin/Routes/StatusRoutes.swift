// `/healthz`, `/readyz`, `/v1/status` and `/v1/stats`: how it stands, in one look (contract §4, features G9).
import HTTPTypes
import Hummingbird
import RockpoolCore
import RockpoolEngine
import RockpoolStore

struct StatusRoutes {
    let engine: Engine
    let startedAt: Timestamp

    func add(to router: Router<AdminContext>) {
        router.get("/healthz") { _, _ in Response(status: .noContent) }
        router.get("/readyz") { _, _ in
            _ = try await engine.data.counts()
            return Response.json(["ready": true])
        }
        router.get("/v1/status") { _, _ in Response.json(try await status()) }
        router.get("/v1/stats") { _, _ in Response.json(try await stats()) }
    }

    private func status() async throws -> JSONValue {
        let counts = try await engine.data.counts()
        let waiting = SyncState.waiting.reduce(0) { $0 + counts[$1, default: 0] }
        let machines = engine.configuration.upstreams.map { ($0, engine.reachability.machine(of: $0.name)) }
        let isAway = machines.contains { $0.1?.shownState == .offline || $0.1?.shownState == .captive }
        return [
            "state": .string(SyncState.of(counts, isAway: isAway).rawValue),
            "pending": .integer(waiting),
            "conflicts": .integer(counts[.conflicted, default: 0]),
            "failed": .integer(counts[.dead, default: 0]),
            "upstreams": .array(machines.map(Self.upstream)),
        ]
    }

    private static func upstream(_ upstream: Upstream, _ machine: Reachability?) -> JSONValue {
        [
            "name": .string(upstream.name),
            "origin": .string(upstream.origin.url),
            "reachability": .string((machine?.shownState ?? .online).rawValue),
            "since": .time(machine?.since),
            "lastError": .optional(machine?.lastError),
            "bandwidth": .null,
        ]
    }

    private func stats() async throws -> JSONValue {
        let cache = try await engine.cache.usage()
        let data = engine.data.usage()
        let statistics = engine.statistics
        let verdicts = Trace.Verdict.allCases.map { ($0.rawValue, JSONValue.integer(statistics[$0])) }
        return [
            "cache": [
                "hits": .integer(statistics[.hit] + statistics[.stale]),
                "misses": .integer(statistics[.miss]),
                "stale": .integer(statistics[.stale]),
                "revalidated": .integer(statistics[.revalidated]),
                "hitRatio": .real(statistics.hitRatio),
                "entries": .integer(cache.entries),
                "bytes": .integer(cache.usedBytes),
                "limitBytes": .integer(cache.limitBytes),
                "memoryBytes": .integer(cache.memoryBytes),
                "evictions": .integer(cache.evictions),
                "byCategory": StorageRoutes.byCategory(cache),
            ],
            "outbox": try await outbox(),
            "storage": [
                "cacheBytes": .integer(cache.usedBytes),
                "cacheLimitBytes": .integer(cache.limitBytes),
                "dataBytes": .integer(data.usedBytes),
                "dataLimitBytes": .integer(data.limitBytes),
                "freeDiskBytes": .integer(cache.freeDiskBytes),
                "reclaimableBytes": .integer(cache.reclaimableBytes + data.reclaimableBytes),
            ],
            "requests": .object(JSONObject([("total", .integer(statistics.total))] + verdicts)),
            "uptimeSeconds": .integer((engine.now() - startedAt).seconds),
        ]
    }

    private func outbox() async throws -> JSONValue {
        let counts = try await engine.data.counts()
        let oldest = try await engine.data.oldestPending()
        var members: [(String, JSONValue)] = [OperationState.pending, .inflight, .uncertain, .conflicted, .parked, .dead]
            .map { ($0.rawValue, .integer(counts[$0, default: 0])) }
        members.append(("delivered", .integer(try await engine.data.deliveredTotal())))
        members.append(("oldestPendingSeconds", oldest.map { .integer((engine.now() - $0).seconds) } ?? .null))
        let (soon, first) = try await engine.data.announcedPurges(engine.retention, now: engine.now())
        members.append(("purgeSoon", .integer(soon)))
        members.append(("nextPurgeAt", .time(first)))
        return .object(JSONObject(members))
    }
}

/// How the whole stands, worst first (contract §6).
enum SyncState: String, CaseIterable {
    case offline, error, pending, syncing, synced

    /// States that have not ended and for which something is still to happen.
    static let waiting: [OperationState] = [.pending, .inflight, .uncertain, .conflicted, .parked]

    static func of(_ counts: [OperationState: Int], isAway: Bool) -> SyncState {
        if isAway { return .offline }
        if counts[.dead, default: 0] > 0 { return .error }
        if [.conflicted, .parked, .uncertain, .pending].contains(where: { counts[$0, default: 0] > 0 }) { return .pending }
        return counts[.inflight, default: 0] > 0 ? .syncing : .synced
    }
}
