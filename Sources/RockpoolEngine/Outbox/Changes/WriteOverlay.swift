// Selects the writes that a read must include: open ones, and those delivered after the cached copy was fetched (docs/outbox.md#reads).
import HTTPTypes
import RockpoolCore
import Synchronization

/// Writes to entities of declared resources, by collection. Stores sequences only; bodies are read from the outbox on demand.
final class WriteOverlay: Sendable {
    struct Write: Sendable {
        var sequence: Int64
        var entityID: String?
        var principal: String?
        /// Its end; nil while the write is open.
        var deliveredAt: Tick?
    }

    /// A write that waits for a person or for a search of its effect.
    struct Trouble: Sendable {
        var operation: String
        var state: OperationState
        var entityID: String?
        var principal: String?
    }

    private struct Key: Hashable {
        var upstream: String
        var collection: String
    }

    /// A write that is open: what is kept of each of a hundred thousand.
    private struct OpenWrite {
        let entityID: UUIDText?
        let principal: String?

        func write(_ sequence: Int64) -> Write { Write(sequence: sequence, entityID: entityID?.text, principal: principal) }
    }

    private struct Writes {
        var open = SequenceTable<OpenWrite>()
        private var texts = SharedTexts()
        /// The open ones that later writes to their entity may have passed: uncertain, in conflict or parked; with the end of the last live
        /// write that has passed them.
        private var stuck: [Int64: Tick] = [:]
        /// In order of `deliveredAt`.
        var delivered: [Write] = []
        /// Writes that are dead, in conflict or uncertain, by sequence.
        var troubled: [Int64: Trouble] = [:]

        var hasStuck: Bool { !stuck.isEmpty }

        var isEmpty: Bool { !isOpen && delivered.isEmpty }

        /// True if reads show a write that is not delivered, whatever copy they have.
        var isOpen: Bool { open.count > 0 || !troubled.isEmpty }

        /// The last delivery.
        var lastDelivery: Tick { delivered.last?.deliveredAt ?? .first }

        mutating func note(_ write: Write, state: OperationState) {
            stuck[write.sequence] =
                [.uncertain, .conflicted, .parked].contains(state) ? stuck[write.sequence] ?? .first : nil
            switch state {
            case .pending, .inflight, .uncertain, .conflicted, .parked:
                open[write.sequence] = OpenWrite(entityID: write.entityID.map { UUIDText($0) }, principal: texts.shared(write.principal))
            case .dead, .cancelled, .superseded: open[write.sequence] = nil
            case .delivered:
                guard open[write.sequence] != nil || isEmpty else { return }
                open[write.sequence] = nil
                // The news of a delivery comes when its effects are noted, which may be after the news of a later delivery in another lane.
                let place = delivered.lastIndex { $0.deliveredAt ?? .first <= write.deliveredAt ?? .last }
                delivered.insert(write, at: place.map { $0 + 1 } ?? 0)
                if delivered.count > WriteOverlay.deliveredLimit { delivered.removeFirst(WriteOverlay.deliveredLimit / 2) }
            }
        }

        /// Notes that a live write to an entity was answered.
        mutating func notePassed(_ entityID: String, principal: String?, at moment: Tick) {
            let entity = UUIDText(entityID)
            for sequence in stuck.keys where open[sequence].map({ $0.principal == principal && $0.entityID == entity }) ?? false {
                stuck[sequence] = moment
            }
        }

        /// The open writes that a later one of this principal to the same entity has passed, which a copy fetched at `since` includes: that copy
        /// shows what has become of them.
        func passed(of principal: String?, since: Tick) -> Set<Int64> {
            guard !stuck.isEmpty else { return [] }
            var last: [String?: Int64] = [:]
            for write in delivered where write.principal == principal {
                guard write.deliveredAt ?? .last < since else { break }
                last[write.entityID] = max(last[write.entityID] ?? 0, write.sequence)
            }
            return Set(
                stuck.lazy.filter { sequence, passedAt in
                    guard let write = open[sequence], write.principal == principal else { return false }
                    return passedAt > .first && passedAt <= since || (last[write.entityID?.text] ?? 0) > sequence
                }.map(\.key))
        }
    }

