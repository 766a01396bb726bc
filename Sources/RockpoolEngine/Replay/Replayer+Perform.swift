// Executes the machine's actions: lease, send, receive, record, always in this order (docs/outbox.md#wire-rule *wire rule*).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

extension Replayer {
    /// Executes one action and returns its result.
    func perform(_ action: ReplayMachine.Action) async -> ReplayMachine.Event {
        switch action {
        case .send(let id, _): await doing("sending", id: id) { try await self.send(id) }
        case .look(let id, _) where !duty.permits(summary(of: id)): .failed(id: id)
        case .look(let id, _): await doing("looking for the effect of", id: id) { try await self.look(id) }
        case .record(let id, _, let disposition): await record(id: id, disposition: disposition)
        case .move(let id, _, let disposition) where disposition.reason == .expired && summary(of: id)?.isTelemetry == true:
            await doing("dropping", id: id) { .settled(self.told(try await self.data.dropOutlived(id: id))) }
        case .move(let id, _, let disposition):
            await doing("moving", id: id) {
                // Move it only from the state that the machine knows: a person's command in the meantime has priority.
                let from = Set([self.summary(of: id)?.state].compactMap { $0 })
                return .settled(self.told(try await self.move(id, by: disposition, from: from)))
            }
        }
    }

    private func doing(
        _ what: String, id: String, _ work: () async throws -> ReplayMachine.Event
    ) async -> ReplayMachine.Event {
        do {
            return try await work()
        } catch DataStoreError.illegal {
            // A person's command changed it meanwhile.
            if let now = try? await known(id) { return .settled(active.summary(of: now)) }
            return .failed(id: id)
        } catch DataStoreError.notFound {
            guard let gone = gone(id) else { return .failed(id: id) }
            return .settled(gone)
        } catch {
            logger.failed("replay: \(what) \(id)", error: error)
            return Self.event(of: error, id: id)
        }
    }

    /// The last state of an operation with an action under way whose row was removed: telemetry that made room for later one.
    func gone(_ id: String) -> OperationSummary? {
        var gone = summary(of: id)
        gone?.state = .cancelled
        return gone
    }

    /// What the error of the store means for an operation.
    private static func event(of error: any Error, id: String) -> ReplayMachine.Event {
        if case DataStoreError.refused = error { return .refused(id: id) }
        return .failed(id: id)
    }

    func known(_ id: String) async throws -> QueuedWrite {
        guard let operation = try await data.operation(id: id) else { throw DataStoreError.notFound(id: id) }
        return operation
    }

    /// Publishes the operation's new state to all listeners except the replayer.
    private func told(_ operation: QueuedWrite) -> OperationSummary {
        notifier.tell(operation, toReplayer: false)
        return active.summary(of: operation)
    }

    /// Moves an operation; the effect of a write that the upstream shows to be delivered is noted before that is published.
    private func move(_ id: String, by disposition: Disposition, from: Set<OperationState>) async throws -> QueuedWrite {
        guard disposition.state == .delivered, let operation = try await data.operation(id: id) else {
            return try await data.move(id: id, by: disposition, from: from, now: now())
        }
        return try await notifier.effectsUnderWay.during(operation) {
            let moved = try await data.move(id: id, by: disposition, from: from, now: now())
            let found = attempts.withLock { $0.removeValue(forKey: id)?.found }
            await lostAnswers.note(moved, mapping: disposition.mapping, shown: found)
            return moved
        }
    }

    // MARK: recording

    private func record(id: String, disposition: Disposition) async -> ReplayMachine.Event {
        let sending = attempts.withLock { $0[id] } ?? SentAttempt()
        var disposition = disposition
        await heed(&disposition, sending: sending)
        if let moment = disposition.holdsLaneUntil, let operation = sending.operation {
            notifier.hold(operation, until: moment)
        }
        do {
            let finished = try await notifier.effectsUnderWay.during(sending.operation) {
                let finished = try await duty.keeping {
                    try await self.data.finish(
                        id: id, disposition: disposition, result: sending.result, attempt: sending.record, leased: sending.operation,
                        now: self.now())
                }
                FailPoint.afterOutcomeCommit.reached()
                attempts.withLock { $0[id] = nil }
                if disposition.isCaptive {
                    reachability.record(.portalSeen(detail: disposition.detail ?? "portal"), for: finished.upstream, now: now())
                }
                // Use the head as it was sent, because the stale entries are stored under the server's ids.
                if let answer = sending.result?.head {
                    await updates.invalidate(after: answer, to: sending.head ?? finished.request)
                    if finished.state == .delivered { await rebase(after: finished, sending: sending) }
                    // A part of a refused 207 may have been applied.
                    if finished.reason == .probed {
                        await lostAnswers.note(finished, mapping: disposition.mapping, shown: sending.found)
                    } else if finished.state == .delivered || answer.status == 207 {
                        await noteEffect(of: finished, sending: sending, mapping: disposition.mapping)
                    }
                } else if finished.state == .uncertain, let head = sending.head {
                    await itemsBefore.note(finished, as: head, sentAt: finished.firstSentAt ?? now())
                } else if finished.reason == .probed {
                    await lostAnswers.note(finished, mapping: disposition.mapping, shown: sending.found)
                }
                FailPoint.projected.reached()
                return finished
            }
            return .settled(told(finished))
        } catch {
            // The outcome could not be stored. The write may have been applied, so the row becomes uncertain.
            logger.failed("replay of \(id): its outcome could not be recorded", error: error)
            let lost = Disposition(state: .uncertain, reason: .lostAnswer, nextAttemptAt: now())
            guard let moved = try? await data.move(id: id, by: lost, from: [.inflight], now: now()) else {
                return Self.event(of: error, id: id)
            }
            return .settled(told(moved))
        }
    }

