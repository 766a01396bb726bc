// Decides and undoes conflicts: commits the verdict of `ConflictCase` and publishes the changes (docs/outbox.md#decisions;
// docs/reference/admin-api.md#conflicts).
import HTTPTypes
import NIOCore
package import RockpoolCore
import RockpoolStore

extension OutboxCommands {
    /// Applies a person's decision to the upstream's current state. Where the upstream cannot be read, the decision applies to the recorded
    /// state, and the condition of the resend protects a newer one.
    /// - Returns: nil when no conflict has this id.
    /// - Throws: a `Problem` 409 or 422 with the reason; `DataStoreError`. Nothing has changed then.
    package func resolve(
        conflict id: String, as resolution: Conflict.Resolution, merged: JSONValue?
    ) async throws -> (conflict: Conflict, operation: QueuedWrite)? {
        guard var conflict = try await data.conflict(id: id) else { return nil }
        guard conflict.closedAt == nil else { throw Problem(.conflict, detail: "\(DataStoreError.conflictDecided(id: id))") }
        guard let operation = try await data.operation(id: conflict.operation) else { return nil }
        let upstream = try upstream(of: conflict)
        var met = try await encounter(of: operation, conflict: conflict)
        if case .shown(let theirs, let skew) = await outbound.look(at: conflict.path, of: operation, like: met.request, upstream: upstream)
        {
            (met.theirs, met.clockSkew, met.readAt) = (theirs, skew, now() + skew)
        }
        let verdict: ConflictVerdict
        do { verdict = try met.resolved(by: resolution, merged: merged, seen: conflict.theirs) } catch { throw Problem(error) }
        return try await problems {
            guard let decision = try await decision(of: verdict, at: upstream) else { return nil }
            // Record the current state, because the decision may replace a newer one than the person was shown.
            (conflict.theirs, conflict.result) = (verdict.theirs?.kept, verdict.result?.kept)
            (conflict.fields, conflict.resolution) = (verdict.fields, resolution)
            let moved = try await data.resolve(conflict, decision: decision, now: now())
            await settled(moved, conflict: id, isOpen: false, request: met.request)
            return try await data.conflict(id: id).map { ($0, moved) }
        }
    }

    /// Restores the side that lost, by a new operation that is sent like any other.
    /// - Parameter side: `mine` or `theirs`, after a merge in which both lost; nil for the side that lost.
    /// - Returns: the new operation; nil when no conflict has this id.
    /// - Throws: a `Problem` 409 when the conflict is open or nothing was lost; `DataStoreError`.
    package func undo(conflict id: String, side: Conflict.Resolution? = nil) async throws -> QueuedWrite? {
        guard let conflict = try await data.conflict(id: id), let old = try await data.operation(id: conflict.operation) else { return nil }
        let upstream = try upstream(of: conflict)
        guard let request = try? RequestHead(url: conflict.url) else { throw Problem(.conflict, detail: "its entity is not known") }
        let resource = active.routes.plan(for: request).entity?.resource ?? Resource(collection: request.path)
        var today = ConflictCase.Theirs(conflict.resolution == .theirs ? conflict.theirs : conflict.result)
        if case .shown(let theirs, _) = await outbound.look(at: conflict.path, of: old, like: request, upstream: upstream) {
            today = theirs
        }
        let restored: Resend
        do { restored = try conflict.undone(resource: resource, over: today, side: side) } catch { throw Problem(error) }
        return try await problems {
            let body = try await stored(restored.body, else: .none, for: upstream)
            var new = QueuedWriteDraft(
                id: UUIDv7.make(at: now()), request: restored.request, body: body, upstream: upstream.name, entity: old.entity,
                lane: old.lane,
                idempotencyKey: UUIDv7.make(at: now()), principal: old.principal)
            (new.collection, new.entityID, new.noMerge) = (old.collection, old.entityID, true)
            if case .present(let side, _) = today { new.base = side.kept }
            do {
                let taken = try await data.append(new)
                notifier.tell(taken)
                return taken
            } catch {
                data.discard(body)
                throw error
            }
        }
    }

    // MARK: carrying out a verdict

