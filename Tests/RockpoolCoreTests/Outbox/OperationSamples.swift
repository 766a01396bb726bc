// Helpers of the outbox's tests: an operation, a context, and a fixed time.
import HTTPTypes
import RockpoolCore
import Synchronization

let noon = Timestamp(seconds: 1_800_000_000)

func operation(
    _ method: HTTPRequest.Method = .post, state: OperationState = .inflight, answered: Int = 0, network: Int = 0,
    firstSentAt: Timestamp? = noon, expiresAt: Timestamp? = nil, principal: String? = nil, fields: HTTPFields = [:]
) -> QueuedWrite {
    QueuedWrite(
        sequence: 1, id: "op", state: state,
        request: RequestHead(
            method: method, origin: OriginAddress(scheme: .https, host: "api.example.com"), target: "/v1/notes/17?x=1", fields: fields),
        body: .none, upstream: "notes", lane: "notes /v1/notes/17", idempotencyKey: "key", principal: principal,
        answeredAttempts: answered, networkAttempts: network, acceptedAt: noon, firstSentAt: firstSentAt, nextAttemptAt: noon,
        expiresAt: expiresAt)
}

func context(
    honoured: IdempotencySettings.Honoured = .no, uncertain: QueueSettings.Uncertain = .ask, ttl: TimeSpan = .hours(24)
) -> ReplayContext {
    ReplayContext(idempotency: IdempotencySettings(honoured: honoured, ttl: ttl), uncertainPolicy: uncertain)
}

func judged(
    _ operation: QueuedWrite, _ outcome: AttemptOutcome, body: String = "", context: ReplayContext = context(), now: Timestamp = noon,
    random: Double = 0.5
) -> Disposition {
    OperationMachine.disposition(of: operation, after: outcome, body: Array(body.utf8), context: context, now: now, random: random)
}

func answer(_ status: Int, _ fields: HTTPFields = [:]) -> AttemptOutcome { .answered(ResponseHead(status: status, fields: fields)) }

/// The names of the lanes of all summaries, because a summary has the hash of its lane only.
let laneNames = Mutex<[LaneID: String]>([:])

func summary(
    _ sequence: Int64, _ state: OperationState = .pending, lane: String = "a", upstream: String = "notes", place: Int64? = nil,
    reason: OperationReason? = nil, method: HTTPRequest.Method = .patch, priority: Int = 0, principal: String? = nil,
    accepted: Timestamp = noon, sent: Timestamp? = nil, due: Timestamp = noon, expires: Timestamp? = nil, probes: Int = 0,
    needs: Set<Int64> = [], follows: Set<Int64> = [], address: String? = nil, isCreate: Bool = false, isStrict: Bool = false
) -> OperationSummary {
    laneNames.withLock { $0[LaneID(upstream: upstream, lane: lane)] = lane }
    var summary = OperationSummary(
        sequence: sequence, place: place, id: "\(sequence)", state: state, reason: reason, method: method, lane: lane, upstream: upstream,
        priority: priority, principal: principal, acceptedAt: accepted, firstSentAt: sent, nextAttemptAt: due, expiresAt: expires,
        probes: probes, needs: needs)
    (summary.follows, summary.isStrict) = (follows, isStrict)
    summary.order(in: lane, entity: nil, isCreate: isCreate, address: address)
    return summary
}
