// The queues of telemetry routes: the oldest makes room at the limit, what was dropped is counted, and no other write has less room
// (docs/outbox.md#telemetry).
import Foundation
import NIOCore
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct TelemetryQueueTests {
    let scratch: Scratch
    let time = ManualTime()
    let routes: RouteTable

    init() throws {
        scratch = try Scratch()
        var upstream = Upstream(name: "api", origin: origin)
        upstream.routes = [Route(match: "POST /v1/traces", kind: .telemetry)]
        var configuration = Configuration()
        configuration.upstreams = [upstream]
        routes = RouteTable(configuration)
    }

    private func new(_ number: Int, _ length: Int = 1000, limit: ByteCount = .mb(1), principal: String? = "anna") -> QueuedWriteDraft {
        let lane = Lane.telemetry(upstream: "api", route: "POST /v1/traces", number: Int64(number))
        var new = write("\(number)", body: .inline(bytes(length, seed: UInt64(number + 1))), lane: lane, principal: principal)
        new.upstream = "api"
        new.queueLimit = limit
        return new
    }

    private func queue(_ store: DataStore) async throws -> TelemetryQueue {
        let queues = try await store.telemetryQueues(of: routes)
        try #require(queues.count == 1)
        return queues[0]
    }

    @Test func theOldestMakesRoomAtTheLastByteAndNotBefore() async throws {
        let store = try openData(scratch.state, time, storage(data: .mb(50)))
        #expect(try await queue(store) == TelemetryQueue(upstream: "api", route: "POST /v1/traces"))
        _ = try await store.append(new(1))
        let each = try await queue(store).bytes
        for number in 2...4 { #expect(try await store.take(new(number, limit: ByteCount(4 * each))).dropped.isEmpty) }
        let full = try await queue(store)
        #expect(full.bytes == 4 * each && full.waiting == 4)
        let first = try await store.take(new(5, limit: ByteCount(4 * each)))
        #expect(first.dropped.map(\.id) == ["1"])
        let second = try await store.take(new(6, limit: ByteCount(4 * each - 1)))
        #expect(second.dropped.map(\.id) == ["2", "3"])
        #expect(try await store.operation(id: "1") == nil)
        await store.close()
        let again = try openData(scratch.state, time, storage(data: .mb(50)))
        let known = try await queue(again)
        #expect(known.dropped == [.bytes: 3] && known.waiting == 3 && known.bytes == 3 * each)
        #expect(try await again.take(new(7, limit: ByteCount(3 * each))).dropped.map(\.id) == ["4"])
        await again.close()
    }

    @Test func whatIsBeingSentStaysAndWhatWasRefusedGoes() async throws {
        let store = try openData(scratch.state, time, storage(data: .mb(50)))
        for number in 1...3 { _ = try await store.append(new(number)) }
        let each = try await queue(store).bytes / 3
        _ = try #require(try await store.lease(id: "1", now: time.now))
        _ = try #require(try await store.lease(id: "2", now: time.now), "none waits for another")
        let refused = Disposition(state: .dead, reason: .rejected)
        _ = try await store.finish(
            id: "2", disposition: refused, result: nil, attempt: AttemptRecord(status: 400, sent: .yes), now: time.now)
        #expect(try await queue(store).refused == 1)
        #expect(try await store.take(new(4, limit: ByteCount(3 * each))).dropped.map(\.id) == ["2"])
        #expect(try await store.take(new(5, limit: ByteCount(each))).dropped.map(\.id) == ["3", "4"])
        #expect(Set(try await store.openOperations().map(\.id)) == ["1", "5"])
        await #expect(throws: DataStoreError.illegal(from: .inflight, to: .cancelled)) { _ = try await store.dropOutlived(id: "1") }
        #expect(try await store.dropOutlived(id: "5").state == .cancelled)
        await #expect(throws: DataStoreError.notFound(id: "5")) { _ = try await store.dropOutlived(id: "5") }
        #expect(try await queue(store).dropped == [.bytes: 3, .age: 1])
        await store.close()
    }

    @Test func aWriteBeyondTheWholeLimitIsRefusedAndDropsNothing() async throws {
        let store = try openData(scratch.state, time, storage(data: .mb(50)))
        _ = try await store.append(new(1))
        await #expect(throws: DataStoreError.queueFull(name: "api", limit: ByteCount(4999))) {
            try await store.append(new(2, 5000, limit: ByteCount(4999)))
        }
        #expect(try await queue(store).waiting == 1)
        await store.close()
    }

    @Test func itCountsAgainstNoOtherWrite() async throws {
        // Of this limit operations can take 8 000 000 bytes.
        var settings = storage(data: ByteCount(13_218_364))
        (settings.principalSharePercent, settings.unprovedSharePercent) = (1, 1)
        let store = try openData(scratch.state, time, settings)
        for number in 1...10 { _ = try await store.append(new(number, 50_000)) }
        var other = write("other", body: .inline(bytes(60_000)), lane: "api /a", principal: "anna")
        (other.upstream, other.share, other.upstreamLimit) = ("api", .principal, ByteCount(70_000))
        _ = try await store.append(other)
        #expect(try await queue(store).waiting == 10)
        await store.close()
    }

    @Test func theFileOfADroppedBodyIsRemoved() async throws {
        let store = try openData(scratch.state, time, storage(data: .mb(50)))
        func large(_ number: Int) async throws -> QueuedWriteDraft {
            let writer = try await store.blobWriter(expectedLength: nil)
            try await writer.append(ByteBuffer(bytes: bytes(1_200_000, seed: UInt64(number))))
            var new = new(number, limit: ByteCount(1_500_000))
            new.body = try await writer.finish()
            return new
        }
        _ = try await store.append(large(1))
        #expect(try await store.take(large(2)).dropped.map(\.id) == ["1"])
        try await store.queue.outside { _ in }
        #expect(Scratch.files(under: "\(scratch.state)/blobs").count == 1)
        await store.close()
    }
}
