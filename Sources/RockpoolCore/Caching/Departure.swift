// What becomes of a fetch whose client has left (design §5; cf. Squid's quick_abort_min, _max and _pct).

/// The decision about one fetch, when its client leaves.
package enum Departure: Hashable, Sendable {
    /// Read on and store.
    case finish
    case abort(Reason)

    /// Why the rest is not fetched.
    package enum Reason: String, CaseIterable, Sendable, Codable {
        /// Nothing would remain of it.
        case notStored = "not-stored"
        /// Too many bytes are still to come.
        case tooMuchRemains = "too-much-remains"
        /// It has no announced end, and may have none at all.
        case endUnknown = "end-unknown"
    }

    /// A rest this small is finished: it is about what the sockets' buffers already hold and what a new connection with its TLS
    /// handshake would cost again.
    package static let smallRest = ByteCount.kib(64)
    /// From this part received on a fetch is nearly done.
    package static let nearlyDonePercent: Int64 = 95
    /// Even nearly done, no more than this is fetched for nobody: five percent of a disk image is much.
    package static let maxRest = ByteCount.mib(16)

    /// - Parameters:
    ///   - received: Body bytes so far.
    ///   - announced: Body bytes in all, where the response says so.
    ///   - hasOtherReaders: Whether another client still reads the same fetch.
    package static func decide(received: ByteCount, announced: ByteCount?, isStored: Bool, hasOtherReaders: Bool) -> Departure {
        if hasOtherReaders { return .finish }
        guard isStored else { return .abort(.notStored) }
        guard let announced else { return .abort(.endUnknown) }
        let rest = announced - received
        if rest <= smallRest { return .finish }
        let isNearlyDone = rest.bytes.multipliedClamped(by: 100) <= announced.bytes.multipliedClamped(by: 100 - nearlyDonePercent)
        return isNearlyDone && rest <= maxRest ? .finish : .abort(.tooMuchRemains)
    }
}
