// Hot replies, kept in the item of their key: removing the item removes its replies under the same lock (docs/architecture.md#parts).
import NIOCore
import RockpoolCore
import Synchronization

extension MemoryTier {
    /// Maximum number of hot replies of one target; the oldest is dropped. Each credential has its own.
    private static let hotLimit = 64

    /// The current removal count. Read it before reading anything that a hot reply is made from.
    var moment: UInt64 { withState(\.removals) }

    /// - Parameter epoch: the current state of the upstreams (`HotMessage.epoch`).
    func hot(_ arrival: PlainArrival, hash: Int, now: Timestamp, epoch: UInt64) -> HotFind? {
        withState { state in
            state.lookups &+= 1
            guard let key = state.places[hash], let item = state.items[key] else { return nil }
            let found = item.hot.first {
                $0.reply.hash == hash && state.isUnchanged($0.slots, since: $0.moment) && $0.reply.answers(arrival)
            }
            guard let found, let form = found.reply.form(for: arrival) else { return nil }
            if let message = found.messages[form], message.isValid(at: now, epoch: epoch) {
                return .message(message, found.reply, form, moment: changes.load(ordering: .acquiring))
            }
            return .undated(found.reply, form)
        }
    }

    /// Keeps a reply, unless anything that it was made from was removed or changed since `moment`.
    /// - Parameters:
    ///   - sibling: the other key that it was chosen from.
    ///   - credential: the name of the credential that it was chosen for; nil without one.
    func keep(_ reply: FastPathReply, sibling: CacheKey, credential: String?, since moment: UInt64) {
        let key = reply.entry.key.text
        let slots = Self.slots(of: [sibling.text], credential: credential)
        withState { state in
            guard state.isUnchanged([State.slot(key)] + slots, since: moment), var item = state.items[key],
                item.bodies[reply.entry.id] != nil
            else { return }
            let (cost, count) = (item.hotCost, item.hot.count)
            item.hot.removeAll { $0.reply.isSuperseded(by: reply) }
            if item.hot.count == Self.hotLimit { item.hot.removeFirst() }
            item.hot.append(Hot(reply: reply, slots: slots, moment: moment))
            item.cost += item.hotCost - cost
            state.bytes += item.hotCost - cost
            state.hotCount += item.hot.count - count
            state.items[key] = item
            state.places[reply.hash] = key
            state.tidyPlaces()
            state.shrink(to: limit)
        }
    }

    /// Keeps the message of a reply that is still in memory, and records a use of its key.
    func keep(_ message: HotMessage, as form: FastPathReply.Form, of reply: FastPathReply) {
        let key = reply.entry.key.text
        withState { state in
            guard let index = state.items[key]?.hot.firstIndex(where: { $0.reply === reply }) else { return }
            state.items[key]?.hot[index].messages[form] = message
            state.touch(key)
        }
    }

    static func slots(of keys: [String], credential: String?) -> [Int] {
        keys.map { State.slot($0) } + (credential.map { [State.slot(ofCredential: $0)] } ?? [])
    }

    func isUnchanged(_ slots: [Int], since moment: UInt64) -> Bool { withState { $0.isUnchanged(slots, since: moment) } }

    /// Discards the hot replies for a credential, which belongs to another principal from now on.
    func forgetHot(ofCredential name: String) {
        withState { state in
            noteChange()
            state.removals += 1
            state.epochs[State.slot(ofCredential: name)] = state.removals
        }
    }

    /// Discards every hot reply, and rejects those being built now.
    func forgetHot() {
        withState { state in
            noteChange()
            state.removals += 1
            for slot in state.epochs.indices { state.epochs[slot] = state.removals }
            (state.places, state.hotCount) = ([:], 0)
            for (key, var item) in state.items where !item.hot.isEmpty {
                state.bytes -= item.hotCost
                item.cost -= item.hotCost
                item.hot = []
                state.items[key] = item
            }
        }
    }
}

extension MemoryTier.State {
    fileprivate static func slot(ofCredential name: String) -> Int { slot("credential\n" + name) }

    /// True if no key of these slots was removed since `moment`.
    fileprivate func isUnchanged(_ slots: [Int], since moment: UInt64) -> Bool { slots.allSatisfy { epochs[$0] <= moment } }
}

extension MemoryTier.Item {
    fileprivate var hotCost: Int64 { hot.reduce(0) { $0 + $1.reply.memoryCost } }
}
