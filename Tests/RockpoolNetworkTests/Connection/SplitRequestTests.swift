// Pipelined requests that arrive in two parts, divided at each byte: none changes another (RFC 9112 §9.3.2).
import HTTPTypes
import RockpoolCore
import RockpoolTesting
import Testing

@testable import RockpoolNetwork

@Suite(.timeLimit(.minutes(2)), .serialized)
struct SplitRequestTests {
    /// Bytes that are no UTF-8.
    private static let body: [UInt8] = [0x80, 0xE9, 0xFF, 0x0D, 0x0A, 0x0D, 0x0A, 0xC3]
    private static let note: [UInt8] = [0x63, 0x61, 0x66, 0xE9]

    private static func write(_ path: String, isChunked: Bool = false) -> [UInt8] {
        let framing = isChunked ? "Transfer-Encoding: chunked" : "Content-Length: \(body.count)"
        let head = Array("POST \(path) HTTP/1.1\r\nHost: localhost\r\n\(framing)\r\nX-Note: ".utf8) + note + Array("\r\n\r\n".utf8)
        return head + (isChunked ? Array("\(body.count)\r\n".utf8) + body + Array("\r\n0\r\n\r\n".utf8) : body)
    }

    @Test(arguments: [[false, false], [false, true], [true, false]])
    func noPartOfARequestIsTakenForAnother(areChunked: [Bool]) async throws {
        let pool = try await Pool(rule: { .ok($0.head.target, [.cacheControl: "no-store"]) })
        func paths(_ cut: Int) -> [String] { ["/\(cut)/first", "/\(cut)/second", "/\(cut)/last"] }
        func request(_ cut: Int) -> [UInt8] {
            let paths = paths(cut)
            return Self.write(paths[0], isChunked: areChunked[0]) + Self.write(paths[1], isChunked: areChunked[1])
                + Array("GET \(paths[2]) HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for cut in 100..<100 + request(100).count - 1 {
                if cut >= 108 { try await group.next() }
                group.addTask {
                    let (all, client) = (request(cut), try await pool.connect())
                    try await client.send(Array(all[..<(cut - 99)]))
                    // What has arrived is to be read by itself.
                    try await Task.sleep(for: .milliseconds(10))
                    try await client.send(Array(all[(cut - 99)...]))
                    for path in paths(cut) { #expect(try await client.response().body == path, "divided at \(cut - 99)") }
                    await client.close()
                }
            }
            try await group.waitForAll()
        }
        let writes = pool.origin.sent.filter { $0.head.method == .post }
        #expect(writes.count == 2 * (request(100).count - 1))
        #expect(writes.allSatisfy { $0.body == Self.body }, "a body has changed")
        let name = try #require(HTTPField.Name("x-note"))
        #expect(Set(writes.compactMap { $0.head.fields[name] }).count == 1, "a field has changed")
    }
}
