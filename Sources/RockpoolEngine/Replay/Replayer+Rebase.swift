// An action changes the version of its entity: later writes of the same client then build on the state after it (docs/outbox.md#base).
import HTTPTypes
import RockpoolCore
import RockpoolStore

extension Replayer {
    /// Reads the entity before an action is sent, if later writes of its client build on a state of the entity.
    /// - Returns: those writes whose base is still the upstream's state: then nobody else has changed the entity.
    func undisputed(after operation: QueuedWrite, outgoing: OutboundWrite, upstream: Upstream) async -> [Int64] {
        guard operation.request.method == .post, operation.localID == nil, let path = entityPath(of: outgoing),
            let resource = active.routes.plan(for: outgoing.head).entity?.resource,
            let bases = try? await data.laterBases(after: operation), !bases.isEmpty,
            case .shown(.present(let now, let answer), _) = await outbound.look(
                at: path, of: operation, like: outgoing.head, upstream: upstream)
        else { return [] }
        let etag = EntityTag.condition(in: answer.fields[.eTag])
        var writes: [Int64] = []
        for base in bases {
            if let known = base.etag {
                if known == etag { writes.append(base.sequence) }
            } else if let write = try? await data.operations(sequences: [base.sequence]).first,
                let seen = try? await known(of: write),
                !ConflictPrecheck.hasMoved(from: seen.base, to: now, resource: resource, isAnswer: seen.isAnswer, by: write.request.method)
            {
                writes.append(base.sequence)
            }
        }
        return writes
    }

    /// Moves the bases of undisputed later writes to the state after a delivered action: the action's answer, if it is the
    /// entity's representation, or else what the upstream shows now.
    func rebase(after operation: QueuedWrite, sending: SentAttempt) async {
        guard !sending.undisputed.isEmpty, let outgoing = sending.outgoing, let path = entityPath(of: outgoing),
            let upstream = active.routes.upstream(named: operation.upstream)
        else { return }
        var after = sending.result.flatMap { result -> Conflict.Side? in
            let write = AnsweredWrite(
                request: outgoing.head, body: nil, answer: result.head, answerBody: result.body,
                entity: active.routes.plan(for: outgoing.head).entity)
            guard write.answersWithEntity, EntityTag.condition(in: result.head.fields[.eTag]) != nil else { return nil }
            return Conflict.Side(body: result.body, contentType: result.head.fields[.contentType], etag: result.head.fields[.eTag])
        }
        if after == nil,
            case .shown(.present(let side, _), _) = await outbound.look(
                at: path, of: operation, like: outgoing.head, upstream: upstream)
        {
            after = side
        }
        guard let after else { return }
        do { try await data.rebase(sending.undisputed, to: after) } catch {
            logger.failed("the writes behind \(operation.id) keep their base", error: error)
        }
    }

    private func entityPath(of outgoing: OutboundWrite) -> String? {
        guard let entity = active.routes.plan(for: outgoing.head).entity, entity.resource != nil, entity.action != nil else { return nil }
        return entity.path
    }
}
