// Failures of a call of the admin API (docs/reference/admin-api.md#conventions; problems are RFC 9457).
import Foundation
import RockpoolCore

/// The reason why a call has no usable response.
enum AdminFailure: Error, Hashable, CustomStringConvertible {
    /// No process listens on the socket.
    case notRunning(socket: String)
    /// No process listens on the socket, but a server of another state directory holds the port of the admin API.
    case elsewhere(socket: String, server: OtherServer)
    /// A process accepts on the socket, but did not respond in time.
    case timedOut
    /// This user may not call the server; `group` may.
    case denied(socket: String, group: String?)
    /// The transfer failed for another reason.
    case broken(String)
    /// The command itself stopped the transfer: it could not read what to send, or not write what it received.
    case stopped(String)
    /// Other operations depend on the one to be removed.
    case needed(by: [OperationReport])
    /// The server refused the request.
    case refused(status: Int, title: String?, detail: String?)

    var description: String {
        switch self {
        case .notRunning(let socket):
            "no server is running (no process listens on \(socket)); start it with: rockpool serve"
                + (Directories.workingFile == nil ? "" : "; of ./rockpool.yaml only serve and config know, name it by --config")
        case .elsewhere(let socket, let server): "no server answers on \(socket), but \(server)"
        case .timedOut: "the server did not respond in time"
        case .needed(let others): others.count.counted("other operation depends", "other operations depend") + " on it"
        case .stopped(let why): why
        case .denied(let socket, let group): "this user may not call the server at \(socket); \(Self.advice(for: group))"
        case .broken(let why): "the server cannot be called: \(why)"
        case .refused(let status, let title, let detail):
            [title ?? "the server answered \(status)", detail].compactMap(\.self).joined(separator: ": ").inOneLine
        }
    }

    var status: ExitStatus {
        switch self {
        case .notRunning, .elsewhere: .notRunning
        case .timedOut, .refused(429, _, _), .refused(503, _, _): .busy
        case .denied, .broken, .stopped, .needed, .refused: .failed
        }
    }

    /// How a user gets the right to call the server.
    static func advice(for group: String?) -> String {
        let member = group.map { ", or as a member of the group \($0): sudo adduser $USER \($0), then log in anew" }
        return "run the command with sudo" + (member ?? "")
    }

    /// True if the socket has no server: a command may work on the stores itself.
    var isNotRunning: Bool { status == .notRunning }

    /// The failure that a reply stands for; nil for a 2xx.
    init?(status: Int, body: Data) {
        if (200..<300).contains(status) { return nil }
        struct ProblemDetails: Decodable {
            var title: String?
            var detail: String?
            var dependants: [OperationReport]?
        }
        let problem = try? JSONDecoder().decode(ProblemDetails.self, from: body)
        if let dependants = problem?.dependants, !dependants.isEmpty {
            self = .needed(by: dependants)
            return
        }
        self = .refused(status: status, title: problem?.title, detail: problem?.detail)
    }
}
