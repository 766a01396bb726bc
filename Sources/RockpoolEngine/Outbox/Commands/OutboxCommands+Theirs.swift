// The copies of a client whose write has ended in a conflict: what the upstream has shown (docs/outbox.md#effects).
import HTTPTypes
import RockpoolCore
import RockpoolStore

extension OutboxCommands {
    /// Moves an operation by `move`. If it has ended by that, what the upstream has shown becomes its client's copy, because the write has no
    /// answer of its own.
    func ended(
        _ operation: QueuedWrite, met: ConflictCase, by move: () async throws -> QueuedWrite
    ) async rethrows -> QueuedWrite {
        try await notifier.effectsUnderWay.during(operation) {
            let moved = try await move()
            if moved.state.hasEnded { await note(met.theirs, for: moved.principal, of: met.request) }
            return moved
        }
    }

    private func note(_ theirs: ConflictCase.Theirs, for principal: String?, of request: RequestHead) async {
        guard let entity = active.routes.plan(for: request).entity, entity.isItem, entity.resource != nil, entity.action == nil else {
            return
        }
        // Whatever the write meant, the item is what the upstream shows.
        var item = request
        item.method = .put
        var write = AnsweredWrite(request: item, body: nil, answer: ResponseHead(status: 404), answerBody: nil)
        write.evidence = .read
        if case .present(let side, let head) = theirs {
            (write.answer, write.answerBody) = (ResponseHead(status: 200, fields: head.fields), side.body)
            if write.answerValue == nil { write.evidence = .nothing }
        }
        await workIn(write, principal)
    }
}
