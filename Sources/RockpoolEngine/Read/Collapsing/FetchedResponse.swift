// A read that must be forwarded (RFC 9111 §4), and the upstream's response to it with the decision about storing it (RFC 9111 §3).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

/// A read that must be forwarded, with the stored variants and the reason why they cannot answer it.
struct Forwarding: Sendable {
    /// All entries under the key that the request may read.
    let found: [CacheEntry]
    let rules: ReuseContext
    /// The reason for forwarding.
    var reason: CacheStatus.Forward
    /// The epoch of the fetch table before lookup; nil if the store must not be read again.
    let epoch: UInt64?
    /// Index in `found` of the entry that is revalidated or completed.
    var selected: Int?
    /// Sent in place of the client's own conditions and range.
    var conditionals: HTTPFields = [:]
    /// True if the missing rest of the selected entry is requested; false for a revalidation.
    var completes = false
    /// The bytes that complete the selected entry, registered as requested.
    var claim: RunningParts.Claim?

    init(found: [CacheEntry], rules: ReuseContext, reason: CacheStatus.Forward, epoch: UInt64?) {
        self.found = found
        self.rules = rules
        self.reason = reason
        self.epoch = epoch
    }

    var entry: CacheEntry? { selected.map { found[$0] } }

    /// The request fields by which the stored responses vary.
    var varyNames: [HTTPField.Name] { found.first?.response.validity.varyNames ?? [] }

    /// The same read for the whole, as if nothing were stored.
    var anew: Forwarding { Forwarding(found: [], rules: rules, reason: reason, epoch: nil) }

    /// Returns the request as sent upstream: the conditions of a revalidation, if there is one, replace the client's.
    func head(of request: RequestHead) -> RequestHead {
        guard selected != nil else { return request }
        var head = request.unconditional
        for field in conditionals { head.fields.append(field) }
        return head
    }
}

/// The outcome of a request to the upstream.
enum FetchOutcome: Sendable {
    case answered(FetchedResponse)
    /// A 304 validated the copy. `by` is the request as it was sent, as in `FetchedResponse.request`.
    case validated(ValidatedCopy, by: OutboundRequest?)
    case failed(TransferFailure)
}

/// A stored response that a 304 has validated: as its own exchange has found it, with the fields of its own 304. Other exchanges validate
/// the same copy at the same time, and what is stored by then may have the fields of their 304s.
struct ValidatedCopy: Sendable {
    let entry: CacheEntry
    /// True if the stored response was selected by the values that the request has. The fields of a 304 that names another one are those of
    /// its own request, which are not for others.
    let isForOthers: Bool
    /// `Set-Cookie` of a 304 goes to the requesting client and is never stored (RFC 9111 §7.3).
    let forRequester: HTTPFields

    /// The same copy with the body of an entry that another exchange has stored in its place; nil if none of `entries` has this body.
    func withBody(ofAny entries: [CacheEntry]) -> ValidatedCopy? {
        guard var same = entries.first(where: { $0.response.isSame(as: entry.response) }) else { return nil }
        same.response = entry.response
        return ValidatedCopy(entry: same, isForOthers: isForOthers, forRequester: forRequester)
    }

    /// Adds the fields that are not stored to a head made from the entry.
    func complete(_ head: inout ResponseHead) { for field in forRequester { head.fields.append(field) } }
}

extension StoredResponse {
    /// True if a validator says that both are the same whole representation of the same variant (RFC 9110 §8.8), and their bodies have the
    /// same form.
    fileprivate func isSame(as other: StoredResponse) -> Bool {
        guard part == nil, !isHeadOnly, head.status == other.head.status, requestFields == other.requestFields,
            bodyLength == other.bodyLength, head.fields[.contentEncoding] == other.head.fields[.contentEncoding]
        else { return false }
        if let tag = head.fields[.eTag] { return tag == other.head.fields[.eTag] }
        return head.fields[.lastModified].map { $0 == other.head.fields[.lastModified] && other.head.fields[.eTag] == nil } ?? false
    }
}

