// `/v1/configuration`, `/v1/reload` and the codes that open the dashboard (docs/reference/admin-api.md#server).
import Foundation
import Glibc
import HTTPTypes
import Hummingbird
import NIOCore
package import RockpoolCore
import RockpoolStore
import Synchronization

struct ServerRoutes {
    let data: DataStore
    let facts: ServerFacts
    let codes: DashboardCodes
    let token: String
    let clock: @Sendable () -> Timestamp
    let dashboard: @Sendable () -> String

    func add(to router: Router<AdminContext>) {
        router.get("/v1/configuration") { request, context in try read(request, in: context) { configuration() } }
        router.get("/v1/configuration/values") { request, context in
            try read(request, in: context) {
                .json(["file": .optional(facts.configFile), "items": .array(facts.values()), "next": .null])
            }
        }
        router.post("/v1/backup") { request, _ in try backup(request) }
        router.post("/v1/reload") { _, _ in await reload() }
        router.put("/v1/upstreams/{name}") { request, context in
            try await declare(request, named: context.parameters.require("name"))
        }
        router.post("/v1/dashboard/codes") { _, _ in code() }
        router.post("/v1/dashboard/token") { request, _ in try await exchange(request) }
    }

    /// The configuration needs the token: it may name the passwords of parent proxies.
    private func read(_ request: Request, in context: AdminContext, answer: () -> Response) throws -> Response {
        guard context.isThroughSocket || request.carries(token: token) else {
            return Response.tokenNeeded(by: "readers of the configuration")
        }
        return answer()
    }

    private func configuration() -> Response {
        Response(
            status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: .init(byteBuffer: ByteBuffer(string: facts.configuration())))
    }

    /// A backup that fails midway ends without the last chunk, so that the client recognizes it as incomplete.
    private func backup(_ request: Request) throws -> Response {
        let keys = try AdminQuery(request, known: ["keys"]).flag(named: "keys")
        let configuration = facts.configFile.flatMap { FileManager.default.contents(atPath: $0) }.map { Array($0) }
        return Response(
            status: .ok, headers: [.contentType: "application/x-tar", .cacheControl: "no-store"],
            body: ResponseBody { [data, facts] writer in
                try await data.backup(keys: keys, configuration: configuration, version: facts.version) {
                    try await writer.write(ByteBuffer(bytes: $0))
                }
                try await writer.finish(nil)
            })
    }

    private func reload() async -> Response {
        do {
            let outcome = try await facts.reload()
            return .json([
                "waiting": .array(outcome.waiting.map { .string($0) }), "partly": .array(outcome.partly.map { .string($0) }),
            ])
        } catch {
            return .problem(.conflict, detail: "the configuration is not reloaded, the old one stays in force: \(error)")
        }
    }

    private func declare(_ request: Request, named name: String) async throws -> Response {
        let name = name.removingPercentEncoding ?? name
        guard let body = await request.jsonObject(), let origin = body["origin"]?.string else {
            return .problem(.badRequest, detail: "the body is {\"origin\": URL}, and may have \"gateway\": \"host:port\"")
        }
        if let other = body.names.first(where: { !["origin", "gateway"].contains($0) }) {
            return .problem(.unprocessable, detail: "\(other) is no member of this body; the file takes every other key")
        }
        do throws(UpstreamDeclaration.Refusal) {
            let outcome = try await facts.declare(UpstreamDeclaration(name: name, origin: origin, gateway: body["gateway"]?.string))
            return .json(
                ["name": .string(name), "origin": .string(origin), "gateway": .optional(outcome.gateway)],
                status: outcome.isKnown ? .ok : .created)
        } catch {
            switch error {
            case .invalid(let why): return .problem(.unprocessable, detail: why)
            case .notPossible(let why): return .problem(.conflict, detail: why)
            }
        }
    }

    private func code() -> Response {
        let (code, until) = codes.issue(now: clock())
        return .json(["code": .string(code), "url": .string(dashboard() + "#once=" + code), "expiresAt": .time(until)], status: .created)
    }

    private func exchange(_ request: Request) async throws -> Response {
        guard let code = await request.jsonObject()?["code"]?.string, codes.use(code, now: clock()) else {
            return .problem(.unauthorized, detail: "the code was used or has expired; open a new one with: rockpool dashboard")
        }
        return .json(["token": .string(token)])
    }
}

/// Codes that each buy the admin token once, within a minute (docs/security-model.md#dashboard).
final class DashboardCodes: Sendable {
    /// The time for which a code is valid.
    static let life = TimeSpan.minutes(1)
    /// The most codes that are valid at once; the oldest is dropped.
    private static let most = 16

    private let open = Mutex<[(code: String, until: Timestamp)]>([])