    /// Maximum number of deliveries remembered per collection. Above it the older half is dropped, because copies fetched later include
    /// those writes.
    fileprivate static let deliveredLimit = 20_000

    /// The writes to paths without a declared resource.
    let files = FileOverlay()

    /// The open deletions of items: what is below them is gone for their client, too.
    let deletions = OpenDeletions()

    private let collections = Mutex<[Key: Writes]>([:])
    private let noteCount = Atomic(0)

    /// The number of changes: while it stays the same, so do the results of all methods.
    var version: Int { noteCount.load(ordering: .acquiring) }

    /// Records the current state of an operation.
    /// - Returns: true if hot replies of its collection may be out of date.
    func note(_ operation: QueuedWrite) -> Bool {
        // Nothing that is read has anything of it.
        guard !operation.isTelemetry else { return false }
        guard operation.collection != nil else { return files.note(operation) }
        return note(OperationSummary(operation), entityID: operation.entityID, ended: operation.ended)
    }

    /// Records the current state of an operation on an entity of a declared resource, as `note(_:)` does.
    func note(_ operation: OperationSummary, entityID: String?, ended: Tick? = nil) -> Bool {
        guard let collection = operation.collection else { return false }
        deletions.note(operation, entityID: entityID)
        let write = Write(
            sequence: operation.sequence, entityID: entityID, principal: operation.principal,
            deliveredAt: operation.state == .delivered ? ended ?? .first : nil)
        defer { noteCount.add(1, ordering: .releasing) }
        return collections.withLock { collections in
            let key = Key(upstream: operation.upstream, collection: collection)
            let (wasOpen, last) = (collections[key]?.isOpen ?? false, collections[key]?.lastDelivery ?? .first)
            let isTroubled = [.dead, .conflicted, .uncertain].contains(operation.state)
            collections[key, default: Writes()].troubled[operation.sequence] =
                isTroubled
                ? Trouble(operation: operation.id, state: operation.state, entityID: entityID, principal: operation.principal) : nil
            // Modify in place: copying the collection's writes would make every write as expensive as all before it.
            collections[key, default: Writes()].note(write, state: operation.state)
            if collections[key]?.isEmpty == true { collections[key] = nil }
            // While a write is open, no reply is kept hot.
            guard !wasOpen, let writes = collections[key] else { return false }
            return writes.isOpen || writes.lastDelivery > last
        }
    }

    /// Notes that a live write of a client to an entity was answered: reads of later copies show what has become of its earlier writes that wait
    /// for a person.
    func notePassed(upstream: String, collection: String, entityID: String, principal: String?, at moment: Tick) {
        let isNews = collections.withLock { collections -> Bool in
            let key = Key(upstream: upstream, collection: collection)
            // In place: a copy would cost as much as all writes of the collection.
            guard collections[key]?.hasStuck == true else { return false }
            collections[key]?.notePassed(entityID, principal: principal, at: moment)
            return true
        }
        if isNews { noteCount.add(1, ordering: .releasing) }
    }

    /// Adds deliveries from before the start, because cached copies may not include them yet.
    func load(_ delivered: [QueuedWrite]) {
        defer { noteCount.add(1, ordering: .releasing) }
        for operation in delivered where !operation.isTelemetry {
            guard let collection = operation.collection, let ended = operation.ended else {
                _ = files.note(operation)
                continue
            }
            let write = Write(
                sequence: operation.sequence, entityID: operation.entityID, principal: operation.principal, deliveredAt: ended)
            collections.withLock {
                $0[Key(upstream: operation.upstream, collection: collection), default: Writes()].delivered.append(write)
            }
        }
    }

    /// True if a copy lacks a write to its collection, or to an item of it.
    /// - Parameter moment: writes that have ended by then are part of the copy.
    func concerns(_ moment: Tick, upstream: String, collection: String) -> Bool {
        if deletions.mayCover(upstream: upstream, name: collection) { return true }
        return collections.withLock { collections in
            guard let writes = collections[Key(upstream: upstream, collection: collection)] else { return false }
            return writes.isOpen || writes.lastDelivery >= moment
        }
    }

