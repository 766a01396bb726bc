// The sockets where a command looks for the server, in order (docs/reference/cli.md#calling).
import Foundation
import RockpoolCore

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
