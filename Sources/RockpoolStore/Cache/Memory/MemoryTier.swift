// The memory tier for hot reads: every variant of a key, and small bodies, bounded in bytes (docs/storage.md#memory-tier).
import HTTPTypes
import NIOCore
import RockpoolCore
import Synchronization

/// An LRU cache. Its single lock is held only for a dictionary access: callable on any event loop.
final class MemoryTier: Sendable {
    struct Item {
        var entries: [CacheEntry]
        var bodies: [Int64: ByteBuffer] = [:]
        var hot: [Hot] = []
        var cost: Int64
        /// The last place of this key in `order`; earlier ones are void.
        var stamp: UInt64 = 0
    }

    /// A hot reply in its item.
    struct Hot {
        let reply: FastPathReply
        var messages = HotMessages()
        /// The clients it is kept for, by the hashes of their requests.
        private(set) var readers: [Int: Reading] = [:]
        /// Bytes in memory of all of them.
        private(set) var readersCost: Int64 = 0

        init(_ reply: FastPathReply) { self.reply = reply }

        mutating func keep(_ reading: Reading) {
            forget(reading.reader.hash)
            readers[reading.reader.hash] = reading
            readersCost += reading.reader.memoryCost
        }

        mutating func forget(_ hash: Int) { readersCost -= readers.removeValue(forKey: hash)?.reader.memoryCost ?? 0 }

        mutating func forgetReaders() { (readers, readersCost) = ([:], 0) }
    }

    /// One client of a hot reply.
    struct Reading {
        let reader: HotReader
        /// The epoch slots of the sibling key and of the credential: a removal there voids the reply for it.
        let slots: [Int]
        /// The removal count up to which removals were taken into account.
        let moment: UInt64
    }

    struct State {
        var items: [String: Item] = [:]
        /// Hash of a hot request → key of the item that may contain its reply. Some are void.
        var places: [Int: String] = [:]
        /// Number of clients of hot replies in all items.
        var hotCount = 0
        /// Keys without entries, in two generations: a missing key is often requested again.
        var absent: Set<String> = []
        var absentEarlier: Set<String> = []
        /// Uses in order, starting at `head`; a key occurs once per use until the next compaction.
        var order: [(key: String, stamp: UInt64)] = []
        var head = 0
        var clock: UInt64 = 0
        var bytes: Int64 = 0
        /// Number of removals.
        var removals: UInt64 = 0
        /// Number of lookups, by key or by a hot request.
        var lookups: UInt64 = 0
        /// The removal count at the last removal, per hash slot of the key: entries read before a removal must not be kept after it.
        var epochs = [UInt64](repeating: 0, count: 4096)
    }

    /// Maximum bytes of a body in memory; larger ones stay in files, where the page cache serves them.
    let bodyLimit: Int64
    let limit: Int64
    private let state = Mutex(State())
    /// Counts what may void a hot message; changed under the lock, so that a message found under it is valid while the count stays.
    let changes = Atomic<UInt64>(0)

    /// Opens the keys of rows that were changed.
    private let index: IndexSeal

    init(limit: ByteCount, index: IndexSeal = IndexSeal(seal: .off)) {
        self.index = index
        self.limit = limit.bytes
        bodyLimit = min(.mib(1), limit.bytes / 8)
    }

    var bytes: Int64 { state.withLock(\.bytes) }
    /// Number of lookups in the cache so far.
    var lookups: UInt64 { state.withLock(\.lookups) }
    /// Maximum number of keys in one generation of `absent`.
    private var absentLimit: Int { min(Self.absentCount, Int(limit / .kib(4))) }
    private static let absentCount = 8192

    func withState<Result: Sendable>(_ body: (inout State) -> Result) -> Result { state.withLock { body(&$0) } }

    /// Call it under the lock.
    func noteChange() { changes.wrappingAdd(1, ordering: .releasing) }

    /// Returns every variant of the key; nil when the database must be read.
    func entries(of key: CacheKey) -> [CacheEntry]? {
        state.withLock { state -> [CacheEntry]? in
            state.lookups &+= 1
            guard let entries = state.items[key.text]?.entries else {
                return state.absent.contains(key.text) || state.absentEarlier.contains(key.text) ? [] : nil
            }
            state.touch(key.text)
            return entries
        }
    }

    func body(of entry: CacheEntry) -> ByteBuffer? {
        state.withLock { $0.items[entry.key.text]?.bodies[entry.id] }
    }

    /// Returns the epoch of a key. Read it before the database, and pass it to `keep` with the result.
    func epoch(of key: CacheKey) -> UInt64 { state.withLock { $0.epochs[State.slot(key.text)] } }

