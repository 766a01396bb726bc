// Answers a range request from a running fetch of the whole (RFC 9110 §14.2, RFC 9111 §4).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

extension ReadPipeline {
    /// Returns the range from the running fetch as it arrives; nil if there is no such fetch, its response cannot be shared with this
    /// request, or the range is so far ahead that a separate request is better.
    func readAlong(_ question: Forwarding, _ context: inout RequestContext) async -> Reply? {
        let request = context.request
        var whole = request
        for name in [HTTPField.Name.range, .ifRange] { whole.fields[name] = nil }
        let mayFollow = RequestCollapsing.obstacleToFollowing(whole, hasBody: false, wishes: CacheControl(request: request.fields)) == nil
        guard mayFollow, let fill = fills.underWay(context.fillKey(varyingBy: question.varyNames)), let report = await fill.report(),
            case .answered(let answer) = report.outcome, let stored = answer.stored, case .shared(let body) = answer.body,
            let length = answer.length, length > 0, stored.part == nil,
            case .share = RequestCollapsing.outcome(of: answer.arrival, for: request, identity: context.identity.partition, now: now())
        else { return nil }
        let elapsed = now() - stored.responseTime
        switch RangeReply.decide(request: request, stored: stored.head, bodyLength: length, boundary: Multipart.boundary()) {
        case .part(let head, let range):
            guard RequestCollapsing.isWorthAwaiting(range.lowerBound, received: body.received, in: elapsed),
                let reader = body.reader(from: range.lowerBound)
            else { return nil }
            let slice = BodySlice(reader, length: Int64(range.count))
            return collapsed(head, .stream(slice, length: Int64(range.count)), stored, question, &context)
        case .whole:
            return body.reader().flatMap { collapsed(stored.head, .stream($0, length: length), stored, question, &context) }
        case .unsatisfiable(let head): return collapsed(head, .bytes(ByteBuffer()), stored, question, &context)
        case .parts, nil: return nil
        }
    }
}
