// Selects the stored response for a request: by `Vary`, by the bytes it holds and by its date (RFC 9111 §3.4, §4, §4.1).
import HTTPTypes

extension Reuse {
    /// The most recent variant that matches the request by `Vary` and holds the requested bytes (RFC 9111 §4, §4.1).
    ///
    /// While the upstream is reachable, the `Vary` of the newest candidate also applies to the older ones, and a type for which the request
    /// has no room is not served; otherwise it is better than none. A variant that was selected by the request's own codings goes before one
    /// that only suits them.
    static func selected(among candidates: [StoredResponse], request: RequestHead, context: ReuseContext = ReuseContext()) -> Int? {
        let latest = context.isReachable && candidates.count > 1 ? newest(among: candidates) { _ in true }.map { candidates[$0] } : nil
        let suits = { (stored: StoredResponse) in
            Vary.matches(stored: stored, request: request) && !(stored.isHeadOnly && context.isReachable)
                && (PartialResponse.holds(stored, for: request) || !context.isReachable && isHeadOfPart(stored, request))
                && (!context.isReachable || CrossOriginReply.mayServe(stored, to: request))
                && latest.map { !Vary.isOutdated(stored, by: $0) } ?? true
        }
        let permits = { (stored: StoredResponse) in suits(stored) && Vary.permitsType(of: stored, request) }
        let isOwn = { (stored: StoredResponse) in Vary.matches(stored: stored, request: request, isExact: true) && permits(stored) }
        let own = candidates.count > 1 ? newest(among: candidates, where: isOwn) : nil
        let permitted = own ?? newest(among: candidates, where: permits)
        let best = permitted ?? (context.isReachable ? nil : newest(among: candidates, where: suits))
        guard best == nil, let language = Vary.onlyLanguage(among: candidates, request: request) else { return best }
        return newest(among: candidates) { $0.part == nil && $0.head.fields.value(of: "content-language")?.lowercased() == language }
    }

    /// While the upstream is unreachable: a response that differs from the requested variant only in coding, language or media type, in a
    /// coding that the client accepts or that this cache can decode. Of several, the one in the language that the client prefers, then one
    /// that needs no decoding, then the newest. A response in a language that the client does not name is better than none.
    static func substitute(among candidates: [StoredResponse], request: RequestHead, context: ReuseContext, now: Timestamp) -> Reuse? {
        guard !context.isReachable, context.policy == .offlineFirst else { return nil }
        let isFit = { (stored: StoredResponse) in
            stored.part == nil && (200...299).contains(stored.head.status) && context.isWithinWindow(stored, now: now)
                && Vary.mayStandIn(stored, for: request)
        }
        let rank = { (stored: StoredResponse) in
            (LanguagePreference.rank(of: stored, for: request), ContentCoding.isAccepted(stored.head.fields, by: request) ? 1 : 0)
        }
        guard let best = candidates.filter(isFit).map(rank).max(by: <) else { return nil }
        let index = newest(among: candidates) { isFit($0) && rank($0) == best }
        return index.map { .stale($0, .of(candidates[$0], now: now), .variant) }
    }

    /// True if a part has the fields of the whole that a HEAD wants: then it answers while the upstream is unreachable.
    private static func isHeadOfPart(_ stored: StoredResponse, _ request: RequestHead) -> Bool {
        request.method == .head && stored.part?.length != nil
    }

    private static func newest(among candidates: [StoredResponse], where isSuitable: (StoredResponse) -> Bool) -> Int? {
        var best: Int?
        for index in candidates.indices where isSuitable(candidates[index]) {
            if let best, !isNewer(candidates[index], than: candidates[best]) { continue }
            best = index
        }
        return best
    }

    /// The reason why no candidate is usable.
    static func shortcoming(of candidates: [StoredResponse], request: RequestHead) -> NoReuse {
        if candidates.allSatisfy(\.isHeadOnly) { return .uriMiss }
        return candidates.contains { $0.part != nil && Vary.matches(stored: $0, request: request) } ? .partial : .varyMiss
    }

    /// Completes a stored beginning (RFC 9111 §3.4), fresh or not: the request carries its strong tag and so validates it.
    static func completion(
        among candidates: [StoredResponse], request: RequestHead, wishes: CacheControl, context: ReuseContext
    ) -> Reuse? {
        let conditions = [HTTPField.Name.ifNoneMatch, .ifModifiedSince]
        guard request.method == .get, !context.hasBody, wishes.noCache == .absent, !conditions.contains(where: request.fields.contains),
            let index = newest(
                among: candidates, where: { Vary.matches(stored: $0, request: request) && PartialResponse.completion(of: $0) != nil }),
            RangeReply.ranges(request: request, stored: candidates[index].head) == nil
        else { return nil }
        return PartialResponse.completion(of: candidates[index]).map { .complete(index, fields: $0) }
    }

    private static func isNewer(_ a: StoredResponse, than b: StoredResponse) -> Bool {
        // The result of an own write has this clock's date; a response that was requested after it is newer, whatever its origin's clock.
        if (a.ownWrite == nil) != (b.ownWrite == nil) {
            let (own, other) = (a.includesWritesUntil, b.includesWritesUntil)
            return own == other ? a.ownWrite == nil : own > other
        }
        return (a.validity.date, a.responseTime) > (b.validity.date, b.responseTime)
    }
}
