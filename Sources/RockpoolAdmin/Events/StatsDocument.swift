// The counters of `/v1/stats` and of the event stream (docs/reference/admin-api.md#status).
import RockpoolCore
import RockpoolEngine
import RockpoolStore

/// Counts since the start, and the current contents of the stores.
struct StatsDocument: Sendable {
    let cache: CacheStore
    let data: DataStore
    let statistics: Statistics
    let measures: OutboxMeasures
    let tunnels: TunnelLog
    let active: ActiveConfiguration
    let now: @Sendable () -> Timestamp
    let startedAt: Timestamp

    /// The hosts of tunnels that are listed.
    private static let tunnelLimit = 50

    /// Reads the counters and returns the document.
    func json() async throws -> JSONValue {
        let cache = try await self.cache.usage()
        let data = self.data.usage()
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
                "byCategory": Self.byCategory(of: cache),
            ],
            "outbox": try await outbox(),
            "sync": sync,
            "storage": [
                "cacheBytes": .integer(cache.usedBytes),
                "cacheLimitBytes": .integer(cache.limitBytes),
                "dataBytes": .integer(data.usedBytes),
                "dataLimitBytes": .integer(data.limitBytes),
                "freeDiskBytes": .integer(cache.freeDiskBytes),
                "reclaimableBytes": .integer(cache.reclaimableBytes + data.reclaimableBytes),
            ],
            "requests": .object(JSONObject([("total", .integer(statistics.total))] + verdicts)),
            "upstreams": upstreams,
            "tunnels": .array(
                tunnels.hosts.prefix(Self.tunnelLimit).map { name, host in
                    [
                        "host": .string(name), "tunnels": .integer(host.tunnels), "refused": .integer(host.refused),
                        "sentBytes": .integer(host.sent), "receivedBytes": .integer(host.received),
                    ]
                }),
            "uptimeSeconds": .integer((now() - startedAt).seconds),
        ]
    }

    /// How well writes arrive and reads are answered, beside the targets.
    private var sync: JSONValue {
        var figures = measures.sync
        (figures.offlineReads, figures.offlineMisses) = statistics.offlineReads
        func ratio(_ value: Double?) -> JSONValue { value.map { .real($0) } ?? .null }
        return [
            "delivered": .integer(figures.delivered), "refused": .integer(figures.refused), "conflicts": .integer(figures.conflicts),
            "successRatio": ratio(figures.successRatio), "conflictRatio": ratio(figures.conflictRatio),
            "meanSeconds": ratio(figures.meanSeconds), "inTimeRatio": ratio(figures.inTimeRatio),
            "offlineReads": .integer(figures.offlineReads), "offlineMisses": .integer(figures.offlineMisses),
            "offlineReadRatio": ratio(figures.offlineReadRatio),
            "targets": [
                "successRatio": .real(SyncFigures.successTarget), "conflictRatio": .real(SyncFigures.conflictTarget),
                "seconds": .real(SyncFigures.secondsTarget), "offlineReadRatio": .real(SyncFigures.offlineReadTarget),
            ],
        ]
    }

    /// The bytes on the wire of each declared upstream, then those of all other hosts.
    private var upstreams: JSONValue {
        let declared = active.configuration.upstreams.map { upstream in
            Self.traffic(statistics.traffic[upstream.name], of: .string(upstream.name), withholdsVia: withholdsVia(from: upstream))
        }
        let others = statistics.traffic[nil]
        return .array(declared + (others == UpstreamTraffic() ? [] : [Self.traffic(others, of: .null, withholdsVia: nil)]))
    }

    private func withholdsVia(from upstream: Upstream) -> Bool {
        switch upstream.sendVia {
        case .always: false
        case .never: true
        case .auto: statistics.traffic.via.isWithheld(from: upstream.origin)
        }
    }

    private static func traffic(_ traffic: UpstreamTraffic, of name: JSONValue, withholdsVia: Bool?) -> JSONValue {
        [
            "name": name,
            "requests": .integer(traffic.requests),
            "sentBytes": .integer(traffic.sentBytes),
            "receivedBytes": .integer(traffic.receivedBytes),
            "costBytes": .integer(traffic.costBytes),
            "deliveredBytes": .integer(traffic.deliveredBytes),
            "savedBytes": .integer(traffic.savedBytes),
            "via": withholdsVia.map { .string($0 ? "withheld" : "sent") } ?? .null,
        ]
    }

    private func outbox() async throws -> JSONValue {
        let counts = try await data.counts()
        let oldest = try await data.oldestPending()
        var members: [(String, JSONValue)] = [OperationState.pending, .inflight, .uncertain, .conflicted, .parked, .dead]
            .map { ($0.rawValue, .integer(counts[$0, default: 0])) }
        members.append(("delivered", .integer(try await data.deliveredTotal())))
        members.append(("oldestPendingSeconds", oldest.map { .integer((now() - $0).seconds) } ?? .null))
        let (soon, first) = try await data.announcedPurges(active.retention, now: now())
        members.append(("purgeSoon", .integer(soon)))
        members.append(("nextPurgeAt", .time(first)))
        members.append(("telemetry", .array(try await data.telemetryQueues(of: active.routes).map(telemetry))))
        return .object(JSONObject(members))
    }
}

extension StatsDocument {
    /// One telemetry route's queue.
    private func telemetry(_ queue: TelemetryQueue) -> JSONValue {
        [
            "upstream": .string(queue.upstream), "route": .string(queue.route), "waiting": .integer(queue.waiting),
            "refused": .integer(queue.refused), "bytes": .integer(queue.bytes),
            "oldestSeconds": queue.oldest.map { .integer((now() - $0).seconds) } ?? .null,
            "dropped": .object(
                JSONObject(TelemetryQueue.Limit.allCases.map { ($0.rawValue, .integer(queue.dropped[$0, default: 0])) })),
        ]
    }

    static func byCategory(of usage: CacheUsage) -> JSONValue {
        let rows = usage.byCategory.sorted { $0.key < $1.key }.map { name, usage in
            (
                name,
                JSONValue.object(
                    JSONObject([
                        ("entries", .integer(usage.entries)), ("bytes", .integer(usage.bytes)),
                        ("pinnedBytes", .integer(usage.pinnedBytes)),
                    ]))
            )
        }
        return .object(JSONObject(rows))
    }
}
