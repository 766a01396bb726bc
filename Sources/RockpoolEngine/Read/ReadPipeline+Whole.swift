// Fetches the whole after a HEAD or a range request, where that is cheap (docs/caching.md#ranges *offline-first*).
import HTTPTypes
import RockpoolCore

extension ReadPipeline {
    /// Fetches the whole in the background after a HEAD or a range request, if nothing is stored and the whole may be stored, is small and
    /// has a validator. An origin without validators may have produced the response for this request alone.
    ///
    /// Otherwise clients that send HEAD first, or read in ranges, would find nothing stored while the upstream is unreachable.
    func fetchWhole(after answer: ResponseHead, length: Int64?, _ question: Forwarding, _ context: RequestContext) {
        guard context.plan.policy == .offlineFirst, question.found.isEmpty, !context.isBehind, context.exchange.body == nil,
            context.request.method == .head || context.request.fields.contains(.range), !mayBeAnothers(context), answer.hasValidator,
            let whole = whole(answer, length: length)
        else { return }
        let category = context.plan.category ?? active.category(named: CategoryGuess.name(for: whole.head)) ?? .ephemeral
        let limit = min(category.maxObject?.bytes ?? .max, cheapWhole.bytes)
        let isLargeForTheWay = whole.length >= Bandwidth.leastBytes.bytes && upstreams.isNarrow(context.plan.upstream)
        guard whole.length <= limit, !isLargeForTheWay,
            case .store = storability(of: whole.head, question, context.behind(at: now()), now())
        else { return }
        fetchBehind(context)
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
