// Decides whether a fetch continues after its client has disconnected (docs/caching.md#storability; cf. Squid's quick_abort_min, _max and
// _pct).

/// The decision about one fetch when its client disconnects.
package enum ClientAbortPolicy: Hashable, Sendable {
    /// Read the rest and store it.
    case finish
    case abort(Reason)

    /// The reason why the rest is not fetched.
    package enum Reason: String, CaseIterable, Sendable, Codable {
        /// The response is not stored, so nothing of it would remain.
        case notStored = "not-stored"
        /// Too many bytes remain.
        case tooMuchRemains = "too-much-remains"
        /// The length is not announced; the response may never end.
        case endUnknown = "end-unknown"
    }

    /// A remainder up to this size is read: about the amount that socket buffers already hold, and that a new connection with its TLS
    /// handshake would cost again.
    package static let smallRest = ByteCount.kib(64)
    /// A fetch with at least this part received counts as nearly done.
    package static let nearlyDonePercent: Int64 = 95
    /// The upper limit for a nearly finished fetch without a client: five percent of a disk image is still a lot.
    package static let maxRest = ByteCount.mib(16)

    /// - Parameters:
    ///   - received: Body bytes so far.
    ///   - announced: The length of the whole body, if the response announces it.
    ///   - hasOtherReaders: True if another client still reads the same fetch.
    package static func decide(received: ByteCount, announced: ByteCount?, isStored: Bool, hasOtherReaders: Bool) -> ClientAbortPolicy {
        if hasOtherReaders { return .finish }
        guard isStored else { return .abort(.notStored) }
        guard let announced else { return .abort(.endUnknown) }
        let rest = announced - received
        if rest <= smallRest { return .finish }
        let isNearlyDone = rest.bytes.multipliedClamped(by: 100) <= announced.bytes.multipliedClamped(by: 100 - nearlyDonePercent)
        return isNearlyDone && rest <= maxRest ? .finish : .abort(.tooMuchRemains)
    }
}
