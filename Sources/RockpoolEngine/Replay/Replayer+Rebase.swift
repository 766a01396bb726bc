// An action changes the version of its entity: later writes of the same client then build on the state after it (docs/outbox.md#base).
import HTTPTypes
import RockpoolCore
import RockpoolStore

extension Replayer {
    /// Reads the entity before an action is sent, if later writes of its client build on a version of the entity.
    /// - Returns: the ETag, if it is still that version: then nobody else has changed the entity. Nil in any other case.
    func versionBefore(_ operation: QueuedWrite, outgoing: OutboundWrite, upstream: Upstream) async -> String? {
        guard operation.request.method == .post, operation.localID == nil, let path = entityPath(of: outgoing),
            let bases = try? await engine.data.laterBases(after: operation), !bases.isEmpty,
            case .shown(.present(_, let answer), _) = await engine.outbound.look(
                at: path, of: operation, like: outgoing.head, upstream: upstream),
            let etag = EntityTag.condition(in: answer.fields[.eTag]), bases.contains(etag)
        else { return nil }
        return etag
    }

    /// Moves the bases of later writes from the version before a delivered action to that after it: the action's answer, if it is the
    /// entity's representation, or else what the upstream shows now.
    func rebase(after operation: QueuedWrite, sending: SentAttempt) async {
        guard let before = sending.versionBefore, let outgoing = sending.outgoing, let path = entityPath(of: outgoing),
            let upstream = engine.routes.upstream(named: operation.upstream)
        else { return }
        var after = sending.result.flatMap { result -> Conflict.Side? in
            let write = AnsweredWrite(
                request: outgoing.head, body: nil, answer: result.head, answerBody: result.body,
                entity: engine.routes.plan(for: outgoing.head).entity)
            guard write.answersWithEntity, EntityTag.condition(in: result.head.fields[.eTag]) != nil else { return nil }
            return Conflict.Side(body: result.body, contentType: result.head.fields[.contentType], etag: result.head.fields[.eTag])
        }
        if after == nil,
            case .shown(.present(let side, _), _) = await engine.outbound.look(
                at: path, of: operation, like: outgoing.head, upstream: upstream)
        {
            after = side
        }
        guard let after, EntityTag.condition(in: after.etag) != nil else { return }
        do { try await engine.data.rebase(after: operation, from: before, to: after) } catch {
            engine.logger.failed("the writes behind \(operation.id) keep their base", error: error)
        }
    }

    private func entityPath(of outgoing: OutboundWrite) -> String? {
        guard let entity = engine.routes.plan(for: outgoing.head).entity, entity.resource?.version == "etag", entity.action != nil else {
            return nil
        }
        return entity.path
    }
}
