// Publishes changes of the outbox to the replayer, the overlay and the event listeners.
import HTTPTypes
import Logging
package import RockpoolCore
import RockpoolStore
import Synchronization

/// Publishes changes of operations.
package final class OutboxNotifier: Sendable {
    let data: DataStore
    let cache: CacheStore
    let credentials: Credentials
    let events: EngineEvents
    /// The configuration in force.
    let active: ActiveConfiguration
    let now: @Sendable () -> Timestamp
    /// Changes of operations that the replayer has not read yet.
    let inbox = ReplayInbox()
    /// Writes that reads must still include.
    let overlay = WriteOverlay()
    /// What upstreams answer to writes.
    let replies: LearnedReplies
    /// Lanes that wait for an attempt that may still execute.
    let laneHolds = LaneHolds()
    /// Lanes whose last delivery is not yet in the copies.
    let effectsUnderWay = EffectsUnderWay()
    private let log: OutboxLog
    /// What became of operations since the start.
    package let measures = OutboxMeasures()
    /// Writes for which there was no room.
    package let refusedWrites = RefusedWrites()
    /// Upstreams that demand a pause.
    let pauses = UpstreamPauses()
    /// The number of published states.
    private let toldCount = Atomic(0)

    init(
        data: DataStore, cache: CacheStore, credentials: Credentials, events: EngineEvents, active: ActiveConfiguration,
        replies: LearnedReplies, logger: Logger, now: @escaping @Sendable () -> Timestamp
    ) {
        self.data = data
        self.cache = cache
        self.credentials = credentials
        self.events = events
        self.active = active
        self.now = now
        log = OutboxLog(logger: logger, now: now)
        self.replies = replies
    }
}

extension OutboxNotifier {
    /// Restores after a start the writes that reads must include.
    /// - Throws: `DataStoreError` when the outbox cannot be read.
    package func recallWrites() async throws {
        overlay.load(try await data.deliveredEntities(since: now() - active.retention.delivered))
        overlay.load(try await data.deliveredFiles(since: now() - active.retention.delivered))
        try await data.eachOpenFile { [overlay] in _ = overlay.note($0) }
        try await data.reduceOpen(into: (), ofResources: true) { [overlay] _, operation, entityID, _ in
            _ = overlay.note(operation, entityID: entityID)
        }
    }

    /// Holds the lane of an operation until `moment`.
    func hold(_ operation: QueuedWrite, until moment: Timestamp) {
        laneHolds.hold(
            upstream: operation.upstream, lane: operation.lane, byProved: credentials.isProved(operation.principal), until: moment,
            now: now())
    }

    /// Returns until when the lane of an ended operation must wait, because an attempt of it may still run; nil without a hold.
    func laneHold(after operation: QueuedWrite) -> Timestamp? {
        guard operation.state.hasEnded, let upstream = active.routes.upstream(named: operation.upstream) else { return nil }
        return ReplayContext(upstream).holdsLane(after: operation, isDelivered: operation.state == .delivered, now: now())
    }

    /// Makes every operation that waits for a time due now.
    /// - Parameter kept: the sequences of operations that keep their time.
    /// - Returns: the number of operations made due. - Throws: `DataStoreError`.
    func flush(except kept: [Int64]) async throws -> Int {
        let count = try await data.makeAllDue(except: kept, now: now())
        for operation in try await data.openOperations() where operation.state == .pending {
            inbox.put(.changed(active.summary(of: operation)))
        }
        events.wake()
        return count
    }

    /// Tells the replayer of a live write that took effect, where its route pauses after a mass refusal.
    func noteEffect(of write: QueuedWriteDraft) {
        if pauses.routes[write.upstream] == nil { return }
        var summary = write.summary(now: now())
        active.routes.complete(&summary, target: write.request.target)
        guard pauses.pause(of: summary) != nil else { return }
        inbox.put(
            .answered(upstream: summary.upstream, route: summary.watchedRoute, client: summary.client, .effect, id: nil))
        events.wake()
    }

    /// Ends the pauses of an upstream's routes: a person has their writes sent.
    func overrule(_ upstream: String) {
        guard pauses.routes[upstream] != nil else { return }
        inbox.put(.overruled(upstream: upstream))
        events.wake()
    }

    /// Has one operation sent although its route pauses. Call it after `tell`.
    func urge(_ operation: QueuedWrite) {
        guard pauses.routes[operation.upstream] != nil else { return }
        inbox.put(.urged(active.summary(of: operation)))
        events.wake()
    }

    /// Ends the pause that an upstream demands.
    func resume(_ upstream: String) {
        pauses.end(upstream)
        inbox.put(.resumed(upstream: upstream))
        events.wake()
    }

    /// Publishes that an open operation was deleted, so that it stops blocking other operations and reads stop including it.
    func forget(_ operation: QueuedWrite) {
        var ended = operation
        ended.state = .cancelled
        tell(ended)
    }

    /// Forgets an operation under a number that it had: it was published under the one that it has now.
    func forgetNumber(of operation: QueuedWrite) {
        var ended = operation
        ended.state = .cancelled
        if overlay.note(ended) { cache.forgetHot() }
    }