    /// True if a read of the collection, or of an item of it, may have to include a write.
    func covers(upstream: String, collection: String) -> Bool {
        deletions.mayCover(upstream: upstream, name: collection)
            || collections.withLock { $0[Key(upstream: upstream, collection: collection)] != nil }
    }

    /// Returns the last write of an item that is dead, in conflict or uncertain; nil without one.
    func trouble(upstream: String, collection: String, entityID: String, principal: String?) -> Trouble? {
        collections.withLock { collections in
            let troubled = collections[Key(upstream: upstream, collection: collection)]?.troubled ?? [:]
            return troubled.filter { $0.value.entityID == entityID && $0.value.principal == principal }.max { $0.key < $1.key }?.value
        }
    }

    /// Returns the writes that are not part of a copy which includes those that have ended by `includes`, in order of acceptance. One that waits for a person is not among
    /// them if the copy includes a later one.
    /// - Parameters:
    ///   - entityID: selects one item; nil for the whole collection.
    ///   - includes: nil when there is no copy.
    func writes(
        upstream: String, collection: String, entityID: String?, principal: String?, includes: Tick?
    ) -> [Write] {
        collections.withLock { collections in
            guard let writes = collections[Key(upstream: upstream, collection: collection)] else { return [] }
            let since = includes ?? .first
            let late = writes.delivered.reversed().prefix { $0.deliveredAt ?? .last >= since }
            let item = entityID.map { UUIDText($0) }
            let passed = writes.passed(of: principal, since: since)
            let open = writes.open.all
                .filter { !passed.contains($0.sequence) }
                .filter { $0.value.principal == principal && (item == nil || $0.value.entityID == item || $0.value.entityID == nil) }
                .map { $0.value.write($0.sequence) }
            return (open + late.filter { $0.principal == principal && (entityID == nil || $0.entityID == entityID || $0.entityID == nil) })
                .sorted { $0.sequence < $1.sequence }
        }
    }
}

// MARK: - Deletions

/// The open deletions of items of declared resources (docs/outbox.md#below-a-deleted-item).
final class OpenDeletions: Sendable {
    private struct Place: Hashable {
        let upstream: String
        /// The collection's name and the item's id.
        let name: String
    }

    private struct Deletion {
        let sequence: Int64
        let principal: String?
    }

    private let places = Mutex<[Place: [Deletion]]>([:])

    /// Takes the state of a write to an item. A later PUT of its client makes the item again, as a create with its key does.
    func note(_ operation: OperationSummary, entityID: String?) {
        let makes = operation.method == .put || operation.isCreate
        guard let collection = operation.collection, let entityID, makes || operation.method == .delete else { return }
        let place = Place(upstream: operation.upstream, name: "\(collection)/\(entityID)")
        let isOpen = ![.dead, .cancelled, .superseded, .delivered].contains(operation.state)
        places.withLock { places in
            if makes {
                guard isOpen else { return }
                places[place]?.removeAll { $0.principal == operation.principal && $0.sequence < operation.sequence }
            } else {
                places[place]?.removeAll { $0.sequence == operation.sequence }
                if isOpen {
                    places[place, default: []].append(Deletion(sequence: operation.sequence, principal: operation.principal))
                }
            }
            if places[place]?.isEmpty == true { places[place] = nil }
        }
    }

    /// True if some client has deleted an item above a collection.
    func mayCover(upstream: String, name: String) -> Bool {
        places.withLock { places in
            !places.isEmpty && Self.above(name).contains { places[Place(upstream: upstream, name: String($0))] != nil }
        }
    }

    /// Returns the name of the item above a collection that a client has deleted; nil without one.
    func item(above name: String, upstream: String, principal: String?) -> String? {
        places.withLock { places in
            guard !places.isEmpty else { return nil }
            return Self.above(name).first { item in
                places[Place(upstream: upstream, name: String(item))]?.contains { $0.principal == principal } == true
            }.map { String($0) }
        }
    }

    /// The paths above the last segment, the longest first.
    private static func above(_ name: String) -> some Sequence<Substring> {
        sequence(state: name[...]) { rest -> Substring? in
            guard let slash = rest.utf8.lastIndex(of: UInt8(ascii: "/")), slash > rest.startIndex else { return nil }
            rest = rest[..<slash]
            return rest
        }
    }
}
