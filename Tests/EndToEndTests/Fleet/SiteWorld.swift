// Gateways of one site in their own processes, in front of an origin that counts requests.
import Foundation
import RockpoolCore
import RockpoolTesting
import Synchronization

/// An origin and the gateways that share their caches.
final class SiteWorld: Sendable {
    let gateways: [ServerProcess]
    let addresses: [String]
    private let origin: RawServer
    private let seen: Seen

    /// The requests of an origin, and the versions of its resources.
    private final class Seen: Sendable {
        let state = Mutex<(heads: [String], versions: [String: Int])>(([], [:]))

        func answer(_ head: String) -> String {
            let words = head.split(separator: " ")
            let (method, path) = (String(words[0]), String(words[1]))
            guard path != "/healthz" else { return "HTTP/1.1 204 No Content\r\n\r\n" }
            let version = state.withLock { state in
                state.heads.append(head)
                if method == "PUT" { state.versions[path, default: 1] += 1 }
                return state.versions[path] ?? 1
            }
            if method == "PUT" { return "HTTP/1.1 204 No Content\r\n\r\n" }
            let tag = "\"v\(version)\""
            let fields = "Cache-Control: max-age=600\r\nETag: \(tag)\r\n"
            if head.lowercased().contains("if-none-match: \(tag)") { return "HTTP/1.1 304 Not Modified\r\n\(fields)\r\n" }
            let body = "\(path) version \(version)"
            return "HTTP/1.1 200 OK\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
        }
    }

    /// Starts gateways, and waits until their caches may be used: what was written before a start is not known.
    /// - Parameters:
    ///   - others: addresses of further members of the list.
    ///   - own: the position that the gateway at a position takes for its own.
    static func start(
        _ count: Int, others: [String] = [], upstream: JSONValue = [:], own: (Int) -> Int = { $0 }
    ) async throws -> SiteWorld {
        let seen = Seen()
        let origin = try await RawServer.start { connection in
            while true {
                let head = try await connection.read(through: "\r\n\r\n", within: .seconds(120))
                _ = try await connection.read(bytes: MessageHead(head)["content-length"].flatMap { Int($0) } ?? 0)
                if head.contains(" /slow/") { try await Task.sleep(for: .seconds(1)) }
                try await connection.send(seen.answer(head))
            }
        }
        let listeners = (0..<count).map { _ in "127.0.0.1:\(FreePort.next())" }
        let addresses = listeners.map { "http://\($0)" }
        var gateways: [ServerProcess] = []
        for index in 0..<count {
            let probe: JSONValue = ["probe": ["path": "/healthz", "interval": "1s", "expect": 204]]
            var settings = ServerSettings(
                upstream: origin.port, probe.merging(upstream), proxy: ["listen": .string(listeners[index])])
            let members = (addresses + others).map { JSONValue.string($0) }
            settings.fleet = ["parents": .array(members), "self": .string(addresses[own(index)])]
            gateways.append(try await ServerProcess.start(settings))
        }
        try await Task.sleep(for: .seconds(4))
        return SiteWorld(gateways: gateways, addresses: addresses, origin: origin, seen: seen)
    }

    private init(gateways: [ServerProcess], addresses: [String], origin: RawServer, seen: Seen) {
        (self.gateways, self.addresses, self.origin, self.seen) = (gateways, addresses, origin, seen)
    }

    func send(_ path: String, method: String = "GET", to index: Int, fields: [String] = [], body: String? = nil) async throws -> Curl {
        try await Curl.send(method, "http://\(gateways[index].gateway)\(path)", fields: fields, body: body)
    }

    /// The heads that the origin received, probes excepted.
    var heads: [String] { seen.state.withLock(\.heads) }

    /// The number of requests for a path.
    func arrivals(_ path: String, method: String = "GET") -> Int { heads.count { $0.hasPrefix("\(method) \(path) ") } }

    /// A path of which a gateway is the owner.
    func path(ownedBy index: Int, _ name: String, among nodes: [String]? = nil) -> String {
        let ring = ParentRing(nodes: nodes ?? addresses, own: nil)
        let paths = (0..<1000).map { "/\(name)/\($0)" }
        return paths.first { ring.order(for: "http://127.0.0.1:\(origin.port)\n\($0)").first == (nodes ?? addresses)[index] } ?? ""
    }

    func stop() async throws {
        for gateway in gateways where gateway.isRunning { try await gateway.stop() }
        await origin.stop()
    }
}
