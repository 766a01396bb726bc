// Simulates exactly-once delivery: the outbox's state machine against the notes API as a value, under random faults
// (docs/outbox.md#properties, P2, P3, P12).
import HTTPTypes
import RockpoolCore
import RockpoolTesting
import Testing

@testable import NotesAPI

/// A seeded random generator; the seed determines a whole run.
struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        // SplitMix64.
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
        return z ^ z >> 31
    }
}

/// One operation replayed under faults, without a socket, a clock or a thread.
struct Simulation {
    var random: SeededGenerator
    var store: NotesStore
    var operation: QueuedWrite
    let context: ReplayContext
    var now = Timestamp(seconds: 1_800_000_000)

    init(seed: UInt64, method: HTTPRequest.Method, honoured: Bool, policy: QueueSettings.Uncertain) {
        random = SeededGenerator(state: seed)
        store = NotesStore(seed: [["title": "first"]], settings: NotesSettings(honoursKeys: honoured), now: now)
        context = ReplayContext(
            idempotency: IdempotencySettings(honoured: honoured ? .yes : .unknown, ttl: .forever), uncertainPolicy: policy,
            answeredLimit: 1000)
        operation = QueuedWrite(
            sequence: 1, id: "op",
            request: RequestHead(
                method: method, origin: OriginAddress(scheme: .http, host: "notes"), target: method == .post ? "/v1/notes" : "/v1/notes/1",
                fields: [.contentType: "application/json"]),
            body: .inline(Array("{}".utf8)), upstream: "notes", lane: "notes /v1/notes/1", idempotencyKey: "key", principal: "anna",
            acceptedAt: now, nextAttemptAt: now)
    }

    /// Runs until the operation has ended or needs a user's decision; no fault is injected after 40 attempts.
    mutating func run() {
        for round in 0..<2000 where !operation.state.hasEnded {
            store.faults = round < 40 ? weather() : Faults()
            switch operation.state {
            case .pending: attempt(isReachable: round >= 40 || Int.random(in: 0..<4, using: &random) > 0)
            case .uncertain:
                now = max(now, operation.nextAttemptAt)
                if let settled = OperationMachine.settle(OperationSummary(operation), context: context, now: now) {
                    apply(settled)
                } else if operation.probes < ReplayContext.probes {
                    apply(OperationMachine.disposition(of: operation, seen: .unknown, context: context, now: now))
                    operation.probes += 1
                } else {
                    return
                }
            default: return
            }
        }
    }

    private mutating func weather() -> Faults {
        var faults = Faults()
        switch Int.random(in: 0..<9, using: &random) {
        case 0: faults.commitThenDrop = 1
        case 1: faults.failAfterCommit = 1
        case 2: faults.dropBeforeCommit = 1
        case 3: faults.claimRunning = 1
        case 4: faults.maintenance = .init(retryAfter: "3")
        case 5: faults.portal = .page
        case 6: faults.portal = .redirect("http://portal/")
        case 7: faults.canned = .init(status: 401, times: 1)
        default: faults.canned = .init(status: 502, times: 1)
        }
        return faults
    }

    private mutating func attempt(isReachable: Bool) {
        now = max(now, operation.nextAttemptAt)
        move(to: .inflight)
        let chance = Double.random(in: 0..<1, using: &random)
        guard isReachable else {
            return apply(judge(.failed(TransferFailure(kind: .refused, sent: .no)), chance: chance))
        }
        operation.firstSentAt = operation.firstSentAt ?? now
        var request = NotesRequest(method: operation.request.method, target: operation.request.target, body: Array("{}".utf8))
        request.fields.set("\"key\"", for: "Idempotency-Key")
        guard case .deliver(let delivery) = store.arrive(request, now: now) else { return }
        switch delivery {
        case .drop: apply(judge(.failed(TransferFailure(kind: .reset, sent: .yes)), chance: chance))
        case .answer(let reply, _):
            let head = ResponseHead(status: reply.status, fields: reply.fields)
            apply(judge(.answered(head), body: reply.body, chance: chance))
            // The user signs in again.
            if operation.state == .parked { move(to: .pending) }
        }
    }

