// The keys of one route and of one resource (docs/reference/configuration.md#routes, `routes`, `resources`).
import RockpoolCore
import Yams

extension Route {
    static let section = Section<Route>([
        .value("match", field: \.match, as: .routePattern).required,
        .optional("category", field: \.category, as: .name),
        .optional("strategy", field: \.strategy, as: .word),
        .value("queue", field: \.queue, as: .word),
        .value("store", field: \.store, as: .word),
        .value("cache", field: \.cache, as: .word),
        .value("read", field: \.read, as: .flag),
        .value("kind", field: \.kind, as: .word),
        .optional("lane", field: \.lane, as: .pointer),
        .optional("order", field: \.order, as: .word),
        .optional("keep", field: \.keep, as: .span),
        .optional("limit", field: \.limit, as: .limit),
        .offlineResponse,
        .optionalSection("timeouts", field: \.timeouts, of: RouteTimeouts.section, blank: RouteTimeouts()),
        .optional("no_vary_search", field: \.searchVariance, as: .searchVariance),
        .optionalSection("success", field: \.success, of: SuccessRule.section, blank: SuccessRule()),
        .value("on_refused", field: \.onRefused, as: .word),
        .value("logout", field: \.logout, as: .flag),
        .abortRule("on_abort", field: \.onAbort),
        .optionalSection("ttl", field: \.ttl, of: LifetimeRule.section, blank: LifetimeRule()),
        .optional("stale_on_error", field: \.staleOnError, as: .duration),
    ])
}

extension LifetimeRule {
    static let section = Section<LifetimeRule>([
        .optional("default", field: \.fallback, as: .duration),
        .optional("min", field: \.least, as: .duration),
        .optional("max", field: \.most, as: .duration),
        .value("override", field: \.overrides, as: .flag),
    ])
}

extension FixedReply {
    static let section = Section<FixedReply>([
        .value("status", field: \.status, as: .whole(in: 200...299)),
        .optional("type", field: \.type, as: .mediaType),
        .value("body", field: \.body, as: .text("a text") { _ in true }),
    ])
}

extension Key where Model == Route {
    /// A word, or a mapping with the reply.
    fileprivate static var offlineResponse: Key {
        let words = ScalarFormat<Resource.OfflineResponse>.word
        return Key(
            name: "offline_response", schema: words.schema.orNull(or: FixedReply.section.schema),
            read: { entry, route, path, reader in
                let isOverridden = reader.override(of: path) != nil
                if let entry, !isOverridden, entry.node.scalar == nil {
                    var reply = FixedReply()
                    FixedReply.section.read(entry, into: &reply, at: path, with: &reader)
                    route.offlineResponse = .fixed(reply)
                } else if entry?.node.isNothing == true, !isOverridden {
                    route.offlineResponse = nil
                } else if let word = reader.value(entry, as: words, at: path) {
                    route.offlineResponse = word == .accepted ? .accepted : .optimistic
                }
            },
            show: { route in
                switch route.offlineResponse {
                case nil: .null
                case .accepted: words.show(.accepted)
                case .optimistic: words.show(.optimistic)
                case .fixed(let reply): FixedReply.section.show(reply)
                }
            })
    }
}

extension RouteTimeouts {
    static let section = Section<RouteTimeouts>([
        .optional("first_byte", field: \.firstByte, as: .span),
        .value("idle", field: \.idle, as: .duration),
    ])
}

extension Resource {
    static let section = Section<Resource>([
        .value("collection", field: \.collection, as: .collectionPath),
        .profile,
        .optional("item", field: \.item, as: .itemPath),
        .value("items", field: \.items, as: .pointer),
        .value("element", field: \.element, as: .pointer),
        .value("envelope", field: \.envelope, as: .pointer),
        .value("content", field: \.content, as: .pointer),
        .value("id", field: \.id, as: .pointer),
        .optional("mark", field: \.mark, as: .memberPointer),
        .value("version", field: \.version, as: .version),
        .optional("updated_at", field: \.updatedAt, as: .pointer),
        .optional("offline_response", field: \.offlineResponse, as: .word),
        .value("conflict", field: \.conflict, as: .word),
        .map("fields", field: \.fields, keys: .pointer, values: .fieldStrategy),
        .optionalSection("delta", field: \.delta, of: Delta.section, blank: Delta(query: "", cursor: "")),
        .optionalSection("sync", field: \.sync, of: Sync.section, blank: Sync()),
        .optionalSection("success", field: \.success, of: SuccessRule.section, blank: SuccessRule()),
    ])
}

