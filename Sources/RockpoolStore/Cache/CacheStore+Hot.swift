// Hot replies for the engine. Every function here may be called on an event loop.
package import RockpoolCore
import Synchronization

extension CacheStore {
    /// The current removal count. Read it before reading anything that a hot reply is made from: entries, routes, the clock.
    package var hotMoment: UInt64 { memory.moment }

    /// Counts what may void a message that was found (`HotFind.message`).
    package var hotChanges: UInt64 { memory.changes.load(ordering: .acquiring) }

    /// Returns the reply that memory has for a plain request; nil when the request needs the full path.
    /// - Parameters:
    ///   - hash: `arrival.hash`.
    ///   - epoch: the current state of the upstreams (`HotMessage.epoch`).
    package func hot(_ arrival: PlainArrival, hash: Int, now: Timestamp, epoch: UInt64) -> HotFind? {
        memory.hot(arrival, hash: hash, now: now, epoch: epoch)
    }

    /// Keeps a reply while its entry is in memory, unless the data it was made from has changed since `moment`.
    /// - Parameters:
    ///   - reader: the client that it was chosen for.
    ///   - sibling: the other key considered when this entry was chosen.
    ///   - credential: the name of the request's credential; nil without one.
    package func keep(_ reply: FastPathReply, for reader: HotReader, sibling: CacheKey, credential: String?, since moment: UInt64) {
        memory.keep(reply, for: reader, sibling: sibling, credential: credential, since: moment)
    }

    /// Keeps the message of a hot reply and records a use of its entry. This happens at most a few times a second, however often the
    /// message is sent.
    package func keep(_ message: HotMessage, as form: FastPathReply.Form, of reply: FastPathReply) {
        memory.keep(message, as: form, of: reply)
        use(reply.entry)
    }

    /// Returns the places of keys, and of a credential, for `isUnchanged`.
    package func slots(of keys: [String], credential: String?) -> [Int] { MemoryTier.slots(of: keys, credential: credential) }

    /// True if nothing was stored or removed at `slots` since `moment` (`hotMoment`).
    package func isUnchanged(_ slots: [Int], since moment: UInt64) -> Bool { memory.isUnchanged(slots, since: moment) }

    /// Discards the hot replies for a credential. Call it when the credential is found to belong to another principal.
    package func forgetHot(ofCredential name: String) { memory.forgetHot(ofCredential: name) }

    /// Discards all hot replies. Call it when the same requests need different responses from now on.
    package func forgetHot() { memory.forgetHot() }
}