    /// Keeps all variants of a key, unless one of them was removed since `epoch`.
    func keep(_ entries: [CacheEntry], of key: CacheKey, epoch: UInt64) {
        let cost = entries.reduce(Int64(key.text.utf8.count) + 256) { $0 + $1.memoryCost }
        guard cost <= limit / 8 else { return }
        state.withLock { state in
            guard state.epochs[State.slot(key.text)] == epoch else { return }
            if state.items[key.text] != nil { noteChange() }
            if entries.isEmpty { return state.noteAbsent(key.text, atMost: absentLimit) }
            state.remove(key.text)
            state.items[key.text] = Item(entries: entries, cost: cost)
            state.bytes += cost
            state.touch(key.text)
            state.shrink(to: limit)
        }
    }

    /// Keeps the body of an entry that is in memory.
    func keep(_ body: ByteBuffer, of entry: CacheEntry) {
        let cost = Int64(body.readableBytes)
        guard cost <= bodyLimit else { return }
        state.withLock { state in
            guard var item = state.items[entry.key.text], item.bodies[entry.id] == nil,
                item.entries.contains(where: { $0.id == entry.id })
            else { return }
            item.bodies[entry.id] = body
            item.cost += cost
            state.items[entry.key.text] = item
            state.bytes += cost
            state.shrink(to: limit)
        }
    }

    /// Replaces the response of an entry by a revalidated one, and discards what was made of the earlier one. False if the entry is not in memory,
    /// was removed since `epoch`, or becomes another variant.
    func replace(_ entry: CacheEntry, by response: StoredResponse, epoch: UInt64) -> Bool {
        let key = entry.key.text
        return state.withLock { state in
            guard state.epochs[State.slot(key)] == epoch, var item = state.items[key],
                let index = item.entries.firstIndex(where: { $0.id == entry.id }),
                Vary.isSameVariant(item.entries[index].response.requestFields, response.requestFields)
            else { return false }
            noteChange()
            state.removals += 1
            state.epochs[State.slot(key)] = state.removals
            let before = item.cost
            item.cost -= item.entries[index].memoryCost + item.hotCost
            state.hotCount -= item.readerCount
            item.entries[index].response = response
            (item.hot, item.cost) = ([], item.cost + item.entries[index].memoryCost)
            // The last one comes first, as it does from the database.
            item.entries.sort { ($0.response.responseTime, $0.id) > ($1.response.responseTime, $1.id) }
            state.items[key] = item
            state.bytes += item.cost - before
            state.touch(key)
            state.shrink(to: limit)
            return true
        }
    }

    func remove(_ keys: some Sequence<String>) {
        let keys = keys.map { index.opened($0) }
        state.withLock { state in
            noteChange()
            for key in keys {
                state.removals += 1
                state.epochs[State.slot(key)] = state.removals
                state.absent.remove(key)
                state.absentEarlier.remove(key)
                state.remove(key)
            }
        }
    }
}

extension MemoryTier.State {
    static func slot(_ key: String) -> Int {
        Int(truncatingIfNeeded: key.utf8.reduce(UInt64(0xCBF2_9CE4_8422_2325)) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 } >> 32) & 0xFFF
    }

    mutating func touch(_ key: String) {
        clock += 1
        items[key]?.stamp = clock
        order.append((key, clock))
        guard order.count > 4 * items.count + 64 else { return }
        order = order[head...].filter { items[$0.key]?.stamp == $0.stamp }
        head = 0
    }

    /// Long keys are not recorded, so that the count bounds the bytes too.
    mutating func noteAbsent(_ key: String, atMost limit: Int) {
        guard key.utf8.count <= .kib(1) else { return }
        if absent.count >= limit { (absentEarlier, absent) = (absent, []) }
        if limit > 0 { absent.insert(key) }
    }

    /// Removes void places when there are many.
    mutating func tidyPlaces() {
        guard places.count > 2 * hotCount + 64 else { return }
        places = places.filter { place in items[place.value]?.hot.contains { $0.readers[place.key] != nil } ?? false }
    }

    mutating func remove(_ key: String) {
        guard let item = items.removeValue(forKey: key) else { return }
        bytes -= item.cost
        hotCount -= item.readerCount
    }

    mutating func shrink(to limit: Int64) {
        while bytes > limit, head < order.count {
            let oldest = order[head]
            head += 1
            if items[oldest.key]?.stamp == oldest.stamp { remove(oldest.key) }
        }
    }
}

extension MemoryTier.Item {
    /// Number of clients of its hot replies.
    var readerCount: Int { hot.reduce(0) { $0 + $1.readers.count } }
}

extension CacheEntry {
    /// Bytes in memory, without the body.
    fileprivate var memoryCost: Int64 {
        (response.head.fields + response.requestFields).reduce(256) {
            $0 + Int64($1.name.rawName.utf8.count + $1.value.utf8.count) + 64
        }
    }
}

// MARK: - Hot replies

// Hot replies, kept in the item of their key: removing the item removes its replies under the same lock (docs/architecture.md#parts).
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
