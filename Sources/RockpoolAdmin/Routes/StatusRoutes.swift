// `/healthz`, `/readyz`, `/v1/status` and `/v1/stats`: the state of the whole server (docs/reference/admin-api.md#status,
// docs/guide/operating.md#show-the-state).
import HTTPTypes
import Hummingbird
import RockpoolCore
import RockpoolEngine
import RockpoolStore

struct StatusRoutes {
    let cache: CacheStore
    let data: DataStore
    let active: ActiveConfiguration
    let reachability: ReachabilityTable
    let refusedWrites: RefusedWrites
    let budgets: RequestBudgets
    let parents: ParentProxies
    let feed: EventFeed
    let now: @Sendable () -> Timestamp
    let facts: ServerFacts
    let dashboard: @Sendable () -> String

    func add(to router: Router<AdminContext>) {
        router.get("/healthz") { _, _ in Response(status: .noContent) }
        router.get("/readyz") { _, _ in try await readiness() }
        router.get("/v1/status") { _, _ in Response.json(try await status()) }
        router.get("/v1/stats") { _, _ in Response.json(try await feed.statsDocument()) }
    }

    /// Ready while writes can be stored. A disabled cache is reported but does not affect readiness: traffic bypasses it.
    private func readiness() async throws -> Response {
        _ = try await data.counts()
        let (cache, data) = (self.cache.trouble, self.data.trouble)
        let (disk, absence) = (self.data.diskTrouble, self.data.fleet?.absence)
        // A node that may keep writes of its own until the database is back takes them; one that has no way back does not.
        let isAlone = absence != nil && (active.configuration.outbox.whenUnreachable == .refuse || self.data.fleet?.hasEnded == true)
        let isReady = data == nil && disk == nil && !isAlone
        var body: JSONValue = [
            "ready": .bool(isReady), "cache": .string(cache?.fault.rawValue ?? "ok"),
            "data": .string(data?.fault.rawValue ?? (disk == nil ? "ok" : StorageHealth.Fault.full.rawValue)),
            "detail": .optional(data?.detail ?? disk ?? absence ?? cache?.detail),
        ]
        if self.data.fleet != nil { body["fleet"] = .string(absence == nil ? "ok" : "away") }
        return .json(body, status: isReady ? .ok : .serviceUnavailable)
    }

    private func status() async throws -> JSONValue {
        let counts = try await data.counts()
        let waiting = SyncState.waiting.reduce(0) { $0 + counts[$1, default: 0] }
        let machines = active.routes.upstreams.map { ($0, reachability.machine(of: $0.name)) }
        // A receiver of messages that is away leaves every API usable.
        let isAway = machines.contains { $0.0.receiver == nil && ($0.1?.shownState == .offline || $0.1?.shownState == .captive) }
        var document: JSONValue = [
            "state": .string(
                SyncState.of(counts, isAway: isAway, hasFault: cache.trouble != nil || data.trouble != nil).rawValue),
            "pending": .integer(waiting),
            "conflicts": .integer(counts[.conflicted, default: 0]),
            "failed": .integer(counts[.dead, default: 0]),
            "lastFailed": try await lastFailed(of: counts[.dead, default: 0]),
            "upstreams": .array(machines.map(row)),
            "parents": .array(parents.standings.map(row)),
            "connection": connection,
            "refused": .optional(refusedWrites.words(now: now())),
            "storage": .optional(
                try await StorageWarning.words(cache: cache, data: data, minFree: active.configuration.storage.minFree)),
            "version": .string(facts.version),
            "configFile": .optional(facts.configFile),
            "stateDir": .string(facts.stateDirectory),
            "cacheDir": .string(facts.cacheDirectory),
            "dashboard": .string(dashboard()),
            "proxy": .optional(facts.proxy),
        ]
        if let damaged = try await damaged() { document["damaged"] = damaged }
        if let fleet = FleetRoutes.standing(of: data) { document["fleet"] = fleet }
        return document
    }

    /// The kind of connection of this machine; null without a default route.
    private var connection: JSONValue {
        guard let (interface, kind) = ConnectionFacts.current else { return .null }
        let isMetered = active.configuration.upstreams.contains { budgets.isMetered($0) }
        return ["kind": .string(kind.rawValue), "interface": .string(interface), "metered": .bool(isMetered)]
    }

    /// The bodies of queued writes that cannot be read any more; nil without one.
    private func damaged() async throws -> JSONValue? {
        let bodies = try await data.damagedBodies()
        if bodies.isEmpty { return nil }
        return .array(
            bodies.prefix(Notice.operationLimit).map { body in
                [
                    "body": .string("blobs/\(body.sha256)"), "what": .string(body.what),
                    "operations": .array(body.operations.map { .string($0) }),
                ]
            })
    }

    /// The dead write that was accepted last, its cause, and the command that shows more.
    private func lastFailed(of count: Int) async throws -> JSONValue {
        guard count > 0, let operation = try await data.last(in: .dead)?.shown() else { return .null }
        var notice = Notice(.dead, upstream: operation.upstream)
        (notice.cause, notice.operations) = (operation.lastError, [operation.id])
        return [
            "operation": .string(operation.id), "upstream": .string(operation.upstream),
            "method": .string(operation.request.method.rawValue), "url": .string(operation.request.url), "cause": .optional(notice.cause),
            "next": .string(notice.next),
        ]
    }

