// The stored part of a body contains exactly the received bytes, at whatever moment its readers leave (RFC 9111 §3.3).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore
import RockpoolTesting
import Testing

@testable import RockpoolEngine

@Suite(.timeLimit(.minutes(2)))
struct SharedBodyTests {
    private static let length = 400_000

    /// Bytes that differ at every 8-byte position.
    private static let bytes: [UInt8] = (0..<length / 8).flatMap { place in
        (0..<8).map { UInt8(truncatingIfNeeded: UInt64(place) &* 0x9E37_79B9_7F4A_7C15 >> ($0 * 8)) }
    }

    private static func head(_ range: Range<Int>) -> ResponseHead {
        var fields: HTTPFields = [.eTag: "\"v1\"", .cacheControl: "max-age=600"]
        if range.count < length { fields[.contentRange] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)" }
        return ResponseHead(status: range.count < length ? 206 : 200, fields: fields)
    }

    /// An upstream that sends the requested bytes in small chunks.
    /// - Parameter knowsEnds: False if a range with an end is ignored.
    private static func answer(_ request: SentRequest, knowsEnds: Bool) -> ScriptedAnswer {
        let words = request.head.fields[.range].map { $0.dropFirst("bytes=".count).split(separator: "-") } ?? []
        let isIgnored = words.count > 1 && !knowsEnds
        let first = isIgnored ? 0 : words.first.flatMap { Int($0) } ?? 0
        let length = isIgnored ? Self.length : words.dropFirst().first.flatMap { Int($0) }.map { $0 + 1 } ?? Self.length
        let feed = BodyPipe(highWater: .max)
        for start in stride(from: first, to: length, by: 16_384) {
            feed.offer(ByteBuffer(bytes: bytes[start..<min(start + 16_384, length)]))
        }
        feed.finish()
        return .live(head(first..<length), feed, length: Int64(length - first))
    }

    /// Reads a random part and leaves from another task than the reading one, as happens when a connection ends.
    private func readAndLeave(_ pool: ScriptedEngine, _ target: String) async {
        let reply = await pool.engine.respond(Exchange(request: RequestHead(method: .get, origin: .notes, target: target)))
        guard case .stream(let source, _) = reply.body else { return }
        let chunks = Int.random(in: 0..<20)
        let reading = Task {
            for _ in 0..<chunks where try await source.next() == nil { return }
            // One more chunk is in transit when the reader leaves.
            _ = try await source.next()
        }
        let leaving = Task {
            for _ in 0..<Int.random(in: 0..<200) { await Task.yield() }
            source.abandon()
            reading.cancel()
        }
        _ = await (reading.result, leaving.result)
        source.abandon()
    }

    @Test(arguments: [true, false]) func downloadsGivenUpAndAskedForAgainAreWholeAndRight(knowsEnds: Bool) async throws {
        let pool = try ScriptedEngine(rule: { Self.answer($0, knowsEnds: knowsEnds) })
        var resumed = 0
        for round in 0..<60 {
            let target = "/\(round)"
            for _ in 0..<3 { await readAndLeave(pool, target) }
            let reply = await pool.engine.respond(Exchange(request: RequestHead(method: .get, origin: .notes, target: target)))
            if reply.trace.cacheStatus?.fwd == .partial { resumed += 1 }
            let body = try await reply.body.whole()
            #expect(body == Self.bytes, "round \(round): \(body.count) bytes")
        }
        #expect(resumed > 10)
    }
}

extension ReplyBody {
    fileprivate func whole() async throws -> [UInt8] {
        switch self {
        case .none: return []
        case .bytes(let bytes): return Array(bytes.readableBytesView)
        case .file(let path, let offset, let length, _): return Array(try Files.bytes(of: path)[Int(offset)..<Int(offset + length)])
        case .stream(let source, _):
            var all: [UInt8] = []
            while let chunk = try await source.next() { all += chunk.readableBytesView }
            return all
        }
    }
}
