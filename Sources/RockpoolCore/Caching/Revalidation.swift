// Revalidates stored responses, merges the upstream's answer (RFC 9111 §3.2, §4.3), and decides what is served when the upstream fails
// (docs/caching.md#stale-responses).
package import HTTPTypes

/// Validation of stored responses.
package enum Revalidation {
    /// The conditions to send: every stored tag, since any variant may be current, and the selected variant's date (§4.3.1).
    package static func conditionals(candidates: [StoredResponse], selected: Int) -> HTTPFields {
        guard candidates.indices.contains(selected) else { return [:] }
        var fields = HTTPFields()
        if candidates[selected].validity.lastModified != nil {
            fields[.ifModifiedSince] = candidates[selected].head.fields.value(of: "last-modified")
            // Tags of other variants would override the selected variant's only validator (RFC 9110 §13.1.3).
            if candidates[selected].entityTag == nil { return fields }
        }
        var tags: [EntityTag] = []
        // A 304 for a part's tag could not be answered with the whole.
        for index in [selected] + candidates.indices.filter({ $0 != selected && candidates[$0].part == nil }) {
            if let tag = candidates[index].entityTag, !tags.contains(tag) { tags.append(tag) }
        }
        if !tags.isEmpty { fields[.ifNoneMatch] = tags.map(\.fieldValue).joined(separator: ", ") }
        return fields
    }

    /// True if a 304 refers to `stored` (§4.3.4). A 304 without a validator refers to the response that was revalidated.
    package static func selects(_ stored: StoredResponse, notModified: ResponseHead) -> Bool {
        if let tag = notModified.fields.single(.eTag).flatMap({ EntityTag($0) }) {
            guard let own = stored.entityTag else { return false }
            return tag.isWeak ? tag.matchesWeakly(own) : tag.matchesStrongly(own)
        }
        guard let date = notModified.fields.single(.lastModified) else { return true }
        guard let own = stored.head.fields.single(.lastModified) else { return false }
        return own == date || HTTPDate.parse(own, now: stored.responseTime) == HTTPDate.parse(date, now: stored.responseTime)
    }

    /// The candidate a 304 refers to, preferably the revalidated one; nil if it refers to none of them, in which case none is updated
    /// (§4.3.4).
    package static func selected(among candidates: [StoredResponse], asked: Int, notModified: ResponseHead) -> Int? {
        guard candidates.indices.contains(asked) else { return nil }
        if selects(candidates[asked], notModified: notModified) { return asked }
        return candidates.firstIndex { $0.part == nil && selects($0, notModified: notModified) }
    }

    /// `stored` updated by a 304 (§3.2): its fields replace the stored ones, except fields that describe the stored bytes, belong to the
    /// connection, or are excluded from storing (`Set-Cookie`, and those that the directives in force name by `no-cache="…"` or `private="…"`).
    /// - Parameters:
    ///   - request: The validating request; its fields are stored if the 304 changes the list of fields the response varies by.
    ///   - veiling: Gives fields in the form in which they are stored.
    package static func freshened(
        _ stored: StoredResponse, by notModified: ResponseHead, request: RequestHead? = nil,
        veiling: (HTTPFields) -> HTTPFields = { $0 }, sent: Moment, responseTime: Timestamp
    ) -> StoredResponse {
        if isRepeated(stored, by: notModified, to: request) {
            let dates = notModified.fields[values: .date]
            return StoredResponse(
                stored, dated: dates.isEmpty ? [HTTPDate.format(responseTime)] : dates, sent: sent, responseTime: responseTime)
        }
        var request = request
        if let clients = request?.fields { request?.fields = veiling(clients) }
        var fields = stored.head.fields
        var excluded = StoredFields.excluded(from: notModified.fields).union(describingBytes)
        // Without directives of its own it leaves the stored ones in force, and what they keep from the copy.
        let governing = CacheControl.isStated(in: notModified.fields) ? notModified.fields : fields
        let directives = CacheControl.governing(in: governing).directives
        for name in directives.noCache.names + directives.isPrivate.names {
            excluded.insert(name.canonicalName)
            fields[values: name] = []
        }
        if stored.entityTag != nil { excluded.insert(HTTPField.Name.eTag.canonicalName) }

        var (replaced, new): (Set<String>, HTTPFields) = ([], [:])
        // Both describe the earlier exchange; keeping them would add its age to that of the new one.
        fields[.age] = nil
        fields[.date] = HTTPDate.format(responseTime)
        for field in notModified.fields where !excluded.contains(field.name.canonicalName) {
            if field.name != .date, !stored.head.fields[values: field.name].contains(field.value) { new.append(field) }
            if replaced.insert(field.name.canonicalName).inserted { fields[values: field.name] = [] }
            fields.append(field)
        }

        // Its `Vary` replaces what the origin said, not what was found out about the stored bytes.
        let updated = ImpliedVary.varying(
            ResponseHead(status: stored.head.status, fields: fields),
            by: stored.validity.varyNames?.filter(ImpliedVary.describesCopy) ?? [])
        let head =
            request.map { request in
                ImpliedVary.completed(
                    updated, for: request, repeating: new,
                    isPrivate: CacheControl.governing(in: updated.fields).directives.isPrivate == .all)
            } ?? updated
        var freshened = StoredResponse(
            head: head, requestFields: stored.requestFields, requestTime: sent.at, asked: sent.tick, responseTime: responseTime,
            bodyLength: stored.bodyLength, category: stored.category, assignedTTL: stored.assignedTTL)
        // Otherwise it stays the same variant: the 304 may have selected a different variant than the request does (§4.3.4).
        if freshened.validity.varyNames != stored.validity.varyNames {
            freshened.requestFields = request.flatMap { Vary.selectingFields(response: head, request: $0) } ?? stored.requestFields
            freshened.owner = stored.owner
            freshened.lifetimeRule = stored.lifetimeRule
        }
        return freshened
    }

    /// True if a 304 changes nothing but times, as most do: each of its fields is stored with this value, and its request gives no reason to
    /// vary by another field.
    private static func isRepeated(_ stored: StoredResponse, by notModified: ResponseHead, to request: RequestHead?) -> Bool {
        let (head, fields, directives) = (stored.head, notModified.fields, stored.validity.directives)
        guard !head.fields.contains(.age), let named = stored.validity.varyNames, directives.noCache.names.isEmpty,
            directives.isPrivate.names.isEmpty,
            fields.allSatisfy({ $0.name == .date || head.fields[values: $0.name] == fields[values: $0.name] })
        else { return false }
        guard let request else { return true }
        return ImpliedVary.added(to: named, of: head, for: request, isPrivate: directives.isPrivate == .all).isEmpty
    }

    /// Fields that describe the stored bytes; a message without those bytes cannot change them. Servers set a type of their own on messages
    /// without a body.
    private static let describingBytes: Set<String> = ["content-length", "content-encoding", "content-range", "content-type"]

    /// True if an updated response may stay in its partition: a 304 can also carry `no-store` or `private`.
    package static func mayStay(_ freshened: StoredResponse, in partition: StoragePartition, rule: Route.Store = .standard) -> Bool {
        if freshened.directives.noStore && !freshened.directives.mustUnderstand && rule != .always { return false }
        return partition != .shared || freshened.directives.isPrivate != .all
    }

    /// The effect of a response to HEAD on the stored response to GET (§4.3.5).
    package enum HeadOutcome: Hashable, Sendable {
        /// The same representation; its fields were updated.
        case freshened(StoredResponse)
        /// Another representation: the stored one is stale.
        case outdated
        /// The HEAD response allows no conclusion.
        case unrelated
    }

    /// Compares a HEAD response with the stored GET response: the validators and the length it contains must be equal, and a status about
    /// the resource must not contradict the stored 200.
    /// - Parameter length: The length in bytes of a GET's body, if the response declares it; framing is not part of the fields here.
    package static func head(
        _ stored: StoredResponse, by response: ResponseHead, length: Int64?, sent: Moment, responseTime: Timestamp
    ) -> HeadOutcome {
        guard stored.head.status == 200 || stored.part != nil else { return .unrelated }
        if StatusCode.contradictsOK(response.status) { return .outdated }
        guard response.status == 200 else { return .unrelated }
        let sameLength = length == nil || length == (stored.part?.length ?? stored.bodyLength)
        guard sameLength, isSame(.eTag, stored: stored, response: response), isSame(.lastModified, stored: stored, response: response)
        else { return .outdated }
        // A HEAD with a different `Vary` does not determine which variant the stored response would be.
        guard response.fields[.vary] == nil || isSame(.vary, stored: stored, response: response) else { return .outdated }
        return .freshened(freshened(stored, by: response, sent: sent, responseTime: responseTime))
    }

    private static func isSame(_ name: HTTPField.Name, stored: StoredResponse, response: ResponseHead) -> Bool {
        response.fields[name] == nil || response.fields[name] == stored.head.fields[name]
    }
}

