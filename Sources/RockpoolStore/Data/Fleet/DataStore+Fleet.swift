// The outbox of a fleet: what one node asks of it (docs/fleet.md).
import Crypto
import GRDB
import Logging
package import RockpoolCore
import Synchronization

extension DataStore {
    /// Returns the partner of the writer; nil with `outbox.store: sqlite`.
    /// - Parameter outbox: nil to leave the database as it is: a replica of a fleet takes no part then, and stays one.
    static func replica(
        for outbox: OutboxSettings?, of pool: DatabasePool, directory: String, footprint: Footprint, localIDs: LocalIDTable,
        clock: @escaping @Sendable () -> Timestamp, logger: Logger
    ) throws -> (any FleetMember)? {
        guard let outbox else {
            guard try pool.read({ try $0.tableExists("fleet_state") }) else { return nil }
            var asItIs = OutboxSettings()
            asItIs.whenUnreachable = .refuse
            return try replica(
                of: pool, asItIs, directory: directory, footprint: footprint, localIDs: localIDs, clock: clock, logger: logger)
        }
        guard outbox.store == .postgresql else {
            if try FleetReplica.leave(pool) {
                logger.warning(
                    "this node has left its fleet and sends what waits: no other node may do so now (docs/fleet.md#joining-and-leaving)")
            }
            return nil
        }
        return try replica(of: pool, outbox, directory: directory, footprint: footprint, localIDs: localIDs, clock: clock, logger: logger)
    }

    private static func replica(
        of pool: DatabasePool, _ settings: OutboxSettings, directory: String, footprint: Footprint, localIDs: LocalIDTable,
        clock: @escaping @Sendable () -> Timestamp, logger: Logger
    ) throws -> FleetReplica {
        let node = try pool.writeWithoutTransaction { try FleetReplica.prepare(in: $0) }
        return FleetReplica(
            settings: settings, node: node, directory: directory, footprint: footprint, localIDs: localIDs, clock: clock, logger: logger)
    }

    /// Begins to take part in the fleet. No effect without one.
    func join(_ outbox: OutboxSettings?) throws {
        guard let fleetReplica, let outbox else { return }
        // Read for each connection: a password may change.
        let url: @Sendable () throws -> String = { try outbox.urlFile.map { try PrivateFile.text($0) } ?? outbox.url ?? "" }
        _ = try url()
        fleetReplica.join(
            FleetMembership(
                replica: fleetReplica, url: url, name: outbox.node ?? HostName.own,
                keyMark: Digest.hex(SHA256.hash(data: Array("rockpool fleet".utf8) + installKey)), clock: clock
            ) { [weak self] in self?.heed($0) })
    }

    var fleetReplica: FleetReplica? { replica as? FleetReplica }
    private var membership: FleetMembership? { fleetReplica?.membership }

    /// How this node stands in its fleet; nil without one.
    package var fleet: FleetStanding? { membership?.standing }

    /// Takes over the settings of this node, which are compared with those of the others. No effect without a fleet.
    package func take(_ settings: AgreedSettings) { membership?.take(settings) }

    /// The moment from which nothing may be sent for these operations unless the lease is renewed; nil without a fleet, or when this node has
    /// not claimed all of them under the lease that it has now.
    package func leaseEnd(of sequences: [Int64]) -> ContinuousClock.Instant? { fleetReplica.flatMap { $0.leaseEnd(of: sequences) } }

    /// True if queued writes may be sent now: without a fleet, or while the lease of this node holds.
    package var maySend: Bool { fleetReplica.map { ($0.log.lease?.end ?? .now) > .now && $0.log.absence == nil } ?? true }

    /// The name of this node if it keeps the operation until the fleet's database is back; nil for any other operation.
    package func holder(of operation: QueuedWrite) -> String? {
        operation.sequence >= HeldOperations.first ? membership?.standing.name : nil
    }

    /// True for a number of the held range whose operation has another one by now: it was handed over.
    package func isHandedOver(_ sequence: Int64) -> Bool { fleetReplica?.isHandedOver(sequence) ?? false }

    /// The number of operations that this node has in flight; 0 without a fleet.
    package func claimedCount() async throws -> Int {
        guard let replica = fleetReplica else { return 0 }
        return try await reading {
            try Int.fetchOne($0, sql: "SELECT count(*) FROM fleet_claim WHERE node = ?", arguments: [replica.node]) ?? 0
        }
    }

    /// True if another node has the operation in flight.
    package func isSentElsewhere(_ sequence: Int64) -> Bool { fleetReplica?.isElsewhere(sequence) ?? false }

    /// True if this node does the work that one node of a fleet does for all.
    package var isFirstNode: Bool { membership?.standing.isFirst ?? (replica == nil) }

    /// Calls `body`, on the writer's thread, with what has come from other nodes, after it is committed.
    package func onForeignChanges(_ body: @escaping @Sendable (ForeignChanges) -> Void) {
        fleetReplica?.onChange { [weak self] change in
            self?.empty.noteTaken()
            if change.hasTakers { Task { try await self?.readTakers() } }
            body(change)
        }
    }

    private func readTakers() async throws {
        let upstreams = try await reading { try Self.upstreamsTakingCredentials(in: $0) }
        held.withLock { $0.takingCredentials.formUnion(upstreams) }
    }

