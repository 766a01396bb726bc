// What a relay sends, and how it recognises a usual response (docs/architecture.md#relays).
import HTTPTypes
package import NIOCore
package import RockpoolCore
import Synchronization

/// One request that takes the place of its exchange in the read pipeline.
package struct Relay: Sendable {
    package let basis: RelayBasis
    /// When it was made, at the latest when it is sent.
    let madeAt: Moment
    /// The request in the form of HTTP/1.1.
    package let bytes: ByteBuffer
    /// The patterns of the responses; none before the first one has been learned.
    package let templates: [RelayTemplate]
    let identity: Identity
    /// The read of a client; nil for a write, and for a read of the pipeline.
    package var read: RelayedRead?
    /// The write; nil for a read.
    package var write: RelayedWrite?
}

extension Relay {
    /// The request as it is sent, without a write's own key and the length of its body: those are no part of its record.
    var sent: RequestHead {
        var head = basis.request.head
        var lines = bytes.readableBytesView.split(separator: 0x0A, omittingEmptySubsequences: false).map { $0.dropLast() }
            .prefix { !$0.isEmpty }
        let words = lines.removeFirst().split(separator: 0x20)
        if words.count > 1 { head.target = String(decoding: words[1], as: UTF8.self) }
        let hasHost = head.fields.contains(.hostField)
        head.fields = [:]
        for line in hasHost ? lines : lines.dropFirst() {
            if let field = try? ResponseGate.field(ofLine: ArraySlice(line)) { head.fields.append(field) }
        }
        if let write { head.fields = write.unkeyed(head).fields }
        return head
    }
}

extension Relay {
    /// A request that a pipeline sends: its response goes to the pipeline.
    /// - Parameter now: the present time.
    package init(of request: OutboundRequest, now: Timestamp) {
        self.init(
            basis: RelayBasis(request, plan: Self.noPlan, trace: Self.noTrace, gateway: nil),
            // The pipeline knows when it has asked.
            madeAt: Moment(at: now, tick: .first), bytes: request.message,
            templates: [], identity: Self.nobody)
    }

    private static let noPlan = RoutePlan()
    private static let noTrace = Trace(method: "", url: "", startedAt: .distantPast)
    private static let nobody = Identity()
}

/// What became of a request that was sent on a relay's connection.
package struct RelayOutcome: Sendable {
    /// The head of the response as it was received; empty for a failure.
    let head: [UInt8]
    /// Nil if the request is to be sent by another way: it was not sent, or it was lost and may be repeated.
    package let result: Result<OriginReply, TransferFailure>?
    /// The failure of a write that was sent and may be repeated.
    package let lost: TransferFailure?

    package init(_ result: Result<OriginReply, TransferFailure>?, head: [UInt8] = [], lost: TransferFailure? = nil) {
        (self.result, self.head, self.lost) = (result, head, lost)
    }
}

/// What the relays of a rule have in common.
package final class RelayBasis: Sendable {
    /// The request as the pipeline would send it, without a write's own key and body.
    package let request: OutboundRequest
    let plan: RoutePlan
    /// The record of an exchange in which the pipeline took the same steps.
    let trace: Trace
    /// The gateway whose clients must not meet links of the origin in bodies; nil where bodies are passed on whatever they name.
    let links: GatewayAddress?

    init(_ request: OutboundRequest, plan: RoutePlan, trace: Trace, gateway: GatewayAddress?) {
        (self.request, self.plan, self.trace) = (request, plan, trace)
        links = plan.upstream?.gatewaySettings?.rewriting == .links ? gateway : nil
    }

    /// True if a body of JSON names the origin, so that its links may have to be replaced.
    package func names(_ body: ByteBuffer) -> Bool { links?.isNamed(in: body.readableBytesUInt8Span, .outward) == true }
    /// True if bodies of JSON are looked at before they are passed on.
    package var looksAtBodies: Bool { links != nil }
}

extension OutboundRequest {
    /// True if a second sending is a second request for what it does.
    package var isWrite: Bool { !head.method.isSafe }

