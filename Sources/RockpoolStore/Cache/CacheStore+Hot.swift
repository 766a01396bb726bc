// Hot replies, as the engine asks for them. Everything here may be called on an event loop.
package import RockpoolCore

extension CacheStore {
    /// To be taken before anything is read that a hot reply is made from: entries, routes, the clock.
    package var hotMoment: UInt64 { memory.moment }

    /// What memory can say to a plain request at once; nil when it has to be answered in full.
    package func hot(_ arrival: PlainArrival, now: Timestamp) -> HotFind? { memory.hot(arrival, now: now) }

    /// Keeps a reply while its entry is in memory, unless what it was made from has changed since `moment`.
    /// - Parameter sibling: the other key whose entries were asked when this one's was chosen.
    package func keep(_ reply: HotReply, sibling: CacheKey, since moment: UInt64) { memory.keep(reply, sibling: sibling, since: moment) }

    /// Keeps the message of a hot reply, and notes that its entry was served: at most a few times a second, however often it is.
    package func keep(_ message: HotMessage, of reply: HotReply) {
        memory.keep(message, of: reply)
        use(reply.entry)
    }

    /// For when the same requests are to be answered differently from now on.
    package func forgetHot() { memory.forgetHot() }
}
