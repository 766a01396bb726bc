// What a person can do with the outbox: retry, edit, cancel, resolve, undo, push.
import RockpoolCore
import RockpoolStore

/// Commands of a person on operations and conflicts.
package final class OutboxCommands: Sendable {
    let data: DataStore
    let cache: CacheStore
    let reachability: ReachabilityTable
    let events: EngineEvents
    let outbound: OutboundWrites
    let reads: ReadPipeline
    /// Works a write into the copies of a principal.
    let workIn: @Sendable (AnsweredWrite, _ principal: String?) async -> Void
    let notifier: OutboxNotifier
    /// The configuration in force.
    let active: ActiveConfiguration
    let now: @Sendable () -> Timestamp

    init(
        data: DataStore, cache: CacheStore, reachability: ReachabilityTable, events: EngineEvents, outbound: OutboundWrites,
        reads: ReadPipeline, notifier: OutboxNotifier, active: ActiveConfiguration, now: @escaping @Sendable () -> Timestamp,
        workIn: @escaping @Sendable (AnsweredWrite, _ principal: String?) async -> Void
    ) {
        self.data = data
        self.cache = cache
        self.reachability = reachability
        self.events = events
        self.outbound = outbound
        self.reads = reads
        self.notifier = notifier
        self.active = active
        self.now = now
        self.workIn = workIn
    }
}
