// Installed programs that reach servers without the proxy, whatever the environment says (docs/guide/clients.md#programs).
import RockpoolCore
import RockpoolStore

extension Examination {
    /// One finding for each installed program that goes around, and for exceptions of this shell.
    func around() -> [Finding] {
        let hosts = ClientEnvironment.hosts(in: environment["no_proxy"]) + ClientEnvironment.hosts(in: environment["NO_PROXY"])
        var found = configuration.upstreams.compactMap { upstream in
            hosts.first { ClientEnvironment.names($0, upstream.origin) }.map { entry in
                Finding.warn(
                    "no_proxy", detail: "\(entry) sends clients to upstream \(upstream.name) directly",
                    advice: "remove the entry, or use its gateway")
            }
        }
        found += Self.goingAround.filter { Tool($0.program) != nil }.map { .warn($0.program, detail: $0.detail, advice: $0.advice) }
        let local = configuration.upstreams.filter { OriginAddress.isLoopback($0.origin.host) }.map(\.name)
        for (program, name) in [("go", "Go"), ("ruby", "Ruby"), ("dotnet", ".NET")] where !local.isEmpty && Tool(program) != nil {
            found.append(
                .warn(
                    program, detail: "programs in \(name) reach loopback addresses directly: \(local.joined(separator: ", "))",
                    advice: "use the gateway"))
        }
        return found
    }

    /// How the node stands in its fleet, and what an acknowledged write survives; nothing without a fleet.
    func fleet() async -> [Finding] {
        guard configuration.outbox.store == .postgresql || server != nil,
            let status = try? await client.send(.get("/v1/status")).decoded(as: StatusReport.self), let fleet = status.fleet
        else { return [] }
        guard fleet.database == "there" else {
            return [.warn("fleet", detail: fleet.words, advice: "make the database of outbox.url reachable")]
        }
        let differing = [fleet.differing].compactMap(\.self).map {
            Finding.warn("settings", detail: $0, advice: "give all nodes of the fleet the same values, and run rockpool reload")
        }
        guard !fleet.survivesDatabaseHost else { return [.ok("fleet", detail: fleet.words)] + differing }
        return differing + [
            .warn("fleet", detail: fleet.words, advice: "set synchronous_standby_names in PostgreSQL, and outbox.require_synchronous")
        ]
    }

    /// Writes that were refused lately because there was no room for them.
    func refusedWrites() async -> [Finding] {
        guard let status = try? await client.send(.get("/v1/status")).decoded(as: StatusReport.self), let refused = status.refused
        else { return [] }
        return [.fail("refused writes", detail: refused, advice: "see what fills the outbox: rockpool outbox summary")]
    }

    /// The bodies of queued writes: those of a running server by their lengths, those of a stopped one by what they hold.
    func bodies() async -> [Finding] {
        let damaged: [StatusReport.Damaged]
        if let status = try? await client.send(.get("/v1/status")).decoded(as: StatusReport.self) {
            damaged = status.damaged ?? []
        } else {
            let storage = configuration.storage
            let found = await DataStore.damagedBodiesWhileStopped(
                storage.stateDir, seal: BodySeal.kept(storage), now: WallClock.now())
            guard let found else { return [] }
            damaged = found.map { StatusReport.Damaged(body: "blobs/\($0.sha256)", what: $0.what, operations: $0.operations) }
        }
        return damaged.map {
            .fail("bodies", detail: $0.words, advice: "put the file back from a backup, then: rockpool outbox retry, or discard the writes")
        }
    }

    /// Content codings whose libraries are not installed.
    private func missingCodings() -> [(coding: String, package: String)] {
        [("br", "libbrotli1"), ("zstd", "libzstd1")].filter { !ContentCoding.decodable.contains($0.0) }
    }

    func codings() -> [Finding] {
        let missing = missingCodings()
        guard !missing.isEmpty else { return [] }
        let names = missing.map(\.coding).joined(separator: " and ")
        return [
            .warn(
                "codings", detail: "copies in \(names) are not decoded for clients that do not accept that",
                advice: "install \(missing.map(\.package).joined(separator: " and "))")
        ]
    }

    /// A proxy that other machines can use without a password.
    func openProxy() -> [Finding] {
        guard configuration.proxy.auth == nil, HostAndPort(configuration.proxy.listen)?.isLoopback == false else { return [] }
        return [
            .warn(
                "proxy.listen", detail: "every client of \(configuration.proxy.allow.joined(separator: ", ")) may use the proxy",
                advice: "set proxy.auth if these networks have other users than you")
        ]
    }

    private struct Detour {
        var program: String
        var detail: String
        var advice: String
    }

    private static let goingAround = [
        Detour(
            program: "docker", detail: "pulls are made by the daemon, which reads no variable of a shell",
            advice: "set \"proxies\" in /etc/docker/daemon.json; containers need the variables of rockpool env"),
        Detour(
            program: "php", detail: "its streams (file_get_contents) read no proxy variable; its curl functions do",
            advice: "set the option proxy of a stream context, or use the gateway"),
    ]
}
