// A run of the server, its kill and its restart, with the acknowledgements of its clients (docs/outbox.md#fault-points).
import Foundation
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

/// The steps of one run; the expectations are in `FailPointTests`.
struct FaultRun {
    let kill: KillPoint
    let kind: UpstreamKind
    let world: World
    let script: [Write]
    /// The operation id in the acknowledgement of each write, by the write's key.
    private(set) var promised: [String: String] = [:]
    /// Ids of operations that a person has decided: their effect stayed unknown, or they met one of those.
    private(set) var doubted: Set<String> = []
    private var api: NotesServer { world.api }
    private var server: ServerProcess { world.server }
    var store: StoreFile { StoreFile(directory: server.stateDirectory) }

    /// Prepares an offline API, and a server that has never been started.
    init(_ kill: KillPoint, _ kind: UpstreamKind) async throws {
        (self.kill, self.kind) = (kill, kind)
        // A port outside the ephemeral range: parallel tests could be assigned the API's port while it is offline.
        let api = try await NotesServer.start(
            port: FreePort.next(), seed: [["title": "first"], ["title": "second"], ["title": "third"]],
            settings: NotesSettings(honoursKeys: kind.honoursKeys))
        await api.stop()
        let settings = ServerSettings(upstream: api.port, kind.members(squash: kill.name == "K14"))
        world = World(api: api, server: try ServerProcess.prepare(settings))
        script =
            switch kill.trigger {
            case .merging: Write.meeting
            case .accepting where kill.name == "K14": Write.squashable
            default: Write.script(largeFirst: kill.trigger == .halfSent)
            }
    }

    /// Sends writes one after another until the server no longer responds.
    mutating func write(_ writes: [Write]) async throws {
        // Writes with client keys are not squashed.
        let fields = kill.name == "K14" ? [] : ["Idempotency-Key"]
        for write in writes where promised[write.key] == nil {
            let reply = try await world.send(
                write.method, write.path,
                fields: ["Content-Type: application/json", "Expect:"] + fields.map { "\($0): \"\(write.key)\"" }, body: write.body)
            guard reply.status != 0 else { return }
            #expect(reply.status == 202, "\(write.key): \(reply.status) \(reply.text)")
            let id: String = try #require(reply["rockpool-operation"])
            promised[write.key] = id
        }
    }

    // MARK: the first run

    /// Starts the server and runs it up to the kill point. Returns how the process ended.
    mutating func live() async throws -> ChildProcess.Ending {
        switch kill.trigger {
        case .migrating: return try await startOnVersion1()
        case .cleaning: try await makeOld()
        default: break
        }
        try await server.start(environment: kill.environment)
        if kill.trigger == .merging { try await readNotes() }
        try await write(script)
        var upstream: RawServer?
        switch kill.trigger {
        case .accepting, .migrating: break
        case .replaying: try await bringBack()
        case .merging:
            for note in ["1", "2"] { _ = api.edit(note: note, with: ["status": "theirs"]) }
            try await bringBack()
        case .cleaning: _ = try await server.command("storage-cleanup")
        case .connected: upstream = try await killOnConnect()
        case .halfSent: upstream = try await killHalfway()
        case .applied:
            api.faults.answerDelay = .milliseconds(600)
            try await bringBack()
            try await eventually("an effect", pace: .milliseconds(5)) { api.effects() > 0 }
            server.signal(SIGKILL)
        case .appliedLater:
            api.faults.commitDelay = .milliseconds(300)
            try await bringBack()
            try await eventually("a request", pace: .milliseconds(5)) { !world.requests.isEmpty }
            server.signal(SIGKILL)
        }
        let ending = try await server.ending(within: .seconds(20))
        await upstream?.stop()
        return ending
    }

