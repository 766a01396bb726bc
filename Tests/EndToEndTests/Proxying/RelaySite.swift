// A server before an origin that answers by a script, and one client connection (docs/architecture.md#relays).
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

/// The parts of a test of relays.
struct RelaySite {
    /// What the origin answers, and what it has received.
    final class Script: Sendable {
        /// Divides an answer into parts that are sent 20 ms apart.
        static let pause: Character = "~"

        private struct State {
            var answer = ""
            var answers: [String: String] = [:]
            var validations: [String: String] = [:]
            var requests: [String] = []
            var connections = 0
        }

        private let state = Mutex(State())

        /// The requests with this line.
        func requests(_ line: String) -> [String] { requests.filter { $0.hasPrefix("\(line) ") } }

        /// The answer to each request without one of its own; `{n}` in it becomes the number of the request.
        var answer: String {
            get { state.withLock(\.answer) }
            set { state.withLock { $0.answer = newValue } }
        }
        /// Answers to `GET`, by target.
        var answers: [String: String] {
            get { state.withLock(\.answers) }
            set { state.withLock { $0.answers = newValue } }
        }
        /// Answers to `GET` with `If-None-Match`, by target.
        var validations: [String: String] {
            get { state.withLock(\.validations) }
            set { state.withLock { $0.validations = newValue } }
        }
        var requests: [String] { state.withLock(\.requests) }
        /// The number of connections that the origin has accepted.
        var connections: Int { state.withLock(\.connections) }

        func connected() { state.withLock { $0.connections += 1 } }

        func count(of target: String) -> Int { requests.count { $0.hasPrefix("GET \(target) ") } }

        func receive(_ head: String) -> String {
            state.withLock { state in
                state.requests.append(head)
                let words = head.split(separator: " ").prefix(2).map { String($0) }
                let own = words.first == "GET" ? words.last.flatMap { state.answers[$0] } : nil
                if head.contains("If-None-Match: "), let validation = words.last.flatMap({ state.validations[$0] }) { return validation }
                return (own ?? state.answer).replacing("{n}", with: "\(state.requests.count)")
            }
        }
    }

    let script: Script
    let server: ServerProcess
    let port: Int
    let client: RawConnection

    private func send(_ request: String, isPlain: Bool) async throws {
        guard !isPlain else { return try await client.send(request) }
        try await client.send(String(request.prefix(6)))
        try await Task.sleep(for: .milliseconds(5))
        try await client.send(String(request.dropFirst(6)))
    }

    /// A response with this body.
    /// - Parameters:
    ///   - head: without a framing, and without the blank line.
    ///   - way: `length`; `later` for a body that follows its head; `split` for a head in two parts; `chunked` for any body but an empty one.
    static func framed(_ head: String, _ body: String, _ way: String) -> String {
        switch way {
        case "later": return head + "Content-Length: \(body.utf8.count)\r\n\r\n~\(body)"
        case "split": return String(head.prefix(30)) + "~" + head.dropFirst(30) + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
        case "chunked" where !body.isEmpty:
            let size = String(body.utf8.count, radix: 16)
            return head + "Transfer-Encoding: chunked\r\n\r\n\(size)\r\n\(body)\r\n0\r\n\r\n"
        default: return head + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
        }
    }

    /// Sends one request on the client's connection.
    /// - Parameter isPlain: false to send it in two parts, so that no relay takes it.
    func get(_ target: String = "/now", fields: String = "", isPlain: Bool = true) async throws -> (head: MessageHead, body: String) {
        let request = "GET \(target) HTTP/1.1\r\nHost: \(server.gateway)\r\nUser-Agent: test\r\n\(fields)\r\n"
        try await send(request, isPlain: isPlain)
        let (head, body) = try await client.response()
        guard head["transfer-encoding"] == "chunked" else { return (head, body) }
        return (head, Self.decoded(try await client.read(through: "0\r\n\r\n")))
    }

    /// Sends one write on the client's connection.
    /// - Parameter isPlain: false to send it in two parts, so that no relay takes it.
    func write(
        _ body: String, to target: String = "/notes", method: String = "POST", fields: String = "", isPlain: Bool = true
    ) async throws -> (head: MessageHead, body: String) {
        let head = "\(method) \(target) HTTP/1.1\r\nHost: \(server.gateway)\r\nContent-Type: application/json\r\n\(fields)"
        let request = head + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
        try await send(request, isPlain: isPlain)
        let reply = MessageHead(try await client.read(through: "\r\n\r\n"))
        if reply["transfer-encoding"] == "chunked" { return (reply, Self.decoded(try await client.read(through: "0\r\n\r\n"))) }
        let length = reply["content-length"].flatMap { Int($0) } ?? 0
        return (reply, String(decoding: try await client.read(bytes: length), as: UTF8.self))
    }

    /// The data of a chunked body.
    private static func decoded(_ chunks: String) -> String {
        var (rest, body) = (Array(chunks.utf8)[...], [UInt8]())
        while let end = rest.firstIndex(of: 0x0D), let size = Int(String(decoding: rest[..<end], as: UTF8.self), radix: 16), size > 0 {
            let data = rest[(end + 2)...]
            body += data.prefix(size)
            rest = data.dropFirst(size + 2)
        }
        return String(decoding: body, as: UTF8.self)
    }

    func relays() async throws -> Int {
        let text = try await server.get("/metrics").text
        let line = text.split(separator: "\n").first { $0.hasPrefix("rockpool_requests_relayed_total") }
        return try #require(line?.split(separator: " ").last.flatMap { Int($0) })
    }

    /// Sends the request until a relay answers it.
    func warm(_ target: String = "/now", fields: String = "") async throws {
        let before = try await relays()
        try await eventually("a relay") {
            _ = try await get(target, fields: fields)
            return try await relays() > before
        }
    }

    /// Runs `body` with a server before an origin that answers `answer`, or by the words `reset`, `close` and `silence`.
    static func with(_ answer: String, upstream: JSONValue = [:], _ body: (RelaySite) async throws -> Void) async throws {
        let script = Script()
        script.answer = answer
        let origin = try await RawServer.start { connection in
            script.connected()
            while true {
                var request = try await connection.read(through: "\r\n\r\n", within: .seconds(60))
                if let length = MessageHead(request)["content-length"].flatMap({ Int($0) }) {
                    request += String(decoding: try await connection.read(bytes: length), as: UTF8.self)
                }
                let answer = script.receive(request)
                if answer == "close" { return }
                if answer == "reset" { return try await connection.reset() }
                if answer == "silence" { continue }
                for (index, part) in answer.split(separator: Script.pause, omittingEmptySubsequences: false).enumerated() {
                    if index > 0 { try await Task.sleep(for: .milliseconds(20)) }
                    if !part.isEmpty { try await connection.send(String(part)) }
                }
                if answer.contains("Connection: close") || answer.hasPrefix("HTTP/1.0") || answer.contains("X-Ends:") { return }
            }
        }
        let server = try await ServerProcess.start(ServerSettings(upstream: origin.port, upstream))
        let client = try await RawConnection.open(server.gateway)
        try await body(RelaySite(script: script, server: server, port: origin.port, client: client))
        await client.close()
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await origin.stop()
    }
}