    private func row(for parent: ParentStanding) -> JSONValue {
        [
            "of": .string(parent.of), "url": .string(parent.url), "state": .string(parent.downSince == nil ? "up" : "down"),
            "since": .time(parent.downSince), "used": .bool(parent.isUsed),
        ]
    }

    private func row(for upstream: Upstream, reachability machine: Reachability?) -> JSONValue {
        let own = machine?.mode ?? .auto
        return [
            "name": .string(upstream.name),
            "origin": .string(upstream.origin.url),
            "mode": .string((own == .auto ? reachability.mode : own).rawValue),
            "reachability": .string((machine?.shownState ?? .untried).rawValue),
            "since": .time(machine?.since),
            "lastError": .optional(machine?.lastError),
            "bandwidth": .optional(reachability.bandwidth(of: upstream.name, now: now())?.rawValue),
        ]
    }
}

/// The most urgent shortage of storage.
enum StorageWarning {
    /// The share of a limit, in percent, from which it is worth a word.
    private static let highPercent = 90

    /// Returns nil if there is no shortage.
    static func words(cache: CacheStore, data: DataStore, minFree: ByteCount) async throws -> String? {
        if let trouble = data.trouble { return "the outbox is \(trouble.fault.rawValue): \(trouble.detail); see rockpool doctor" }
        let outbox = data.usage()
        if outbox.limitBytes > 0, outbox.usedBytes >= outbox.limitBytes.percent(highPercent) {
            let (used, limit) = (ByteCount(outbox.usedBytes).rounded, ByteCount(outbox.limitBytes).rounded)
            return "the outbox uses \(used) of \(limit), and refuses writes at the limit: rockpool outbox summary shows what fills it"
        }
        let room = try await cache.usage()
        if room.freeDiskBytes < minFree.bytes {
            return
                "the disk has \(ByteCount(room.freeDiskBytes).rounded) free, less than storage.min_free: rockpool storage-cleanup --dry-run says what could go"
        }
        if let trouble = cache.trouble { return "the cache is \(trouble.fault.rawValue): \(trouble.detail); see rockpool doctor" }
        return nil
    }
}

/// `/v1/network`: the reachability of each upstream, and the manual switch (docs/reference/admin-api.md#switch).
struct NetworkRoutes {
    let active: ActiveConfiguration
    let reachability: ReachabilityTable
    let upstreams: UpstreamClient
    let untrusting: UntrustingTable
    let signedArrivals: SignedArrivals
    let events: EngineEvents
    let now: @Sendable () -> Timestamp

    func add(to router: Router<AdminContext>) {
        router.get("/v1/network") { _, _ in Response.json(document) }
        router.put("/v1/network") { request, _ in await set(request: request) }
    }

    private func set(request: Request) async -> Response {
        guard let body = await request.jsonObject() else {
            return .problem(.badRequest, detail: #"send {"mode": "auto" | "offline" | "online", "upstream": NAME or null}"#)
        }
        if let name = body.map(\.name).first(where: { $0 != "mode" && $0 != "upstream" }) {
            return .problem(.unprocessable, detail: "unknown member \(name.prefix(40)); there are mode and upstream")
        }
        guard let mode = body["mode"]?.string.flatMap(Reachability.Mode.init) else {
            return .problem(.unprocessable, detail: "mode is one of auto, offline and online")
        }
        let upstream = body["upstream"]?.string
        if upstream == nil, let given = body["upstream"], given != .null {
            return .problem(.unprocessable, detail: "upstream must be the name of an upstream, or null for all")
        }
        let before = shown
        do {
            guard try upstreams.switchNetwork(mode, upstream: upstream) else {
                return .problem(.notFound, detail: Refusal.unknown(upstream: upstream ?? "", among: active).detail)
            }
        } catch {
            return .problem(.noRoom, detail: "the mode is set, but cannot be stored for the next start: \(error)")
        }
        let after = shown
        for (name, state) in before {
            guard let now = after[name], now != state else { continue }
            events.tell(.reachability(.init(upstream: name, from: state, to: now)))
        }
        return .json(document)
    }

    /// The published state of each upstream: the manual switch overrides the detected one.
    private var shown: [String: Reachability.State] {
        let states = active.routes.upstreams.map { ($0.name, reachability.machine(of: $0.name)?.shownState ?? .online) }
        return Dictionary(states) { first, _ in first }
    }

    private var document: JSONValue {
        [
            "mode": .string(reachability.mode.rawValue),
            "upstreams": .array(active.routes.upstreams.map { row(for: $0) }),
            "untrusting": .array(untrusting.list.map { Self.row(for: $0, at: now()) }),
        ]
    }

    /// A client that did not trust our certificate authority.
    private static func row(for refusal: UntrustingClient, at now: Timestamp) -> JSONValue {
        [
            "host": .string(refusal.host),
            "client": .string(refusal.client),
            "at": .time(refusal.at),
            "alert": .string(refusal.alert),
            "count": .integer(refusal.count),
            "bypassedUntil": .time(refusal.bypassedUntil.flatMap { $0 > now ? $0 : nil }),
        ]
    }

    private func row(for upstream: Upstream) -> JSONValue {
        let machine = reachability.machine(of: upstream.name)
        return [
            "name": .string(upstream.name),
            "mode": .string((machine?.mode ?? .auto).rawValue),
            "reachability": .string((machine?.shownState ?? .untried).rawValue),
            "since": .time(machine?.since),
            "bandwidth": .optional(reachability.bandwidth(of: upstream.name, now: now())?.rawValue),
            "signatureBrokenAt": .time(signedArrivals.last(to: upstream.name)),
        ]
    }
}