    private mutating func startOnVersion1() async throws -> ChildProcess.Ending {
        try store.makeVersion1(script, upstream: api.port)
        for write in script { promised[write.key] = "op-\(write.key)" }
        do {
            try await server.start(environment: kill.environment)
            return try await server.stop()
        } catch let error as ServerProcess.DidNotStart {
            return error.command.status > 128 ? .signal(error.command.status - 128) : .exit(error.command.status)
        }
    }

    /// Reads the notes on which the client bases its writes.
    private func readNotes() async throws {
        try await bringBack()
        try await eventually("the notes") {
            let (first, second) = (try await world.send("GET", "/v1/notes/1"), try await world.send("GET", "/v1/notes/2"))
            return first.status == 200 && second.status == 200
        }
        await api.stop()
    }

    private mutating func makeOld() async throws {
        try await server.start()
        try await write(Write.old)
        try await bringBack()
        for write in Write.old {
            _ = try await server.operation(promised[write.key] ?? "", reaching: write.key == "old-refused" ? "dead" : "delivered")
        }
        try await server.stop()
        await api.stop()
        try store.age()
    }

    /// Answers a probe, and kills the server at the next connection, which is that of the first write.
    private func killOnConnect() async throws -> RawServer {
        let server = server
        let probed = Gate.Flag()
        return try await RawServer.start(port: api.port) { connection in
            guard !probed.isRaised else { return server.signal(SIGKILL) }
            _ = try await connection.read(through: "\r\n\r\n")
            probed.raise()
            try await connection.send("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        }
    }

    /// Answers only probes, and kills the server after half of a large body.
    private func killHalfway() async throws -> RawServer {
        let server = server
        return try await RawServer.start(port: api.port) { connection in
            while true {
                let head = MessageHead(try await connection.read(through: "\r\n\r\n"))
                let length = head["content-length"].flatMap { Int($0) } ?? 0
                guard length > 0 else {
                    try await connection.send("HTTP/1.1 204 No Content\r\n\r\n")
                    continue
                }
                guard length > 1_000_000 else {
                    _ = try await connection.readToEnd()
                    return
                }
                _ = try await connection.read(bytes: length / 2)
                server.signal(SIGKILL)
            }
        }
    }

    /// Restarts the API. Its port may briefly be used by an outgoing connection of another process.
    func bringBack() async throws {
        await api.stop()
        try await eventually("the API's port") {
            do {
                try await api.restart()
                return true
            } catch { return false }
        }
    }

    // MARK: the second run

    /// Restarts the server without a kill point, with the upstream's further faults.
    func revive() async throws {
        api.faults = Faults()
        if kind == .droppingAnswers { api.faults.commitThenDrop = 2 }
        try await server.start()
    }

    /// Waits until no operation is open. An operation that stays uncertain is decided as a user would, after a check of the upstream.
    mutating func settle() async throws {
        var since: [String: ContinuousClock.Instant] = [:]
        try await eventually("an empty outbox", within: .seconds(90), pace: .milliseconds(100)) {
            let open = try await server.operations("pending,inflight,uncertain,conflicted,parked,dead")
            for operation in open where operation["state"] == "uncertain" {
                guard let id = operation["id"]?.string, let key = operation["idempotencyKey"]?.string else { continue }
                let seen = since[id, default: .now]
                since[id] = seen
                // By now the server has sent all its automatic probes.
                guard ContinuousClock.now - seen > .seconds(1) else { continue }
                doubted.insert(id)
                since[id] = .now
                _ = try await server.command("outbox", api.effects(forKey: key) == 0 ? "retry" : "discard", id)
            }
            // Later writes pass one whose effect stays unknown, and may meet it.
            for operation in open where operation["state"] == "conflicted" && !kind.honoursKeys {
                doubted.insert(operation["id"]?.string ?? "")
                let records = try await server.get("/v1/conflicts?state=open").json?["items"]?.array ?? []
                for record in records where record["operation"] == operation["id"] {
                    _ = try await server.command("conflicts", "resolve", record["id"]?.string ?? "", "--keep", "mine")
                }
            }
            return open.isEmpty
        }
    }
}
