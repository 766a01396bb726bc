// The real server between the clients of an attack and an origin that plays the attack's script.
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

/// A server that declares one scripted origin under one policy.
final class AttackedServer: Sendable {
    static let policies = ["standard", "offline-first"]

    let server: ServerProcess
    private let origin: RawServer
    private let script: Script

    private init(server: ServerProcess, origin: RawServer, script: Script) {
        self.server = server
        self.origin = origin
        self.script = script
    }

    /// Runs `body` with a server, and checks that the server stops cleanly.
    static func with(
        policy: String, upstream: JSONValue = [:], storage: JSONValue = [:], _ body: (AttackedServer) async throws -> Void
    ) async throws {
        let script = Script()
        let origin = try await RawServer.start { try await script.play($0) }
        let members: JSONValue = ["policy": .string(policy)]
        let server = try await ServerProcess.start(ServerSettings(upstream: origin.port, members.merging(upstream), storage: storage))
        try await body(AttackedServer(server: server, origin: origin, script: script))
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await origin.stop()
    }

    /// Plays an attack and checks its expectations.
    static func play(_ attack: Attack, policy: String) async throws {
        try await with(policy: policy) { attacked in
            var reply: Curl?
            for step in attack.steps { reply = try await attacked.send(step) }
            try attacked.check(attack, try #require(reply), path: attack.steps.last?.path ?? "")
        }
    }

    /// Sends the request of one step.
    func send(_ step: Attack.Step) async throws -> Curl {
        if case .down = step.answer { await origin.stop() } else { script.answer(step.answer) }
        return try await Curl.send(step.method, "http://\(server.gateway)\(step.path)", fields: step.fields, body: step.body)
    }

    /// Sets the origin's answer from now on.
    func answer(_ answer: Answer) { script.answer(answer) }

    /// Returns the number of requests for a path at the origin.
    func asked(_ path: String) -> Int { script.asked(path) }

    private func check(_ attack: Attack, _ reply: Curl, path: String) throws {
        let shown: Comment = "\(attack.name) (\(attack.why)): \(reply.status) \(reply.text.prefix(200)) \(reply.heads)"
        for expectation in attack.expected {
            switch expectation {
            case .body(let body): #expect(reply.text == body, shown)
            case .nowhere(let text):
                #expect(!reply.text.contains(text) && !reply.heads.contains { $0.fields.contains { $0.value.contains(text) } }, shown)
            case .oneOf(let statuses): #expect(statuses.contains(reply.status), shown)
            case .noField(let name): #expect(reply[name] == nil, shown)
            case .asked(let times): #expect(times.contains(asked(path)), "asked \(asked(path)) times; \(shown)")
            case .notOnDisk(let text): try #expect(files(holding: text).isEmpty, shown)
            }
        }
    }

    /// Returns the files below both directories that contain `text`.
    func files(holding text: String) throws -> [String] {
        let needle = Array(text.utf8)
        return [server.cacheDirectory, server.stateDirectory].flatMap { directory in
            Files.everything(in: directory).filter { (try? Files.bytes(of: $0).firstRange(of: needle)) != nil }
        }
    }
}

/// Answers every request with the answer of the current step, and counts the requests.
private final class Script: Sendable {
    private let state = Mutex<(answer: Answer, asked: [String: Int])>((.body("unscripted", cc: "no-store"), [:]))

    func answer(_ answer: Answer) { state.withLock { $0.answer = answer } }
    func asked(_ path: String) -> Int { state.withLock { $0.asked[path] ?? 0 } }

    func play(_ connection: RawConnection) async throws {
        while true {
            let text = try await connection.read(through: "\r\n\r\n", within: .seconds(60))
            let head = MessageHead(text)
            if let length = head["content-length"].flatMap({ Int($0) }) { _ = try await connection.read(bytes: length) }
            let words = text.split(separator: " ", maxSplits: 2)
            let path = words.count > 1 ? String(words[1]) : ""
            // Answer the reachability probes, which request the root.
            if path == "/" {
                try await connection.send("HTTP/1.1 204 No Content\r\n\r\n")
                continue
            }
            let answer = state.withLock { state in
                state.asked[path, default: 0] += 1
                return state.answer
            }
            guard try await say(answer, to: head, isHead: words.first == "HEAD", on: connection) else { return }
        }
    }

    /// - Returns: true if the connection stays open.
    private func say(_ answer: Answer, to head: MessageHead, isHead: Bool, on connection: RawConnection) async throws -> Bool {
        switch answer {
        case .message(let text, let closes):
            let end = text.firstRange(of: "\r\n\r\n")?.upperBound ?? text.endIndex
            try await connection.send(isHead ? String(text[..<end]) : text)
            return !closes
        case .reflection(let name, let fields):
            let value = head[name] ?? ""
            let lines = ["HTTP/1.1 200 OK", "Content-Type: text/plain", "Content-Length: \(value.utf8.count)"] + fields + ["", value]
            try await connection.send(lines.joined(separator: "\r\n"))
            return true
        case .down: return false
        }
    }
}
