// How the read pipeline treats reads that it sends upstream (docs/architecture.md#relays).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

/// The reads of one shape: whatever else they carry is passed on. Their responses are stored, or passed on and never stored; that is decided for
/// each by the pattern that it matches. What is stored is validated.
final class ReadRule: Sendable {
    let plan: RoutePlan
    /// What the client had sent for one of them.
    let received: RequestHead
    /// The identity of requests without a credential.
    let identity: Identity
    /// True if others may wait for the response to one of the requests.
    let leads: Bool
    /// The gateway that the requests come through.
    let gateway: GatewayAddress?
    private let basis: RelayBasis
    private let lines: OutboundLines
    private let names: PlainLineNames
    /// The lines up to the other fields, from the version on.
    private let start: [UInt8]
    /// The fields that are the same in each request.
    private let shared: [HTTPField]
    /// `PassedRead.configured`.
    private let configured: [[UInt8]]
    let validity: RelayValidity
    private let learned: Mutex<RelayTemplates>

    /// Nil if the pipeline has changed what it does not look at.
    init?(_ passed: PassedRead, of plain: PlainCopy, _ reply: Reply, gateway: GatewayAddress?, validity: RelayValidity) {
        let head = plain.head
        let bytes = head.readableBytesUInt8Span
        guard let lines = OutboundLines(plain.arrival.request.lines, in: bytes, sent: passed.request.head.fieldLines) else { return nil }
        (self.lines, self.validity, self.gateway) = (lines, validity, gateway)
        (plan, received, identity) = (passed.plan, passed.received, passed.identity)
        leads = RequestCollapsing.obstacleToLeading(received, hasBody: false, wishes: CacheControl(request: received.fields)) == nil
        basis = RelayBasis(passed.request, plan: passed.plan, trace: reply.trace, gateway: gateway)
        names = PlainLineNames(of: plain.arrival.request.lines, in: bytes)
        start = passed.request.head.startOfFields
        shared = received.fields.filter { $0.name.plainKind == .read }
        configured = passed.configured
        learned = Mutex(RelayTemplates(after: reply.head))
    }

    func learn(_ template: RelayTemplate) { learned.withLock { $0.learnAgain(template) } }

    /// Forgets the responses: the next ones take the full path.
    func forget() { learned.withLock { $0 = RelayTemplates() } }

    /// The request as the pipeline works with it; nil for one with a field that the configuration makes decisions depend on.
    func head(of request: FastPathRequest, target: String, in bytes: Span<UInt8>) -> RequestHead? {
        guard configured.allSatisfy({ request.value(of: $0, in: bytes) == nil }) else { return nil }
        var fields = HTTPFields()
        fields.reserveCapacity(shared.count + request.lines.count)
        for field in shared { fields.append(field) }
        for field in names.fields(of: request.lines, in: bytes, .free, .credential) { fields.append(field) }
        return RequestHead(method: .get, origin: received.origin, target: target, fields: fields)
    }

    /// The request as it is sent.
    /// - Parameter conditions: the fields that validate a stored response.
    func sent(_ request: FastPathRequest, target: String, in bytes: Span<UInt8>, conditions: HTTPFields = [:]) -> ByteBuffer {
        var sent: [UInt8] = []
        sent.reserveCapacity(target.utf8.count + start.count + request.length + 128)
        sent += [0x47, 0x45, 0x54, 0x20]
        sent += target.utf8
        sent += start
        lines.write(request.lines, in: bytes, to: &sent)
        for field in conditions { sent += field.line }
        sent += [0x0D, 0x0A]
        return ByteBuffer(bytes: sent)
    }

    func relay(of request: FastPathRequest, target: String, in bytes: Span<UInt8>, as read: RelayedRead, by identity: Identity) -> Relay {
        let templates = read.stored == nil ? learned.withLock { $0.all }.filter { read.leads || $0.use == .pass } : []
        return Relay(
            basis: basis, madeAt: read.beganAt,
            bytes: sent(request, target: target, in: bytes, conditions: read.stored?.forwarding.conditionals ?? [:]),
            templates: templates, identity: identity, read: read)
    }
}
