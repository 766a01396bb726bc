// A repeated request whose responses are never stored, with all that is needed to pass it on (docs/architecture.md#relays).
import NIOCore
import RockpoolCore
import Synchronization

/// One request, by all bytes of its head, with the request that the read pipeline has sent for it.
final class RelayRule: Sendable {
    /// The state of everything that the pipeline's decision stands on.
    struct Validity {
        var until: Timestamp
        /// The state of the upstreams (`ReachabilityTable.epoch`).
        var epoch: UInt64
        /// Removals in the cache (`CacheStore.hotMoment`), before anything was read.
        var moment: UInt64
        /// The places of the keys, and of the credential, that the request is looked up by.
        var slots: [Int]
    }

    private let basis: RelayBasis
    private let bytes: ByteBuffer
    /// What the client sent, and where.
    private let head: ByteBuffer
    private let listener: String
    private let isLocalClient: Bool
    private let learned: Mutex<(template: RelayTemplate?, validity: Validity)>

    init(_ passed: PassedRead, head: ByteBuffer, listener: String, isLocalClient: Bool, trace: Trace, validity: Validity) {
        basis = RelayBasis(passed.request, plan: passed.plan, trace: trace)
        (self.head, self.listener, self.isLocalClient) = (head, listener, isLocalClient)
        bytes = RequestHead.bytes(passed.request.head.target, passed.request.head.linesAfterTarget)
        learned = Mutex((nil, validity))
    }

    /// The request as the pipeline sent it.
    var request: OutboundRequest { basis.request }
    var plan: RoutePlan { basis.plan }

    func relay(at now: Timestamp) -> Relay {
        let templates = learned.withLock { $0.template }.map { [$0] } ?? []
        return Relay(basis: basis, madeAt: now, bytes: bytes, templates: templates, first: nil)
    }

    var validity: Validity { learned.withLock { $0.validity } }

    /// Takes the pattern of a response that the pipeline has just passed on.
    func learn(_ template: RelayTemplate?, validity: Validity) { learned.withLock { $0 = (template, validity) } }

    /// True for the same request.
    func isFor(_ given: Span<UInt8>, at listener: String, isLocalClient: Bool) -> Bool {
        guard listener == self.listener, isLocalClient == self.isLocalClient else { return false }
        let kept = head
        let own = kept.readableBytesUInt8Span
        guard own.count == given.count else { return false }
        for index in own.indices where own[index] != given[index] { return false }
        return true
    }
}
