// The step `store`: decided by the head, written while the client reads, kept only when whole (RFC 9111 §3).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

extension Engine {
    /// The upstream's answer on its way to the client, stored alongside where the rules permit.
    func store(_ answer: OriginReply, _ sentAt: Timestamp, _ job: Job, _ status: CacheStatus, _ trace: inout Trace) async -> Reply {
        let receivedAt = now()
        let hasBody = job.exchange.body != nil
        let context = StorageContext(
            identity: job.identity.partition, policy: job.plan.policy, strategy: job.plan.strategy, rule: job.plan.store, hasBody: hasBody)
        var status = status
        let live = Reply(head: answer.head, body: job.bodyOnTheWay(answer), trace: trace)
        switch Storability.decide(request: job.request, response: answer.head, context: context) {
        case .refuse(let reason):
            trace.record(.notStored(reason.rawValue))
            trace.cacheStatus = status
            return live
        case .store(let plan):
            let category = job.plan.category ?? self.category(named: CategoryGuess.name(for: answer.head)) ?? .ephemeral
            guard let writer = await cache.beginWrite(expectedLength: answer.length, category: category) else {
                trace.record(.notStored("no-room"))
                status.detail = "no-room"
                trace.cacheStatus = status
                return live
            }
            trace.record(.stored)
            status.stored = true
            trace.cacheStatus = status
            var response = StoredResponse(
                head: plan.head(of: answer.head, receivedAt: receivedAt),
                requestFields: Vary.selectingFields(response: answer.head, request: job.request) ?? [:], requestTime: sentAt,
                responseTime: receivedAt, bodyLength: 0, category: category.name,
                assignedTTL: plan.assignedTTL(named: job.plan.category?.ttl))
            // Nobody's in particular: kept for the time offline, never another's answer while the upstream can be asked.
            response.isInvalidated = plan.partition == .anonymous
            let tee = Tee(
                source: answer.body, length: answer.length, writer: writer, cache: cache,
                key: CacheKey(job.request, identity: plan.identity), response: response,
                logger: logger)
            return Reply(head: answer.head, body: .stream(tee, length: answer.length), trace: trace)
        }
    }
}

extension Job {
    /// The answer's body as it streams to the client.
    func bodyOnTheWay(_ answer: OriginReply) -> ReplyBody {
        request.method == .head ? .none(length: answer.length) : .stream(answer.body, length: answer.length)
    }
}
