// A part that has come, joined to the part that is stored (RFC 9111 §3.4).
import NIOCore
import RockpoolCore
import RockpoolStore

extension Engine {
    /// A 206 whose bytes follow those of a stored part, on its way into the store behind them; nil when nothing stored fits. Whoever
    /// asked reads the bytes that come, or the whole where it must be.
    func join(
        _ answer: OriginReply, _ sentAt: Timestamp, _ question: Question, _ job: Job, mustBeWhole: Bool = false,
        end: @escaping @Sendable () -> Void
    ) async -> Answer? {
        guard answer.head.status == 206 else { return nil }
        for entry in question.found where entry.response.part != nil {
            guard let category = category(named: entry.response.category),
                let (response, held) = extended(entry.response, by: answer.head, sentAt),
                held <= max(Self.joinedForFree, 4 * (response.bodyLength - held)), !mustBeWhole || response.part == nil,
                Revalidation.mayStay(response, in: entry.key.partition, rule: job.plan.store),
                let writer = await cache.beginWrite(continuing: entry, expectedLength: response.bodyLength, category: category)
            else { continue }
            let body = SharedBody(
                answer.body, length: response.bodyLength, prefix: held, writer: writer,
                keeping: keeping(response, length: response.bodyLength, to: job.request, under: entry.key, end: end), logger: logger)
            return Answer(
                head: answer.head, length: answer.length, body: .shared(body),
                claim: body.reader(from: mustBeWhole ? 0 : held).map { Claim($0) }, kept: (response, entry.key))
        }
        return nil
    }

    /// Bytes: what is stored is copied for joining, which must not cost more than fetching did.
    private static let joinedForFree: Int64 = 8 << 20

    /// The two as one, and the length of the first; nil when they are not of the same, or one does not simply follow the other.
    private func extended(_ stored: StoredResponse, by head: ResponseHead, _ sentAt: Timestamp) -> (StoredResponse, Int64)? {
        guard let combined = PartialResponse.combined(stored, with: head, requestTime: sentAt, responseTime: now()),
            combined.pieces.count == 2, case .stored(let held) = combined.pieces[0], case .received(let rest) = combined.pieces[1],
            rest.lowerBound == 0
        else { return nil }
        return (combined.response, Int64(held.count))
    }
}
