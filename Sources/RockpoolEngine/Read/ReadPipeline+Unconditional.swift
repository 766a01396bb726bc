// Conditional requests without a stored entry: fetches and stores the whole, and evaluates the client's conditions against it
// (RFC 9111 §4.3.2).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

extension ReadPipeline {
    /// Returns the request without its conditions if its response may be stored and no entry is selected; nil otherwise.
    ///
    /// A client with its own cache, such as any browser, would otherwise always receive a 304, and nothing would be stored for offline use.
    func withoutConditions(from context: RequestContext, by forwarding: Forwarding) -> RequestContext? {
        let fields = context.request.fields
        guard forwarding.selected == nil, context.request.method == .get, context.exchange.body == nil,
            context.plan.strategy != .networkOnly,
            fields.contains(.ifNoneMatch) || fields.contains(.ifModifiedSince),
            ![HTTPField.Name.range, .ifRange, .ifMatch, .ifUnmodifiedSince].contains(where: fields.contains),
            !CacheControl(request: fields).noStore, !inFlight.isUncollapsible(at: context.fetchBase, now: now())
        else { return nil }
        var whole = context
        whole.exchange.request = context.request.unconditional
        return whole
    }

    /// Answers the request of `context` by the same request without conditions; nil if the store must be read again.
    func fetchUnconditional(_ whole: RequestContext, for context: inout RequestContext, by forwarding: Forwarding) async -> Reply? {
        var whole = whole
        let fetched = await fetchCoalesced(for: &whole, by: forwarding)
        context.trace = whole.trace
        guard let reply = fetched else { return nil }
        guard case .notModified(let head) = Preconditions.evaluate(request: context.request, stored: reply.head) else { return reply }
        if case .stream(let source, _) = reply.body {
            // A body that is being stored is read to its end; any other is abandoned.
            if reply.trace.cacheStatus?.stored == true { Task { try? await source.drain() } } else { source.abandon() }
        }
        return Reply(head: head, body: .none(length: nil), trace: reply.trace)
    }
}
