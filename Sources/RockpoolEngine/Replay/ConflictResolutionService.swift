// Reads the upstream's state of operations in conflict, and applies the strategies of their resources (docs/outbox.md#strategies).
import Logging
import RockpoolCore
import RockpoolStore
import ServiceLifecycle
import Synchronization

/// Decides conflicts: each one when it arises, and those that could not be examined when their upstream returns.
package final class ConflictResolutionService: Service {
    /// Maximum number of conflicts examined concurrently.
    private static let breadth = 8
    /// The time after which a conflict that could not be examined is tried again.
    private static let retry = Duration.seconds(5)
    private static let idle = Duration.seconds(3600)
    /// The time that the first node of a fleet has for a conflict, before the others try: it may lack a credential.
    private static let precedence = Duration.seconds(10)

    private let data: DataStore
    private let active: ActiveConfiguration
    private let outbound: OutboundWrites
    private let commands: OutboxCommands
    private let events: EngineEvents
    private let logger: Logger
    /// Brings the time of a deletion, which the upstream states in its pages of changes only; nil without pulls.
    private let puller: Puller?
    /// True if there may be conflicts to examine.
    private let isDue = Mutex(true)
    /// When a node that is not the first of its fleet saw these operations in conflict.
    private let seen = Mutex<[Int64: ContinuousClock.Instant]>([:])

    init(
        data: DataStore, active: ActiveConfiguration, outbound: OutboundWrites, commands: OutboxCommands, events: EngineEvents,
        logger: Logger, puller: Puller?
    ) {
        self.data = data
        self.active = active
        self.outbound = outbound
        self.commands = commands
        self.events = events
        self.logger = logger
        self.puller = puller
        events.listen { [weak self] event in
            switch event {
            case .operation(_, .conflicted, _), .reachability, .credential: self?.isDue.withLock { $0 = true }
            default: break
            }
        }
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            var again: ContinuousClock.Instant?
            while !Task.isCancelled {
                let version = self.events.version
                if self.takeDue() || again.map({ $0 <= .now }) == true {
                    again = await self.runOnce() > 0 ? .now + Self.retry : nil
                }
                _ = await self.events.change(after: version, before: again ?? .now + Self.idle)
            }
        }
    }

    private func takeDue() -> Bool {
        isDue.withLock { isDue in
            defer { isDue = false }
            return isDue
        }
    }

    /// Examines every conflict that does not wait for a person yet.
    /// - Returns: the number of conflicts that could not be examined.
    @discardableResult
    package func runOnce() async -> Int {
        let open: [QueuedWrite]
        do { open = try await data.unexaminedConflicts() } catch {
            logger.failed("conflicts cannot be read", error: error)
            return 1
        }
        let own = permitted(open)
        return await withTaskGroup(of: Bool.self) { group in
            var left = open.count - own.count
            for (number, operation) in own.enumerated() {
                if number >= Self.breadth, await group.next() == false { left += 1 }
                group.addTask { await self.examine(operation.id) }
            }
            for await isDone in group where !isDone { left += 1 }
            return left
        }
    }

    /// Returns the operations that this node may examine now: all on the first node of a fleet, on others those that it has left for long.
    private func permitted(_ open: [QueuedWrite]) -> [QueuedWrite] {
        let (isFirst, now) = (data.isFirstNode, ContinuousClock.now)
        return seen.withLock { seen in
            seen = Dictionary(uniqueKeysWithValues: open.map { ($0.sequence, seen[$0.sequence] ?? now) })
            return isFirst ? open : open.filter { now - (seen[$0.sequence] ?? now) >= Self.precedence }
        }
    }

    /// - Returns: false when the conflict could not be examined now.
    private func examine(_ id: String) async -> Bool {
        do {
            guard let operation = try await data.operation(id: id), operation.state == .conflicted,
                let upstream = active.routes.upstream(named: operation.upstream)
            else { return true }
            let bare = try await outbound.bare(operation)
            let path = outbound.entityPath(of: operation, bare: bare)
            var met = ConflictCase(
                request: bare.head, body: bare.body, resource: bare.resource, base: try await base(of: operation),
                theirs: .present(.init(body: []), ResponseHead(status: 200)),
                cause: operation.result.map { .refused(status: $0.head.status) } ?? .seen,
                rounds: try await data.rounds(of: operation.sequence), mayHaveApplied: operation.lostAt != nil,
                acceptedAt: operation.acceptedAt)
            met.mayMeetOwnAction = try await data.followsUnseenAction(operation)
            switch await outbound.look(at: path, of: operation, like: bare.head, upstream: upstream) {
            case .shown(let theirs, let skew): (met.theirs, met.clockSkew, met.readAt) = (theirs, skew, commands.now() + skew)
            case .refused(let status) where path != nil && Self.mayPass(status): return false
            // The upstream will not show the entity, so a person decides without theirs.
            case .refused: met.resource.conflict = .ask
            case .failed: return false
            }
            if met.theirs == .gone, met.resource.conflict == .lastWriteWins {
                met.deletedAt = try await deletion(of: operation, resource: met.resource)
            }
            if met.cause == .seen, !met.theirs.isValidated(by: met.resource) { met.detection = .weak }
            try await commands.keep(met.verdict(), met: met, of: operation, upstream: upstream, path: path)
            return true
        } catch DataStoreError.illegal {
            return true  // a person's command changed it meanwhile
        } catch let blocked as DispatchBlocked {
            guard blocked.disposition.state == .dead,
                let moved = try? await data.move(id: id, by: blocked.disposition, from: [.conflicted], now: commands.now())
            else { return false }
            commands.notifier.tell(moved)
            return true
        } catch {
            logger.failed("the conflict of \(id) cannot be looked at", error: error)
            return false
        }
    }

    /// Returns the time of the entity's deletion by the upstream's clock, which a pull brings; nil where the upstream states none.
    private func deletion(of operation: QueuedWrite, resource: Resource) async throws -> Timestamp? {
        guard DeltaShape(resource)?.statesDeletions == true, let named = operation.entityID else { return nil }
        let id = LocalID(named).flatMap { data.localIDs.mapping(of: $0) }?.id.text ?? named
        let known = try await data.deletion(upstream: operation.upstream, type: resource.collection, id: id)
        // A deletion that was pulled before the write was accepted may be an earlier one, of an entity that was created again since.
        let scopes = try await data.pulledScopes(prefix: "\(operation.upstream)|\(resource.collection)|")
        let isCurrent = known != nil && scopes.contains { $0.syncedAt.map { $0 >= operation.acceptedAt } ?? false }
        guard !isCurrent, let puller else { return known }
        await puller.pullNow(upstream: operation.upstream, collection: resource.collection)
        return try await data.deletion(upstream: operation.upstream, type: resource.collection, id: id)
    }

    /// Returns the representation that the client saw, with local ids replaced by server ids. A client that has seen none builds on the
    /// upstream's answer to its write before.
    private func base(of operation: QueuedWrite) async throws -> Conflict.Side? {
        var seen = try await data.base(of: operation.sequence)
        if seen == nil, let sequence = operation.baseSequence {
            seen = try await data.operations(sequences: [sequence]).first?.answeredRepresentation
        }
        guard var side = seen else { return nil }
        if !data.localIDs.isEmpty, let replaced = try? data.localIDs.substituted(operation.request, side.body) {
            side.body = replaced.body
        }
        return side
    }

    private static func mayPass(_ status: Int) -> Bool { [401, 407, 408, 421, 425, 429].contains(status) || status >= 500 }
}

extension ConflictCase.Theirs {
    /// True if it came with a validator that the upstream can check in a condition.
    fileprivate func isValidated(by resource: Resource) -> Bool {
        guard case .present(let side, _) = self else { return true }
        return resource.version != "etag" || side.etag.flatMap { EntityTag($0) }?.isStrong ?? false
    }
}