/// Evaluation of `If-None-Match` and `If-Modified-Since` (RFC 9110 §13, RFC 9111 §4.3.2).
package enum Preconditions {
    package enum Outcome: Hashable, Sendable {
        /// Send the stored response whole.
        case full
        /// Send this 304 instead.
        case notModified(ResponseHead)
    }

    /// The response to `request` from `stored`. `If-Modified-Since` counts only without `If-None-Match`.
    package static func evaluate(request: RequestHead, stored: ResponseHead) -> Outcome {
        guard request.method == .get || request.method == .head, (200...299).contains(stored.status) else { return .full }
        if let list = request.fields[.ifNoneMatch] {
            return matches(list, stored: stored) ? .notModified(notModified(stored)) : .full
        }
        guard let since = request.fields.single(.ifModifiedSince).flatMap({ HTTPDate.parse($0) }) else { return .full }
        // Without a modification date the `Date` of the response is used (RFC 9111 §4.3.2).
        let date = stored.fields.single(.lastModified) ?? stored.fields.single(.date)
        guard let modified = date.flatMap({ HTTPDate.parse($0) }), modified <= since else { return .full }
        return .notModified(notModified(stored))
    }

    private static func matches(_ list: String, stored: ResponseHead) -> Bool {
        if FieldList.trimmed(list[...]) == "*" { return true }
        guard let own = stored.fields.single(.eTag).flatMap({ EntityTag($0) }) else { return false }
        return EntityTag.list(in: list).contains { $0.matchesWeakly(own) }
    }

    /// RFC 9110 §15.4.5: fields that guide caches stay; fields that describe the omitted content are removed.
    private static func notModified(_ stored: ResponseHead) -> ResponseHead {
        var head = ResponseHead(status: 304)
        for field in stored.fields where !contentFields.contains(field.name.canonicalName) { head.fields.append(field) }
        return head
    }

    private static let contentFields: Set<String> = [
        "content-length", "content-type", "content-encoding", "content-language", "content-range",
    ]
}

