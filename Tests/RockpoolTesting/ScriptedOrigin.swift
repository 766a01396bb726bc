// An upstream that answers as a test says and remembers what it was sent (docs/architecture.md#rules, the seam `Origin`).
import Foundation
package import HTTPTypes
import NIOCore
package import RockpoolCore
package import RockpoolEngine
import Synchronization

/// What a scripted upstream does with one request.
package enum ScriptedAnswer: Sendable {
    /// A whole answer, its body in these pieces.
    case answer(ResponseHead, [String])
    /// The head and some of the body, then this.
    case broken(ResponseHead, [String], TransferFailure)
    /// What follows, once the gate is open.
    indirect case held(Gate, ScriptedAnswer)
    /// No head at all.
    case failure(TransferFailure)
    /// A body that the test feeds itself.
    case live(ResponseHead, BodyPipe, length: Int64?)

    /// 200 with fields that let it be stored for a minute, unless `fields` say otherwise.
    package static func ok(_ body: String = "pearl", _ fields: HTTPFields = [.cacheControl: "max-age=60"]) -> ScriptedAnswer {
        .answer(ResponseHead(status: 200, fields: fields), [body])
    }

    package static func status(_ status: Int, _ fields: HTTPFields = [:], _ body: String = "") -> ScriptedAnswer {
        .answer(ResponseHead(status: status, fields: fields), body.isEmpty ? [] : [body])
    }

    package static let refused = ScriptedAnswer.failure(TransferFailure(kind: .refused, sent: .no, detail: "nobody listens"))
    /// The request may have arrived; its answer did not.
    package static let lost = ScriptedAnswer.failure(TransferFailure(kind: .reset, sent: .maybe, detail: "cut off"))
    package static let badCertificate = ScriptedAnswer.failure(TransferFailure(kind: .tls, sent: .no, detail: "self-signed"))
}

/// One request as the upstream saw it.
package struct SentRequest: Sendable {
    package var head: RequestHead
    package var body: [UInt8]
    package var isFreshConnection: Bool
    /// Not even an empty body of unknown length.
    package var isBodiless: Bool
    package var allowsLoopback: Bool

    package var line: String { "\(head.method.rawValue) \(head.target)" }
    package var text: String { String(decoding: body, as: UTF8.self) }
}

/// Answers from a queue first, then by its rule.
package final class ScriptedOrigin: Origin {
    package typealias Rule = @Sendable (SentRequest) -> ScriptedAnswer

    private struct State {
        var sent: [SentRequest] = []
        var queue: [ScriptedAnswer] = []
        var rule: Rule
    }

    private let state: Mutex<State>

    package init(rule: @escaping Rule = { _ in .ok() }) { state = Mutex(State(rule: rule)) }

    /// Everything that reached the upstream, in order.
    package var sent: [SentRequest] { state.withLock { $0.sent } }
    package var lines: [String] { sent.map(\.line) }

    /// The next answers, one a request.
    package func next(_ answers: ScriptedAnswer...) { state.withLock { $0.queue += answers } }

    /// What it answers from now on.
    package func answers(_ rule: @escaping Rule) { state.withLock { $0.rule = rule } }

    package func send(_ request: OutboundRequest) async throws(TransferFailure) -> OriginReply {
        let seen = SentRequest(
            head: request.head, body: try await Self.bytes(of: request.body), isFreshConnection: request.needsFreshConnection,
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

    private static func bytes(of body: OutboundRequest.Body) async throws(TransferFailure) -> [UInt8] {
        switch body {
        case .none: []
        case .bytes(let bytes): Array(bytes.readableBytesView)
        case .file(let path, _): FileManager.default.contents(atPath: path).map { Array($0) } ?? []
        case .sealed(let length, let read): (try? read(0..<length)).map { Array($0.readableBytesView) } ?? []
        case .stream(let pipe, _): Array(try await pipe.collect(upTo: 1 << 26).bytes.readableBytesView)
        }
    }
}
