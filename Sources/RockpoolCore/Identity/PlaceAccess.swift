// What the answers of an upstream have shown of who may read where (docs/security-model.md#proof).
import HTTPTypes

/// The places that refuse some clients, and those that answer clients without a credential: the latest of each, by digests. A place that was
/// forgotten proves less than before, never more.
package struct PlaceAccess: Sendable {
    /// Digests in each of two generations.
    private static let limit = 4096

    private struct Generation {
        /// Places that answer requests without a credential.
        var open: Set<Int> = []
        /// Requests that were refused, without their credential, and the digest of that.
        var refused: [Int: Int] = [:]
    }

    private var (now, before) = (Generation(), Generation())

    package init() {}

    /// True for a method whose answer is a representation that may be one user's.
    static func isRead(_ request: RequestHead) -> Bool {
        request.method == .get || request.method.rawValue == "PROPFIND" || request.method.rawValue == "REPORT"
    }

    /// Notes what an answer shows: a refusal of a credential or of its absence, or an answer to a request without one.
    package mutating func note(_ answer: ResponseHead, to request: RequestHead, asking: AskingFields) {
        guard Self.isRead(request) else { return }
        if asking.credential.isEmpty, (200...299).contains(answer.status) { return open(Self.place(of: request)) }
        // A limit on the rate of requests says nothing of who asks.
        guard answer.status == 401 || answer.status == 403, !answer.fields.contains(.retryAfter) else { return }
        if asking.credential.isEmpty {
            now.open.remove(Self.place(of: request))
            before.open.remove(Self.place(of: request))
        }
        if now.refused.count >= Self.limit { turn() }
        let refused = Self.digest(of: asking.credential)
        now.refused[Self.digest(of: request, beside: asking.besides)] = refused
        // A request without `Authorization` is the same one without it, and without its other credentials.
        if !asking.credential.contains(.authorization), !asking.others.isEmpty {
            now.refused[Self.digest(of: request, beside: asking.others)] = Self.digest(of: [:])
        }
    }

    /// Notes that everybody is answered there.
    package mutating func noteOpen(_ request: RequestHead) { open(Self.place(of: request)) }

    /// True if a request without a credential was answered there, and none was refused since.
    func isOpen(_ request: RequestHead) -> Bool {
        let place = Self.place(of: request)
        return now.open.contains(place) || before.open.contains(place)
    }

    /// True if the same request was refused with another credential in the place of this one, or with none.
    func refusesOthers(than asking: AskingFields, _ request: RequestHead) -> Bool {
        let key = Self.digest(of: request, beside: asking.besides)
        guard let refused = now.refused[key] ?? before.refused[key] else { return false }
        return refused != Self.digest(of: asking.credential)
    }

    private mutating func open(_ place: Int) {
        if now.open.count >= Self.limit { turn() }
        now.open.insert(place)
    }

    private mutating func turn() { (before, now) = (now, Generation()) }

    // MARK: digests

    /// Fields of a signature, which have another value in each request.
    private static let signing: Set<String> = ["date", "x-amz-date", "x-amz-content-sha256", "signature", "signature-input"]

    private static func place(of request: RequestHead) -> Int {
        var hasher = Hasher()
        hasher.combine(request.method)
        hasher.combine(request.origin)
        hasher.combine(request.target)
        return hasher.finalize()
    }

    /// Of a request but for its credential: a refusal for any other reason, such as a field that a firewall dislikes, is another request's.
    private static func digest(of request: RequestHead, beside others: HTTPFields) -> Int {
        var hasher = Hasher()
        hasher.combine(place(of: request))
        for field in request.fields
        where !SecretFields.contains(field.name) && !signing.contains(field.name.canonicalName) && UnkeyedField(field.name) != .correlates {
            hasher.combine(field)
        }
        hasher.combine(others)
        return hasher.finalize()
    }

    private static func digest(of fields: HTTPFields) -> Int {
        var hasher = Hasher()
        hasher.combine(fields)
        return hasher.finalize()
    }
}

extension AskingFields {
    /// What the request has besides its credential.
    fileprivate var besides: HTTPFields { credential.contains(.authorization) ? others : [:] }
}
