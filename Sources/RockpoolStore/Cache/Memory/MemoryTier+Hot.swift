// Hot replies, kept in the item of their key: removing the item removes its replies under the same lock (docs/architecture.md#parts).
import NIOCore
import RockpoolCore
import Synchronization

extension MemoryTier {
    /// Maximum number of hot replies of one target; the oldest is dropped. A copy that several identities may read is one.
    private static let hotLimit = 64
    /// Maximum number of clients of one hot reply, if they take less than an eighth of the memory; beyond it all are found anew.
    private static let readerLimit = 16_000

    /// The current removal count. Read it before reading anything that a hot reply is made from.
    var moment: UInt64 { withState(\.removals) }

    /// - Parameter epoch: the current state of the upstreams (`HotMessage.epoch`).
    func hot(_ arrival: PlainArrival, hash: Int, now: Timestamp, epoch: UInt64) -> HotFind? {
        withState { state in
            state.lookups &+= 1
            guard let key = state.places[hash], let item = state.items[key] else { return nil }
            for hot in item.hot {
                guard let reading = hot.readers[hash], reading.reader.isFor(arrival), hot.reply.answers(arrival),
                    state.isUnchanged(reading.slots, since: reading.moment)
                else { continue }
                guard let form = hot.reply.form(for: arrival) else { return nil }
                if let message = hot.messages[form], message.isValid(at: now, epoch: epoch) {
                    return .message(message, hot.reply, form, reading.reader, moment: changes.load(ordering: .acquiring))
                }
                return .undated(hot.reply, form, reading.reader)
            }
            return nil
        }
    }

    /// Keeps a reply, unless anything that it was made from was removed or changed since `moment`.
    /// - Parameters:
    ///   - sibling: the other key that it was chosen from.
    ///   - credential: the name of the credential that it was chosen for; nil without one.
    func keep(_ reply: FastPathReply, for reader: HotReader, sibling: CacheKey, credential: String?, since moment: UInt64) {
        let key = reply.entry.key.text
        let slots = Self.slots(of: [sibling.text], credential: credential)
        withState { state in
            guard state.isUnchanged([State.slot(key)] + slots, since: moment),
                state.items[key]?.bodies[reply.entry.id] != nil
            else { return }
            let reading = Reading(reader: reader, slots: slots, moment: moment)
            let change = state.items[key]?.keep(reply, for: reading, limit: Self.hotLimit, readers: (Self.readerLimit, cost: limit / 8))
            state.bytes += change?.cost ?? 0
            state.hotCount += change?.count ?? 0
            state.places[reader.hash] = key
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
    var hotCost: Int64 { hot.reduce(0) { $0 + $1.cost } }

    /// Keeps a reply for a client, in place of an earlier one.
    /// - Parameter readers: the largest number of clients of one reply, and of bytes for them; beyond it all are forgotten.
    /// - Returns: the change of the bytes in memory, and of the number of clients.
    fileprivate mutating func keep(
        _ reply: FastPathReply, for reading: MemoryTier.Reading, limit: Int, readers: (count: Int, cost: Int64)
    ) -> (cost: Int64, count: Int) {
        let (before, count, hash) = (hotCost, readerCount, reading.reader.hash)
        for index in hot.indices.reversed() where hot[index].readers[hash] != nil && hot[index].reply.isSuperseded(by: reply) {
            hot[index].forget(hash)
            if hot[index].readers.isEmpty { hot.remove(at: index) }
        }
        if let known = hot.firstIndex(where: { $0.reply.isSame(as: reply) }) {
            let isFull = hot[known].readers.count >= readers.count || hot[known].readersCost + reading.reader.memoryCost > readers.cost
            if isFull { hot[known].forgetReaders() }
            hot[known].keep(reading)
        } else {
            if hot.count == limit { hot.removeFirst() }
            var new = MemoryTier.Hot(reply)
            new.keep(reading)
            hot.append(new)
        }
        cost += hotCost - before
        return (hotCost - before, readerCount - count)
    }
}

extension MemoryTier.Hot {
    fileprivate var cost: Int64 { reply.memoryCost + readersCost }
}
