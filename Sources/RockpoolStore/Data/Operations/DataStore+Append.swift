// Acceptance of a write: its row, what is inserted with it, and its dependencies, committed and fsynced before it is acknowledged, together
// with other queued jobs (docs/outbox.md#files, docs/outbox.md#schema, docs/outbox.md#dependencies).
import FoundationEssentials
import GRDB
import HTTPTypes
package import RockpoolCore
import Synchronization

/// What the acceptance of a write has made of the outbox.
package struct Taken: Sendable {
    package var operation: QueuedWrite
    /// The earlier operation that it was squashed with.
    package var squashed: QueuedWrite?
    /// True if it is a repeat of `operation`, which waited already.
    package var isRepeat = false
    /// The telemetry that made room for it.
    package var dropped: [QueuedWrite] = []
    /// The bodies that no operation has any more.
    var unused: [String] = []
}

extension DataStore {
    /// Accepts a write. When this returns, the write survives a power failure.
    /// - Throws: `.full`, `.diskFull`, `.shareUsedUp`, `.upstreamFull`, `.duplicateKey`, `.unknownDependency`, `.unavailable`; nothing is stored then.
    package func append(_ new: QueuedWriteDraft) async throws -> QueuedWrite { try await take(new).operation }

    /// Accepts a write. A repeat of a write that waits is counted there,
    /// and nothing is stored (docs/outbox.md#repeats).
    /// - Parameter live: the record of its live attempt, which ends in the same transaction.
    package func take(
        _ new: QueuedWriteDraft, ending live: LiveWriteTrace? = nil
    ) async throws -> Taken {
        while true {
            do { return try await taking(new, ending: live) } catch let error as DataStoreError where error.isNoRoom {
                guard try await shedDelivered() else {
                    if error == .diskFull { noteFullDisk() }
                    throw error
                }
            }
        }
    }

