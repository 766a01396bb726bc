// Explains how a request would be answered now: runs `lookup` and the reuse decision, sends nothing and changes nothing
// (docs/reference/admin-api.md#explain).
package import HTTPTypes
import Logging
package import RockpoolCore
package import RockpoolStore

/// Explains how reads would be answered.
package struct ReadExplainer: Sendable {
    let cache: CacheStore
    let lookup: EntryLookup
    let credentials: Credentials
    let reachability: ReachabilityTable
    /// The configuration in force.
    let active: ActiveConfiguration
    let now: @Sendable () -> Timestamp

    /// Returns the decision about `request` with its freshness arithmetic. The document contains the name of the partition, but no
    /// credential.
    package func explain(_ request: RequestHead) async -> JSONValue {
        let plan = active.routes.plan(for: request)
        let identity = credentials.identity(of: request, rule: plan.upstream?.identity ?? .auto)
        let stored = await lookup.entries(
            under: StoragePartition.readable(by: identity.partition).map { lookup.key(of: request, plan: plan, in: $0) })
        let found = lookup.ownFirst(lookup.readable(stored, by: identity), identity: identity, plan: plan)
        let machine = plan.upstream.flatMap { reachability.machine(of: $0.name) }
        let rules = ReuseContext(
            policy: plan.policy, strategy: plan.strategy, offlineWindow: active.offlineWindow(of: plan, for: found.first?.response),
            isReachable: machine?.isReachable ?? (reachability.mode != .offline),
            staleOnError: active.configuration.staleOnError(of: plan), isByAuthorization: identity.isByAuthorization)
        let candidates = plan.strategy == .networkOnly ? [] : found
        let moment = now()
        let decision = lookup.reuse(of: candidates, for: request, rules: rules, now: moment)
        let chosen = decision.selected.map { found[$0] } ?? found.first
        var document: JSONValue = [
            "url": .string(request.url),
            "key": .string((chosen?.key ?? lookup.key(of: request, plan: plan, in: .shared)).text),
            "partition": .string(identity.partition.map { $0.isEmpty ? StoragePartition.single.name : $0 } ?? "none"),
            "variants": .array(found.map { StoredVariant.json($0, isSecret: active.isSecret, now: moment) }),
            "vary": .array((chosen.map { $0.response.validity.varyNames?.map(\.rawName) ?? ["*"] } ?? []).map { .string($0) }),
            "arithmetic": chosen.map { AgeArithmetic($0.response, now: moment).json } ?? .null,
            "lines": .array((chosen.map { AgeArithmetic($0.response, now: moment).lines } ?? []).map { .string($0) }),
            "decision": .string(decision.word),
            "reason": .string(decision.reason),
            "why": .string(await why(decision, about: chosen, of: request, by: identity)),
            "next": .string(isAway(decision, rules) ? away(plan) : decision.next(of: chosen?.response)),
            "conditionals": StoredVariant.fields(from: decision.conditionals, isSecret: active.isSecret),
            "category": active.category(of: plan, for: found.first?.response).map { .string($0.name) } ?? .null,
            "strategy": .string(plan.strategy.rawValue),
            "policy": .string(plan.policy.rawValue),
            "reachability": .string((machine?.shownState ?? .online).rawValue),
        ]
        // The members that lists show for the chosen entry; null if nothing is stored.
        let listed = chosen.map { StoredVariant.json($0, isSecret: active.isSecret, now: moment) }
        for name in StoredVariant.listed { document[name] = listed?[name] ?? .null }
        // The last event of the URL, such as the reason why nothing is stored.
        document["last"] =
            cache.lastEvent(of: request.url).map { record in
                [
                    "event": .string(record.event.name), "reason": record.event.reason.map { .string($0) } ?? .null,
                    "at": .string(RFC3339.format(record.at)),
                ]
            } ?? .null
        document["lastUsedAt"] = .null
        if let chosen {
            let listing = try? await cache.list(prefix: chosen.key.url, limit: 1000).first { $0.id == chosen.id }
            document["lastUsedAt"] = listing.map { .string(RFC3339.format($0.lastUsedAt)) } ?? .null
        }
        return document
    }

    /// The reason of the decision; if nothing is stored, with what became of the last answer, or that copies are stored for another
    /// credential.
    private func why(_ decision: Reuse, about chosen: CacheEntry?, of request: RequestHead, by identity: Identity) async -> String {
        let why = decision.why(of: chosen?.response, doubt: chosen.flatMap { Self.doubt(of: $0, by: identity) })
        guard decision == .none(.uriMiss) else { return why }
        if case .notStored(let reason)? = cache.lastEvent(of: request.url)?.event {
            return "\(why): its last answer was not stored (\(Self.words(of: reason)))"
        }
        let listed = (try? await cache.list(prefix: request.url, limit: 1000)) ?? []
        guard listed.contains(where: { $0.url == request.url && $0.isPrivate }) else { return why }
        if identity.partition == nil { return "\(why) without a credential; it is stored for one (give it with the request)" }
        let isOfCookies = !identity.isByRule && !identity.secrets.contains(.authorization) && identity.secrets.contains(.cookie)
        let advice = "; if only other cookies of the same user have changed, set identity: cookie:NAME for the upstream"
        return "\(why) and this credential; it is stored for another\(isOfCookies ? advice : "")"
    }

    /// Why the upstream is asked about a copy that came to another client (`EntryLookup.ownFirst`); nil for one that did not.
    private static func doubt(of entry: CacheEntry, by identity: Identity) -> String? {
        let isShared = entry.key.partition == .shared
        if !identity.signature.isEmpty, !isShared { return "no two signatures are equal, and the upstream judges each" }
        let isDoubted = isShared && !Storability.isShareable(entry.response.validity.directives)
        let hasCredential = identity.secrets.contains { $0.name != .cookie }
        return isDoubted && hasCredential || entry.key.partition == .anonymous ? "it answered a client without a credential" : nil
    }

    /// The reason in words, where it is what the answer or its request said.
    private static func words(of reason: String) -> String {
        switch Storability.Reason(rawValue: reason) {
        case .noStore, .isPrivate: "the API said Cache-Control: \(reason)"
        case .requestNoStore: "the request said Cache-Control: no-store"
        case .varyStar: "the API said Vary: *"
        case .setCookie: "it sets a cookie"
        case .notCacheable: "nothing in it permits storing"
        default: reason
        }
    }

    /// What becomes of a request that would be sent, while its upstream is away.
    private func away(_ plan: RoutePlan) -> String {
        if !plan.isWrite { return "answered 504: nothing may be sent while the upstream is away" }
        return plan.queueable ? "queued until the upstream is back" : "answered 503: it may not be queued"
    }

    /// True for a request that would be sent, if its upstream could be reached.
    private func isAway(_ decision: Reuse, _ rules: ReuseContext) -> Bool {
        if case .none = decision { !rules.isReachable } else { false }
    }
}

