// Reads the entity just before a write in which the upstream can check nothing (docs/outbox.md#detection *weak detection*).
import HTTPTypes
import RockpoolCore
import RockpoolStore

extension Replayer {
    /// The result of a read before sending.
    enum Precheck {
        /// No other change was found, or none can be determined: the write may be sent, with the condition that the read supplied.
        case clear
        /// The entity has changed: nothing is sent.
        case moved(Disposition)
        /// The upstream could not be read.
        case failed(TransferFailure)
    }

    func precheck(_ operation: QueuedWrite, _ outgoing: inout OutboundWrite, _ upstream: Upstream) async throws -> Precheck {
        let head = outgoing.head
        guard let resource = outgoing.resource, !head.isConditional, [.put, .patch, .delete].contains(head.method),
            let (base, isAnswer) = try await known(of: operation),
            ConflictPrecheck.isNeeded(head, body: outgoing.body.inMemory ?? [], base: base, resource, isAnswer: isAnswer)
        else { return .clear }
        switch await engine.outbound.look(at: head.path, of: operation, like: head, upstream) {
        case .shown(.gone, _):
            if head.method == .delete { return .clear }
            return .moved(.seenAhead(.editDelete, "the upstream has none of it any more"))
        case .shown(.present(let theirs, let answer), _):
            if ConflictPrecheck.hasMoved(from: base, to: theirs, resource, isAnswer: isAnswer) {
                let kind = head.method == .delete ? OperationReason.deleteEdit : .editEdit
                return .moved(.seenAhead(kind, "the upstream's copy has changed since its client saw it"))
            }
            if resource.version == "etag", let tag = EntityTag.condition(answer.fields[.eTag]) { outgoing.head.fields[.ifMatch] = tag }
            return .clear
        // The write will be refused with the same status, or the entity cannot be read: send the write.
        case .refused(let status) where status < 500 && status != 429: return .clear
        case .refused(let status): return .failed(TransferFailure(kind: .unavailable, sent: .no, detail: "a look before it: \(status)"))
        case .failed(let failure): return .failed(TransferFailure(kind: failure.kind, sent: .no, detail: failure.detail))
        }
    }
}

extension Replayer {
    /// Returns the state that must still be current: the upstream's answer to the earlier operation that this one builds on, with all
    /// members that the upstream added; without such an operation, the base that the client has seen. Nil where it is unknown.
    private func known(of operation: QueuedWrite) async throws -> (base: Conflict.Side, isAnswer: Bool)? {
        guard let sequence = operation.baseSequence,
            let earlier = try await engine.data.operations(sequences: [sequence]).first, earlier.state == .delivered
        else { return try await engine.data.base(of: operation.sequence).map { ($0, false) } }
        guard let result = earlier.result, [200, 201].contains(result.head.status), MediaType.isJSON(result.head.fields) else { return nil }
        let side = Conflict.Side(body: result.body, contentType: result.head.fields[.contentType], etag: result.head.fields[.eTag])
        return (side, true)
    }
}

extension Disposition {
    fileprivate static func seenAhead(_ kind: OperationReason, _ detail: String) -> Disposition {
        Disposition(state: .conflicted, reason: kind, countsAsAnswered: false, detail: detail)
    }
}