    /// Works a delivered write into the copies of its principal, as a live one.
    private func noteEffect(of operation: QueuedWrite, sending: SentAttempt, mapping: ServerMapping?) async {
        guard let head = sending.head, let result = sending.result, let upstream = active.routes.upstream(named: operation.upstream)
        else { return }
        var write = AnsweredWrite(
            request: head, body: sending.body, answer: result.head, answerBody: result.body)
        await lostAnswers.complete(&write, of: operation, sending: sending, mapping: mapping)
        let identity = credentials.identity(of: head, rule: upstream.identity)
        await effects.note(
            write, by: Viewer(partition: identity.partition, program: operation.viewer), sentAt: sending.sentAt ?? data.moment())
        if operation.state == .delivered { await notifier.learnReply(write, to: operation) }
        if operation.state == .delivered, active.routes.plan(for: head).route?.logout == true {
            await identities.end(identity, at: upstream)
        }
    }

    /// True if another credential may be answered otherwise.
    private static func refusesCredential(_ answer: ResponseHead) -> Bool { [401, 402, 403, 407, 419].contains(answer.status) }

    /// Applies the outcome to the principal's credential: proves it, renews it for one retry, or discards it (docs/outbox.md#credentials).
    private func heed(_ change: inout Disposition, sending: SentAttempt) async {
        guard let operation = sending.operation, let principal = operation.principal, let head = sending.head,
            let answer = sending.result?.head, let upstream = active.routes.upstream(named: operation.upstream)
        else { return }
        let own = operation.ownCookies(at: upstream)
        // Its own cookies replace no newer ones.
        if change.state == .delivered, own == nil || !credentials.isProved(principal) {
            let identity = credentials.identity(of: head, rule: upstream.identity)
            await renewal.heed(answer, to: head, hasBody: true, by: identity, at: upstream)
        }
        // The next attempt has the newest cookies of its identity.
        if let own, Self.refusesCredential(answer) || change.reason == .auth { credentials.forgetBeside(own) }
        guard change.state == .parked, change.reason == .auth else { return }
        // The previous attempt was refused with the same status, so a newer credential does not help either.
        let isRepeated = operation.result?.head.status == answer.status
        if !isRepeated, await renewal.renew(principal: principal, upstream: upstream, refused: head.fields) != nil {
            change = Disposition(state: .pending, nextAttemptAt: now(), countsAsAnswered: false, detail: change.detail)
        } else {
            await credentials.forget(principal, refused: head.fields)
        }
    }
}

// MARK: - Budgets

/// Counts queued writes before they are leased (docs/caching.md#budgets).
struct ReplayBudget {
    private let data: DataStore
    private let routes: RouteTable
    private let budgets: RequestBudgets
    private let credentials: Credentials
    private let notifier: OutboxNotifier
    private let now: @Sendable () -> Timestamp

    init(of replayer: Replayer) {
        (data, routes, budgets) = (replayer.data, replayer.active.routes, replayer.upstreams.budgets)
        (credentials, notifier, now) = (replayer.credentials, replayer.notifier, replayer.now)
    }

    /// Counts a write; nil if it may be sent. Else pauses the upstream, or the write's client, and returns the event.
    /// - Throws: `DataStoreError`.
    func hold(_ id: String) async throws -> ReplayMachine.Event? {
        guard routes.upstreams.contains(where: { $0.rateLimit != nil }), let operation = try await data.operation(id: id),
            operation.state == .pending, let upstream = routes.upstream(named: operation.upstream),
            let hold = budgets.take(
                with: operation.principal.flatMap { credentials.live(of: $0) } ?? [:], at: upstream, now: now())
        else { return nil }
        notifier.inbox.put(
            hold.holdsAll
                ? .paused(upstream: upstream.name, until: hold.until) : .throttled(id: id, until: hold.until))
        return .failed(id: id)
    }
}
