// An action changes the version of its entity: later writes of the same client then build on the state after it (docs/outbox.md#base).
import HTTPTypes
import RockpoolCore
import RockpoolStore

/// The upstream's state of an entity just before an action on it.
struct StateBeforeAction: Sendable {
    let side: Conflict.Side
    /// Its strong ETag.
    let etag: String?
}

extension Replayer {
    /// Reads the entity before an action is sent, if a write of its client may build on a state of the entity: one that waits already, or
    /// one that arrives while the action is under way.
    ///
    /// The state is pinned as the action's base: an attempt whose answer was lost may have changed the entity, so that the next attempt
    /// uses the state that the first one saw.
    /// - Returns: nil for any other write, and where the state is not known.
    /// - Throws: the failure of the read, if the upstream did not answer it; then the action is not sent.
    func stateBefore(
        _ operation: QueuedWrite, outgoing: OutboundWrite, upstream: Upstream
    ) async throws(TransferFailure) -> StateBeforeAction? {
        guard operation.request.method == .post, !operation.isCreate, let path = active.entityPath(of: outgoing),
            await isKnown(path, to: operation, head: outgoing.head)
        else { return nil }
        if operation.lostAt != nil {
            let pinned = try? await data.base(of: operation.sequence)
            return pinned.map { StateBeforeAction(side: $0, etag: EntityTag.condition(in: $0.etag)) }
        }
        let (side, answer): (Conflict.Side, ResponseHead)
        switch await outbound.look(at: path, of: operation, like: outgoing.head, upstream: upstream) {
        case .shown(.present(let shown, let head), _): (side, answer) = (shown, head)
        // Sent without that read, the action would change the entity as somebody else does.
        case .failed(let failure): throw TransferFailure(kind: failure.kind, sent: .no, detail: failure.detail)
        case .refused(let status) where EntityRead.mayPass(status):
            throw TransferFailure(kind: .unavailable, sent: .no, detail: "a look before it: \(status)")
        case .shown(.gone, _), .refused: return nil
        }
        do { try await data.rebase([operation.sequence], to: side) } catch {
            logger.failed("the state before \(operation.id) is not kept", error: error)
        }
        return StateBeforeAction(side: side, etag: EntityTag.condition(in: answer.fields[.eTag]))
    }

    /// True if the client of an action may know a state of its entity: from a copy, or from a write of its own.
    private func isKnown(_ path: String, to operation: QueuedWrite, head: RequestHead) async -> Bool {
        let request = RequestHead(method: .get, origin: head.origin, target: path, fields: [:])
        let plan = active.routes.plan(for: request)
        for partition in StoragePartition.readable(by: operation.principal) {
            if let found = try? await cache.lookup(lookup.key(of: request, plan: plan, in: partition)), !found.isEmpty { return true }
        }
        return notifier.overlay.writes(
            upstream: operation.upstream, collection: operation.collection ?? "", entityID: operation.entityID,
            principal: operation.principal, includes: nil
        ).contains { $0.sequence != operation.sequence }
    }

    /// Moves the bases of later writes to the state after a delivered action: the action's answer, if it is the entity's representation, or
    /// else what the upstream shows now. A base that was not the upstream's state before the action stays: somebody else has changed the
    /// entity.
    /// - Returns: the sequences of the moved writes.
    @discardableResult
    func rebase(after operation: QueuedWrite, sending: SentAttempt) async -> [Int64] {
        guard let outgoing = sending.outgoing, let path = active.entityPath(of: outgoing),
            let upstream = active.routes.upstream(named: operation.upstream), let resource = outgoing.resource
        else { return [] }
        let undisputed = await undisputed(after: operation, before: sending.before, resource: resource)
        guard !undisputed.isEmpty else { return [] }
        var after = sending.result.flatMap { result -> Conflict.Side? in
            let write = AnsweredWrite(
                request: outgoing.head, body: nil, answer: result.head, answerBody: result.body,
                entity: active.routes.plan(for: outgoing.head).entity)
            guard write.answersWithEntity, EntityTag.condition(in: result.head.fields[.eTag]) != nil else { return nil }
            return Conflict.Side(body: result.body, contentType: result.head.fields[.contentType], etag: result.head.fields[.eTag])
        }
        if after == nil { after = await stateAfter(operation, at: path, outgoing: outgoing, upstream: upstream) }
        guard let after else { return [] }
        do { try await data.rebase(undisputed, to: after) } catch {
            logger.failed("the writes behind \(operation.id) keep their base", error: error)
            return []
        }
        return undisputed
    }

    /// Returns what the upstream shows after an action; nil if it does not show the entity. An upstream that is back often limits the rate, or
    /// fails, for a moment.
    private func stateAfter(
        _ operation: QueuedWrite, at path: String, outgoing: OutboundWrite, upstream: Upstream
    ) async -> Conflict.Side? {
        for pause in [Duration.milliseconds(300), .seconds(1), .zero] {
            switch await outbound.look(at: path, of: operation, like: outgoing.head, upstream: upstream) {
            case .shown(.present(let side, _), _): return side
            case .refused(let status) where EntityRead.mayPass(status): try? await Task.sleep(for: pause)
            case .shown(.gone, _), .refused, .failed: return nil
            }
        }
        return nil
    }

    /// Moves the base of a write from before the start as `rebase(after:)` would have done: a crash can fall between the record of an
    /// action's delivery and the rebase of the writes behind it.
    func follow(_ operation: inout QueuedWrite, upstream: Upstream) async {
        guard operation.acceptedAt < startedAt, operation.request.method != .post,
            let action = try? await data.lastAction(before: operation), let pinned = try? await data.base(of: action.sequence)
        else { return }
        var sending = SentAttempt()
        sending.before = StateBeforeAction(side: pinned, etag: EntityTag.condition(in: pinned.etag))
        sending.outgoing = try? await outbound.outgoing(action, to: upstream)
        sending.result = action.result
        guard await rebase(after: action, sending: sending).contains(operation.sequence) else { return }
        if let moved = try? await data.operation(id: operation.id) { operation = moved }
    }

    /// Returns the later writes of an action's client whose base is the upstream's state before the action.
    ///
    /// After an action that lost its answer while its client waited, that state is not known (`before` is nil): later deletions then follow
    /// it, because a deletion cannot be merged with its effect.
    private func undisputed(after operation: QueuedWrite, before: StateBeforeAction?, resource: Resource) async -> [Int64] {
        let later = (try? await data.laterBases(after: operation)) ?? []
        guard let before else {
            guard operation.lostAt != nil, !later.isEmpty else { return [] }
            let writes = try? await data.operations(sequences: later.map(\.sequence))
            return (writes ?? []).filter { $0.request.method == .delete }.map(\.sequence)
        }
        var writes: [Int64] = []
        for base in later {
            if let known = base.etag {
                if known == before.etag { writes.append(base.sequence) }
            } else if let write = try? await data.operations(sequences: [base.sequence]).first,
                let seen = try? await known(of: write, resource: resource),
                !ConflictPrecheck.hasMoved(
                    from: seen.base, to: before.side, resource: resource, isAnswer: seen.isAnswer, by: write.request.method)
            {
                writes.append(base.sequence)
            }
        }
        return writes
    }
}

extension ActiveConfiguration {
    /// Returns the path of the declared entity on which a request acts; nil if it is no action.
    fileprivate func entityPath(of outgoing: OutboundWrite) -> String? {
        guard let entity = routes.plan(for: outgoing.head).entity, entity.resource != nil, entity.action != nil else { return nil }
        return entity.target
    }
}