    /// The whole in the form of HTTP/1.1; the body is none, or bytes.
    fileprivate var message: ByteBuffer {
        guard isWrite else { return head.message }
        var (head, content) = (head, ByteBuffer())
        if case .bytes(let bytes) = body { content = bytes }
        // A method whose content has a meaning says that there is none (RFC 9110 §8.6).
        let hasLength = content.readableBytes > 0 || [.post, .put, .patch].contains(head.method)
        head.fields[.contentLength] = hasLength ? String(content.readableBytes) : nil
        var message = head.message
        message.writeImmutableBuffer(content)
        return message
    }
}

extension EarlyAnswer {
    package convenience init(to relay: Relay, _ outcome: RelayOutcome) {
        self.init(
            to: relay.sent, head: outcome.head, subject: relay.write ?? relay.read, isWrite: relay.write != nil, result: outcome.result,
            lost: outcome.lost, sentAt: relay.madeAt)
    }
}

extension RequestHead {
    /// The part of an HTTP/1.1 head from the version to the line of `Host`.
    var startOfFields: [UInt8] { Array(" HTTP/1.1\r\nHost: \(fields[.hostField] ?? origin.authority)\r\n".utf8) }

    /// The whole in the form of HTTP/1.1.
    var message: ByteBuffer {
        ByteBuffer(bytes: Array("\(method.rawValue) \(target)".utf8) + startOfFields + fieldLines.flatMap(\.self) + [0x0D, 0x0A])
    }

    /// The lines of the other fields, with their ends.
    var fieldLines: [[UInt8]] { fields.compactMap { $0.name == .hostField ? nil : $0.line } }
}

extension HTTPField {
    /// The line with its end.
    var line: [UInt8] { Array("\(name.rawName): ".utf8) + valueBytes + [0x0D, 0x0A] }
}

// MARK: - Rules by the shapes of requests

/// The state of everything that the decision of a pipeline stands on, but for what is looked up for each request.
struct RelayValidity {
    var until: Timestamp
    /// The state of the upstreams (`ReachabilityTable.epoch`).
    var epoch: UInt64
    /// Removals in the cache (`CacheStore.hotMoment`), before anything was read.
    var moment: UInt64
    /// The places of the keys, and of the credential, that the request is looked up by.
    var slots: [Int]
}

/// The rules of one kind.
final class RelayRules<Rule: Sendable>: Sendable {
    /// Maximum number of rules; above it those that have expired are dropped, or else all.
    private static var limit: Int { 1024 }

    private let rules = Mutex<[RequestShape: Rule]>([:])
    private let expiry: @Sendable (Rule) -> Timestamp

    /// - Parameter expiry: when a rule is to be learned anew.
    init(expiry: @escaping @Sendable (Rule) -> Timestamp) { self.expiry = expiry }

    var isEmpty: Bool { rules.withLock { $0.isEmpty } }

    subscript(shape: RequestShape) -> Rule? { rules.withLock { $0[shape] } }

    func forget(_ shape: RequestShape) { rules.withLock { $0[shape] = nil } }

    func keep(_ rule: Rule, as shape: RequestShape, at now: Timestamp) {
        rules.withLock { rules in
            if rules.count >= Self.limit { rules = rules.filter { expiry($0.value) > now } }
            if rules.count >= Self.limit { rules.removeAll() }
            rules[shape] = rule
        }
    }
}

/// The patterns of the responses to the requests of one rule.
struct RelayTemplates {
    /// Maximum number; beyond it the oldest is forgotten.
    private static let limit = 4
    /// Maximum number of kinds of replies that are remembered without their patterns.
    private static let seenLimit = 16

    private(set) var all: [RelayTemplate] = []
    /// The fields of replies that were seen once.
    private var seen: [HTTPFields] = []

    init() {}

    /// - Parameter reply: a reply to one of the requests.
    init(after reply: ResponseHead) { seen = [RelayTemplate.shared(reply.fields)] }

    /// Takes the pattern of a reply of a kind that was seen before: a kind of its own URL alone would displace others.
    mutating func learnAgain(_ template: RelayTemplate) {
        if seen.contains(template.fields) { return learn(template) }
        if seen.count == Self.seenLimit { seen.removeFirst() }
        seen.append(template.fields)
    }

    mutating func learn(_ template: RelayTemplate) {
        guard !all.contains(where: { $0.agrees(with: template) }) else { return }
        if all.count == Self.limit { all.removeFirst() }
        all.append(template)
    }
}