extension Key where Model == Resource {
    /// A word that gives the keys after it other defaults.
    fileprivate static var profile: Key {
        let word = Key.optional("profile", field: \.profile, as: .word)
        return Key(
            name: word.name, schema: word.schema,
            read: { entry, resource, path, reader in
                word.read(entry, &resource, path, &reader)
                resource.profile?.describe(&resource)
            },
            show: word.show)
    }
}

extension SuccessRule {
    static let section = Section<SuccessRule>([
        .list("status", field: \.status, of: .whole(in: 200...299)),
        .optional("pointer", field: \.pointer, as: .pointer),
        .optional("absent", field: \.absent, as: .flag),
        .optional("equals", field: \.equals, as: .jsonScalar),
    ])
}

extension Resource.Delta {
    static let section = Section<Resource.Delta>([
        .value("query", field: \.query, as: .deltaQuery).required,
        .value("cursor", field: \.cursor, as: .pointer).required,
        .optional("deleted", field: \.deleted, as: .pointer),
        .value("every", field: \.every, as: .span),
        .value("full_every", field: \.fullEvery, as: .span),
    ])
}

extension Resource.Sync {
    static let section = Section<Resource.Sync>([
        .optional("push", field: \.push, as: .urlPath),
        .section("batch", field: \.batch, of: BatchFormat.section),
        .optional("pull", field: \.pull, as: .pullTarget),
        .value("items", field: \.items, as: .pointer),
        .value("tombstones", field: \.tombstones, as: .pointer),
        .value("cursor", field: \.cursor, as: .pointer),
        .value("more", field: \.more, as: .pointer),
    ])
}

extension BatchFormat {
    static let section = Section<BatchFormat>([
        .value("body", field: \.body, as: .template),
        .value("operation", field: \.operation, as: .template),
        .value("results", field: \.results, as: .pointer),
        .value("id", field: \.id, as: .pointer),
        .value("status", field: \.status, as: .pointer),
        .value("headers", field: \.headers, as: .pointer),
        .value("answer", field: \.answer, as: .pointer),
    ])
}

/// The key `on_abort`: a word, or a mapping with the bounds (docs/reference/configuration.md#fetches-without-a-client).
extension Key {
    /// `always`, `never`, or a mapping; `null` removes it.
    static func abortRule(_ name: String, field: Field<Model, AbortRule?>) -> Key {
        let words = ScalarFormat<AbortRule.Word>.word
        return Key(
            name: name, schema: words.schema.orNull(or: AbortBounds.section.schema),
            read: { entry, model, path, reader in
                let isOverridden = reader.override(of: path) != nil
                if let entry, !isOverridden, entry.node.scalar == nil {
                    var bounds = AbortBounds()
                    AbortBounds.section.read(entry, into: &bounds, at: path, with: &reader)
                    model[keyPath: field] = .bounds(bounds)
                } else if entry?.node.isNothing == true, !isOverridden {
                    model[keyPath: field] = nil
                } else if let word = reader.value(entry, as: words, at: path) {
                    model[keyPath: field] = .word(word)
                }
            },
            show: { model in
                switch model[keyPath: field] {
                case nil: .null
                case .word(let word): words.show(word)
                case .bounds(let bounds): AbortBounds.section.show(bounds)
                }
            })
    }
}

extension AbortBounds {
    static let section = Section<AbortBounds>([
        .value("finish_below", field: \.finishBelow, as: .size),
        .value("finish_above", field: \.finishAbovePercent, as: .percent),
    ])
}
