// The upstream's response to a read, with the decision about storing it (RFC 9111 §3).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

/// The outcome of a request to the upstream.
enum FetchOutcome: Sendable {
    case answered(FetchedResponse)
    /// A 304 validated the entry, and its head is updated. `toWhoeverAsked` holds the 304's fields for the requesting client alone.
    case validated(CacheEntry, toWhoeverAsked: HTTPFields)
    case failed(TransferFailure)
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
    var kept: (response: StoredResponse, key: CacheKey)?
    /// True if the next response will probably not be stored either.
    var isLastingRefusal = false
    /// The reason why it is not stored, if it is worth reporting in `Cache-Status`.
    var detail: String?
    /// True if the response may come from something else in the upstream's place: a portal or a login page.
    var isSuspect = false

    /// A response that is not stored, for the requesting client only.
    init(alone answer: OriginReply, detail: String? = nil) {
        self.init(head: answer.head, length: answer.length, body: .alone(answer.body), claim: LeaderBody(answer.body), detail: detail)
    }

    init(
        head: ResponseHead, length: Int64?, body: Body, claim: LeaderBody?, kept: (response: StoredResponse, key: CacheKey)? = nil,
        detail: String? = nil
    ) {
        self.head = head
        self.length = length
        self.body = body
        self.claim = claim
        self.kept = kept
        self.detail = detail
    }

    var stored: StoredResponse? { kept?.response }

    var arrival: RequestCollapsing.Arrival { kept.map { .stored($0.response, $0.key.partition) } ?? .notStored }

    func bodyForTheFirst(_ context: RequestContext) -> ReplyBody {
        let source = claim?.take()
        if context.request.method == .head { return .none(length: length) }
        return .stream(source ?? BodyPipe(broken: .copyLost), length: length)
    }
}

extension FetchOutcome {
    /// Takes the claim out of the outcome, which other requests will read.
    mutating func takeClaim() -> LeaderBody? {
        guard case .answered(var answer) = self else { return nil }
        let claim = answer.claim
        answer.claim = nil
        self = .answered(answer)
        return claim
    }

    mutating func give(_ claim: LeaderBody?) {
        guard case .answered(var answer) = self else { return }
        answer.claim = claim
        self = .answered(answer)
    }
}
