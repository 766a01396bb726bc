// Where a command looks for the server, and the server as commands see it (docs/reference/cli.md#calling).
import CCurl
import Foundation
import RockpoolCore
import RockpoolNetwork

/// The places of the server's socket.
struct SocketSearch {
    /// The socket of the system's service.
    static let systemSocket = "/run/rockpool/admin.sock"

    let configuration: Configuration
    /// True if the user named a socket, a state directory or a configuration: then only that one is looked for.
    let isNamed: Bool
    var environment: [String: String] = ProcessInfo.processInfo.environment

    /// Every socket that may be the server's, the first choice first.
    var candidates: [String] {
        guard !isNamed else { return [configuration.socketPath] }
        let runtime = environment["XDG_RUNTIME_DIR"].flatMap { $0.hasPrefix("/") ? $0 + "/rockpool/admin.sock" : nil }
        let all = [runtime, configuration.socketPath, Self.systemSocket].compactMap(\.self)
        return all.enumerated().filter { all.firstIndex(of: $0.element) == $0.offset }.map(\.element)
    }

    /// A client of the first socket on which a process listens; else of one that this user may not use, first of those that can be seen; else
    /// of the configured one.
    func client() -> AdminClient {
        let candidates = candidates
        let found = candidates.map { ($0, Self.look(at: $0)) }
        let chosen = [Look.open, .denied, .hidden].lazy.compactMap { look in found.first { $0.1 == look } }.first
        var client = AdminClient(socket: chosen?.0 ?? configuration.socketPath)
        client.searched = candidates
        client.listen = configuration.admin.listen
        return client
    }

    private enum Look {
        case open
        case denied
        /// In a directory that this user may not enter, where there may be none.
        case hidden
        case closed
    }

    private static func look(at path: String) -> Look {
        var address = sockaddr_un()
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { return .closed }
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return .closed }
        defer { close(descriptor) }
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let status = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        if status == 0 { return .open }
        guard errno == EACCES || errno == EPERM else { return .closed }
        return access(path, F_OK) == 0 ? .denied : .hidden
    }
}

/// The server that answers on the socket.
struct RunningServer: Sendable {
    let client: AdminClient
    let facts: ServerFactsReport
    let configuration: Configuration

    /// True if the server runs as the caller, so that the caller may change the files in its state directory.
    var isOwn: Bool {
        let attributes = try? FileManager.default.attributesOfItem(atPath: configuration.storage.stateDir)
        return (attributes?[.ownerAccountID] as? NSNumber)?.uint32Value == geteuid()
    }

    /// The files of its authority. Of another user's server they are a copy of the certificate, below the caller's data directory, beside
    /// which the caller's bundles are written.
    func authorityFiles(environment: [String: String]) async throws -> AuthorityFiles {
        if isOwn { return AuthorityFiles(stateDirectory: configuration.storage.stateDir) }
        let files = AuthorityFiles(stateDirectory: Directories.clientFiles(environment: environment))
        try FileManager.default.createDirectory(
            atPath: files.directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        do {
            let certificate = try await client.send(.get("/ca.pem"), timeout: .seconds(5)).body
            if FileManager.default.contents(atPath: files.certificatePath) != certificate {
                try certificate.write(to: URL(fileURLWithPath: files.certificatePath), options: .atomic)
            }
        } catch AdminFailure.refused(404, _, _) {
            try? FileManager.default.removeItem(atPath: files.certificatePath)
        }
        return files
    }
}

/// The members of `/v1/status` about the process.
struct ServerFactsReport: Decodable, Hashable, Sendable {
    var version: String?
    var configFile: String?
    var stateDir: String?
    var cacheDir: String?
    var dashboard: String?
}

/// The answer of `/v1/status` at a TCP port of this machine.
struct OtherServer: Hashable, Sendable, CustomStringConvertible {
    var stateDir: String
    var configFile: String?
    var dashboard: String?

    var description: String {
        let file = configFile.map { " and the configuration \($0)" } ?? ""
        return "the server at \(dashboard ?? "its port") has the state directory \(stateDir)\(file); "
            + (isOpen ? "add --state-dir \(stateDir), or set ROCKPOOL_STATE_DIR" : "run the command with sudo and --state-dir \(stateDir)")
    }

    /// True if this user may enter its state directory.
    private var isOpen: Bool { access(stateDir, X_OK) == 0 || errno != EACCES }

    /// The command that looks at it, with the rights that this user lacks.
    var doctor: String { "\(isOpen ? "" : "sudo ")rockpool doctor --state-dir \(stateDir)" }

    /// For who would start one more: the command that declares an API instead, with the rights that its file needs.
    func invitation(for url: String?) -> String {
        var mayChange = isOpen
        if let configFile { mayChange = (try? ConfigurationEdit(file: configFile).checkWritable()) != nil }
        let command = "\(mayChange ? "" : "sudo ")rockpool add \(url ?? "https://api.example.com")"
        return "Rockpool runs here already\(configFile.map { ", with \($0)" } ?? ""); to give it one more API: \(command)"
    }

    /// Calls the port; nil if no server answers within a second, or if it is no Rockpool.
    init?(at listen: String) {
        guard var place = HostAndPort(listen), place.port != 0 else { return nil }
        if place.isWildcard { place.host = place.host == "::" ? "::1" : "127.0.0.1" }
        guard place.isLoopback, let handle = curl_easy_init() else { return nil }
        defer { curl_easy_cleanup(handle) }
        let exchange = AdminExchange(AdminTransfer(), on: handle)
        let steps: [() -> CURLcode] = [
            { rockpool_easy_set_string(handle, CURLOPT_PROXY, "") },
            { rockpool_easy_set_string(handle, CURLOPT_URL, "http://\(place)/v1/status") },
            { rockpool_easy_set_long(handle, CURLOPT_NOSIGNAL, 1) },
            { rockpool_easy_set_long(handle, CURLOPT_TIMEOUT_MS, 1000) },
            { exchange.perform(method: "GET") },
        ]
        struct Facts: Decodable {
            var stateDir: String
            var configFile: String?
            var dashboard: String?
        }
        guard steps.allSatisfy({ $0() == CURLE_OK }), exchange.status == 200,
            let facts = try? JSONDecoder().decode(Facts.self, from: exchange.body), !facts.stateDir.isEmpty
        else { return nil }
        (stateDir, configFile, dashboard) = (facts.stateDir, facts.configFile, facts.dashboard)
    }
}