    /// Returns a new code of 128 random bits, in hexadecimal digits.
    func issue(now: Timestamp) -> (code: String, until: Timestamp) {
        let halves = (0..<2).map { _ in String(UInt64.random(in: .min ... .max), radix: 16) }
        let code = halves.map { String(repeating: "0", count: 16 - $0.count) + $0 }.joined()
        let until = now + Self.life
        open.withLock { open in
            open = (open + [(code, until)]).suffix(Self.most)
        }
        return (code, until)
    }

    /// Takes a code back; false if it was never issued, was used, or has expired.
    func use(_ code: String, now: Timestamp) -> Bool {
        open.withLock { open in
            open.removeAll { $0.until < now }
            guard let index = open.firstIndex(where: { $0.code == code }) else { return false }
            open.remove(at: index)
            return true
        }
    }
}

/// The process around the engine: its version, its places, and its configuration.
package struct ServerFacts: Sendable {
    package var version = ""
    /// The path of the configuration file; nil without a file.
    package var configFile: String?
    package var stateDirectory = ""
    package var cacheDirectory = ""
    /// `host:port` of the forward proxy as bound.
    package var proxy: String?
    /// Open connections of clients, and open tunnels.
    package var connections: @Sendable () -> (clients: Int, tunnels: Int) = { (0, 0) }
    /// When the certificate authority expires; nil without one.
    package var authorityExpiry: @Sendable () -> Timestamp? = { nil }
    /// The documentation that came with the program; nil without any.
    package var documentation: DocumentationPages?
    /// The last reading of the configuration; the start counts.
    package var lastReload: @Sendable () -> (at: Timestamp, isGood: Bool)? = { nil }
    /// The effective configuration as a JSON text.
    package var configuration: @Sendable () -> String = { "{}" }
    /// Every key of the effective configuration with its value and its source, as items of a list.
    package var values: @Sendable () -> [JSONValue] = { [] }
    /// Reads the configuration again and applies it. Throws the reason why the old one stays in force.
    package var reload: @Sendable () async throws -> ReloadOutcome = { ReloadOutcome(waiting: [], partly: []) }
    /// Declares an upstream in the configuration file, and applies it.
    package var declare: @Sendable (UpstreamDeclaration) async throws(UpstreamDeclaration.Refusal) -> UpstreamDeclaration.Outcome = {
        _ throws(UpstreamDeclaration.Refusal) in throw .notPossible("this server cannot change its configuration")
    }

    package init() {}
}

/// One more upstream (docs/reference/admin-api.md#server).
package struct UpstreamDeclaration: Hashable, Sendable {
    package let name: String
    package let origin: String
    /// `host:port`; nil for the next free port.
    package let gateway: String?

    package init(name: String, origin: String, gateway: String? = nil) { (self.name, self.origin, self.gateway) = (name, origin, gateway) }

    package struct Outcome: Hashable, Sendable {
        /// True if it was declared before.
        package let isKnown: Bool
        /// `host:port` as bound; nil without a gateway.
        package let gateway: String?

        package init(isKnown: Bool, gateway: String?) { (self.isKnown, self.gateway) = (isKnown, gateway) }
    }

    package enum Refusal: Error {
        /// The declaration is wrong.
        case invalid(String)
        /// The name or the origin is another upstream's, or the file cannot be changed.
        case notPossible(String)
    }
}

/// The keys of a reloaded configuration that are not yet, or only partly, in force.
package struct ReloadOutcome: Hashable, Sendable {
    /// Keys that change with a restart.
    package var waiting: [String]
    /// Keys that serving uses now, and the store after a restart.
    package var partly: [String]

    package init(waiting: [String], partly: [String]) {
        self.waiting = waiting
        self.partly = partly
    }
}

/// The address of the TCP listener, known when it is bound.
final class BoundAddress: Sendable {
    private let held = Mutex<HostAndPort?>(nil)

    var address: HostAndPort? { held.withLock { $0 } }

    func set(_ address: HostAndPort) { held.withLock { $0 = address } }
}

/// Reads the default route (docs/reference/admin-api.md#status).
enum ConnectionFacts {
    /// The most bytes that are read of a table of routes.
    private static let tableLimit = Int.kib(64)

    /// The interface of the default route and its kind; nil while there is none.
    static var current: (interface: String, kind: ConnectionKind)? {
        let interface =
            DefaultRoute.interface(inIPv4: text(of: "/proc/net/route")) ?? DefaultRoute.interface(inIPv6: text(of: "/proc/net/ipv6_route"))
        guard let interface, !interface.contains("/") else { return nil }
        let isWireless = ["wireless", "phy80211"].contains { unsafe access("/sys/class/net/\(interface)/\($0)", F_OK) == 0 }
        return (interface, ConnectionKind(interface: interface, isWireless: isWireless))
    }

    private static func text(of path: String) -> String {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: tableLimit)
        let count = unsafe read(descriptor, &bytes, bytes.count)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }
}
