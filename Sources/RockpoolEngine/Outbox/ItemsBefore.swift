// What a collection held before a create whose answer was lost: an item that is not among it may be the one that was created
// (docs/outbox.md#uncertain).
import HTTPTypes
import OrderedCollections
import RockpoolCore
import RockpoolStore
import Synchronization

/// The ids of the collections of uncertain creates, from the copies that were stored before the first sending.
///
/// A client often reads its list again right after a save, which replaces the copy: so the ids are noted when a create is sent, and when its
/// answer is lost. They are not kept over a restart.
final class ItemsBefore: Sendable {
    /// The most creates that are noted; the oldest is forgotten first.
    private static let limit = 256

    private let cache: CacheStore
    private let lookup: EntryLookup
    private let active: ActiveConfiguration
    private let noted = Mutex<OrderedDictionary<String, Set<String>>>([:])
    /// The ids of the copies that were read last, for the creates behind the first one.
    private let read = Mutex<OrderedDictionary<ReadCopy, Set<String>>>([:])

    private struct ReadCopy: Hashable {
        let key: CacheKey
        let receivedAt: Timestamp
    }

    init(cache: CacheStore, lookup: EntryLookup, active: ActiveConfiguration) {
        self.cache = cache
        self.lookup = lookup
        self.active = active
    }

    /// Notes the ids for an operation that is being sent, or whose answer was lost, if it is a create.
    /// - Parameters:
    ///   - head: the create as it was sent.
    ///   - sentAt: when it was sent first.
    func note(_ operation: QueuedWrite, as head: RequestHead, sentAt: Timestamp) async {
        guard operation.isCreate, noted.withLock({ $0[operation.id] == nil }), let ids = await stored(head, operation, sentAt) else {
            return
        }
        noted.withLock { noted in
            if noted.count >= Self.limit { noted.removeFirst() }
            noted[operation.id] = ids
        }
    }

    /// Returns the ids for a create, which cannot include that of the created item; nil if no copy from before is known.
    func ids(for operation: QueuedWrite, as head: RequestHead) async -> Set<String>? {
        if let ids = noted.withLock({ $0[operation.id] }) { return ids }
        guard let sentAt = operation.firstSentAt else { return nil }
        return await stored(head, operation, sentAt)
    }

    private func stored(_ head: RequestHead, _ operation: QueuedWrite, _ sentAt: Timestamp) async -> Set<String>? {
        let plan = active.routes.plan(for: head)
        guard let resource = plan.entity?.resource else { return nil }
        let request = RequestHead(method: .get, origin: head.origin, target: head.path, fields: [:])
        for partition in StoragePartition.readable(by: operation.principal) {
            guard let found = try? await cache.lookup(lookup.key(of: request, plan: plan, in: partition)),
                let entry = found.first(where: { $0.response.isListed(before: sentAt, operation.begun) })
            else { continue }
            let copy = ReadCopy(key: entry.key, receivedAt: entry.response.responseTime)
            if let ids = read.withLock({ $0[copy] }) { return ids }
            guard let content = try? await lookup.content(of: entry, limit: JSONValue.sizeLimit),
                let ids = EffectProbe.ids(in: content, resource: resource)
            else { continue }
            read.withLock { read in
                if read.count >= 8 { read.removeFirst() }
                read[copy] = ids
            }
            return ids
        }
        return nil
    }
}

extension StoredResponse {
    /// True if it shows the collection as it was before a create: received before the first sending, and not invalidated since. What was asked
    /// for later was not, whatever the clock says.
    /// - Parameter begun: the tick of the first sending; nil before it.
    fileprivate func isListed(before moment: Timestamp, _ begun: Tick?) -> Bool {
        head.status == 200 && !isInvalidated && responseTime <= moment && begun.map { asked < $0 } ?? true
    }
}