extension HTTPFields {
    private static let ofTheBody: [HTTPField.Name] =
        [.eTag, .lastModified, .date, .contentLength, .contentEncoding, .contentRange, .acceptRanges] + HTTPField.Name.digests

    /// The fields of a representation that was made here from one with these fields: without those that describe the former body. A client's
    /// condition with a date cannot hold for it, because it has none: also the former `Date` says nothing about what was added since. `Age`
    /// stays, because what the body was made of has that age.
    package var ofComputedBody: HTTPFields {
        var fields = self
        for name in Self.ofTheBody { fields[name] = nil }
        return fields
    }
}

// MARK: - Failures

/// Stale responses served in place of errors (RFC 5861 §4, RFC 9111 §4.2.4 and §4.3.3, docs/caching.md#stale-responses).
package enum StaleOnError {
    /// True if `stored`, fresh or not, may be served instead of the failure.
    package static func permits(
        _ stored: StoredResponse, request: RequestHead, failure: UpstreamFailure, context: ReuseContext, now: Timestamp
    ) -> Bool {
        let isOfflineFirst = context.policy == .offlineFirst
        let isWithinWindow = context.isWithinWindow(stored, now: now)
        switch failure {
        case .untrusted: return false
        case .unreachable where isOfflineFirst && isWithinWindow: return true
        // 429 is no fault of the server, but a copy serves its client better too (docs/caching.md#budgets).
        case .status(let status) where !StatusCode.isServerError(status) && status != 429: return false
        case .unreachable, .status: break
        }

        let wishes = CacheControl(request: request.fields)
        guard context.strategy != .networkOnly, wishes.noCache == .absent, !wishes.noStore || isOfflineFirst else { return false }
        let freshness = Freshness.of(stored, now: now)
        // A copy with an own write counts as invalidated, so that it is fetched anew; that says nothing about a server that fails.
        let directives = stored.ownWrite != nil && isOfflineFirst ? stored.lastingDirectives : stored.directives
        if directives.forbidsStale && !(freshness.isFresh && directives.noCache != .all) { return false }
        if freshness.isFresh && allows(freshness, wishes: wishes) { return true }
        for window in [directives.staleIfError, wishes.staleIfError, context.staleOnError] {
            if let window, freshness.staleness <= window { return true }
        }
        guard isWithinWindow, allows(freshness, wishes: wishes) else { return false }
        switch failure {
        case .unreachable: return true
        // A failing server counts as unreachable (§4.3.3), within the time that the category may be served offline.
        case .status: return isOfflineFirst
        case .untrusted: return false
        }
    }

    /// True if the request's limits on age are met, or may be exceeded because of `max-stale`.
    private static func allows(_ freshness: Freshness, wishes: CacheControl) -> Bool {
        if let margin = wishes.minFresh, freshness.remaining < margin { return false }
        guard let limit = wishes.maxAge else { return true }
        return freshness.age - min(limit, freshness.lifetime) <= wishes.maxStale ?? .zero
    }
}

