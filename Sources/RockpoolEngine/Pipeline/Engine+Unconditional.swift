// A conditional request for what is not stored: the whole is fetched and stored, and judges the client's conditions (RFC 9111 §4.3.2).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

extension Engine {
    /// The request without its conditions, where its answer may be stored and nothing stored can tell; nil for any other.
    ///
    /// A client with a cache of its own, as every browser is, would get its 304 for ever and leave nothing behind for the time offline.
    func withoutConditions(_ question: Question, _ job: Job) -> Job? {
        let fields = job.request.fields
        guard question.selected == nil, job.request.method == .get, job.exchange.body == nil, job.plan.strategy != .networkOnly,
            fields.contains(.ifNoneMatch) || fields.contains(.ifModifiedSince),
            ![HTTPField.Name.range, .ifRange, .ifMatch, .ifUnmodifiedSince].contains(where: fields.contains),
            !CacheControl(request: fields).noStore, !fills.isUncollapsible(job.fillKey().base, now: now())
        else { return nil }
        var whole = job
        whole.exchange.request = job.request.unconditional
        return whole
    }

    /// The reply to `job` by way of the same request without conditions; nil when the store has to be looked at again.
    func forward(_ question: Question, unconditional whole: Job, for job: Job, _ trace: inout Trace) async -> Reply? {
        guard let reply = await forward(question, whole, &trace) else { return nil }
        guard case .notModified(let head) = Preconditions.evaluate(request: job.request, stored: reply.head) else { return reply }
        if case .stream(let source, _) = reply.body {
            // What is being stored is read to its end, so that it is; anything else is of no use to anybody.
            if reply.trace.cacheStatus?.stored == true { Task { try? await source.drain() } } else { source.abandon() }
        }
        return Reply(head: head, body: .none(length: nil), trace: reply.trace)
    }
}
