// Which writes a read must still show: those that wait, and those delivered after the stored copy was fetched (docs/outbox.md#reads).
import RockpoolCore
import Synchronization

/// Writes about entities of declared resources, by collection. Sequences only: bodies are read from the outbox when they are needed.
final class Overlay: Sendable {
    struct Write: Sendable {
        var sequence: Int64
        var entityID: String?
        var principal: String?
        /// nil while it is open.
        var deliveredAt: Timestamp?
    }

    private struct Key: Hashable {
        var upstream: String
        var collection: String
    }

    private struct Writes {
        var open: [Int64: Write] = [:]
        /// In order of delivery.
        var delivered: [Write] = []

        var isEmpty: Bool { open.isEmpty && delivered.isEmpty }

        mutating func note(_ write: Write, _ state: OperationState) {
            switch state {
            case .pending, .inflight, .uncertain, .conflicted, .parked: open[write.sequence] = write
            case .dead, .cancelled, .superseded: open[write.sequence] = nil
            case .delivered:
                guard open.removeValue(forKey: write.sequence) != nil || isEmpty else { return }
                delivered.append(write)
                if delivered.count > Overlay.deliveredLimit { delivered.removeFirst(Overlay.deliveredLimit / 2) }
            }
        }
    }

    /// Deliveries remembered of one collection; older ones have long been fetched, or nobody reads it.
    fileprivate static let deliveredLimit = 20_000

    private let collections = Mutex<[Key: Writes]>([:])

    /// Takes in how an operation stands.
    /// - Returns: whether its collection had nothing to show before: then what is kept ready of it is out of date.
    func note(_ operation: Operation) -> Bool {
        guard let collection = operation.collection else { return false }
        let write = Write(
            sequence: operation.sequence, entityID: operation.entityID, principal: operation.principal,
            deliveredAt: operation.state == .delivered ? operation.endedAt ?? operation.acceptedAt : nil)
        return collections.withLock { collections in
            let key = Key(upstream: operation.upstream, collection: collection)
            let wasEmpty = collections[key] == nil
            // In place: a copy of what a collection holds would cost every write as much as all before it.
            collections[key, default: Writes()].note(write, operation.state)
            if collections[key]?.isEmpty == true { collections[key] = nil }
            return wasEmpty && collections[key] != nil
        }
    }

    /// What was delivered before the start and may not be in the cache yet.
    func load(_ delivered: [Operation]) {
        for operation in delivered {
            guard let collection = operation.collection, let endedAt = operation.endedAt else { continue }
            let write = Write(
                sequence: operation.sequence, entityID: operation.entityID, principal: operation.principal, deliveredAt: endedAt)
            collections.withLock {
                $0[Key(upstream: operation.upstream, collection: collection), default: Writes()].delivered.append(write)
            }
        }
    }

    /// Whether a read of the collection, or of an item of it, may have to show a write.
    func covers(upstream: String, collection: String) -> Bool {
        collections.withLock { $0[Key(upstream: upstream, collection: collection)] != nil }
    }

    /// The writes that a copy fetched at `fetchedAt` does not hold, in order of acceptance.
    /// - Parameters:
    ///   - entityID: of one item; nil for the whole collection.
    ///   - fetchedAt: nil when there is no copy.
    func writes(
        upstream: String, collection: String, entityID: String?, principal: String?, fetchedAt: Timestamp?
    ) -> [Write] {
        collections.withLock { collections in
            guard let writes = collections[Key(upstream: upstream, collection: collection)] else { return [] }
            let since = fetchedAt ?? .distantPast
            let late = writes.delivered.reversed().prefix { $0.deliveredAt ?? .distantFuture >= since }
            return (Array(writes.open.values) + late)
                .filter { $0.principal == principal && (entityID == nil || $0.entityID == entityID) }
                .sorted { $0.sequence < $1.sequence }
        }
    }
}
