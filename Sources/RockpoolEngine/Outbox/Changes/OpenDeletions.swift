// What clients have deleted while the upstream was away, with what is below it (docs/outbox.md#below-a-deleted-item).
import HTTPTypes
import RockpoolCore
import Synchronization

/// The open deletions of items of declared resources.
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

    /// Takes the state of a write to an item. A later PUT of its client makes the item again.
    func note(_ operation: OperationSummary, entityID: String?) {
        guard let collection = operation.collection, let entityID, [.delete, .put].contains(operation.method) else { return }
        let place = Place(upstream: operation.upstream, name: "\(collection)/\(entityID)")
        let isOpen = ![.dead, .cancelled, .superseded, .delivered].contains(operation.state)
        places.withLock { places in
            if operation.method == .put {
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
