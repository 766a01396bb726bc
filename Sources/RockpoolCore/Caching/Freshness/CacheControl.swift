// The directives of `Cache-Control`, parsed so that a malformed field never permits more caching than intended (RFC 9111 §5.2).
package import HTTPTypes

/// The directives of one message. Of a duplicate directive the stricter value holds; an invalid number of seconds counts as zero.
package struct CacheControl: Hashable, Sendable {
    /// The scope of a directive that may name fields: `no-cache="Set-Cookie"`.
    package enum Scope: Hashable, Sendable {
        case absent
        case all
        case fields([HTTPField.Name])
    }

    /// In a response, its lifetime (§5.2.2.1); in a request, the greatest age it accepts (§5.2.1.1).
    package var maxAge: TimeSpan?
    /// The lifetime in shared caches; implies `proxy-revalidate` (§5.2.2.10).
    package var sMaxAge: TimeSpan?
    /// Reuse requires validation: of the whole response, or of the fields named (§5.2.2.4). In a request always the whole (§5.2.1.4).
    package var noCache = Scope.absent
    package var noStore = false
    /// Intended for a single user: the whole response, or the fields named (§5.2.2.7).
    package var isPrivate = Scope.absent
    package var isPublic = false
    /// Must not be served stale (§5.2.2.2).
    package var mustRevalidate = false
    /// Must not be served stale by a shared cache (§5.2.2.8).
    package var proxyRevalidate = false
    /// Storable only by caches that understand the status code, which then ignore `no-store` (§5.2.2.3).
    package var mustUnderstand = false
    /// The response does not change while it is fresh (RFC 8246).
    package var immutable = false
    /// The staleness up to which it may be served while it is revalidated in the background (RFC 5861 §3).
    package var staleWhileRevalidate: TimeSpan?
    /// The staleness up to which it may be served in place of an error; in requests too (RFC 5861 §4).
    package var staleIfError: TimeSpan?
    /// Serve from the cache or answer 504 (§5.2.1.7).
    package var onlyIfCached = false
    /// The staleness a request accepts (§5.2.1.2); `.forever` when it names no limit.
    package var maxStale: TimeSpan?
    /// The time for which the response must remain fresh (§5.2.1.3).
    package var minFresh: TimeSpan?
    package var noTransform = false

    /// Without any directive.
    package init() {}

    /// Parses the directives of the field `name`, all its lines combined.
    package init(_ fields: HTTPFields, name: HTTPField.Name = .cacheControl) {
        for field in fields where field.name == name { read(field.value) }
    }

    /// Parses a request's directives. `Pragma: no-cache` counts as `no-cache` if there is no `Cache-Control` (RFC 9111 §5.4).
    package init(request fields: HTTPFields) {
        var pragma: String?
        var isGiven = false
        for field in fields {
            switch field.name.canonicalName {
            case "cache-control":
                isGiven = true
                read(field.value)
            case "pragma": pragma = pragma.map { "\($0),\(field.value)" } ?? field.value
            default: break
            }
        }
        guard !isGiven, let pragma else { return }
        if FieldList.members(of: pragma).contains(where: { FieldByte.equal($0.utf8, "no-cache".utf8) }) { noCache = .all }
    }

    /// True if a stale response must not be served without validation, whatever the request allows (RFC 9111 §4.2.4). `proxy-revalidate`
    /// and `s-maxage` bind shared caches only, so they do not apply to a `private` response.
    package var forbidsStale: Bool {
        mustRevalidate || noCache == .all || (isPrivate != .all && (proxyRevalidate || sMaxAge != nil))
    }
}

extension CacheControl {
    private mutating func read(_ value: String) {
        for directive in DirectiveSequence(value) { apply(directive) }
    }

    private mutating func apply(_ directive: Directive) {
        switch directive.name {
        case "no-store": noStore = true
        case "no-cache": noCache = noCache.widened(by: directive)
        case "private": isPrivate = isPrivate.widened(by: directive)
        case "must-revalidate": mustRevalidate = true
        case "proxy-revalidate": proxyRevalidate = true
        case "must-understand": mustUnderstand = true
        case "only-if-cached": onlyIfCached = true
        case "no-transform": noTransform = true
        // Directives that permit more count only when nothing else stands between their commas.
        case "public": isPublic = isPublic || !directive.isMalformed
        case "immutable": immutable = immutable || !directive.isMalformed
        case "max-age": maxAge = stricter(maxAge, or: directive.seconds ?? .zero)
        case "s-maxage": sMaxAge = stricter(sMaxAge, or: directive.seconds ?? .zero)
        case "stale-while-revalidate": staleWhileRevalidate = stricter(staleWhileRevalidate, or: directive.seconds ?? .zero)
        case "stale-if-error": staleIfError = stricter(staleIfError, or: directive.seconds ?? .zero)
        case "max-stale":
            let isUnlimited = directive.argument == nil && !directive.isMalformed
            maxStale = stricter(maxStale, or: isUnlimited ? .forever : directive.seconds ?? .zero)
        case "min-fresh": minFresh = max(minFresh ?? .zero, directive.seconds ?? .zero)
        default: break
        }
    }

    private func stricter(_ given: TimeSpan?, or new: TimeSpan) -> TimeSpan { given.map { min($0, new) } ?? new }
}

extension CacheControl.Scope {
    /// The fields named; empty for `.absent` and `.all`.
    package var names: [HTTPField.Name] {
        if case .fields(let names) = self { names } else { [] }
    }

    /// Unreadable field names extend the directive to the whole response.
    fileprivate func widened(by directive: Directive) -> Self {
        guard let argument = directive.argument, !directive.isMalformed, self != .all else { return .all }
        let members = FieldList.members(of: argument)
        let names = members.compactMap { HTTPField.Name(String($0)) }
        guard !names.isEmpty, names.count == members.count else { return .all }
        return .fields(self.names + names.filter { !self.names.contains($0) })
    }
}
