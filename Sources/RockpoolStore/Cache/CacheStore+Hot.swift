// Hot replies for the engine. Every function here may be called on an event loop.
package import RockpoolCore

extension CacheStore {
    /// The current removal count. Read it before reading anything that a hot reply is made from: entries, routes, the clock.
    package var hotMoment: UInt64 { memory.moment }

    /// Returns the reply that memory has for a plain request; nil when the request needs the full path.
    package func hot(_ arrival: PlainArrival, now: Timestamp) -> HotFind? { memory.hot(arrival, now: now) }

    /// Keeps a reply while its entry is in memory, unless the data it was made from has changed since `moment`.
    /// - Parameter sibling: the other key considered when this entry was chosen.
    package func keep(_ reply: FastPathReply, sibling: CacheKey, since moment: UInt64) {
        memory.keep(reply, sibling: sibling, since: moment)
    }

    /// Keeps the message of a hot reply and records a use of its entry. This happens at most a few times a second, however often the
    /// message is sent.
    package func keep(_ message: HotMessage, of reply: FastPathReply) {
        memory.keep(message, of: reply)
        use(reply.entry)
    }

    /// Discards all hot replies. Call it when the same requests need different responses from now on.
    package func forgetHot() { memory.forgetHot() }
}
