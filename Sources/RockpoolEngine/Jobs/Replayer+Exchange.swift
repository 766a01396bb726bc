// One request and its answer, redirects within the origin followed (docs/outbox.md#answers; RFC 9110 §15.4).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

extension Replayer {
    /// Bytes of an answer's body that are kept as the operation's result.
    private static let resultLimit = 1 << 20
    /// How long an answer's body may take: its status has already said what happened.
    private static let resultLimitTime = Duration.seconds(10)
    /// Redirects that keep the method, followed one after another.
    private static let redirectLimit = 3

    /// Sends, and reads the beginning of the answer's body. 301, 307 and 308 say that nothing was done and where to ask instead: within
    /// the origin the same request goes there.
    func exchange(_ outgoing: Outgoing, _ upstream: Upstream) async -> (AttemptOutcome, [UInt8], WireEvidence?) {
        var head = outgoing.head
        for turn in 0... {
            do throws(TransferFailure) {
                let answer = try await engine.send(head, outgoing.body, upstream: upstream, freshConnection: outgoing.needsFreshConnection)
                FailPoint.answerHeadRead.reached()
                let body = await beginning(of: answer.body)
                guard turn < Self.redirectLimit, let target = answer.head.sameRequestElsewhere(from: head) else {
                    return (.answered(answer.head), body, answer.wire)
                }
                head.target = target
            } catch {
                return (.failed(error), [], error.wire)
            }
        }
        return (.failed(TransferFailure(kind: .protocolError, sent: .yes)), [], nil)
    }

    func beginning(of body: BodyPipe) async -> [UInt8] {
        let timer = Task {
            try await Task.sleep(for: Self.resultLimitTime)
            body.abandon()
        }
        defer { timer.cancel() }
        return ((try? await body.collect(upTo: Self.resultLimit))?.bytes).map { Array($0.readableBytesView) } ?? []
    }
}

extension ResponseHead {
    /// The target at the same origin where this redirect wants the same method to go; nil for any other answer.
    fileprivate func sameRequestElsewhere(from request: RequestHead) -> String? {
        guard [301, 307, 308].contains(status), let location = fields[.location],
            case .sameOrigin(let target) = RedirectTarget(location, from: request), target != request.target
        else { return nil }
        return target
    }
}