    /// Records that a server of this timeline was used, so that an older one is refused after a restart too.
    private func keepTimeline() async throws {
        guard let replica = fleetReplica else { return }
        try await queue.commit(scope: .own) { try replica.keepTimeline(in: $0) }
    }

    /// Reads what other nodes have committed. No effect without a fleet.
    /// - Parameter age: nothing is read if that was done less than this ago.
    /// - Throws: `.away`.
    package func catchUp(ifOlderThan age: Duration = .zero) async throws {
        guard let replica = fleetReplica, ContinuousClock.now - replica.lookedAt >= age else { return }
        guard replica.log.absence == nil else { throw DataStoreError.away(membership?.standing.absence ?? "") }
        try await queue.commit(scope: .feed) { _ in }
    }

    /// Reads what other nodes have committed, if that was not done for `age`, but waits no longer than `limit` for it: a database that hangs
    /// costs no more. No effect without a fleet.
    package func catchUp(ifOlderThan age: Duration, within limit: Duration) async {
        guard let replica = fleetReplica, ContinuousClock.now - replica.lookedAt >= age, replica.log.absence == nil else { return }
        let (end, continuation) = AsyncStream.makeStream(of: Void.self)
        queue.submit(scope: .feed, { _ in }, answer: { _ in continuation.finish() })
        let timer = Task {
            try? await Task.sleep(for: limit)
            continuation.finish()
        }
        for await _ in end {}
        timer.cancel()
    }

    /// The number of the last change of the fleet that this node has; 0 without a fleet.
    package var fleetPosition: Int64 { fleetReplica?.position ?? 0 }

    /// Reads what other nodes have committed if `floor` is beyond what this node has, or if one of these local ids is not known here: another
    /// node may have given it a moment ago. No effect without a fleet.
    package func learn(_ ids: [LocalID], floor: Int64 = 0) async {
        guard fleetReplica != nil, floor > fleetPosition || ids.contains(where: { !localIDs.knows($0) }) else { return }
        await catchUp(ifOlderThan: .zero, within: Self.lookLimit)
    }

    /// The longest time that a request waits for what other nodes have accepted.
    private static let lookLimit = Duration.seconds(1)

    /// Takes a node off the list of the fleet. If it starts again, it is on the list again.
    /// - Parameter node: its id or its name.
    /// - Returns: false if no node is called so.
    /// - Throws: `.unavailable` if one holds its lease, or has something in flight that no other has taken over yet; `.away`.
    package func forgetNode(_ node: String) async throws -> Bool {
        guard let replica = fleetReplica else { return false }
        return try await queue.commit { _ in
            let found = try replica.log.run(FleetNode.selection).compactMap(FleetNode.init).filter { $0.id == node || $0.name == node }
            // A node that came back with another id has the same name.
            let gone = found.filter { $0.state == .gone && $0.inFlight == 0 }
            if gone.isEmpty, let live = found.first {
                throw DataStoreError.unavailable("\(live.name) is \(live.state.rawValue): stop it, and wait until others have taken over")
            }
            for node in gone { try replica.log.run(FleetNode.forgetting, [.text(node.id)]) }
            return !gone.isEmpty
        }
    }

    /// Returns the nodes of the fleet, by name; none without a fleet.
    /// - Throws: `.away`.
    package func fleetNodes() async throws -> [FleetNode] {
        guard let replica = fleetReplica else { return [] }
        return try await queue.commit { _ in try replica.log.run(FleetNode.selection).compactMap(FleetNode.init) }
    }

    /// Answers the notices of the membership's thread.
    func heed(_ notice: FleetMembership.Notice) {
        Task { [weak self] in
            guard let self else { return }
            do {
                switch notice {
                case .joined:
                    try await self.keepTimeline()
                    try await self.takeOver()
                case .changed: try await self.catchUp()
                case .expired: try await self.takeOver()
                case .held: try await self.queue.commit { _ in }
                }
            } catch { self.logger.debug("the fleet's database is away", metadata: ["error": "\(error)"]) }
        }
    }

    /// Fences the nodes whose lease has ended, and makes what they had in flight uncertain, in one transaction; so also what this node had
    /// in flight under an earlier lease.
    private func takeOver() async throws {
        guard let replica = fleetReplica else { return }
        let now = clock()
        let taken = try await queue.commit { db in
            try replica.log.run(
                "UPDATE rockpool.node SET fenced = true WHERE NOT fenced AND id <> $1 AND expires < clock_timestamp()",
                [.text(replica.node)])
            let abandoned = try replica.log.run(SharedSchema.abandoned).compactMap { $0.first.flatMap { $0 } }
                .map { $0.reduce(Int64(0)) { $0 << 8 | Int64($1) } }
            for sequence in abandoned {
                let state = try String.fetchOne(db, sql: "SELECT state FROM op WHERE seq = ?", arguments: [sequence])
                if state == OperationState.inflight.rawValue { try Self.abandon([sequence], in: db, now: now) }
                try db.execute(sql: "DELETE FROM fleet_claim WHERE seq = ?", arguments: [sequence])
            }
            replica.bring(abandoned)
            return abandoned
        }
        guard !taken.isEmpty else { return }
        let writes = taken.count.counted("write was", "writes were")
        logger.warning("\(writes) being sent by a node that is gone; see rockpool outbox ls --state uncertain")
    }
}