    private func taking(
        _ new: QueuedWriteDraft, ending live: LiveWriteTrace?
    ) async throws -> Taken {
        let now = clock()
        let cost = Cost.row(new.rowLength)
        // Also after an error: a failed commit may be in the log.
        defer { empty.noteTaken() }
        let taken = try await translated {
            try await queue.commit(weight: cost / 2, scope: .either, adding: new.body.blobHash, isRepeatable: true) {
                db -> Taken in
                if let same = try Self.countRepeat(new, in: db, now: now) { return Taken(operation: same, isRepeat: true) }
                try self.checkRoom(in: db, for: cost)
                try self.attachBlob(of: new.body, in: db)
                let base = try new.baseSequence(in: db)
                do {
                    try new.insert(in: db, base: base, now: now)
                } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
                    throw try self.duplicate(of: new, in: db) ?? DataStoreError.unavailable("\(error)")
                }
                let sequence = db.lastInsertedRowID
                try new.insertShare(in: db, sequence: sequence)
                let needs = try new.insertEdges(in: db, sequence: sequence)
                try self.checkIsShared(needs.all.subtracting(needs.follows))
                try new.insertLiveAttempt(in: db, sequence: sequence)
                if let live, !live.isInFile { try LiveWriteRow.delete([live], in: db) }
                try Self.log(in: db, sequence: sequence, new.state, detail: new.lastError, now: now)
                // What is shared stays as it is while this node is alone.
                let maySquash = new.maySquash && self.replica?.isAlone != true
                let squashed = maySquash ? try Self.squash(sequence, action: new.action, in: db, now: now) : nil
                try self.checkShare(of: new, in: db)
                let dropped = try self.makeRoom(for: new, as: sequence, in: db)
                let unused = dropped.isEmpty ? [] : try Self.forgetUnusedBlobs(in: db)
                FailPoint.beforeAcceptCommit.reached()
                let taken = new.operation(sequence, base: base, needs: needs, now: now)
                guard let squashed else { return Taken(operation: taken, dropped: dropped, unused: unused) }
                return Taken(operation: try Self.fetch(in: db, where: "seq = ?", [sequence]) ?? taken, squashed: squashed)
            }
        }
        if taken.isRepeat { return taken }
        if let live { if live.isInFile { end(live) } else { liveWrites.free([live]) } }
        if case .blob(let sha256, _) = new.body { releaseBlob(sha256) }
        if !taken.unused.isEmpty { _ = try? await removeUnnamed(taken.unused) }
        if let id = new.localID { localIDs.note(id, upstream: new.upstream, collection: new.collection) }
        FailPoint.afterAcceptCommit.reached()
        return taken
    }

    /// Returns the operation accepted under this client key, and true if its payload has this fingerprint.
    /// - Parameter upstream: the upstream's name: clients without a credential are the same at all of them, and their keys are not.
    package func operation(
        clientKey: String, principal: String?, upstream: String, fingerprint: [UInt8] = []
    ) async throws -> (operation: QueuedWrite, isSame: Bool)? {
        try await reading { db in
            let (condition, values) = ClientKey(clientKey, principal: principal, upstream: upstream).condition
            guard let operation = try Self.fetch(in: db, where: condition, values) else { return nil }
            let kept = try Data.fetchOne(
                db, sql: "SELECT fingerprint FROM op WHERE \(condition)", arguments: StatementArguments(values)
            ).map { Array($0) }
            return (operation, kept.map { $0 == fingerprint || self.seal.isName($0, of: fingerprint) } ?? false)
        }
    }

    /// False if no operation was accepted under the client's key of this write, as far as they are kept. Asks no database.
    package func mayHold(keyOf new: QueuedWriteDraft) -> Bool { clientKeys.mayHold(ClientKey(new).texts) }

    /// Checks the limit, including the changes of this transaction and the missing part of the reserve, and the free disk space.
    func checkRoom(in db: Database, for cost: Int64) throws {
        let turn = queue.turns
        let known = self.disk.measured(in: turn)
        if known?.isAmple == true { return }
        var disk = known ?? measuredDisk(in: db)
        if known != nil { footprint.measurePages(in: db) }
        guard footprint.ledger.missing(for: SpaceRequest(rows: cost)) + disk.owed <= 0 else { throw DataStoreError.full }
        guard disk.free > cost else { throw DataStoreError.diskFull }
        disk.free -= cost
        self.disk.note(disk, in: turn)
    }

    private func measuredDisk(in db: Database) -> DiskOfTurn.Measured {
        footprint.measure(in: db)
        let (free, owed) = (FreeSpace.bytes(at: directory), reserve.size - min(reserve.size, reserve.allocated))
        // Rows and their indexes take less than twice what a group may weigh.
        let most = 4 * queue.groupWeight
        let isAmple = footprint.ledger.missing(for: SpaceRequest(rows: most)) + owed <= 0 && free > most
        return .init(free: free, owed: owed, isAmple: isAmple)
    }

    /// Checks the share after the new row was inserted and squashed rows were ended; an error rolls all of it back.
    private func checkShare(of new: QueuedWriteDraft, in db: Database) throws {
        guard let share = new.share else { return }
        let held = try ShareSums.bytes(on: ShareSums.account(share, of: new.principal), in: db)
        guard held <= size(of: share) else { throw DataStoreError.shareUsedUp(share) }
        guard let limit = new.upstreamLimit else { return }
        guard try ShareSums.bytes(of: new.upstream, in: db) <= limit.bytes else { throw DataStoreError.upstreamFull(name: new.upstream) }
    }

    /// Refuses a write that could not be sent by another node, because that does not have what it needs.
    private func checkIsShared(_ needs: Set<Int64>) throws {
        guard let replica, !replica.isAlone, needs.contains(where: { $0 >= HeldOperations.first }) else { return }
        throw DataStoreError.refused("it needs a write that only this node has: see rockpool outbox ls --state dead")
    }

    /// Returns the maximum bytes of the operations of a share.
    func size(of share: OutboxShare) -> Int64 { share.bytes(of: usableBytes, settings: settings) }

    /// Takes the limits of other settings. Below what is used, nothing more is queued.
    package func take(limitsOf new: StorageSettings) {
        let settings = settingsInForce.withLock { settings in
            settings = settings.taking(limitsOf: new)
            return settings
        }
        _ = footprint.bind(to: DiskBound(limit: Self.limit(settings).bytes, reason: .configured))
    }

    /// The bytes of `storage.data_limit` that operations can take: without the log's budget, the reserve, the files of an empty store, and an
    /// eighth of the rest for pages that are not full. Of a limit of 8 MB they are less than half.
    var usableBytes: Int64 {
        let rest = Self.limit(settings).bytes - footprint.logBudget - reserve.size - Self.emptyStoreBytes
        return max(0, rest) / 8 * 7
    }

    /// The database without operations, the marks of live writes, keys and directories, rounded up.
    private static let emptyStoreBytes: Int64 = .mib(1)

    private func duplicate(of new: QueuedWriteDraft, in db: Database) throws -> DataStoreError? {
        let (condition, values) = ClientKey(new).condition
        let id = try String.fetchOne(db, sql: "SELECT id FROM op WHERE \(condition)", arguments: StatementArguments(values))
        return id.map(DataStoreError.duplicateKey)
    }

    /// Appends a line to the sync log.
    static func log(in db: Database, sequence: Int64, _ state: OperationState, detail: String?, now: Timestamp) throws {
        try log(in: db, sequence: sequence, event: state.rawValue, detail: detail, now: now)
    }

    /// Appends a line about something else than a change of state.
    static func log(in db: Database, sequence: Int64, event: String, detail: String?, now: Timestamp) throws {
        try db.cachedStatement(sql: line)
            .run([now.milliseconds.databaseValue, sequence.databaseValue, event.databaseValue, detail.databaseValue], in: db)
    }

    private static let line = "INSERT INTO sync_log (n, at, seq, event, detail) VALUES (\(NextNumber.sql(of: "sync_log")), ?, ?, ?, ?)"

    static func fetch(in db: Database, where condition: String, _ values: [any DatabaseValueConvertible]) throws -> QueuedWrite? {
        try db.cachedStatement(sql: "SELECT \(OperationRow.columns) FROM op WHERE \(condition)")
            .first(values.lazy.map(\.databaseValue), in: db) { try OperationRow.operation(from: &$0) }
    }
}

