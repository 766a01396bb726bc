// Bodies in memory: where a client has its share of it, they go to disk or are refused (docs/security-model.md#shares-of-clients).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore
import RockpoolTesting
import Testing

@testable import RockpoolEngine

@Suite(.timeLimit(.minutes(1)))
struct SharedMemoryTests {
    private let memory = SharedBudget(limit: 10_000)
    private let client: ClientAccount

    init() {
        client = ClientShares(exchanges: 10, connections: 10, memory: memory).account(of: .process(1))
    }

    private func ask(
        _ pool: ScriptedEngine, _ method: HTTPRequest.Method, _ target: String, _ fields: HTTPFields = [:], bytes: Int
    ) async -> WholeReply {
        let body = BodyPipe(budget: client.memory)
        body.offer(ByteBuffer(repeating: UInt8(ascii: "a"), count: bytes))
        body.finish()
        let request = RequestHead(method: method, origin: .notes, target: target, fields: fields)
        return await pool.ask(Exchange(request: request, body: body, bodyLength: Int64(bytes), account: client))
    }

    /// At the share of one client, and one byte past it.
    @Test(arguments: [(7500, false), (7501, true)]) func aQueuedBodyPastTheShareIsSpooled(bytes: Int, isFile: Bool) async throws {
        let pool = try ScriptedEngine()
        pool.goOffline()
        #expect(await ask(pool, .put, "/notes/1", bytes: bytes).status == 202)
        let kept = try #require(try await pool.store.data.operations(OperationFilter(states: nil)).items.first)
        let operation = try #require(try await pool.store.data.operation(id: kept.id))
        #expect(operation.body.isBlob == isFile)
        try await eventually("nothing stays in memory") { memory.used == 0 }
        pool.comeOnline()
    }

    /// What others have taken is not free.
    @Test func whatOthersHoldCounts() async throws {
        let pool = try ScriptedEngine()
        pool.goOffline()
        let other = HeldBytes(of: ClientShares(exchanges: 1, connections: 1, memory: memory).account(of: .process(2)).memory)
        #expect(other.take(7500))
        #expect(await ask(pool, .put, "/notes/1", bytes: 1_900).status == 202)
        let kept = try #require(try await pool.store.data.operations(OperationFilter(states: nil)).items.first)
        #expect(try await pool.store.data.operation(id: kept.id)?.body.isBlob == true)
    }

    /// A body that must be in memory, because it is a part of the key, is refused where there is no room.
    @Test(arguments: [(7500, 200), (7501, 503)]) func aBodyOfTheKeyPastTheShareIsRefused(bytes: Int, status: Int) async throws {
        let pool = try ScriptedEngine()
        let reply = await ask(pool, HTTPRequest.Method("QUERY") ?? .get, "/notes", [.contentType: "text/plain"], bytes: bytes)
        #expect(reply.status == status, "\(reply.body)")
        if status == 503 { #expect(reply.body.contains("urn:rockpool:problem:busy") && reply["Retry-After"] == "1") }
        try await eventually("nothing stays in memory") { memory.used == 0 }
    }

    /// While a client has more than its share, a body that several read keeps little for the slow ones.
    @Test func aSlowReaderKeepsLittleUnderPressure() {
        var window = SharedBodyWindow(limit: 1 << 20)
        let readers = (0..<2).compactMap { _ in window.join() }
        func receive() {
            if case .pull = window.next(for: readers[0]) { _ = window.append(ByteBuffer(repeating: 1, count: 16 << 10), isCopied: true) }
            _ = window.next(for: readers[0])
        }
        for _ in 0..<100 { receive() }
        #expect(window.held == 1 << 20)
        window.limit = SharedBudget.Share.least
        receive()
        #expect(window.held == SharedBudget.Share.least)
    }
}

extension OperationBody {
    fileprivate var isBlob: Bool { if case .blob = self { true } else { false } }
}
