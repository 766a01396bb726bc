// The processing of a request around its route: log, interference, keys.
import HTTPTypes
import RockpoolCore

extension NotesStore {
    /// The next step for a request that has just arrived.
    enum Arrival {
        case deliver(Delivery)
        /// Call `carryOut` with this ticket after the delay, even if the client has disconnected.
        case later(Ticket, after: TimeSpan)
    }

    /// The outcome for the client.
    enum Delivery: Hashable {
        /// The response, sent after its delay; `trickle` is the pause between pieces of its body.
        case answer(NotesReply, trickle: TimeSpan?)
        /// The connection is closed without a response.
        case drop
    }

    /// A request in progress.
    struct Ticket: Sendable {
        let request: NotesRequest
        let sequence: Int
        /// The key it holds in the ledger; nil if keys are not honoured.
        let key: String?
    }

    /// Logs a request, then applies the interference that precedes its execution.
    mutating func arrive(_ request: NotesRequest, now: Timestamp) -> Arrival {
        let sequence = journal.arrived(request, now: now)
        var isWrite = false
        if case .found(let route, _) = NotesRoute.find(for: request) { isWrite = route.isWrite }
        if let reply = interference.interception(of: request) { return .deliver(answer(reply, to: sequence)) }
        guard isWrite else {
            return .deliver(carryOut(Ticket(request: request, sequence: sequence, key: nil), now: now))
        }
        if interference.dropsBeforeCommit(of: sequence) { return .deliver(drop(sequence)) }
        if interference.claimsRunning() { return .deliver(answer(.keyInProgress, to: sequence)) }
        let key = settings.honoursKeys && !interference.ignoresKeys ? request.idempotencyKey : nil
        if let key, let reply = remembered(key, for: request, now: now) { return .deliver(answer(reply, to: sequence)) }
        let ticket = Ticket(request: request, sequence: sequence, key: key)
        if let delay = interference.commitDelay { return .later(ticket, after: delay) }
        return .deliver(carryOut(ticket, now: now))
    }

    /// Carries a request out and returns the outcome for its client.
    mutating func carryOut(_ ticket: Ticket, now: Timestamp) -> Delivery {
        let reply = respond(to: ticket.request, now: now)
        if let key = ticket.key { keys.finish(key, with: reply) }
        if reply.hasEffect {
            journal.took(effect: ticket.sequence, key: ticket.request.idempotencyKey)
            if interference.dropsAfterCommit(of: ticket.sequence) { return drop(ticket.sequence) }
            if interference.failsAfterCommit() {
                return answer(.problem(500, about: "internal", detail: "Something broke after it was done."), to: ticket.sequence)
            }
        }
        return answer(reply, to: ticket.sequence)
    }

    /// The response to a known key, for which the request is not carried out; nil if the key is new.
    private mutating func remembered(_ key: String, for request: NotesRequest, now: Timestamp) -> NotesReply? {
        switch keys.begin(key, for: request, now: now, forgetsAfter: interference.forgetsKeysAfter) {
        case .new: return nil
        case .running: return .keyInProgress
        case .reused: return .problem(422, about: "key-reused", detail: "This Idempotency-Key was used with another request.")
        case .answered(let first):
            if interference.deleteAgainIsNotFound, request.method == .delete { return .notFound }
            var again = first
            again.hasEffect = false
            again.fields.set("true", for: "Idempotent-Replayed")
            return again
        }
    }

    private mutating func answer(_ reply: NotesReply, to sequence: Int) -> Delivery {
        let reply = interference.altered(reply)
        journal.ended(sequence, with: .answered(reply.status))
        return .answer(reply, trickle: interference.trickle)
    }

    private mutating func drop(_ sequence: Int) -> Delivery {
        journal.ended(sequence, with: .dropped)
        return .drop
    }
}

extension NotesReply {
    static let keyInProgress = problem(
        409, about: "idempotency-key-in-progress", detail: "A request with this Idempotency-Key is still running.")
}
