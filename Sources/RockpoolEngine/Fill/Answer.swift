// An upstream's answer to a read, and what was decided about keeping it (RFC 9111 §3).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

/// What came of asking the upstream.
enum FetchOutcome: Sendable {
    case answered(Answer)
    /// 304: the entry holds, and its head is up to date again. What the 304 said to whoever asked alone is not in it.
    case validated(CacheEntry, toWhoeverAsked: HTTPFields)
    case failed(TransferFailure)
}

/// An answer on its way to whoever asked, and perhaps to others.
struct Answer: Sendable {
    enum Body: Sendable {
        /// For whoever asked, and for nobody else.
        case alone(BodyPipe)
        /// On its way into the cache, readable by many.
        case shared(SharedBody)
    }

    /// For whoever asked.
    var head: ResponseHead
    var length: Int64?
    let body: Body
    /// The body for whoever asked.
    var claim: Claim?
    /// The upstream's status, where it is not that of `head`.
    var fetchedStatus: Int?
    /// As it is being stored, and under what; nil when it is not.
    var kept: (response: StoredResponse, key: CacheKey)?
    /// Whether the next answer will hardly be stored either.
    var isLastingRefusal = false
    /// Why it is not stored, where that is worth saying.
    var detail: String?
    /// Somebody else's answer in the upstream's place: a portal, a login page.
    var isSuspect = false

    /// For whoever asked, and for nobody else.
    init(alone answer: OriginReply, detail: String? = nil) {
        self.init(head: answer.head, length: answer.length, body: .alone(answer.body), claim: Claim(answer.body), detail: detail)
    }

    init(
        head: ResponseHead, length: Int64?, body: Body, claim: Claim?, kept: (response: StoredResponse, key: CacheKey)? = nil,
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

    var arrival: Collapsing.Arrival { kept.map { .stored($0.response, $0.key.partition) } ?? .notStored }

    func bodyForTheFirst(_ job: Job) -> ReplyBody {
        let source = claim?.take()
        if job.request.method == .head { return .none(length: length) }
        return .stream(source ?? BodyPipe(broken: .copyLost), length: length)
    }
}

extension FetchOutcome {
    /// Takes the claim out of what others will see.
    mutating func takeClaim() -> Claim? {
        guard case .answered(var answer) = self else { return nil }
        let claim = answer.claim
        answer.claim = nil
        self = .answered(answer)
        return claim
    }

    mutating func give(_ claim: Claim?) {
        guard case .answered(var answer) = self else { return }
        answer.claim = claim
        self = .answered(answer)
    }
}