// MARK: - The row

extension QueuedWriteDraft {
    /// Fields that are never written to disk, even if the caller left them in the request (docs/reference/behaviour.md#credentials).
    private static let credentials: [HTTPField.Name] = [.authorization, .proxyAuthorization, .cookie]

    var storedFields: Data { FieldCodec.encode(Self.bare(request.fields)) }

    static func bare(_ fields: HTTPFields) -> HTTPFields {
        guard credentials.contains(where: fields.contains) else { return fields }
        var fields = fields
        // A signature of this request alone is no credential: it is part of the write, and nothing else can be made with it.
        let signature = fields[.authorization].flatMap { SignedRequest(authorization: $0)?.isOfOneRequest == true ? $0 : nil }
        for name in credentials { fields[name] = nil }
        fields[.authorization] = signature
        return fields
    }

    /// Returns the operation equal to its inserted row, without reading the row.
    func operation(_ sequence: Int64, base: Int64?, needs: (all: Set<Int64>, follows: Set<Int64>), now: Timestamp) -> QueuedWrite {
        var bare = request
        bare.fields = Self.bare(request.fields)
        var operation = QueuedWrite(
            sequence: sequence, id: id, state: state, reason: reason, request: bare, body: body, upstream: upstream, entity: entity,
            lane: lane, idempotencyKey: idempotencyKey, keyIsClients: keyIsClients, principal: principal, priority: priority,
            acceptedAt: now, firstSentAt: firstSentAt, nextAttemptAt: nextAttemptAt ?? now, expiresAt: expiresAt, lastError: lastError)
        operation.collection = collection
        operation.entityID = entityID
        operation.newItem = newItem
        operation.noMerge = noMerge
        operation.isUnproved = share == .unproved
        operation.baseETag = baseETag
        operation.baseSequence = base
        (operation.begun, operation.viewer, operation.baseSeen) = (begun, viewer, baseSeen)
        (operation.needs, operation.follows) = needs
        operation.lostAt = firstSentAt
        return operation
    }

    /// Approximate bytes of the row.
    var rowLength: Int64 {
        let inline: Int64 = if case .inline(let bytes) = body { Int64(bytes.count) } else { 0 }
        return inline + Int64(base?.body.count ?? 0) + Int64(request.target.utf8.count) + FieldCodec.length(of: request.fields) + 512
    }

    static func intent(of method: HTTPRequest.Method) -> String {
        switch method {
        case .post: "create"
        case .put: "replace"
        case .patch: "patch"
        case .delete: "delete"
        default: "action"
        }
    }

    /// Inserts the live attempt that lost its response, as attempt 0: the lifetime of the key starts with it, whatever later attempts show.
    func insertLiveAttempt(in db: Database, sequence: Int64) throws {
        guard let firstSentAt else { return }
        try db.execute(
            sql: "INSERT INTO attempt (seq, n, started, ended, error, evidence) VALUES (?1, 0, ?2, ?2, ?3, 'maybe')",
            arguments: [sequence, firstSentAt.milliseconds, lastError])
    }

    /// Marks the operation as unproved if it counts on that share. Call it after `insert`.
    func insertShare(in db: Database, sequence: Int64) throws {
        guard share == .unproved else { return }
        try db.cachedStatement(sql: "INSERT INTO unproved (seq, principal) VALUES (?, ?)").execute(arguments: [sequence, principal ?? ""])
    }

    /// - Parameter base: the operation it builds on.
    func insert(in db: Database, base: Int64?, now: Timestamp) throws {
        let row = NewOperationRow(new: self, base: base, pinned: try self.base?.pin(in: db), now: now)
        try db.cachedStatement(sql: OperationColumn.insert).run(OperationColumn.bound.lazy.map { $0.value(of: row) }, in: db)
    }
}