/// A response for the requesting client, possibly shared with others.
struct FetchedResponse: Sendable {
    enum Body: Sendable {
        /// Read by the requesting client only.
        case alone(BodyPipe)
        /// Being stored, and readable by many clients.
        case shared(SharedBody)
    }

    /// The head for the requesting client.
    var head: ResponseHead
    var length: Int64?
    let body: Body
    /// The body for the requesting client.
    var claim: LeaderBody?
    /// The upstream's status if it differs from that of `head`.
    var fetchedStatus: Int?
    /// The response as stored, and its key; nil if it is not stored.
    var copy: (response: StoredResponse, key: CacheKey)?
    /// The request as it was sent, if that is known.
    var request: OutboundRequest?
    /// True if the next response will probably not be stored either.
    var isLastingRefusal = false
    /// The reason why it is not stored, if it is worth reporting in `Cache-Status`.
    var detail: String?
    /// True if the response may come from something else in the upstream's place: a portal or a login page.
    var isSuspect = false

    /// A response that is not stored, for the requesting client only.
    init(alone received: OriginReply, detail: String? = nil) {
        self.init(
            head: received.head, length: received.length, body: .alone(received.body), claim: LeaderBody(received.body), detail: detail)
        request = received.request
    }

    init(
        head: ResponseHead, length: Int64?, body: Body, claim: LeaderBody?, copy: (response: StoredResponse, key: CacheKey)? = nil,
        detail: String? = nil
    ) {
        self.head = head
        self.length = length
        self.body = body
        self.claim = claim
        self.copy = copy
        self.detail = detail
    }

    var stored: StoredResponse? { copy?.response }

    var arrival: RequestCollapsing.Arrival { copy.map { .stored($0.response, $0.key.partition) } ?? .notStored }

    /// Cuts the requested range from a whole that was received instead, because a revalidation requests the whole (RFC 9110 §14.2); nil if
    /// the request is not for one range, or the body is not shared.
    func part(for request: RequestHead) -> (ResponseHead, ReplyBody)? {
        guard request.fields.contains(.range), let length, case .shared(let body) = body else { return nil }
        switch RangeReply.decide(request: request, stored: head, bodyLength: length, boundary: Multipart.boundary()) {
        case .part(let head, let range):
            return body.reader(from: range.lowerBound).map { reader in
                (head, .stream(BodySlice(reader, length: Int64(range.count)), length: Int64(range.count)))
            }
        case .unsatisfiable(let head): return (head, .none(length: nil))
        case .whole, .parts, nil: return nil
        }
    }

    /// What a relay needs to know of the read; nil unless the response is stored, or the next one will not be stored either.
    func passed(in context: RequestContext) -> PassedRead? {
        guard stored != nil || isLastingRefusal else { return nil }
        return PassedRead(request, in: context, to: stored == nil ? .pass : .store)
    }

    func bodyForRequester(in context: RequestContext) -> ReplyBody {
        let source = claim?.take()
        if context.request.method == .head { return .none(length: length) }
        return .stream(source ?? BodyPipe(broken: .copyLost), length: length)
    }
}

extension FetchOutcome {
    /// Takes the claim out of the outcome, which other requests will read.
    mutating func takeClaim() -> LeaderBody? {
        guard case .answered(var fetched) = self else { return nil }
        let claim = fetched.claim
        fetched.claim = nil
        self = .answered(fetched)
        return claim
    }

    mutating func give(_ claim: LeaderBody?) {
        guard case .answered(var fetched) = self else { return }
        fetched.claim = claim
        self = .answered(fetched)
    }
}

/// A body for one reader, taken at most once. If it is dropped untaken, it is abandoned, so that no fetch stalls after its client has left.
final class LeaderBody: Sendable {
    private let source: Mutex<(any BodySource)?>

    init(_ source: any BodySource) { self.source = Mutex(source) }

    func take() -> (any BodySource)? {
        source.withLock { source in
            defer { source = nil }
            return source
        }
    }

    deinit { take()?.abandon() }
}
