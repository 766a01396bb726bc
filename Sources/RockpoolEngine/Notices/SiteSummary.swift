// The state of this site in a few lines, for its collector (docs/fleet.md#sites).
import RockpoolCore
import RockpoolStore

/// Makes the reports of a site.
struct SiteSummary: Sendable {
    /// Upstreams in a report at most.
    private static let upstreamLimit = 50

    let data: DataStore
    let cache: CacheStore
    let active: ActiveConfiguration
    let reachability: ReachabilityTable
    let version: String

    /// Returns what `/v1/status` says, without messages of Rockpool's own, and the age of the oldest waiting write.
    /// - Throws: `DataStoreError`.
    func report(of settings: SiteReportSettings, now: Timestamp) async throws -> JSONValue {
        let counts = try await counts(without: settings)
        let upstreams = active.routes.upstreams.filter { $0.receiver == nil }
        let states = upstreams.map { ($0, reachability.machine(of: $0.name)?.shownState ?? .online) }
        let isAway = states.contains { $0.1 == .offline || $0.1 == .captive }
        let hasFault = cache.trouble != nil || data.trouble != nil
        let oldest = try await data.oldestPendingWrite()
        let (rows, usage) = (try await cache.usage(), data.usage())
        return [
            "site": .string(settings.site), "version": .string(version),
            "state": .string(SyncState.of(counts, isAway: isAway, hasFault: hasFault).rawValue),
            "pending": Self.number(SyncState.waiting.reduce(0) { $0 + counts[$1, default: 0] }),
            "conflicts": Self.number(counts[.conflicted, default: 0]), "failed": Self.number(counts[.dead, default: 0]),
            "oldestPendingSeconds": oldest.map { Self.number(max(.zero, now - $0.acceptedAt).seconds) } ?? .null,
            "upstreams": .array(
                states.prefix(Self.upstreamLimit).map { ["name": .string($0.name), "reachability": .string($1.rawValue)] }),
            "storage": [
                "dataBytes": Self.number(usage.usedBytes), "dataLimitBytes": Self.number(usage.limitBytes),
                "cacheBytes": Self.number(rows.usedBytes), "trouble": .optional(data.trouble?.detail ?? cache.trouble?.detail),
            ],
        ]
    }

    private func counts(without settings: SiteReportSettings) async throws -> [OperationState: Int] {
        var counts = try await data.counts()
        guard let origin = try? RequestHead(url: settings.url).origin else { return counts }
        let own = try await data.openCounts(ofEach: [ReceiverKind.report.upstreamName(of: origin)]).first?.counts ?? [:]
        for (state, count) in own { counts[state] = max(0, counts[state, default: 0] - count) }
        return counts
    }

    private static func number(_ value: some BinaryInteger) -> JSONValue { .number(JSONNumber(Int64(clamping: value))) }
}
