// Sessions whose cookies are renewed with each answer: they go forward only (docs/caching.md#renewed-cookies; RFC 6265 §5.3).
import HTTPTypes
import OrderedCollections

/// The credentials that name the sessions of renewed cookies, and those that have named them.
///
/// A value of a cookie may be known to others: to the site that set it before its user signed in, or to who has planted it. So a value names
/// the session only until the next one is used, at most for a second, in which the requests that a browser had under way are answered.
/// Several of those may be renewed, and a browser goes on with one of the values: the others name it no more once it is seen which.
package struct Sessions: Sendable {
    /// A credential that was renewed.
    private struct Former: Sendable {
        let principal: String
        let until: Timestamp
        /// `count` after it has ceased to name the session; nil before.
        var endedAt: UInt64?
    }

    /// A credential that names a session now.
    private struct Value: Sendable {
        let name: String
        let givenAt: Timestamp
    }

    /// The change of a session whose next credential was used.
    package struct Step: Hashable, Sendable {
        /// Its identity.
        package var principal: String
        /// True if it was named by its first credential until now, and has got a name of its own.
        package var isNew: Bool
        /// Credentials that name it no more, except for the requests under way.
        package var gone: [String]
    }

    /// The time for which a renewed value still names the session.
    package static let overlap = TimeSpan.seconds(1)
    private static let limit = 1000
    /// The most unused values of one session: more than a browser has under way at once.
    private static let valueLimit = 32

    private var formers: OrderedDictionary<String, Former> = [:]
    /// The credential that each one has replaced, until it is used.
    private var predecessors: [String: String] = [:]
    /// The credentials that name a session now, the oldest first, by its principal.
    private var values: OrderedDictionary<String, [Value]> = [:]
    /// The number of credentials that sessions have left behind.
    package private(set) var count: UInt64 = 0

    package init() {}

    /// Notes that a request has come with a credential.
    /// - Parameter owner: the principal of the credential, as far as it is no former one.
    /// - Returns: the principal of the session if the credential was renewed a moment ago; and the credentials that name theirs no more.
    package mutating func arrived(
        _ credential: String, of owner: String, now: () -> Timestamp
    ) -> (principal: String?, ended: [String]) {
        guard !formers.isEmpty else { return (nil, []) }
        var ended: [String] = []
        if let replaced = predecessors.removeValue(forKey: credential), end(replaced) { ended.append(replaced) }
        ended += dropUnused(of: owner, besides: credential, now: now)
        guard let former = formers[credential], former.endedAt == nil else { return (nil, ended) }
        let time = now()
        if time < former.until, time >= former.until - Self.overlap { return (former.principal, ended) }
        if end(credential) { ended.append(credential) }
        return (nil, ended)
    }

    /// Returns the session of a request that came when its credential still named it; nil for any other request.
    package func successor(of credential: String, arrivedAt arrival: UInt64) -> String? {
        guard let former = formers[credential], former.endedAt.map({ arrival < $0 }) ?? true else { return nil }
        return former.principal
    }

    /// Lets a session go on from the credential of a request to that of its answer.
    /// - Parameters:
    ///   - principal: the identity that the request had.
    ///   - made: the name of the session if it has none of its own yet.
    /// - Returns: nil if the request came with a credential that its session had left behind.
    package mutating func goOn(
        from old: String, arrivedAt arrival: UInt64, to new: String, as principal: String, orAs made: String, at now: Timestamp
    ) -> Step? {
        var step: Step
        if let former = formers[old] {
            guard former.endedAt.map({ arrival < $0 }) ?? true else { return nil }
            step = Step(principal: former.principal, isNew: false, gone: [])
        } else {
            step = Step(principal: principal == old ? made : principal, isNew: principal == old, gone: [old])
            if formers.count >= Self.limit {
                let oldest = formers.removeFirst().key
                predecessors = predecessors.filter { $0.value != oldest }
            }
            formers[old] = Former(principal: step.principal, until: now + Self.overlap)
        }
        // A value that has come back is the session's again.
        formers[new] = nil
        predecessors[new] = old
        var known = values.removeValue(forKey: step.principal) ?? []
        known.removeAll { $0.name == old || $0.name == new }
        known.append(Value(name: new, givenAt: now))
        if known.count > Self.valueLimit {
            let oldest = known.removeFirst().name
            predecessors[oldest] = nil
            step.gone.append(oldest)
        }
        if values.count >= Self.limit { values.removeFirst() }
        values[step.principal] = known
        return step
    }

    /// Forgets a session that has ended.
    package mutating func forget(_ principal: String) {
        for value in values.removeValue(forKey: principal) ?? [] { predecessors[value.name] = nil }
        formers.removeAll { $0.value.principal == principal }
    }

    /// Drops the unused values of a session that were given more than a moment ago: who had got one as the last would use it now.
    private mutating func dropUnused(of principal: String, besides credential: String, now: () -> Timestamp) -> [String] {
        guard let known = values[principal], known.count > 1, known.contains(where: { $0.name == credential }) else { return [] }
        let time = now()
        let unused = known.filter { $0.name != credential && predecessors[$0.name] != nil && time - $0.givenAt >= Self.overlap }.map(\.name)
        guard !unused.isEmpty else { return [] }
        values[principal]?.removeAll { unused.contains($0.name) }
        for name in unused { predecessors[name] = nil }
        count += 1
        return unused
    }

    private mutating func end(_ credential: String) -> Bool {
        guard let former = formers[credential], former.endedAt == nil else { return false }
        count += 1
        formers[credential]?.endedAt = count
        return true
    }
}

