// Fetches the whole after a HEAD or a range request, where that is cheap (docs/caching.md#ranges *offline-first*).
import HTTPTypes
import RockpoolCore

extension Engine {
    /// Fetches the whole in the background after a HEAD or a range request, if nothing is stored and the whole may be stored, is small and
    /// has a validator. An origin without validators may have produced the response for this request alone.
    ///
    /// Otherwise clients that send HEAD first, or read in ranges, would find nothing stored while the upstream is unreachable.
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

    /// Returns head and length of the whole if the response gives them, otherwise nil.
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