extension OperationBody {
    /// The value of `body`.
    var inlineData: Data? { if case .inline(let bytes) = self { bytes.data } else { nil } }
    /// The value of `blob_sha`.
    var blobHash: Data? { if case .blob(let sha256, _) = self { Digest.bytes(sha256)?.data } else { nil } }
}

// MARK: - Dependencies

extension QueuedWriteDraft {
    /// Returns the earlier operation that this one builds on: the one named by its condition, or else the last of the same principal on its
    /// entity (including its creation) that is newer than the client's copy and that its program has in front of it (`reach`), because the
    /// client has not seen writes of other principals.
    /// Nil when that copy is the newest state.
    ///
    /// A POST to the entity or to a path below it has no place in this chain: its answer describes something else, or a state that includes
    /// what the client has not seen.
    func baseSequence(in db: Database) throws -> Int64? {
        if let named = conditionedOn.max() { return try DataStore.isMerged(named, in: db) ? nil : named }
        guard takesBase, let entity else { return nil }
        return try Int64.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT max(seq) FROM op WHERE upstream = ?1 AND entity = ?2 AND principal = ?3
                        AND (local_id IS NOT NULL OR method <> 'POST' AND \(Self.depth("target")) = \(Self.depth("?5")))
                        AND (\(OperationState.isOpen) OR state = 'delivered' AND ended_tick >= ?4)
                        AND (viewer IS NULL OR ?6 IS NULL OR viewer = ?6 OR seq <= ?7)
                    """),
            arguments: [
                upstream, entity, principal ?? "", (baseIncludes ?? .first).number, request.target,
                reach?.program.number, reach?.until ?? 0,
            ])
    }

    /// SQL for the number of segments of a target's path.
    private static func depth(_ target: String) -> String {
        let path = "rtrim(substr(\(target), 1, instr(\(target) || '?', '?') - 1), '/')"
        return "(length(\(path)) - length(replace(\(path), '/', '')))"
    }

    /// Inserts its local ids and its dependencies. `sequence` is its own.
    /// - Returns: the operations it needs, and those of them that matter for the order alone.
    /// - Throws: `DataStoreError.unknownDependency` for an operation that does not exist.
    func insertEdges(in db: Database, sequence: Int64) throws -> (all: Set<Int64>, follows: Set<Int64>) {
        var needs: Set<Int64> = []
        var follows: Set<Int64> = []
        if let localID {
            try db.cachedStatement(sql: "INSERT INTO id_map (local_id, upstream, entity_type, created_by) VALUES (?, ?, ?, ?)")
                .execute(arguments: [localID.text, upstream, collection, sequence])
        }
        for reference in references {
            try db.execute(
                sql: "INSERT OR IGNORE INTO op_ref (seq, local_id, place) VALUES (?, ?, ?)",
                arguments: [sequence, reference.id.text, reference.place.text])
            let creator = try Int64.fetchOne(
                db, sql: "SELECT created_by FROM id_map WHERE local_id = ? AND server_id IS NULL", arguments: [reference.id.text])
            if let creator {
                needs.insert(try insertEdge(Dependency(needs: creator, kind: kind(of: reference)), in: db, sequence: sequence))
            }
        }
        try needs.formUnion(insertCreateEdges(in: db, sequence: sequence))
        for earlier in conditionedOn { needs.insert(try insertEdge(Dependency(needs: earlier, kind: .etag), in: db, sequence: sequence)) }
        for id in dependsOn {
            guard let earlier = try Int64.fetchOne(db, sql: "SELECT seq FROM op WHERE id = ?", arguments: [id]) else {
                throw DataStoreError.unknownDependency(id: id)
            }
            needs.insert(try insertEdge(Dependency(needs: earlier, kind: .explicit), in: db, sequence: sequence))
        }
        if let group {
            let earlier = try Int64.fetchOne(
                db,
                sql: """
                    SELECT max(seq) FROM op WHERE upstream = ? AND group_name = ? AND principal = ? AND seq < ?
                        AND \(OperationState.isOpen)
                    """, arguments: [upstream, group, principal ?? "", sequence])
            if let earlier { follows.insert(try insertEdge(Dependency(needs: earlier, kind: .group), in: db, sequence: sequence)) }
        }
        try follows.formUnion(insertCollectionEdges(in: db, sequence: sequence))
        return (needs.union(follows).subtracting([sequence]), follows.subtracting(needs).subtracting([sequence]))
    }

    /// A write to an item whose key its client has chosen, or below it, needs the open create of that item.
    private func insertCreateEdges(in db: Database, sequence: Int64) throws -> [Int64] {
        guard collection != nil else { return [] }
        let creates = try Row.fetchAll(
            db.cachedStatement(sql: Self.openCreates), arguments: [upstream, itemsOnPath, sequence])
        return try creates.map { create in
            let kind: DependencyKind = create["entity"] == entity ? .id : .parent
            return try insertEdge(Dependency(needs: create["seq"], kind: kind), in: db, sequence: sequence)
        }
    }

    /// The names of the entity and of those above it, as JSON; without that of a create's own item.
    var itemsOnPath: String {
        var names: [JSONValue] = []
        var name = (newItem == nil ? entity : collection) ?? ""
        while let slash = name.utf8.lastIndex(of: UInt8(ascii: "/")), slash > name.startIndex {
            names.append(.string(name))
            name = String(name[..<slash])
        }
        return String(decoding: JSONValue.array(names).serialized(), as: UTF8.self)
    }

    /// SQL for the open creates of items with these names.
    static let openCreates = """
        SELECT seq, entity FROM op WHERE upstream = ? AND entity IN (SELECT value FROM json_each(?)) AND local_id IS NOT NULL AND seq < ?
            AND \(OperationState.isOpen)
        """

    /// A write to a collection waits for the open writes to its members, and they for it, so that none overtakes the other. The creates of one
    /// client in a collection are sent in their order, which many APIs show; a write to an item that nothing shows follows them, because it may
    /// be to one that they make. The deletion of an item waits for the writes below it.
    private func insertCollectionEdges(in db: Database, sequence: Int64) throws -> [Int64] {
        guard let collection else { return [] }
        let arguments: StatementArguments = [upstream, collection, principal ?? "", sequence]
        var earlier = try Int64.fetchAll(
            db.cachedStatement(sql: Self.openOfCollection(isMember: entityID != nil)), arguments: arguments)
        if newItem != nil || mayAddressNewItem {
            earlier += try Int64.fetchAll(
                db.cachedStatement(sql: Self.lastCreate), arguments: arguments + [mayAddressNewItem, request.target])
        }
        if let below = entitiesBelow {
            earlier += try Int64.fetchAll(
                db.cachedStatement(sql: Self.openBelow), arguments: [upstream, below.from, below.to, principal ?? "", sequence])
        }
        return try earlier.map { try insertEdge(Dependency(needs: $0, kind: .collection), in: db, sequence: sequence) }
    }

    /// SQL for the last open create in a collection, or in one of its lists alone.
    static let lastCreate = """
        SELECT seq FROM op WHERE upstream = ? AND entity_type = ? AND principal = ? AND seq < ? AND local_id IS NOT NULL
            AND (? OR target = ?) AND state IN ('pending', 'inflight') AND \(OperationState.isOpen) ORDER BY seq DESC LIMIT 1
        """

    /// The range of the names of the entities that are deleted with the item that this write deletes; nil for any other write.
    var entitiesBelow: (from: String, to: String)? {
        guard request.method == .delete, action == nil, collection != nil, entityID != nil, let entity else { return nil }
        // A `0` follows the slash in every order of bytes.
        return ("\(entity)/", "\(entity)0")
    }

    /// SQL for the open operations on entities within a range of names: the deletion of the item above waits for them.
    static let openBelow = """
        SELECT seq FROM op WHERE upstream = ? AND entity > ? AND entity < ? AND principal = ? AND seq < ? AND \(OperationState.isOpen)
        """

    /// SQL for the open operations that a write waits for: those to the collection, if it is to a member; or else those to the members.
    static func openOfCollection(isMember: Bool) -> String {
        """
        SELECT seq FROM op WHERE upstream = ? AND entity_type = ? AND principal = ? AND seq < ?
            AND entity_id IS \(isMember ? "NULL" : "NOT NULL") AND \(OperationState.isOpen)
        """
    }

    /// Returns the kind of dependency: a local id in the path belongs to the entity itself or to a parent of it.
    private func kind(of reference: LocalIDReference) -> DependencyKind {
        if case .path = reference.place, reference.id.text != entityID { .parent } else { .id }
    }

    private func insertEdge(_ edge: Dependency, in db: Database, sequence: Int64) throws -> Int64 {
        guard edge.needs != sequence else { return sequence }
        try db.cachedStatement(sql: "INSERT OR IGNORE INTO op_dep (seq, needs, kind) VALUES (?, ?, ?)")
            .execute(arguments: [sequence, edge.needs, edge.kind.rawValue])
        return edge.needs
    }
}
