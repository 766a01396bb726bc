// Reports of this site to a collector, through the outbox (docs/fleet.md#sites).
import Logging
import RockpoolCore
import RockpoolStore
import ServiceLifecycle
import Synchronization

/// Queues a report at the start and then once in every period, as `fleet.report` says.
package final class SiteReporter: Service {
    private static let tick = Duration.seconds(1)
    /// Time between two looks at a configuration without reports.
    private static let idle = Duration.seconds(10)

    private let summary: SiteSummary
    private let messages: OwnMessages
    private let active: ActiveConfiguration
    private let logger: Logger
    private let now: @Sendable () -> Timestamp
    private let last = Mutex<(settings: SiteReportSettings, at: Timestamp)?>(nil)

    init(
        summary: SiteSummary, messages: OwnMessages, active: ActiveConfiguration, logger: Logger, now: @escaping @Sendable () -> Timestamp
    ) {
        (self.summary, self.messages, self.active, self.logger, self.now) = (summary, messages, active, logger, now)
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                await self.runOnce()
                try? await Task.sleep(for: self.active.configuration.fleet.report == nil ? Self.idle : Self.tick)
            }
        }
    }

    /// Queues a report if one is due.
    package func runOnce() async {
        let moment = now()
        let due = last.withLock { last -> SiteReportSettings? in
            guard let settings = active.configuration.fleet.report else {
                last = nil
                return nil
            }
            // A clock that was set back must not end the reports.
            if let last, last.settings == settings, last.at <= moment, moment - last.at < settings.every { return nil }
            last = (settings, moment)
            return settings
        }
        guard let due else { return }
        do {
            try await messages.queue(report: try await summary.report(of: due, now: moment), by: due)
        } catch {
            logger.failed("the report of this site was not queued", error: error)
        }
    }
}

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
