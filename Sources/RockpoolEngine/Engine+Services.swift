// What connects an engine to its services: the cleanup job, and reachability to events and the log.
package import Logging
import RockpoolCore
import RockpoolStore

extension Cleaner {
    package convenience init(engine: Engine) {
        self.init(
            cache: engine.cache, data: engine.data, clock: engine.clock, events: engine.events, notifier: engine.notifier,
            active: engine.active, logger: engine.logger, now: engine.now)
    }
}

extension Engine {
    /// Publishes changes of reachability as events and in the log; the only place that does so.
    package func connectReachability(logger: Logger) {
        reachability.onChange { [events] change in
            logger.notice("\(change.upstream) is \(change.to.rawValue) (was \(change.from.rawValue))")
            events.tell(.reachability(change))
        }
    }
}
