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

    // MARK: - Copies
    // What a node has found out of date, told to the other nodes of its fleet (docs/fleet.md#copies).

    /// The most places that a fleet keeps, and for how long: a node that was away for longer has copies of their own lifetime.
    private static let keptPlaces = 10_000
    private static let keptFor = TimeSpan.hours(24)

    /// Tells the other nodes what is out of date. No effect without a fleet.
    /// - Throws: `DataStoreError`; `.away` while the shared database is.
    package func share(_ places: Set<StalePlace>) async throws {
        guard isOfFleet else { return }
        let now = clock()
        try await translated {
            try await queue.commit(isRepeatable: true, mayLinger: true) { db in
                let statement = try db.cachedStatement(
                    sql: "INSERT INTO fleet_stale VALUES (?, ?, ?) ON CONFLICT (kind, place) DO UPDATE SET at = excluded.at")
                for place in places { try statement.execute(arguments: [place.kind, place.place, now.milliseconds]) }
                try db.cachedStatement(
                    sql: """
                        DELETE FROM fleet_stale WHERE at < ? OR rowid IN (
                            SELECT rowid FROM fleet_stale ORDER BY at DESC LIMIT -1 OFFSET \(Self.keptPlaces))
                        """
                ).execute(arguments: [(now - Self.keptFor).milliseconds])
            }
        }
    }

    /// Returns the places of operations by id; none without a fleet.
    /// - Throws: `.away`.
    package func fleetPlaces(of operations: [QueuedWrite]) async throws -> [String: FleetPlace] {
        guard let replica = fleetReplica else { return [:] }
        let held = operations.filter { holder(of: $0) != nil }
        let ids = operations.map(\.id)
        let rows = try await queue.commit { _ in
            try replica.log.run(
                FleetPlace.selection,
                [.texts(ids), .texts(operations.map(\.upstream)), .texts(operations.map { IndexedText.inColumn($0.lane) })])
        }
        var places = Dictionary(uniqueKeysWithValues: held.map { ($0.id, FleetPlace(takenBy: holder(of: $0))) })
        for row in rows where row.count == 3 {
            guard let id = row[0].text else { continue }
            places[id] = FleetPlace(takenBy: row[1].text, sentBy: row[2].text)
        }
        return places
    }
}

/// The nodes that have to do with an operation, by name (docs/reference/admin-api.md#fleet).
package struct FleetPlace: Hashable, Sendable {
    /// The node that took it, or brought it into the fleet; nil if it is not known any more.
    package var takenBy: String?
    /// The node that has its lane: something of that is in flight there.
    package var sentBy: String?
}

extension FleetPlace {
    fileprivate static let selection = """
        SELECT given.id, nullif(taker.name, ''), (
            SELECT sender.name FROM rockpool.claim JOIN rockpool.node AS sender ON sender.id = claim.node
                WHERE claim.upstream = given.upstream AND claim.lane = given.lane LIMIT 1)
            FROM unnest($1::text[], $2::text[], $3::text[]) AS given (id, upstream, lane)
            JOIN rockpool.item ON item.id = given.id LEFT JOIN rockpool.node AS taker ON taker.id = item.node
        """
}

/// The facts for status, doctor and metrics.
package struct FleetStanding: Hashable, Sendable {
    /// The id of this node, and its name.
    package var node = ""
    package var name = ""
    /// Why the shared database is away; nil while it is there.
    package var absence: String?
    /// True if this node takes no part any more until a person has done something.
    package var hasEnded = false
    /// True if an acknowledged write survives the loss of the database's host.
    package var survivesHost = false
    /// True if the database never waits for its disk (`fsync = off`).
    package var isVolatile = false
    /// The number of promotions that the database has seen.
    package var timeline: Int64 = 0
    /// The number of live nodes, with this one.
    package var nodes = 0
    /// The live nodes whose settings differ from those of this one, by name.
    package var differences: [FleetDifference] = []
    /// True if this node does the work that one node does for all. Not known before it has joined.
    package var isFirst = false
    /// The number of operations that this node keeps until the database is back.
    package var held = 0
    /// True if the outbox is no longer in the shared database, but in this node's own.
    package var hasMovedHere = false
    /// The number of changes that this node did not have yet when it looked last.
    package var behind: Int64 = 0
    /// How often this node had the lock of the fleet since its start, and how long it waited for it in sum, with the way to the database.
    package var transactions = 0
    package var lockWait = Duration.zero
    /// How often this node was fenced since its start.
    package var fenced = 0
    /// Time since the last renewal of the lease; nil without a lease.
    package var leaseAge: Duration?
    /// Time since everything was known that other nodes had changed.
    package var feedAge = Duration.zero
}