    /// Stores a conflict and carries out its verdict. If the upstream already shows the intended state, the operation ends as delivered and
    /// no conflict is stored.
    func keep(
        _ verdict: ConflictVerdict, met: ConflictCase, of operation: QueuedWrite, upstream: Upstream, path: String?
    ) async throws {
        if verdict.action == .delivered, verdict.isAsMeant {
            let shown = Disposition(state: .delivered, reason: .probed, detail: "the upstream shows what it meant")
            let moved = try await ended(operation, met: met) {
                try await data.move(id: operation.id, by: shown, from: [.conflicted], now: now())
            }
            return await settled(moved, conflict: nil, isOpen: false, request: met.request)
        }
        let path = path ?? met.request.path
        let conflict = Conflict(
            id: UUIDv7.make(at: now()), operation: operation.id, sequence: operation.sequence, upstream: upstream.name,
            url: met.request.origin.url + path, entity: operation.entity ?? path, kind: verdict.kind, strategy: met.resource.conflict,
            detection: verdict.detection, base: verdict.base?.kept, mine: verdict.mine?.kept, theirs: verdict.theirs?.kept,
            result: verdict.result?.kept, fields: verdict.fields, openedAt: now(), resolution: verdict.resolution,
            decidedBy: verdict.decidedBy)
        let decision = try await decision(of: verdict, at: upstream)
        let moved = try await ended(operation, met: met) {
            try await data.meet(conflict, decision: decision, after: met.rounds, isListed: verdict.isListed, now: now())
        }
        await settled(moved, conflict: verdict.isListed ? conflict.id : nil, isOpen: decision == nil, request: met.request)
    }

    /// Returns nil when a person must decide.
    private func decision(of verdict: ConflictVerdict, at upstream: Upstream) async throws -> ConflictDecision? {
        switch verdict.action {
        case .ask: return nil
        case .delivered: return .delivered(differsFromMine: !verdict.isAsMeant)
        case .yield: return .yield
        case .resend(let resend):
            let theirs = verdict.theirs
            return .resend(
                RequestRevision(
                    request: resend.request, body: try await stored(resend.body, else: .none, for: upstream),
                    idempotencyKey: UUIDv7.make(at: now()),
                    base: theirs?.kept, baseETag: EntityTag.condition(in: theirs?.etag),
                    differsFromMine: !verdict.isAsMeant))
        }
    }

    private func settled(
        _ operation: QueuedWrite, conflict: String?, isOpen: Bool, request: RequestHead
    ) async {
        // The cached representation is out of date now.
        await reads.updates.invalidate(after: ResponseHead(status: 204), to: request)
        notifier.tell(operation)
        if let conflict { events.tell(.conflict(id: conflict, operation: operation.id, isOpen: isOpen)) }
    }

    // MARK: stored conflicts

    /// Restores the case of a stored conflict, with theirs as recorded.
    private func encounter(of operation: QueuedWrite, conflict: Conflict) async throws -> ConflictCase {
        let bare: ReplayRequest
        do { bare = try await outbound.bare(operation) } catch {
            throw Problem(.conflict, detail: error.disposition.detail ?? "it cannot be sent")
        }
        return ConflictCase(
            request: bare.head, body: bare.body, resource: bare.resource, base: conflict.base, theirs: ConflictCase.Theirs(conflict.theirs),
            cause: operation.result.map { .refused(status: $0.head.status) } ?? .seen, mayHaveApplied: operation.lostAt != nil,
            acceptedAt: operation.acceptedAt, detection: conflict.detection)
    }

    private func upstream(of conflict: Conflict) throws -> Upstream {
        guard let upstream = active.routes.upstream(named: conflict.upstream) else {
            throw Problem(.conflict, detail: "its upstream \(conflict.upstream) is not declared any more")
        }
        return upstream
    }

    // The copies of a client whose write has ended in a conflict: what the upstream has shown (docs/outbox.md#effects).

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

extension Conflict {
    /// The path of the entity at its upstream.
    fileprivate var path: String? { (try? RequestHead(url: url))?.path }
}

extension Conflict.Side {
    /// The side, or nil if it is too large to be merged.
    var kept: Conflict.Side? { body.count <= Int(OutboundWrites.baseLimit) ? self : nil }
}

extension ConflictCase.Theirs {
    /// Restores the recorded side; nil means that the entity was gone.
    fileprivate init(_ side: Conflict.Side?) {
        self = side.map { .present($0, ResponseHead(status: 200)) } ?? .gone
    }
}
