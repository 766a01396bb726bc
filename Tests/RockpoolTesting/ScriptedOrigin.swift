// An upstream that answers as a test specifies and records the requests it received (docs/architecture.md#rules, the seam `Origin`).
import Foundation
package import HTTPTypes
import NIOCore
package import RockpoolCore
package import RockpoolEngine
import Synchronization

/// The scripted reaction of the upstream to one request.
package enum ScriptedAnswer: Sendable {
    /// A complete response with its body in these pieces.
    case answer(ResponseHead, [String])
    /// The head and part of the body, then a failure.
    case broken(ResponseHead, [String], TransferFailure)
    /// Another answer, given once the gate is open.
    indirect case held(Gate, ScriptedAnswer)
    /// Another answer, to the second sending of a request after its first connection died.
    indirect case again(ScriptedAnswer)
    /// A failure before any response head.
    case failure(TransferFailure)
    /// A body that the test itself feeds.
    case live(ResponseHead, BodyPipe, length: Int64?)

    /// Returns a 200 with fields that make it storable for one minute, unless `fields` override them.
    package static func ok(_ body: String = "pearl", _ fields: HTTPFields = [.cacheControl: "max-age=60"]) -> ScriptedAnswer {
        .answer(ResponseHead(status: 200, fields: fields), [body])
    }

    package static func status(_ status: Int, _ fields: HTTPFields = [:], _ body: String = "") -> ScriptedAnswer {
        .answer(ResponseHead(status: status, fields: fields), body.isEmpty ? [] : [body])
    }

    package static let refused = ScriptedAnswer.failure(TransferFailure(kind: .refused, sent: .no, detail: "nobody listens"))
    /// A failure in which the request may have arrived but the response was lost.
    package static let lost = ScriptedAnswer.failure(TransferFailure(kind: .reset, sent: .maybe, detail: "cut off"))
    package static let badCertificate = ScriptedAnswer.failure(TransferFailure(kind: .tls, sent: .no, detail: "self-signed"))
}

/// One request as the upstream received it.
package struct SentRequest: Sendable {
    package var head: RequestHead
    package var body: [UInt8]
    package var isFreshConnection: Bool
    /// False if its connection is closed behind it.
    package var keepsConnection: Bool
    /// True if there was no body at all, not even an empty one of unknown length.
    package var isBodiless: Bool
    package var allowsLoopback: Bool

    package var line: String { "\(head.method.rawValue) \(head.target)" }
    package var text: String { String(decoding: body, as: UTF8.self) }
}

/// An origin that takes its answers from a queue first, then from its rule.
package final class ScriptedOrigin: Origin {
    package typealias Rule = @Sendable (SentRequest) -> ScriptedAnswer

    private struct State {
        var sent: [SentRequest] = []
        var queue: [ScriptedAnswer] = []
        var rule: Rule
    }

    private let state: Mutex<State>

    package init(rule: @escaping Rule = { _ in .ok() }) { state = Mutex(State(rule: rule)) }

    /// Every request that reached the upstream, in order.
    package var sent: [SentRequest] { state.withLock { $0.sent } }
    package var lines: [String] { sent.map(\.line) }

    /// Queues the next answers, one for each request.
    package func next(_ answers: ScriptedAnswer...) { state.withLock { $0.queue += answers } }

    /// Replaces the rule for all further requests.
    package func answers(_ rule: @escaping Rule) { state.withLock { $0.rule = rule } }

    package func send(_ request: OutboundRequest) async throws(TransferFailure) -> OriginReply {
        let seen = SentRequest(
            head: request.head, body: try await Self.bytes(of: request.body), isFreshConnection: request.needsFreshConnection,
            keepsConnection: request.keepsConnection,
            isBodiless: Self.isNone(request.body), allowsLoopback: request.allowsLoopback)
        let (queued, rule) = state.withLock { state in
            state.sent.append(seen)
            return (state.queue.isEmpty ? nil : state.queue.removeFirst(), state.rule)
        }
        return try await reply(queued ?? rule(seen))
    }

    private func reply(_ answer: ScriptedAnswer) async throws(TransferFailure) -> OriginReply {
        switch answer {
        case .held(let gate, let answer):
            await gate.opened()
            if Task.isCancelled { throw .cancelled }
            return try await reply(answer)
        case .again(let answer):
            var reply = try await reply(answer)
            reply.wire = WireEvidence(bytesSent: 1, isFreshConnection: true, isRepeated: true)
            return reply
        case .failure(let failure): throw failure
        case .live(let head, let body, let length): return OriginReply(head: head, length: length, body: body)
        case .answer(let head, let pieces):
            let body = Self.pipe(pieces)
            body.finish()
            return OriginReply(head: head, length: Int64(pieces.reduce(0) { $0 + $1.utf8.count }), body: body)
        case .broken(let head, let pieces, let failure):
            let body = Self.pipe(pieces)
            body.fail(failure)
            return OriginReply(head: head, length: head.fields[.contentLength].flatMap { Int64($0) }, body: body)
        }
    }

    private static func pipe(_ pieces: [String]) -> BodyPipe {
        let body = BodyPipe()
        for piece in pieces { body.offer(ByteBuffer(string: piece)) }
        return body
    }

    private static func isNone(_ body: OutboundRequest.Body) -> Bool { if case .none = body { true } else { false } }

    private static func bytes(of reader: any BodyReader) throws(TransferFailure) -> [UInt8] {
        var (reader, bytes) = (reader, [UInt8]())
        while case let piece = try reader.next(.max), piece.readableBytes > 0 { bytes += piece.readableBytesView }
        return bytes
    }

    private static func bytes(of body: OutboundRequest.Body) async throws(TransferFailure) -> [UInt8] {
        switch body {
        case .none: []
        case .bytes(let bytes): Array(bytes.readableBytesView)
        case .stored(let reader, _): try bytes(of: reader)
        case .stream(let pipe, _): Array(try await pipe.collect(upTo: 1 << 26).bytes.readableBytesView)
        }
    }
}