/// A node that has registered.
package struct FleetNode: Hashable, Sendable {
    /// Whether the node works.
    package enum State: String, Sendable {
        /// It holds its lease.
        case live
        /// Its lease has ended, and no other node has noticed yet.
        case expired
        /// It has stopped, or another node took over from it.
        case gone
    }

    package var id: String
    package var name: String
    package var state: State
    /// The number of its starts and of its returns after it was fenced.
    package var epoch: Int64
    /// Seconds since the last renewal of its lease, by the database's clock.
    package var age: Double
    /// The number of changes that it had not read at its last renewal.
    package var lag: Int64
    /// The number of writes that it kept for later at its last renewal.
    package var held: Int64
    /// The number of writes that it has in flight.
    package var inFlight: Int64

    static let selection = """
        SELECT id, name, CASE WHEN fenced THEN 'gone' WHEN expires < clock_timestamp() THEN 'expired' ELSE 'live' END, epoch::text,
            extract(epoch FROM clock_timestamp() - expires + interval '15 s')::text,
            greatest(0, (SELECT coalesce(max(n), 0) FROM rockpool.item) - position)::text, held::text,
            (SELECT count(*) FROM rockpool.claim WHERE claim.node = node.id)::text
            FROM rockpool.node WHERE name <> '' ORDER BY name, id
        """

    /// Takes a node off the list; nothing is kept for it to read. Its epoch stays, so that none is given twice. A start names it again.
    static let forgetting = "UPDATE rockpool.node SET name = '', position = \(Int64.max), held = 0 WHERE id = $1 AND fenced"

    /// - Returns: nil for a row of another form.
    init?(_ row: [[UInt8]?]) {
        guard row.count == 8, let id = row[0].text, let name = row[1].text, let state = row[2].text.flatMap(State.init),
            let epoch = row[3].number, let age = row[4].text.flatMap(Double.init), let lag = row[5].number, let held = row[6].number,
            let inFlight = row[7].number
        else { return nil }
        (self.id, self.name, self.state, self.epoch) = (id, name, state, epoch)
        (self.age, self.lag, self.held, self.inFlight) = (age, lag, held, inFlight)
    }
}

/// The rows that a transaction of this node has taken over from others, and those that got other numbers (docs/fleet.md#reads).
package struct ForeignChanges: Sendable {
    /// The sequences of operations with a new state.
    var operations: Set<Int64> = []
    /// Those operations, as they are after the transaction.
    package var writes: [QueuedWrite] = []
    /// Operations that were open and are deleted.
    package var gone: [QueuedWrite] = []
    /// Operations that have another number now, as they were before, without bodies.
    package var renumbered: [QueuedWrite] = []
    /// Local ids that are new, or newly mapped.
    var localIDs: Set<String> = []
    /// True if credentials were proved.
    package var hasProofs = false
    /// True if an upstream has accepted a credential for the first time.
    var hasTakers = false

    /// What other nodes have found out of date.
    package var stale: Set<StalePlace> = []

    package var isEmpty: Bool {
        operations.isEmpty && gone.isEmpty && renumbered.isEmpty && localIDs.isEmpty && !hasProofs && !hasTakers && stale.isEmpty
    }

    /// Reads the operations.
    mutating func read(in db: Database) {
        writes = operations.sorted().compactMap { try? DataStore.fetch(in: db, where: "seq = ?", [$0]) }
    }
}