/// The cookies of a browser after an answer that has only renewed some of them.
///
/// Frameworks that keep a session in an encrypted or signed cookie send another value of it with each answer. The session is the same, and so
/// is its user.
package enum RenewedCookies {
    /// The fewest characters of a session's value: a shorter one may be the same in several browsers.
    private static let shortestSession = 16

    /// Returns the value of the `Cookie` field that follows; nil unless the answer is one to a read that was carried out, renews a cookie
    /// which scripts cannot read, and removes and adds none.
    /// - Parameter now: the present, for `Expires`.
    package static func following(_ request: RequestHead, answeredBy answer: ResponseHead, now: Timestamp) -> String? {
        guard request.method == .get || request.method == .head, answer.status == 200 || answer.status == 304,
            request.path.split(separator: "/").allSatisfy({ !endings.contains($0.lowercased()) })
        else { return nil }
        var cookies = request.fields[values: .cookie].flatMap { $0.split(separator: ";") }.map { pair(FieldList.trimmed($0)) }
        var isRenewed = false
        for line in answer.fields[values: .setCookie] {
            let parts = line.split(separator: ";").map { FieldList.trimmed($0) }
            guard let first = parts.first, case let (name, value) = pair(first) else { continue }
            if CookieCrumbs.isOne(name) { continue }
            let attributes = parts.dropFirst().map { pair($0) }
            guard let place = cookies.firstIndex(where: { $0.name == name }), !isRemoved(value, attributes, now: now) else { return nil }
            if cookies[place].value == value { continue }
            let isSession = attributes.contains { $0.name.lowercased() == "httponly" }
            isRenewed = isRenewed || isSession && min(value.count, cookies[place].value.count) >= shortestSession
            cookies[place].value = value
        }
        return isRenewed ? cookies.map { "\($0.name)=\($0.value)" }.joined(separator: "; ") : nil
    }

    /// Segments of paths by which a session ends.
    private static let endings: Set<String> = ["logout", "log-out", "log_out", "signout", "sign-out", "sign_out", "logoff"]

    private static func pair(_ text: some StringProtocol) -> (name: Substring, value: Substring) {
        let text = Substring(text)
        guard let equals = text.firstIndex(of: "=") else { return (text, "") }
        return (Substring(FieldList.trimmed(text[..<equals])), Substring(FieldList.trimmed(text[text.index(after: equals)...])))
    }

    private static func isRemoved(_ value: Substring, _ attributes: [(name: Substring, value: Substring)], now: Timestamp) -> Bool {
        value.isEmpty
            || attributes.contains { name, value in
                switch name.lowercased() {
                case "max-age": Int(value).map { $0 <= 0 } ?? false
                case "expires": HTTPDate.parse(String(value), now: now).map { $0 <= now } ?? false
                default: false
                }
            }
    }
}
