// Sends one request and follows redirects within the origin (docs/outbox.md#answers; RFC 9110 §15.4).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

extension Replayer {
    /// Maximum size in bytes of a response body that is kept as the operation's result.
    private static let resultLimit = Int.mib(1)
    /// Maximum time to read a response body; the status alone decides the outcome.
    private static let resultLimitTime = Duration.seconds(10)
    /// Maximum number of redirects that keep the method.
    private static let redirectLimit = 3

    /// Sends the request and reads the beginning of the response body. After 301, 307 and 308, which mean that nothing was done, the same
    /// request is sent to the new target if it is within the origin.
    func exchange(_ outgoing: OutboundWrite, _ upstream: Upstream) async -> (AttemptOutcome, [UInt8], WireEvidence?) {
        var head = outgoing.head
        for turn in 0... {
            do throws(TransferFailure) {
                let answer = try await engine.upstreams.send(
                    head, outgoing.body, upstream: upstream, freshConnection: outgoing.needsFreshConnection)
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
    /// Returns the target to which this redirect moves the request, with the same method and origin; nil for any other response.
    fileprivate func sameRequestElsewhere(from request: RequestHead) -> String? {
        guard [301, 307, 308].contains(status), let location = fields[.location],
            case .sameOrigin(let target) = RedirectTarget(location, from: request), target != request.target
        else { return nil }
        return target
    }
}
