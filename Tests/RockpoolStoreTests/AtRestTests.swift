// Bodies compressed at rest are restored bit for bit; bodies that do not compress well are stored unchanged
// (docs/storage.md#what-is-stored-where).
import Foundation
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolTesting
import Testing

@testable import RockpoolStore

@Suite struct AtRestTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    /// Returns JSON like an API's, in which no two records are equal.
    static func json(_ length: Int, seed: UInt64 = 1) -> [UInt8] {
        var text = "["
        for (n, byte) in bytes(length / 12 + 16, seed: seed).enumerated() where text.utf8.count < length {
            text += "{\"id\":\(n),\"value\":\"\(byte)\",\"status\":\"open\"},"
        }
        return Array(text.utf8.prefix(length))
    }

    /// Returns bytes with six bits of entropy each.
    static func letters(_ length: Int) -> [UInt8] { bytes(length).map { 32 + $0 & 63 } }

    static let jsonType: HTTPFields = [.contentType: "application/json"]

    /// The window is as large as the body, whatever its length.
    @Test func everyLengthIsRestored() throws {
        for length in [1, 2, 511, 512, 513, 1_023, 1_024, 1_025, 2_049, 4_096, 4_097, 16_385, 32_768, 32_769, 65_537, 700_000] {
            for body in [Self.json(length), Self.letters(length), [UInt8](repeating: 7, count: length)] {
                let deflated = unsafe body.withUnsafeBytes { unsafe Deflate.compress($0, upTo: length + 64) }
                let packed = try #require(deflated)
                #expect(unsafe packed.withUnsafeBytes { unsafe Deflate.expand($0, to: length) } == body, "\(length)")
                #expect(unsafe body.withUnsafeBytes { unsafe Deflate.compress($0, upTo: packed.count - 1) } == nil, "\(length)")
            }
        }
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var body: [UInt8]
        var fields = AtRestTests.jsonType
        var isDeflated = true
        var isInFile = false
        var testDescription: String { "\(body.count) bytes of \(fields), deflated: \(isDeflated), file: \(isInFile)" }
    }

    static let rows = [
        Row(body: json(1023), isDeflated: false),
        Row(body: json(1024)),
        Row(body: json(32 * 1024)),
        // Uncompressed too long for a row, compressed short enough.
        Row(body: json(200_000)),
        Row(body: letters(700_000), isInFile: true),
        Row(body: letters(1_048_576), isInFile: true),
        // Longer than memory keeps: served by file region, so stored uncompressed.
        Row(body: letters(1_048_577), isDeflated: false, isInFile: true),
        Row(body: bytes(20_000), isDeflated: false),
        Row(body: bytes(100_000), isDeflated: false, isInFile: true),
        Row(body: json(20_000), fields: [.contentType: "image/png"], isDeflated: false),
        Row(body: json(20_000), fields: [.contentType: "application/json", .contentEncoding: "br"], isDeflated: false),
        Row(body: [], isDeflated: false),
    ]

    @Test(arguments: rows, [true, false]) func whatIsStoredIsGivenBack(row: Row, announced: Bool) async throws {
        let store = try openCache(scratch.cache, time, storage(memory: .mb(64)))
        let entry = try #require(try await store.put("/a", row.body, at: time.now, fields: row.fields, announced: announced))
        #expect(entry.bodyCoding == (row.isDeflated ? .deflated : .plain) && entry.bodyIsInFile == row.isInFile)
        #expect(entry.response.bodyLength == Int64(row.body.count))
        #expect(try await store.bytes(of: entry) == row.body)
        // A file that was not used is removed behind the answer.
        try await eventually("no temporary file is left") { Paths.names(in: "\(scratch.cache)/tmp") == [] }
        await store.close()
        // Read from the disk by another run.
        let again = try openCache(scratch.cache, time, storage(memory: .mb(64)))
        let found = try #require(try await again.only("/a"))
        #expect(try await again.bytes(of: found) == row.body)
        #expect(again.footprint.ledger.reserved == 0)
        #expect(try await again.usage().badBodies == 0)
        await again.close()
    }

    @Test func aDeflatedCacheTakesLess() async throws {
        let store = try openCache(scratch.cache, time)
        for n in 0..<40 { try await store.put("/\(n)", Self.json(100_000, seed: UInt64(n + 1)), at: time.now, fields: Self.jsonType) }
        #expect(try await store.usage().entries == 40)
        await store.close()
        #expect(Scratch.allocated(scratch.cache) < 40 * 100_000 / 2)
    }

    @Test func equalBodiesShareAFileHoweverTheyCame() async throws {
        let store = try openCache(scratch.cache, time)
        let body = Self.letters(300_000)
        let deflated = try #require(try await store.put("/a", body, at: time.now, fields: Self.jsonType))
        let second = try #require(try await store.put("/b", body, at: time.now, fields: [.contentType: "image/png"]))
        #expect(deflated.bodyCoding == .deflated && second.bodyCoding == .deflated)
        #expect(Scratch.files(under: "\(scratch.cache)/bodies").count == 1)
        #expect(try await store.bytes(of: second) == body)
        await store.close()
    }

    @Test(arguments: [0, 1]) func aDamagedOneIsDroppedAndCounted(damage: Int) async throws {
        let store = try openCache(scratch.cache, time, storage(memory: .mb(8)))
        let body = Self.letters(300_000)
        try await store.put("/a", body, at: time.now, fields: Self.jsonType)
        let file = try #require(Scratch.files(under: "\(scratch.cache)/bodies").first)
        var stored = [UInt8](try #require(FileManager.default.contents(atPath: file)))
        if damage == 0 { stored[stored.count / 2] ^= 1 } else { stored.removeLast(4096) }
        try Data(stored).write(to: URL(fileURLWithPath: file))
        let found = try #require(try await store.only("/a"))
        #expect(try await store.body(of: found) == nil)
        #expect(try await store.usage().badBodies == 1)
        #expect(try await store.only("/a") == nil)
        // The next response is stored again.
        let again = try #require(try await store.put("/a", body, at: time.now, fields: Self.jsonType))
        #expect(try await store.bytes(of: again) == body)
        await store.close()
    }

    @Test func whoReadsFromTheWriterGoesOnWhileTheBodyIsDeflated() async throws {
        let store = try openCache(scratch.cache, time)
        let body = Self.letters(500_000)
        let writer = try #require(await store.beginWrite(expectedLength: Int64(body.count), category: .assets))
        #expect(try await writer.append(all: body))
        let response = StoredResponse(
            head: ResponseHead(status: 200, fields: Self.jsonType), requestTime: time.now, responseTime: time.now, bodyLength: 0,
            category: "assets")
        let entry = try await store.commit(writer, key: key("/a"), response: response)
        #expect(entry.bodyCoding == .deflated)
        let rest = try #require(try await writer.read(at: 400_000, upTo: 100_000))
        #expect(Array(rest.readableBytesView) == Array(body[400_000...]))
        await store.close()
    }

    @Test func aStreamCannotGrowBeyondTheLengthThatWasStored() {
        let body = [UInt8](repeating: 7, count: 1_000_000)
        let deflated = body.withUnsafeBytes { Deflate.compress($0, upTo: 100_000) } ?? []
        #expect(deflated.withUnsafeBytes { Deflate.expand($0, to: 1_000_000) } == body)
        for length in [0, 1, 999_999, 1_000_001] { #expect(deflated.withUnsafeBytes { Deflate.expand($0, to: length) } == nil) }
        #expect(body.withUnsafeBytes { Deflate.compress($0, upTo: 10) } == nil)
    }
}
