// Reports of this site to a collector, through the outbox (docs/fleet.md#sites).
import Logging
import RockpoolCore
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
