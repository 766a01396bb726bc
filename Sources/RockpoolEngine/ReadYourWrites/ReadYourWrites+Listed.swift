// An item that is known only from a list is readable at its own URL while the upstream is unreachable (docs/outbox.md#listed-items).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

/// An item's element in a cached list.
struct ListedItem: Sendable {
    var element: JSONValue
    /// The list that contains it.
    var list: CacheEntry
    /// Own writes that have ended by then are part of the list.
    var at: Tick { list.response.includesWritesUntil }
}

extension ReadYourWrites {
    /// The search of cached lists for one item.
    var lists: ListedItems { ListedItems(cache: cache, lookup: reads.lookup, active: active, now: now) }

    /// Returns the reply to a read of an item from a list that is newer than what `reply` shows, with the trace of that reply; nil where
    /// `reply` stands. Only while the upstream is unreachable, under `offline-first`, for the item's own URL without a query, or for a query that
    /// names a row.
    func listedReply(insteadOf reply: inout Reply, _ trace: Trace, for context: RequestContext) async -> (Reply, Trace)? {
        let (request, plan) = (context.request, context.plan)
        var context = context
        if let row = plan.entity?.row(selectedBy: request.target), Self.readsRows(request) { context.plan.entity = row }
        let isRow = context.plan.entity != plan.entity
        guard request.method == .get || request.method == .head, plan.policy == .offlineFirst, plan.strategy != .networkOnly,
            plan.store != .never, isRow || !request.target.contains("?"), let place = place(of: context), place.entityID != nil,
            case let isMissing = trace.isUnanswered(by: reply.head.status),
            isMissing || !context.isReachable && trace.isOldCopy(reply.head.status),
            let found = await lists.item(in: place, for: context, after: isMissing ? nil : trace.includes, isServed: true)
        else { return nil }
        if !isMissing {
            guard found.list.response.isKnownState, let shownAt = trace.includes, found.at > shownAt else { return nil }
            // A summary does not replace a copy that has more members.
            if reply.head.status == 200 {
                guard let bytes = await bytes(of: &reply), let body = try? JSONValue.parse(Array(bytes.readableBytesView)),
                    let new = place.resource.item(body, replacedBy: found.element), new != body
                else { return nil }
            }
        }
        return lists.reply(found, of: place.resource, after: trace)
    }

    /// False for a client that reads one row as an object, as PostgREST has it: a list of one is none.
    private static func readsRows(_ request: RequestHead) -> Bool { request.fields[.accept]?.contains(".object") != true }
}

extension Trace {
    /// True if nothing is stored that could answer, and the upstream gave no answer.
    fileprivate func isUnanswered(by status: Int) -> Bool {
        guard verdict == .failed, [502, 504].contains(status), let error = proxyStatus?.error else { return false }
        return ![.tlsProtocolError, .tlsCertificateError, .tlsAlertReceived, .destinationIPProhibited].contains(error)
    }

    /// True if the reply is a copy of the item, or of its absence, that stands in for the upstream.
    fileprivate func isOldCopy(_ status: Int) -> Bool { verdict == .stale && [200, 404, 410].contains(status) }
}