    /// Publishes the state of an operation to the replayer, the overlay and the event listeners.
    /// - Parameter toReplayer: false when the replayer itself calls it.
    package func tell(_ operation: QueuedWrite, toReplayer: Bool = true) {
        let told = toldCount.add(1, ordering: .relaxed).newValue
        if told.isMultiple(of: FreedMemory.manyWrites) { FreedMemory.process.muchWasFreed() }
        if toReplayer { inbox.put(.changed(active.summary(of: operation))) }
        if overlay.note(operation) { cache.forgetHot() }
        // It was handed over before this was told.
        if data.isHandedOver(operation.sequence) { forgetNumber(of: operation) }
        if let moment = laneHold(after: operation) { hold(operation, until: moment) }
        let isNews = measures.note(operation)
        if isNews { log.note(operation) }
        events.tell(.operation(id: operation.id, state: operation.state, isNews: isNews))
    }

    // MARK: - Undeclared hosts

    // Adopts undeclared hosts that queued writes need: each becomes an upstream with the default settings
    // (docs/reference/configuration.md#defaults, `defaults.queue_writes`).

    /// Maximum number of undeclared hosts for which writes may be queued.
    package static let adoptedLimit = 256

    /// Registers an undeclared host before a write to it is stored: from then on it is probed, listed and switched like a declared
    /// upstream.
    ///
    /// - Throws: `TooManyHosts`; `DataStoreError` when the open operations cannot be read.
    func adopt(_ upstream: Upstream) async throws {
        guard active.routes.upstream(named: upstream.name) == nil else { return }
        if active.routes.adopted.count >= Self.adoptedLimit {
            let waitedFor = Self.undeclaredHosts(of: try await data.openOrigins())
            _ = active.changeAdopted { $0.formIntersection(waitedFor) }
        }
        guard active.changeAdopted(limit: Self.adoptedLimit, { $0.insert(upstream.origin) }) else { throw TooManyHosts() }
    }

    /// Registers the undeclared hosts of operations without a limit, because every acknowledged write must be delivered.
    func adoptHosts(of operations: [(upstream: String, origin: OriginAddress)]) {
        let missing = operations.filter { active.routes.upstream(named: $0.upstream) == nil }
        if !missing.isEmpty { _ = active.changeAdopted { $0.formUnion(Self.undeclaredHosts(of: missing)) } }
    }

    /// Returns the origins of operations to undeclared hosts: there the upstream's name is the origin's URL, while a declared name is no
    /// URL.
    private static func undeclaredHosts(of operations: [(upstream: String, origin: OriginAddress)]) -> Set<OriginAddress> {
        Set(operations.filter { $0.upstream == $0.origin.url }.map(\.origin))
    }

    // MARK: - Effects under way

    /// Waits until the last delivery of the same client in the lane is in its copies, on which `operation` then builds.
    func effectsAreNoted(before operation: QueuedWriteDraft, within limit: Duration) async {
        let deadline = ContinuousClock.now + limit
        while true {
            let version = events.version
            guard effectsUnderWay.contains(upstream: operation.upstream, lane: operation.lane, principal: operation.principal),
                await events.change(after: version, before: deadline)
            else { return }
        }
    }
}

/// Accepted and steered operations that the replayer has not read yet. Only the replayer steps the machine.
final class ReplayInbox: Sendable {
    private let events = Mutex<[ReplayMachine.Event]>([])

    func put(_ event: ReplayMachine.Event) { events.withLock { $0.append(event) } }

    func take() -> [ReplayMachine.Event] {
        events.withLock { events in
            defer { events = [] }
            return events
        }
    }
}

extension ActiveConfiguration {
    /// The summary of an operation, with the route that the configuration gives it.
    func summary(of operation: QueuedWrite) -> OperationSummary { routes.summary(of: operation) }
}

/// Thrown for a write to a further undeclared host when the limit is reached (docs/reference/configuration.md#defaults,
/// `defaults.queue_writes`).
struct TooManyHosts: Error, CustomStringConvertible {
    var description: String { "writes wait for \(OutboxNotifier.adoptedLimit) undeclared hosts already; declare this one" }
}

// MARK: - Lanes

/// The lanes in which the effects of a client's delivery are being noted. The next write of that client waits for them, because otherwise
/// it would build on the copy from before the delivery (docs/outbox.md#effects).
final class EffectsUnderWay: Sendable {
    private let lanes = Mutex<[ClientLane: Int]>([:])

    /// Runs `work`, which ends an operation and notes its effects; publish the new state after it: that event ends the wait.
    func during<Result>(_ operation: QueuedWrite?, _ work: () async throws -> Result) async rethrows -> Result {
        guard let operation else { return try await work() }
        let lane = ClientLane(upstream: operation.upstream, name: operation.lane, principal: operation.principal)
        lanes.withLock { $0[lane, default: 0] += 1 }
        defer {
            lanes.withLock { lanes in
                let count = (lanes[lane] ?? 1) - 1
                lanes[lane] = count == 0 ? nil : count
            }
        }
        return try await work()
    }

    func contains(upstream: String, lane: String, principal: String?) -> Bool {
        lanes.withLock { $0[ClientLane(upstream: upstream, name: lane, principal: principal)] != nil }
    }
}

/// The writes of one client in a lane (docs/outbox.md#lanes).
struct ClientLane: Hashable {
    var upstream: String
    var name: String
    var principal: String?
}

extension ClientLane {
    init(_ operation: QueuedWriteDraft) {
        self.init(upstream: operation.upstream, name: operation.lane, principal: operation.principal)
    }
}
