// How the read pipeline treats reads of new URLs that differ in nothing but the URL (docs/architecture.md#relays).
import HTTPTypes
import NIOCore
import RockpoolCore
import Synchronization

/// The requests of one shape of which nothing was stored before. Their responses were stored.
final class FirstReadRule: Sendable {
    /// What the pipeline sent for one of them.
    let request: OutboundRequest
    /// What the client had sent.
    let received: RequestHead
    /// The routing decision for it, which must be that for the next one.
    let plan: RoutePlan
    let identity: Identity
    private let linesAfterTarget: ByteBuffer
    private let before: [UInt8]
    private let after: [UInt8]
    private let listener: String
    private let isLocalClient: Bool
    private let trace: Trace
    let validity: RelayRule.Validity
    private let learned: Mutex<(kinds: [Kind], templates: [RelayTemplate])>

    /// Responses with the same fields, but for those that differ from one to the next.
    private struct Kind {
        let fields: HTTPFields
        /// Nil before the second one.
        var template: RelayTemplate?
    }

    /// Maximum number of kinds; beyond it the oldest is forgotten.
    private static let kindLimit = 4

    init(
        _ passed: PassedRead, plan: RoutePlan, before: [UInt8], after: [UInt8], listener: String, isLocalClient: Bool, reply: Reply,
        validity: RelayRule.Validity
    ) {
        (request, received, identity, self.plan, trace) = (passed.request, passed.received, passed.identity, plan, reply.trace)
        (self.before, self.after, self.listener, self.isLocalClient) = (before, after, listener, isLocalClient)
        self.validity = validity
        linesAfterTarget = passed.request.head.linesAfterTarget
        learned = Mutex(([Kind(fields: RelayTemplate.shared(reply.head.fields))], []))
    }

    /// Takes the pattern of a response to one more of the requests. It is used once the pipeline has made the same of two responses.
    func learn(_ template: RelayTemplate) {
        learned.withLock { learned in
            if let index = learned.kinds.firstIndex(where: { $0.fields == template.fields }) {
                learned.kinds[index].template = template
            } else {
                if learned.kinds.count == Self.kindLimit { learned.kinds.removeFirst() }
                learned.kinds.append(Kind(fields: template.fields))
            }
            learned.templates = learned.kinds.compactMap(\.template)
        }
    }

    /// Forgets the responses: the next ones take the full path.
    func forget() { learned.withLock { $0 = ([], []) } }

    /// True for a request of this shape.
    func isFor(_ shape: RequestShape, in bytes: Span<UInt8>, at listener: String, isLocalClient: Bool) -> Bool {
        listener == self.listener && isLocalClient == self.isLocalClient && shape.isFor(before: before, after: after, in: bytes)
    }

    /// The relay of a request for `target`.
    func relay(of target: String, by first: FirstRead) -> Relay {
        var request = request
        request.head.target = target
        return Relay(
            basis: RelayBasis(request, plan: plan, trace: trace), madeAt: first.beganAt, bytes: RequestHead.bytes(target, linesAfterTarget),
            templates: learned.withLock { $0.templates }, first: first)
    }
}
