// A client that asks for a head or a part leaves the whole behind, where that is cheap (docs/caching.md#ranges *offline-first*).
import HTTPTypes
import RockpoolCore

extension Engine {
    /// Fetches the whole that a HEAD or a range was about, where its answer says that it may be stored, is small, and which version it is:
    /// an origin that names none may have answered as it does to nothing but this request.
    ///
    /// Clients that look before they read, or read in ranges, would have nothing of it while the upstream is away.
    func fetchWhole(after answer: ResponseHead, length: Int64?, _ question: Question, _ job: Job) {
        guard job.plan.policy == .offlineFirst, question.found.isEmpty, !job.isBehind, job.exchange.body == nil,
            job.request.method == .head || job.request.fields.contains(.range), !mayBeAnothers(job), answer.hasValidator,
            let whole = whole(answer, length: length)
        else { return }
        let category = job.plan.category ?? self.category(named: CategoryGuess.name(for: whole.head)) ?? .ephemeral
        let limit = min(category.maxObject?.bytes ?? .max, cheapWhole.bytes)
        let isLargeForTheWay = whole.length >= Bandwidth.leastBytes.bytes && isNarrow(job.plan.upstream)
        guard whole.length <= limit, !isLargeForTheWay,
            case .store = storability(of: whole.head, question, job.behind, now())
        else { return }
        fetchBehind(job)
    }

    /// The head and the length of the whole, as far as the answer tells them; nil where it does not.
    private func whole(_ answer: ResponseHead, length: Int64?) -> (head: ResponseHead, length: Int64)? {
        switch answer.status {
        case 200: return length.map { (answer, $0) }
        case 206:
            guard case .part(_, of: let length?) = PartialResponse.part(of: answer) else { return nil }
            return (PartialResponse.holding(0..<length, of: length, answer.fields), length)
        default: return nil
        }
    }
}
