// Makes an engine's services of the parts that each one uses, and connects reachability to events and the log.
package import Logging
import RockpoolCore
import RockpoolStore

extension Cleaner {
    package convenience init(engine: Engine) {
        self.init(
            cache: engine.cache, data: engine.data, clock: engine.clock, events: engine.events, notifier: engine.notifier,
            active: engine.active, reachability: engine.reachability, logger: engine.logger, now: engine.now)
    }
}

extension Replayer {
    package convenience init(engine: Engine) {
        self.init(
            data: engine.data, cache: engine.cache, active: engine.active, reachability: engine.reachability, upstreams: engine.upstreams,
            outbound: engine.outbound, credentials: engine.credentials, renewal: engine.renewal, notifier: engine.notifier,
            events: engine.events, lookup: engine.reads.lookup, updates: engine.reads.updates, effects: engine.effects,
            identities: engine.identities, itemsBefore: engine.itemsBefore, traces: engine.traces, logger: engine.logger, now: engine.now,
            pusher: Pusher(engine: engine))
    }
}

extension RecalledDeliveries {
    package init(engine: Engine) {
        self.init(
            data: engine.data, outbound: engine.outbound, updates: engine.reads.updates, effects: engine.effects, logger: engine.logger)
    }
}

extension Credentials {
    /// Creates credentials whose changes the copies of the cache follow.
    convenience init(store: DataStore, cache: CacheStore, logger: Logger, now: @escaping @Sendable () -> Timestamp) {
        self.init(store: store, logger: logger, now: now) { name in
            if let name { cache.forgetHot(ofCredential: name) } else { cache.forgetHot() }
        } onMove: { principal, name in
            do { try await cache.move(principal, to: name) } catch {
                logger.failed("copies of an identity stay under its old name", error: error)
            }
        }
    }
}

extension ResourceLearning {
    /// - Parameters:
    ///   - folded: what is forgotten when something is learned.
    ///   - document: reads JSON, and what else descriptions are written in.
    convenience init(
        cache: CacheStore, data: DataStore, folded: FoldedReads, active: ActiveConfiguration, logger: Logger,
        document: @escaping @Sendable (_ bytes: [UInt8]) -> JSONValue?, now: @escaping @Sendable () -> Timestamp
    ) {
        let lookup = EntryLookup(cache: cache, data: data, logger: logger, now: now)
        self.init(data: data, active: active, logger: logger) { entry, limit in
            try await lookup.content(of: entry, limit: limit)
        } copies: { url, partition in
            (try? await cache.copies(ofPath: url, in: [partition, .shared], limit: 1)) ?? []
        } document: {
            document($0)
        } onChange: {
            folded.forget()
            cache.forgetHot()
        }
    }
}

extension DescriptionReader {
    package convenience init(engine: Engine) {
        self.init(active: engine.active, reachability: engine.reachability, learning: engine.learning, now: engine.now) {
            _ = await engine.prefetch([$0])
        }
    }
}

extension Pusher {
    convenience init(engine: Engine) {
        self.init(
            data: engine.data, active: engine.active, reachability: engine.reachability, upstreams: engine.upstreams,
            outbound: engine.outbound, credentials: engine.credentials, notifier: engine.notifier, updates: engine.reads.updates,
            effects: engine.effects, logger: engine.logger, now: engine.now)
    }
}

extension ConflictResolutionService {
    /// - Parameter puller: Brings the times of deletions; nil without pulls.
    package convenience init(engine: Engine, puller: Puller? = nil) {
        self.init(
            data: engine.data, active: engine.active, outbound: engine.outbound, commands: engine.commands, events: engine.events,
            logger: engine.logger, puller: puller)
    }
}

extension OperationRecorder {
    package convenience init(engine: Engine) {
        self.init(
            data: engine.data, documents: engine.documents, events: engine.events, ring: engine.exchanges, now: engine.now)
    }
}

extension FleetFeed {
    /// Nil without a fleet.
    package convenience init?(engine: Engine) {
        guard engine.data.fleet != nil else { return nil }
        self.init(
            deliveries: DeliveryEffects(data: engine.data, outbound: engine.outbound, effects: engine.effects),
            notifier: engine.notifier, updates: engine.reads.updates, parents: engine.upstreams.parents,
            credentials: engine.credentials, active: engine.active)
    }
}

extension Prober {
    /// Creates the prober that probes for the sake of queued writes.
    package convenience init(engine: Engine, replayer: Replayer) {
        self.init(
            upstreams: engine.upstreams, reachability: engine.reachability, active: engine.active, now: engine.now
        ) { replayer.somethingWaits(for: $0) }
    }
}

extension Announcer {
    /// - Parameter local: Runs the programs of notices.
    package convenience init(engine: Engine, local: any LocalNotices) {
        self.init(
            data: engine.data, cache: engine.cache, active: engine.active, reachability: engine.reachability, events: engine.events,
            notifier: engine.notifier, local: local, logger: engine.logger, now: engine.now)
    }
}

extension SiteReporter {
    /// - Parameter version: of this program.
    package convenience init(engine: Engine, version: String) {
        self.init(
            summary: SiteSummary(
                data: engine.data, cache: engine.cache, active: engine.active, reachability: engine.reachability, version: version),
            messages: OwnMessages(data: engine.data, notifier: engine.notifier, now: engine.now), active: engine.active,
            logger: engine.logger, now: engine.now)
    }
}

extension Puller {
    package convenience init(engine: Engine) {
        self.init(
            data: engine.data, cache: engine.cache, active: engine.active, reachability: engine.reachability, upstreams: engine.upstreams,
            credentials: engine.credentials, lookup: engine.reads.lookup, events: engine.events, logger: engine.logger, now: engine.now
        ) { await engine.respond($0) }
    }
}

extension Engine {
    /// Publishes changes of reachability as events and in the log; the only place that does so.
    package func connectReachability(logger: Logger) {
        reachability.onChange { [events] change in
            // The first answer of each is what is expected.
            let isFirst = change.from == .untried && change.to == .online
            logger.log(
                level: isFirst ? .info : .notice, "\(change.upstream) is \(change.to.words) (was \(change.from.words))")
            events.tell(.reachability(change))
        }
    }
}
