// Partial bodies: stored when a transfer is interrupted, continued, truncated, and never stored in place of a complete body (RFC 9111 §3.3,
// §3.4).
import HTTPTypes
import NIOCore
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct PartialBodyTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    @Test(arguments: [(10, 20), (20_000, 30_000), (20_000, 90_000), (2_500_000, 5_000_000)])
    func aPartIsContinuedToTheWhole(_ received: Int, total: Int) async throws {
        let store = try openCache(scratch.cache, time)
        let body = bytes(total)
        let part = try #require(await store.putPart("/a", Array(body[..<received]), of: total, at: time.now))
        #expect(part.response.head.status == 206 && part.response.bodyLength == Int64(received))
        let writer = try #require(
            await store.beginWrite(joining: [(part, 0..<part.response.bodyLength)], expectedLength: Int64(total), category: .assets))
        #expect(writer.length == Int64(received))
        #expect(try await writer.append(all: Array(body[received...])))
        let response = StoredResponse(head: ResponseHead(status: 200), requestTime: time.now, responseTime: time.now)
        _ = try await store.commit(writer, key: key("/a"), response: response)
        let whole = try #require(try await store.only("/a"))
        #expect(whole.response.head.status == 200)
        #expect(try await store.bytes(of: whole) == body)
        await store.close()
        let again = try openCache(scratch.cache, time)
        #expect(try await again.bytes(of: try #require(try await again.only("/a"))) == body)
        await again.close()
    }

    @Test func aPartReplacesAPartButNeverAWhole() async throws {
        let store = try openCache(scratch.cache, time)
        _ = try await store.putPart("/a", bytes(50_000), of: 200_000, at: time.now)
        _ = try await store.putPart("/a", bytes(60_000), of: 200_000, at: time.now)
        #expect(try await store.only("/a")?.response.bodyLength == 60_000)
        try await store.put("/a", bytes(200_000), at: time.now)
        await #expect(throws: WholeIsStored.self) { try await store.putPart("/a", bytes(70_000), of: 200_000, at: time.now) }
        let writer = try #require(await store.beginWrite(expectedLength: 10, category: .assets))
        _ = try await writer.append(all: bytes(10))
        let response = StoredResponse(head: ResponseHead(status: 206), requestTime: time.now, responseTime: time.now)
        await #expect(throws: WholeIsStored.self) { try await store.commit(writer, key: key("/a"), response: response) }
        let kept = try #require(try await store.only("/a"))
        #expect(try await store.bytes(of: kept) == bytes(200_000))
        _ = try await store.remove(where: .all)
        #expect(try await store.putPart("/a", bytes(70_000), of: 200_000, at: time.now) != nil)
        await store.close()
    }

    @Test func aRefusedPartLeavesNothing() async throws {
        let store = try openCache(scratch.cache, time)
        try await store.put("/a", bytes(100), at: time.now)
        await #expect(throws: WholeIsStored.self) { try await store.putPart("/a", bytes(70_000), of: 200_000, at: time.now) }
        // The file and the reservation go with the last reference to the writer, on any thread.
        for _ in 0..<100_000 where try await store.usage().reservedBytes != 0 { await Task.yield() }
        for lane in 0..<2 as Range<UInt64> { try await store.lanes.run(lane) {} }
        #expect(Scratch.files(under: "\(scratch.cache)/bodies") == [] && Scratch.files(under: "\(scratch.cache)/tmp") == [])
        #expect(try await store.usage().reservedBytes == 0)
        await store.close()
    }

    @Test func disjointPartsAreKeptSideBySide() async throws {
        let store = try openCache(scratch.cache, time)
        let body = bytes(100_000)
        for (start, end) in [(0, 40_000), (60_000, 100_000), (45_000, 50_000)] {
            _ = try await store.putPart("/a", Array(body[start..<end]), from: start, of: 100_000, at: time.now)
        }
        #expect(try await places(in: store) == ["0-39999", "45000-49999", "60000-99999"])
        // A part that contains another replaces it; a part contained in another is not stored; a part of another representation replaces
        // all.
        _ = try await store.putPart("/a", Array(body[41_000..<55_000]), from: 41_000, of: 100_000, at: time.now)
        #expect(try await places(in: store) == ["0-39999", "41000-54999", "60000-99999"])
        await #expect(throws: WholeIsStored.self) {
            try await store.putPart("/a", Array(body[42_000..<43_000]), from: 42_000, of: 100_000, at: time.now)
        }
        #expect(try await store.putPart("/a", Array(body[..<10]), of: 100_000, tag: "\"2\"", at: time.now) != nil)
        #expect(try await places(in: store) == ["0-9"])
        try await store.put("/a", body, at: time.now)
        #expect(try await store.only("/a")?.response.bodyLength == 100_000)
        await store.close()
    }

    private func places(in store: CacheStore) async throws -> [String] {
        let ranges = try await store.lookup(key("/a")).compactMap { $0.response.part?.range }
        return ranges.sorted { $0.lowerBound < $1.lowerBound }.map { "\($0.lowerBound)-\($0.upperBound - 1)" }
    }

    @Test(arguments: [255, 256, 257, 300]) func partsOfOneKeyAreBounded(_ count: Int) async throws {
        let store = try openCache(scratch.cache, time)
        for index in 0..<count {
            _ = try await store.putPart("/a", [7], from: index * 2, of: 100_000, at: time.now + .seconds(Int64(index)))
        }
        #expect(try await store.lookup(key("/a")).count == min(count, CacheStore.partLimit))
        await store.close()
    }

    /// The declared length of a part must be equal to the number of bytes in the writer.
    @Test(arguments: [(9, false), (10, true), (11, false)]) func aPartIsAsLongAsItSays(_ said: Int, isStored: Bool) async throws {
        let store = try openCache(scratch.cache, time)
        let writer = try #require(await store.beginWrite(expectedLength: 100, category: .assets))
        _ = try await writer.append(all: bytes(10))
        let fields: HTTPFields = [.contentRange: "bytes 0-\(said - 1)/100", .eTag: "\"1\""]
        let response = StoredResponse(head: ResponseHead(status: 206, fields: fields), requestTime: time.now, responseTime: time.now)
        let entry = try? await store.commitPart(writer, key: key("/a")) { _ in response }
        #expect((entry != nil) == isStored)
        #expect(try await store.lookup(key("/a")).count == (isStored ? 1 : 0))
        await store.close()
    }

    @Test(arguments: [(200, 10), (206, 0)])
    func onlyA206ThatHoldsSomethingIsAPart(_ status: Int, count: Int) async throws {
        let store = try openCache(scratch.cache, time)
        let writer = try #require(await store.beginWrite(expectedLength: 100, category: .assets))
        _ = try await writer.append(all: bytes(count))
        let response = StoredResponse(head: ResponseHead(status: status), requestTime: time.now, responseTime: time.now)
        await #expect(throws: IncompleteBody.self) { try await store.commitPart(writer, key: key("/a")) { _ in response } }
        #expect(try await store.lookup(key("/a")).isEmpty)
        await store.close()
    }

    @Test func aPartThatIsGoneOrDoesNotFitIsNotContinued() async throws {
        let store = try openCache(scratch.cache, time)
        let part = try #require(await store.putPart("/a", bytes(50_000), of: 90_000, at: time.now))
        #expect(await store.beginWrite(joining: [(part, 0..<part.response.bodyLength)], expectedLength: 40_000, category: .assets) == nil)
        #expect(
            await store.beginWrite(joining: [(part, 0..<part.response.bodyLength)], expectedLength: 64_000_001, category: .assets) == nil)
        _ = try await store.remove(where: .all)
        #expect(await store.beginWrite(joining: [(part, 0..<part.response.bodyLength)], expectedLength: 90_000, category: .assets) == nil)
        await store.close()
    }

    @Test(arguments: [(0, 0), (0, 1), (5, 9), (0, 100), (99, 100), (100, 100), (0, 101), (-1, 5), (101, 101)] as [(Int64, Int64)])
    func slicesAreCutWhereTheyAreAskedFor(_ from: Int64, to: Int64) throws {
        let all = bytes(100)
        let isWithin = from >= 0 && to <= 100
        var padded = ByteBuffer(bytes: [0, 0] + all)
        padded.moveReaderIndex(forwardBy: 2)
        guard case .bytes(let cut)? = CachedBody.bytes(padded).slice(from..<to) else {
            return #expect(!isWithin)
        }
        #expect(isWithin && Array(cut.readableBytesView) == Array(all[Int(from)..<Int(to)]))
        let lease = BodyLease {}
        let file = CachedBody.file(path: "/x", offset: 0, length: 100, lease: lease)
        guard case .file("/x", let offset, let length, _)? = file.slice(from..<to) else { return #expect(Bool(false)) }
        #expect((offset, length) == (from, to - from))
    }

    @Test func slicesOfSlicesCountFromTheirOwnStart() throws {
        let body = CachedBody.file(path: "/x", offset: 0, length: 100, lease: BodyLease {})
        guard case .file(_, 25, 10, _)? = body.slice(20..<60)?.slice(5..<15) else { return #expect(Bool(false)) }
        #expect(body.slice(20..<60)?.slice(5..<41) == nil)
    }
}