    private func judge(_ outcome: AttemptOutcome, body: [UInt8] = [], chance: Double) -> Disposition {
        OperationMachine.disposition(of: operation, after: outcome, body: body, context: context, now: now, random: chance)
    }

    private mutating func apply(_ disposition: Disposition) {
        move(to: disposition.state)
        operation.nextAttemptAt = disposition.nextAttemptAt ?? operation.nextAttemptAt
        if disposition.countsAsAnswered { operation.answeredAttempts += 1 } else { operation.networkAttempts += 1 }
    }

    private mutating func move(to state: OperationState) {
        if state == operation.state { return }
        #expect(OperationMachine.permits(from: operation.state, to: state), "illegal transition: \(operation.state) → \(state)")
        operation.state = state
    }
}

@Suite struct ReplaySimulationTests {
    /// A second request with the same key during a slow commit is answered as a conflict with a running request.
    @Test func aKeyIsHeldWhileItsRequestRuns() throws {
        let now = Timestamp(seconds: 1_800_000_000)
        var store = NotesStore(now: now)
        store.faults.commitDelay = .seconds(9)
        var request = NotesRequest(method: .post, target: "/v1/notes", body: Array("{}".utf8))
        request.fields.set("k", for: "Idempotency-Key")
        guard case .later(let ticket, let delay) = store.arrive(request, now: now) else {
            Issue.record("the first request is not delayed")
            return
        }
        #expect(delay == .seconds(9))
        guard case .deliver(.answer(let refusal, _)) = store.arrive(request, now: now) else {
            Issue.record("the second request is not answered")
            return
        }
        #expect(refusal == .keyInProgress && store.journal.effects == 0)
        guard case .answer(let reply, _) = store.carryOut(ticket, now: now + .seconds(9)) else {
            Issue.record("the delayed request is dropped")
            return
        }
        #expect(reply.status == 201 && store.journal.effectsByKey == ["k": 1])
        #expect(store.journal.lines.map(\.outcome) == [.answered(201), .answered(409)])
    }

    static let seeds: Range<UInt64> = 0..<100

    @Test func aHonouredKeyMakesItExactlyOnce() {
        for seed in Self.seeds {
            for method in [HTTPRequest.Method.post, .patch, .put, .delete] {
                var run = Simulation(seed: seed, method: method, honoured: true, policy: .ask)
                run.run()
                #expect(run.operation.state == .delivered, "seed \(seed) \(method)")
                #expect(run.store.journal.effects == 1, "seed \(seed) \(method)")
            }
        }
    }

    @Test func withoutKeysAskingNeverDoesItTwice() {
        var asked = 0
        for seed in Self.seeds {
            var run = Simulation(seed: seed, method: .post, honoured: false, policy: .ask)
            run.run()
            let effects = run.store.journal.effects
            #expect(run.operation.state == .uncertain ? effects <= 1 : run.operation.state == .delivered && effects == 1, "seed \(seed)")
            if run.operation.state == .uncertain { asked += 1 }
        }
        #expect(asked > 0)
    }

    @Test func withoutKeysRetryingDoesItAtLeastOnce() {
        var twice = 0
        for seed in Self.seeds {
            var run = Simulation(seed: seed, method: .post, honoured: false, policy: .retry)
            run.run()
            #expect(run.operation.state == .delivered && run.store.journal.effects >= 1, "seed \(seed)")
            if run.store.journal.effects > 1 { twice += 1 }
        }
        #expect(twice > 0)
    }

    @Test func withoutKeysAnIdempotentMethodIsDelivered() {
        for seed in Self.seeds {
            var run = Simulation(seed: seed, method: .put, honoured: false, policy: .ask)
            run.run()
            #expect(run.operation.state == .delivered && run.store.journal.effects >= 1, "seed \(seed)")
        }
    }
}
