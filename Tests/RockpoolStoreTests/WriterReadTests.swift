// Reading a body while it is being written, and beyond its end: followers of one fetch (RFC 9111 §4, collapsed requests).
import Foundation
import NIOCore
import RockpoolCore
import RockpoolTesting
import Testing

@testable import RockpoolStore

@Suite struct WriterReadTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    private var response: StoredResponse {
        StoredResponse(head: ResponseHead(status: 200), requestTime: time.now, responseTime: time.now, category: "assets")
    }

    private func rest(of writer: CacheWriter, from offset: Int = 0, upTo count: Int = 70_000) async throws -> [UInt8] {
        var found: [UInt8] = []
        while let next = try await writer.read(at: Int64(offset + found.count), upTo: count), next.readableBytes > 0 {
            found += next.readableBytesView
        }
        return found
    }

    @Test(arguments: [10, 32_768, 32_769, 3_000_000], [true, false])
    func whatWasAppendedIsReadBeforeAndAfterTheCommit(_ length: Int, announced: Bool) async throws {
        let store = try openCache(scratch.cache, time)
        let body = bytes(length)
        let half = length / 2
        let writer = try #require(await store.beginWrite(expectedLength: announced ? Int64(length) : nil, category: .assets))
        #expect(try await writer.append(all: Array(body[..<half])))
        // Preallocated or not, only written bytes are read.
        #expect(try await rest(of: writer) == Array(body[..<half]))
        #expect(try await writer.append(all: Array(body[half...])))
        #expect(try await rest(of: writer, from: 3) == Array(body[3...]))
        _ = try await store.commit(writer, key: key("/a"), response: response)
        #expect(try await rest(of: writer, from: half) == Array(body[half...]))
        #expect(try await writer.append(ByteBuffer(bytes: [1])) == false)
        #expect(try await rest(of: writer) == body)
        await store.close()
    }

    @Test(arguments: [(-1, 10), (100, 10), (101, 10), (Int64.max, 10), (.min, 10), (0, 0), (0, -5)] as [(Int64, Int)])
    func whereNothingIsNothingIsGiven(_ offset: Int64, count: Int) async throws {
        let store = try openCache(scratch.cache, time)
        let writer = try #require(await store.beginWrite(expectedLength: nil, category: .assets))
        _ = try await writer.append(all: bytes(100))
        #expect(try await writer.read(at: offset, upTo: count) == ByteBuffer())
        #expect(try await writer.read(at: 0, upTo: .max)?.readableBytes == 100)
        await store.close()
    }

    @Test func oneReadGivesAMebibyteAtMost() async throws {
        let store = try openCache(scratch.cache, time)
        let writer = try #require(await store.beginWrite(expectedLength: nil, category: .assets))
        _ = try await writer.append(all: bytes(1_048_577))
        #expect(try await writer.read(at: 0, upTo: .max)?.readableBytes == 1_048_576)
        await store.close()
    }

    @Test func aReaderGoesOnAfterTheEntryIsGoneAndItsBytesCountUntilThen() async throws {
        let store = try openCache(scratch.cache, time)
        let body = bytes(500_000)
        var writer = await store.beginWrite(expectedLength: 500_000, category: .assets)
        #expect(try await writer?.append(all: body) == true)
        if let writer { _ = try await store.commit(writer, key: key("/a"), response: response) }
        #expect(try await store.remove(where: .all).entries == 1)
        if let writer { #expect(try await rest(of: writer) == body) }
        #expect(Scratch.files(under: "\(scratch.cache)/bodies").count == 1)
        #expect(try await store.usage().bodyBytes >= 500_000)
        writer = nil
        try await eventually("the file is deleted") { Scratch.files(under: "\(scratch.cache)/bodies").isEmpty }
        try await eventually("it counts no longer") { try await store.usage().bodyBytes == 0 }
        await store.close()
    }

    @Test func aReaderOfABodyThatWasThereAlreadyGoesOnAndItsRoomIsHeld() async throws {
        let store = try openCache(scratch.cache, time)
        let body = bytes(500_000)
        try await store.put("/a", body, at: time.now)
        var writer = await store.beginWrite(expectedLength: 500_000, category: .assets)
        #expect(try await writer?.append(all: body) == true)
        if let writer { _ = try await store.commit(writer, key: key("/b"), response: response) }
        if let writer { #expect(try await rest(of: writer) == body) }
        #expect(try await store.usage().reservedBytes >= 500_000)
        writer = nil
        try await eventually("the file is deleted") { Scratch.files(under: "\(scratch.cache)/tmp").isEmpty }
        try await eventually("its room is free") { try await store.usage().reservedBytes == 0 }
        #expect(Scratch.files(under: "\(scratch.cache)/bodies").count == 1)
        await store.close()
    }

    @Test(arguments: [0, 20, 80_000])
    func aFullWriterGivesWhatItTookAndCannotBeCommitted(_ before: Int) async throws {
        let store = try openCache(scratch.cache, time)
        let writer = try #require(await store.beginWrite(expectedLength: 100_000, category: .assets))
        #expect(try await writer.append(all: bytes(before)))
        #expect(try await writer.append(ByteBuffer(bytes: bytes(100_001 - before))) == false)
        #expect(try await writer.append(ByteBuffer(bytes: [1])) == false)
        #expect(try await writer.read(at: 0, upTo: 10) == ByteBuffer(bytes: bytes(before).prefix(10)))
        await #expect(throws: IncompleteBody.self) { try await store.commit(writer, key: key("/a"), response: response) }
        await store.close()
    }

    @Test func manyReadersFollowOneThatWrites() async throws {
        let store = try openCache(scratch.cache, time)
        let body = bytes(1_500_000)
        let writer = try #require(await store.beginWrite(expectedLength: nil, category: .assets))
        let response = response
        try await withThrowingTaskGroup(of: Bool.self) { tasks in
            for step in [1000, 50_000, 65_536, 300_000] {
                tasks.addTask {
                    var found: [UInt8] = []
                    while found.count < body.count {
                        guard let next = try await writer.read(at: Int64(found.count), upTo: step) else { return false }
                        if next.readableBytes == 0 { await Task.yield() } else { found += next.readableBytesView }
                    }
                    return found == body
                }
            }
            tasks.addTask {
                guard try await writer.append(all: body) else { return false }
                _ = try await store.commit(writer, key: key("/a"), response: response)
                return true
            }
            for try await isRight in tasks { #expect(isRight) }
        }
        await store.close()
    }
}