/// The way the upstream failed.
package enum UpstreamFailure: Hashable, Sendable {
    /// No connection, or the connection failed before a response.
    case unreachable
    /// Certificate verification failed: the peer is not the upstream, and no stored response is served in its place
    /// (docs/reference/behaviour.md#offline-reads).
    case untrusted
    /// The upstream answered with this status.
    case status(Int)
}

/// The decision about a response that could replace stored ones (RFC 9111 §3, §4.3.3; docs/caching.md#good-copies).
///
/// Storing is optional for a cache (RFC 9111 §3), and while the upstream is unreachable the last good copy is worth more than a later
/// error. Selection prefers the latest response, so a stored error hides the copy even if its own `Vary` differs. Hence
/// - 404 and 410 replace the copy if they have explicit freshness and `isConfirmed` holds: the origin declares that the resource is gone,
///   and for how long. Without freshness they may result from a faulty deployment, and the copy stays, to be revalidated. Seen only once
///   they may have been provoked by that one request, or be the fault of a moment.
/// - 5xx, 401, 403, 407, 429 and the other 4xx never replace it, not even with freshness: they are transient or depend on the client.
/// - A 2xx replaces it, because it is not an error. A 204 or 205 needs explicit freshness and `isConfirmed`: a captive portal or a fault may
///   send one too. So does an empty 200 need `isConfirmed` in place of one with content, unless that one is known to be out of date.
/// - A 3xx needs explicit freshness and `isConfirmed`, because a portal redirects every request. (`PortalSuspicion` handles redirects to
///   another host.)
package enum Replacement: Hashable, Sendable {
    case allowed
    /// The copy stays and the error is relayed, for the reason in `detail`.
    case refused(detail: String)

    /// - Parameters:
    ///   - stored: Every variant of the key that the stored response would hide.
    ///   - isEmpty: True if the response is known to have no content.
    ///   - isConfirmed: False for what `needsConfirmation` and was seen for the first time.
    package static func decide(
        _ response: ResponseHead, isEmpty: Bool = false, stored: [StoredResponse], receivedAt: Timestamp, isConfirmed: Bool = true
    ) -> Replacement {
        if isEmpty, empties(response, stored: stored) {
            return isConfirmed ? .allowed : .refused(detail: "an empty 200 seen once does not replace a good copy")
        }
        guard stored.contains(where: { (200...299).contains($0.head.status) && $0.head.status != response.status }) else { return .allowed }
        switch response.status {
        case 200...203, 206...299: return .allowed
        case 204, 205, 300...399, 404, 410:
            if !isConfirmed { return .refused(detail: "a \(response.status) seen once does not replace a good copy") }
        default: return .refused(detail: "a \(response.status) does not replace a good copy")
        }
        let candidate = StoredResponse(head: response, requestTime: receivedAt, responseTime: receivedAt)
        let isFresh =
            candidate.validity.hasExplicitFreshness && candidate.directives.noCache != .all
            && Freshness.of(candidate, now: receivedAt).isFresh
        return isFresh ? .allowed : .refused(detail: "a \(response.status) without freshness of its own does not replace a good copy")
    }

    /// True if a response replaces a good copy only when it was seen more than once.
    package static func needsConfirmation(_ response: ResponseHead, isEmpty: Bool = false, stored: [StoredResponse]) -> Bool {
        switch response.status {
        case 204, 205, 300...399, 404, 410: true
        default: isEmpty && empties(response, stored: stored)
        }
    }

    /// True for a 200 in place of one with content that no write has made out of date.
    private static func empties(_ response: ResponseHead, stored: [StoredResponse]) -> Bool {
        response.status == 200
            && stored.contains { $0.head.status == 200 && $0.bodyLength > 0 && !$0.isInvalidated && $0.ownWrite == nil }
    }
}
