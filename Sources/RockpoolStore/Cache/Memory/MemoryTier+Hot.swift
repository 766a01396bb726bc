// Hot replies, kept in the item of their key: removing the item removes its replies under the same lock (docs/architecture.md#parts).
import NIOCore
import RockpoolCore

extension MemoryTier {
    /// Maximum number of hot replies of one target; the oldest is dropped.
    private static let hotLimit = 8

    /// The current removal count. Read it before reading anything that a hot reply is made from.
    var moment: UInt64 { withState(\.removals) }

    func hot(_ arrival: PlainArrival, now: Timestamp) -> HotFind? {
        let hash = arrival.hash
        return withState { state in
            state.lookups &+= 1
            guard let key = state.places[hash], let item = state.items[key] else { return nil }
            // The reply also depends on the sibling key (the entries for requests without credentials): a removal there voids the reply.
            let found = item.hot.first {
                $0.reply.hash == hash && state.epochs[$0.siblingSlot] <= $0.moment && $0.reply.answers(arrival)
            }
            guard let found else { return nil }
            if let message = found.message, message.isValid(at: now) { return .message(message) }
            return .undated(found.reply)
        }
    }

    /// Keeps a reply, unless an entry of its key or of `sibling`, which it was chosen from too, was removed since `moment`.
    func keep(_ reply: FastPathReply, sibling: CacheKey, since moment: UInt64) {
        let key = reply.entry.key.text
        let siblingSlot = State.slot(sibling.text)
        withState { state in
            guard state.epochs[State.slot(key)] <= moment, state.epochs[siblingSlot] <= moment,
                var item = state.items[key], item.bodies[reply.entry.id] != nil
            else { return }
            let before = item.hotCost
            item.hot.removeAll { $0.reply.isSuperseded(by: reply) }
            if item.hot.count == Self.hotLimit { item.hot.removeFirst() }
            item.hot.append(Hot(reply: reply, siblingSlot: siblingSlot, moment: moment))
            item.cost += item.hotCost - before
            state.bytes += item.hotCost - before
            state.items[key] = item
            state.places[reply.hash] = key
            state.tidyPlaces()
            state.shrink(to: limit)
        }
    }

    /// Keeps the message of a reply that is still in memory, and records a use of its key.
    func keep(_ message: HotMessage, of reply: FastPathReply) {
        let key = reply.entry.key.text
        withState { state in
            guard let index = state.items[key]?.hot.firstIndex(where: { $0.reply === reply }) else { return }
            state.items[key]?.hot[index].message = message
            state.touch(key)
        }
    }

    /// Discards every hot reply, and rejects those being built now.
    func forgetHot() {
        withState { state in
            state.removals += 1
            for slot in state.epochs.indices { state.epochs[slot] = state.removals }
            state.places = [:]
            for (key, var item) in state.items where !item.hot.isEmpty {
                state.bytes -= item.hotCost
                item.cost -= item.hotCost
                item.hot = []
                state.items[key] = item
            }
        }
    }
}

extension MemoryTier.Item {
    fileprivate var hotCost: Int64 { hot.reduce(0) { $0 + $1.reply.memoryCost } }
}