/// One stored variant in the form shown to users: head and times, never a body.
package enum StoredVariant {
    /// Members that lists show as well.
    static let listed = ["method", "status", "bytes", "storedAt", "freshUntil", "pinned", "identity"]

    /// - Parameter isSecret: True for fields that are listed with a hidden value.
    package static func json(_ entry: CacheEntry, isSecret: (HTTPField.Name) -> Bool, now: Timestamp) -> JSONValue {
        let response = entry.response
        return [
            "status": .number(JSONNumber(Int64(response.head.status))),
            "method": .string(entry.key.method),
            "category": .string(response.category),
            "identity": .string(entry.key.identity.isEmpty ? "shared" : "private"),
            "bytes": .number(JSONNumber(response.bodyLength)),
            "storedAt": .string(RFC3339.format(entry.storedAt)),
            "freshUntil": .string(RFC3339.format(now + Freshness.of(response, now: now).remaining)),
            "pinned": .bool(entry.isPinned),
            "invalidated": .bool(response.isInvalidated),
            "requestFields": fields(from: response.requestFields, isSecret: isSecret),
            "fields": fields(from: response.head.fields, isSecret: isSecret),
            "arithmetic": AgeArithmetic(response, now: now).json,
        ]
    }

    static func fields(from fields: HTTPFields, isSecret: (HTTPField.Name) -> Bool) -> JSONValue {
        .array(
            fields.map { field in
                ["name": .string(field.name.rawName), "value": .string(isSecret(field.name) ? "(hidden)" : field.value)]
            })
    }
}
