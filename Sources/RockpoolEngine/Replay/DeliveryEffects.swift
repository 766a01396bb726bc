// The effects of deliveries that come from the outbox, not from an attempt under way (docs/outbox.md#effects).
import HTTPTypes
import RockpoolCore
import RockpoolStore

/// Works deliveries of the last run, or of another node, into the copies of their clients.
struct DeliveryEffects: Sendable {
    let data: DataStore
    let outbound: OutboundWrites
    let effects: OwnWriteEffects

    /// Works a delivery into the copies, if none shows it.
    /// - Parameter before: called with the answer and the request as it was sent.
    func note(_ operation: QueuedWrite, before: (ResponseHead, RequestHead) async -> Void = { _, _ in }) async {
        guard let ended = operation.ended, let endedAt = operation.endedAt, let bare = try? await outbound.bare(operation) else { return }
        var answer = operation.result?.head ?? ResponseHead(status: 204)
        await before(answer, bare.head)
        // A write that was found at the upstream has no answer; that of a create names the created item.
        if operation.request.method == .post, !answer.fields.contains(.location), let local = operation.localID {
            answer.status = 201
            answer.fields[.location] = data.localIDs.mapping(of: local)?.url
        }
        let write = AnsweredWrite(
            request: bare.head, body: Array(bare.body), answer: answer, answerBody: operation.result?.body ?? [])
        guard await effects.lacks(write, partition: operation.principal, endedAt: ended) else {
            return await effects.markLists(of: write, partition: operation.principal, olderThan: ended)
        }
        await effects.note(
            write, by: operation.writer, sentAt: Moment(at: operation.firstSentAt ?? endedAt, tick: operation.begun ?? ended))
    }
}

extension [QueuedWrite] {
    /// The operations in the order in which they ended.
    var byEnd: [QueuedWrite] {
        sorted { ($0.ended ?? .first, $0.sequence) < ($1.ended ?? .first, $1.sequence) }
    }
}
