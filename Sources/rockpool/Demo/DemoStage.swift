// The environment of the demo: a real notes API, `rockpool serve` as a separate process, and a client of that proxy.
import Foundation
import HTTPTypes
import Logging
import NIOCore
import NotesAPI
import RockpoolCore
import RockpoolEngine
import RockpoolNetwork

/// The API, the proxy in front of it, and a client.
final class DemoStage {
    /// A response to the client.
    struct Answer {
        var head: ResponseHead
        var body: String
    }

    let notes: NotesServer
    let admin: AdminClient
    private(set) var adminAddress = ""
    private let directory: String
    private let client: CurlOrigin
    private var proxy = Process()
    private var proxyAddress = ""

    private init(notes: NotesServer, directory: String) throws {
        self.notes = notes
        self.directory = directory
        admin = AdminClient(stateDirectory: directory + "/state")
        client = try CurlOrigin(addresses: AddressPolicy(deny: []), ownPorts: OwnPorts(), logger: Logger(label: "demo", level: .error))
    }

    static let seed: [JSONValue] = [["title": "Low tide", "body": "07:14"], ["title": "High tide", "body": "13:31"]]

    /// Starts everything in a new directory.
    static func set() async throws -> DemoStage {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("rockpool-demo-\(getpid())").path
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        let notes = try await NotesServer.start(seed: seed)
        let stage = try DemoStage(notes: notes, directory: directory)
        try stage.writeConfiguration()
        try await stage.startProxy()
        return stage
    }

    private var configurationFile: String { directory + "/rockpool.yaml" }

    private func writeConfiguration() throws {
        let yaml = """
            proxy: { listen: "127.0.0.1:0" }
            admin: { listen: "127.0.0.1:0" }
            storage: { cache_dir: cache, state_dir: state, cache_limit: 50 MB, data_limit: 50 MB, min_free: 1 MB }
            upstreams:
              - name: notes
                origin: \(notes.origin.url)
                probe: { path: /healthz, interval: 1s, expect: 204 }
                idempotency: { honoured: yes }
                routes:
                  - { match: "/v1/assets/**", category: assets }
                resources:
                  - { collection: /v1/notes, item: "/v1/notes/{id}", fields: { /tags: set, /body: ask } }

            """
        try yaml.write(toFile: configurationFile, atomically: true, encoding: .utf8)
    }

    /// Runs `rockpool serve` and waits for its ready line.
    func startProxy() async throws {
        let output = directory + "/ready"
        _ = FileManager.default.createFile(atPath: output, contents: nil)
        proxy = Process()
        proxy.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        proxy.arguments = ["serve", "--config", configurationFile, "--log-level", "error"]
        proxy.standardOutput = FileHandle(forWritingAtPath: output)
        try proxy.run()
        try await wait(for: "the proxy to start") {
            let line = (try? String(contentsOfFile: output, encoding: .utf8)) ?? ""
            let words = line.split { $0 == " " || $0 == "\n" }
            guard words.count == 4, line.hasSuffix("\n") else { return false }
            self.proxyAddress = String(words[2].dropFirst("proxy=".count))
            self.adminAddress = String(words[3].dropFirst("admin=".count))
            return true
        }
    }

    /// Kills the proxy with SIGKILL, like a power cut.
    func killProxy() {
        kill(proxy.processIdentifier, SIGKILL)
        proxy.waitUntilExit()
    }

    /// Stops everything and removes the directory.
    func strike() async {
        proxy.terminate()
        proxy.waitUntilExit()
        client.close()
        await notes.stop()
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// Sends one request through the proxy.
    func send(_ method: HTTPRequest.Method, to target: String, json: String? = nil) async throws -> Answer {
        var head = RequestHead(method: method, origin: notes.origin, target: target, fields: [.accept: "*/*"])
        if json != nil { head.fields[.contentType] = "application/json" }
        let body = json.map { OutboundRequest.Body.bytes(ByteBuffer(string: $0)) } ?? .none
        let reply = try await client.send(OutboundRequest(head: head, body: body, via: "http://\(proxyAddress)"))
        let bytes = try await reply.body.collect(upTo: .mib(1)).bytes
        return Answer(head: reply.head, body: String(buffer: bytes))
    }

    /// Waits until `holds` returns true, for at most ten seconds.
    func wait(for what: String, until holds: () async throws -> Bool) async throws {
        let deadline = ContinuousClock.now + .seconds(10)
        while ContinuousClock.now < deadline {
            if try await holds() { return }
            try await Task.sleep(for: .milliseconds(50))
        }
        throw DemoFailure("waited ten seconds for \(what)")
    }
}

/// A failed step of the demo.
struct DemoFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// A file with the data of the API on one port.
struct DemoNotes: Sendable {
    let file: String

    init(port: Int, environment: [String: String]) {
        file = Directories.clientFiles(environment: environment) + "/demo-notes-\(port).json"
    }

    /// The API as it was, or a new one. `isKept` is false where the file cannot be written.
    func store() throws -> (store: NotesStore, isKept: Bool) {
        guard let data = FileManager.default.contents(atPath: file) else {
            let new = NotesStore(seed: DemoStage.seed, now: NotesServer.systemClock())
            let directory = (file as NSString).deletingLastPathComponent
            try? FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            return (new, keep(new))
        }
        guard let store = (try? JSONValue.parse(Array(data))).flatMap({ NotesStore(kept: $0) }) else {
            throw CommandFailure(.failed, "\(file) has no notes of the demo; remove it to begin anew".inOneLine)
        }
        return (store, true)
    }

    /// Writes the file anew. False if it cannot be written.
    @discardableResult
    func keep(_ store: NotesStore) -> Bool {
        (try? Data(store.kept.serialized()).write(to: URL(fileURLWithPath: file), options: .atomic)) != nil
    }
}
