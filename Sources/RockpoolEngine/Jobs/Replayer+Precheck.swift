// A look just before a write that carries nothing its upstream could check (docs/outbox.md#detection *weak detection*).
import HTTPTypes
import RockpoolCore
import RockpoolStore

extension Replayer {
    /// What a look before sending has shown.
    enum Precheck {
        /// Nobody else has changed it, or nobody can tell: it may go, on the condition that this look has given.
        case clear
        /// It has been changed: nothing is sent.
        case moved(Disposition)
        /// The upstream could not be asked.
        case failed(TransferFailure)
    }

    func precheck(_ operation: RockpoolCore.Operation, _ outgoing: inout Outgoing, _ upstream: Upstream) async throws -> Precheck {
        let head = outgoing.head
        guard let resource = outgoing.resource, !head.isConditional, [.put, .patch, .delete].contains(head.method),
            let (base, isAnswer) = try await known(of: operation),
            ConflictPrecheck.isNeeded(head, body: outgoing.body.inMemory ?? [], base: base, resource, isAnswer: isAnswer)
        else { return .clear }
        switch await engine.look(at: head.path, of: operation, like: head, upstream) {
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
        // The write itself will be told the same, or it is one that cannot be read.
        case .refused(let status) where status < 500 && status != 429: return .clear
        case .refused(let status): return .failed(TransferFailure(kind: .unavailable, sent: .no, detail: "a look before it: \(status)"))
        case .failed(let failure): return .failed(TransferFailure(kind: failure.kind, sent: .no, detail: failure.detail))
        }
    }
}

extension Replayer {
    /// What must still be there: what an earlier operation of ours has left, as the upstream answered it, with everything that it added;
    /// else what the client had seen. Nil where nobody knows.
    private func known(of operation: RockpoolCore.Operation) async throws -> (base: Conflict.Side, isAnswer: Bool)? {
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
