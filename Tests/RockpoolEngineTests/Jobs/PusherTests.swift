// Batches: one request with a separate outcome for each operation (docs/guide/sync.md).
import HTTPTypes
import RockpoolCore
import RockpoolStore
import RockpoolTesting
import Testing

@testable import RockpoolEngine

@Suite(.timeLimit(.minutes(1)))
struct PusherTests {
    private func world(
        _ writes: Int, honoured: IdempotencySettings.Honoured = .unknown
    ) async throws -> (ScriptedEngine, [QueuedWrite]) {
        let upstream = Upstream.notes {
            $0.resources = [Resource(collection: "/notes", item: "/notes/{id}", sync: .init(push: "/sync/push"))]
            $0.idempotency.honoured = honoured
        }
        let pool = try ScriptedEngine(upstreams: [upstream])
        pool.goOffline()
        for n in 0..<writes { await pool.ask(.post, "/notes", [.contentType: "application/json"], body: #"{"n":\#(n)}"#) }
        pool.comeOnline()
        return (pool, try await pool.store.data.openOperations())
    }

    /// Answers each operation with the status at its index.
    private static func answering(_ statuses: [Int]) -> ScriptedOrigin.Rule {
        { request in
            let operations = (try? JSONValue.parse(request.body))?["operations"]?.array ?? []
            let results = zip(operations, statuses).map { operation, status -> JSONValue in
                ["id": operation["id"] ?? .null, "status": .number(JSONNumber(Int64(status)))]
            }
            let body = JSONValue.object(JSONObject([("results", .array(results))])).serialized()
            return .ok(String(decoding: body, as: UTF8.self), [.contentType: "application/json"])
        }
    }

    private func delivered(
        _ pool: ScriptedEngine, _ operations: [QueuedWrite]
    ) async throws -> (outcome: Pusher.Outcome, after: [QueuedWrite]) {
        let outcome = await Pusher(engine: pool.engine).deliver(try batch(of: operations, pool))
        var after: [QueuedWrite] = []
        for operation in operations { after.append(try #require(try await pool.store.data.operation(id: operation.id))) }
        return (outcome, after)
    }

    private func batch(of operations: [QueuedWrite], _ pool: ScriptedEngine) throws -> Pusher.Batch {
        let summaries = operations.map { OperationSummary($0) }
        let path = try #require(Pusher(engine: pool.engine).path(of: summaries[0]))
        return Pusher.Batch(upstream: try #require(pool.engine.routes.upstream(named: "notes")), path: path, operations: summaries)
    }

    @Test func eachOperationHasItsOwnOutcome() async throws {
        let (pool, operations) = try await world(4)
        pool.origin.answers(Self.answering([201, 422, 409]))
        let (outcome, after) = try await delivered(pool, operations)
        #expect(pool.origin.lines == ["POST /sync/push"] && pool.origin.sent.first?.isFreshConnection == true)
        #expect(after.map(\.state) == [.delivered, .dead, .conflicted, .uncertain])
        #expect(after.map { outcome.states[$0.id] } == after.map(\.state) && after.first?.result?.head.status == 201)
        let sent = try JSONValue.parse(try #require(pool.origin.sent.first).body)["operations"]?.array ?? []
        #expect(
            sent.map { $0["idempotencyKey"]?.string } == operations.map(\.idempotencyKey)
                && sent.map { $0["body"]?["n"]?.integer } == [0, 1, 2, 3])
        for operation in after { #expect(try await pool.store.data.attempts(of: operation).count == 1) }
    }

    @Test(arguments: [(IdempotencySettings.Honoured.yes, OperationState.pending), (.unknown, .uncertain)])
    func aLostBatchIsALostAnswerOfEach(_ honoured: IdempotencySettings.Honoured, _ state: OperationState) async throws {
        let (pool, operations) = try await world(3, honoured: honoured)
        pool.origin.next(.lost)
        let (_, after) = try await delivered(pool, operations)
        #expect(after.allSatisfy { $0.state == state && $0.reason == .lostAnswer && $0.networkAttempts == 1 })
        for operation in after {
            let attempts = try await pool.store.data.attempts(of: operation)
            #expect(attempts.map(\.sent) == [.maybe] && attempts.first?.error == "connection_terminated")
        }
    }

    @Test func anAnswerCutShortIsLost() async throws {
        let (pool, operations) = try await world(2)
        pool.origin.next(.broken(ResponseHead(status: 200), [#"{"results":["#], TransferFailure(kind: .reset, sent: .yes)))
        #expect(try await delivered(pool, operations).after.allSatisfy { $0.state == .uncertain })
    }

    @Test func aRefusedBatchGoesOneByOne() async throws {
        let (pool, operations) = try await world(2)
        pool.origin.next(.status(404))
        let pusher = Pusher(engine: pool.engine)
        _ = await pusher.deliver(try batch(of: operations, pool))
        let after = try await pool.store.data.openOperations()
        #expect(after.allSatisfy { $0.state == .pending && $0.answeredAttempts == 0 })
        #expect(after.allSatisfy { pusher.path(of: OperationSummary($0)) == nil })
        pool.clock.advance(by: .minutes(11))
        #expect(after.allSatisfy { pusher.path(of: OperationSummary($0)) == "/sync/push" })
    }

    @Test func aThrottledBatchPausesItsClient() async throws {
        let (pool, operations) = try await world(2)
        pool.origin.next(.status(503, [.retryAfter: "9"]))
        let (outcome, after) = try await delivered(pool, operations)
        #expect(after.allSatisfy { $0.state == .pending })
        #expect(outcome.pauses.count == operations.count && outcome.pauses.values.allSatisfy { $0 >= pool.clock.now + .seconds(9) })
    }

    @Test func onlyWhatBelongsTogetherGoesTogether() async throws {
        let (pool, _) = try await world(2)
        pool.goOffline()
        for (number, user) in ["ann", "ann", "bob"].enumerated() {
            let fields: HTTPFields = [.contentType: "application/json", .authorization: "Bearer \(user)"]
            await pool.ask(.post, "/notes", fields, body: "{\"n\": \(number)}")
        }
        for path in ["/other", "/elsewhere"] { await pool.ask(.post, path, body: "{}") }
        pool.origin.answers { $0.head.target == "/sync/push" ? Self.answering([201, 201])($0) : .ok() }
        pool.comeOnline()
        #expect(await Replayer(engine: pool.engine).runOnce().delivered == 7)
        let pushes = pool.origin.sent.filter { $0.head.target == "/sync/push" }
        #expect(Set(pushes.map { $0.head.fields[.authorization] }) == [nil, "Bearer ann"])
        let sizes = try pushes.map { try JSONValue.parse($0.body)["operations"]?.array?.count }
        #expect(sizes == [2, 2])
        let singles = pool.origin.lines.filter { $0.hasPrefix("POST") && $0 != "POST /sync/push" }
        #expect(singles.sorted() == ["POST /elsewhere", "POST /notes", "POST /other"])
    }

    @Test func whatIsNotJSONGoesByItself() async throws {
        let (pool, _) = try await world(1)
        pool.goOffline()
        await pool.ask(.post, "/notes", body: "plain")
        pool.comeOnline()
        let pusher = Pusher(engine: pool.engine)
        pool.origin.answers(Self.answering([201]))
        let batch = try batch(of: try await pool.store.data.openOperations(), pool)
        #expect(await pusher.deliver(batch).states.values.map(\.self) == [.delivered])
        let after = try await pool.store.data.openOperations()
        #expect(after.map(\.state) == [.pending] && pusher.path(of: OperationSummary(after[0])) == nil)
    }

    @Test func anotherSendersLeaseIsRespected() async throws {
        let (pool, operations) = try await world(2)
        _ = try await pool.store.data.lease(id: operations[0].id, now: pool.clock.now)
        pool.origin.answers(Self.answering([201]))
        let (outcome, after) = try await delivered(pool, operations)
        #expect(outcome.states.count == 1 && after.map(\.state) == [.inflight, .delivered])
    }
}
