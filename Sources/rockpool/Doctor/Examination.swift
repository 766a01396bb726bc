// The checks of one configuration, in the order in which failures depend on each other.
import Foundation
import Glibc
import RockpoolCore
import RockpoolNetwork
import RockpoolStore

/// Runs all checks once.
struct Examination {
    let configuration: Configuration
    let environment: [String: String]
    let client: AdminClient
    /// The running server; nil if none runs.
    var server: RunningServer?
    /// The configuration file of the caller.
    var file: String?
    var files: AuthorityFiles

    init(_ configuration: Configuration, client: AdminClient, environment: [String: String] = ProcessInfo.processInfo.environment) {
        self.configuration = configuration
        self.environment = environment
        self.client = client
        files = AuthorityFiles(stateDirectory: configuration.storage.stateDir)
    }

    func report() async -> DoctorReport {
        let source = (server == nil ? file : server?.facts.configFile).map { ", \($0)" } ?? ", defaults"
        var found = [
            Finding.ok(
                "configuration",
                detail: "valid, \(configuration.upstreams.count.counted("upstream"))\(source)")
        ]
        let doors = try? await client.doors()
        found.append(serverFinding(doors: doors))
        if doors == nil { found += ports() }
        found += openProxy() + directories() + (await bodies()) + codings() + (await refusedWrites())
        found += (await owners()) + authority() + (await untrustingClients()) + (await fleet())
        let switched = await networkSwitch()
        found += await upstreams(switched: switched) + signatures()
        guard let doors else { return DoctorReport(found) }
        // A client that bypasses the proxy would send a DNS query.
        if switched.mode == .offline {
            found.append(.ok("clients", detail: "not checked in network mode offline"))
        } else {
            found += await tools(through: doors)
        }
        return DoctorReport(found)
    }

    private func serverFinding(doors: AdminClient.Doors?) -> Finding {
        if let doors {
            let place = server?.facts.stateDir.map { ", state directory \($0)" } ?? ""
            return .ok("server", detail: "running, proxy at \(doors.proxy)\(place)")
        }
        if let other = OtherServer(at: configuration.admin.listen) {
            return .warn("server", detail: "not running here, but \(other)", advice: other.doctor)
        }
        return .warn("server", detail: "not running", advice: "start it with: rockpool serve")
    }

    // MARK: This machine

    private func ports() -> [Finding] {
        let listeners =
            [("proxy.listen", configuration.proxy.listen), ("admin.listen", configuration.admin.listen)]
            + [("proxy.socks", configuration.proxy.socks), ("proxy.transparent", configuration.proxy.transparent)]
            .compactMap { name, address in address.map { (name, $0) } }
            + GatewayListener.all(of: configuration.upstreams).map { door in
                ("gateway of \(door.upstreams.map(\.name).joined(separator: ", "))", door.listen)
            }
        return listeners.compactMap { name, address in
            guard let place = HostAndPort(address), place.port != 0 else { return nil }
            if place.isFree { return .ok("port", detail: "\(name) \(address) is free") }
            if OtherServer(at: configuration.admin.listen) != nil {
                return .warn(
                    "port", detail: "\(name) \(address) is held, probably by another Rockpool",
                    advice: "use that one, or choose another port")
            }
            return .fail(
                "port", detail: "\(name) \(address) cannot be listened on",
                advice: "stop the program that holds it (ss -ltnp), or choose another port")
        }
    }

    private func directories() -> [Finding] {
        let storage = configuration.storage
        if let server, !server.isOwn {
            return [("state_dir", storage.stateDir), ("cache_dir", storage.cacheDir)].map {
                .ok($0, detail: "\($1), of the running server")
            }
        }
        return [("state_dir", storage.stateDir), ("cache_dir", storage.cacheDir)].map { name, path in
            let attributes = try? FileManager.default.attributesOfItem(
                atPath: URL(filePath: path).resolvingSymlinksInPath().path)
            guard let mode = (attributes?[.posixPermissions] as? NSNumber)?.intValue else {
                return .ok(name, detail: "\(path) will be created")
            }
            if mode & 0o077 != 0 { return .fail(name, detail: "\(path) can be read by others", advice: "chmod 700 \(path)") }
            guard access(path, W_OK | X_OK) == 0 else {
                return .fail(name, detail: "\(path) cannot be written", advice: "make the user that runs the server its owner")
            }
            if name == "state_dir", let refusal = DataStore.refusal(in: path) {
                let words = refusal.description.split(separator: "; ", maxSplits: 1).map { String($0) }
                return .fail(name, detail: words[0], advice: words.dropFirst().first ?? "see the log of rockpool serve")
            }
            var volume = statvfs()
            guard statvfs(path, &volume) == 0 else { return .ok(name, detail: path) }
            let free = ByteCount(Int64(clamping: UInt64(volume.f_bavail) * UInt64(volume.f_frsize)))
            guard free > storage.minFree else {
                return .warn(
                    name, detail: "\(path) has \(free.rounded) free, less than storage.min_free: nothing is stored",
                    advice: "free space on the disk")
            }
            return .ok(name, detail: "\(path), \(free.rounded) free")
        }
    }

    // MARK: Trust

    private func authority() -> [Finding] {
        guard configuration.needsAuthority else { return [.ok("certificate authority", detail: "not needed: nothing is decrypted")] }
        if let server, !server.isOwn {
            return [.ok("certificate authority", detail: "of the running server, \(files.certificatePath) is a copy")]
        }
        let authority: CertificateAuthority
        do {
            guard let loaded = try files.load() else {
                return [.warn("certificate authority", detail: "not created yet", advice: "rockpool ca init, or start the server")]
            }
            authority = loaded
        } catch {
            return [
                .fail("certificate authority", detail: "\(error)", advice: "repair the key, or create a new authority: rockpool ca rotate")
            ]
        }
        let until = ForPeople.time(RFC3339.format(authority.notAfter))
        var found: [Finding] = []
        if authority.notAfter - WallClock.now() < .days(30) {
            found.append(
                .fail("certificate authority", detail: "valid until \(until)", advice: "rockpool ca rotate && rockpool ca install"))
        } else {
            found.append(.ok("certificate authority", detail: "\(authority.subject), valid until \(until)"))
        }
        return found
            + TrustStores.found().map { store in
                if store.holds(files) { return .ok("trust (\(store.kind.rawValue))", detail: store.place) }
                return .warn(
                    "trust (\(store.kind.rawValue))", detail: "\(store.place) does not trust it",
                    advice: "rockpool ca install --store \(store.kind.rawValue)")
            }
    }

    /// Clients that recently refused one of our certificates.
    private func untrustingClients() async -> [Finding] {
        struct Network: Decodable {
            struct Client: Decodable {
                var host: String
                var client: String
                var alert: String
                var bypassedUntil: String?
            }
            var untrusting: [Client]?
        }
        let network = try? await client.send(.get("/v1/network"), timeout: .seconds(5)).decoded(as: Network.self)
        return (network?.untrusting ?? []).map { refusal in
            .warn(
                "client", detail: "\(refusal.client) refused Rockpool's certificate for \(refusal.host) (\(refusal.alert))",
                advice: "make it trust the authority: rockpool ca install, or rockpool run -- its command; or do not decrypt this host"
                    + (refusal.bypassedUntil.map { "; it is not decrypted until \(ForPeople.time($0))" } ?? ""))
        }
    }
}
