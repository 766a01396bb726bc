// One call of the admin API, its reply, and its failures (docs/reference/admin-api.md#conventions; problems are RFC 9457).
import Foundation

/// A request to the running server.
struct AdminCall: Hashable, Sendable {
    var method: String
    /// Absolute path with encoded segments: see `segment`.
    var path: String
    var query: [String: String] = [:]
    /// Repeated parameters, sent after those of `query`.
    var lists: [String: [String]] = [:]
    var body: Tree?
    /// A body that is already JSON, used instead of `body`.
    var json: String?

    static func get(_ path: String, query: [String: String] = [:]) -> AdminCall { AdminCall(method: "GET", path: path, query: query) }
    static func post(_ path: String, _ body: Tree? = nil) -> AdminCall { AdminCall(method: "POST", path: path, body: body) }
    static func put(_ path: String, _ body: Tree) -> AdminCall { AdminCall(method: "PUT", path: path, body: body) }
    static func delete(_ path: String, query: [String: String] = [:]) -> AdminCall { AdminCall(method: "DELETE", path: path, query: query) }

    /// Encodes a text as one path segment, so that an id cannot address another resource.
    static func segment(_ text: String) -> String { text == "." || text == ".." ? text.replacing(".", with: "%2E") : encoded(text) }

    /// The path with its query, encoded.
    var target: String {
        let single = query.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        let repeated = lists.sorted { $0.key < $1.key }.flatMap { name, values in values.map { (name, $0) } }
        let parameters = (single + repeated).map { "\(Self.encoded($0.0))=\(Self.encoded($0.1))" }
        return parameters.isEmpty ? path : path + "?" + parameters.joined(separator: "&")
    }

    private static func encoded(_ text: String) -> String {
        text.utf8.map { byte in
            let scalar = Unicode.Scalar(byte)
            if scalar.isASCII, scalar.properties.isAlphabetic || (48...57).contains(byte) || "-._~".utf8.contains(byte) {
                return String(scalar)
            }
            return "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
        }.joined()
    }
}

/// The server's response, always a 2xx.
struct AdminReply: Hashable, Sendable {
    var status: Int
    var body: Data

    /// Decodes the body as one of our reports.
    func decoded<Report: Decodable>(as type: Report.Type = Report.self) throws -> Report {
        do {
            return try JSONDecoder().decode(type, from: body)
        } catch {
            throw CommandFailure(.failed, "the server's response cannot be read: \(error)")
        }
    }
}

/// The reason why a call has no usable response.
enum AdminFailure: Error, Hashable, CustomStringConvertible {
    /// No process listens on the socket.
    case notRunning(socket: String)
    /// A process accepts on the socket, but did not respond in time.
    case timedOut
    /// The transfer failed for another reason.
    case broken(String)
    /// Other operations depend on the one to be removed.
    case needed(by: [OperationReport])
    /// The server refused the request.
    case refused(status: Int, title: String?, detail: String?)

    var description: String {
        switch self {
        case .notRunning(let socket): "no server is running (no process listens on \(socket)); start it with: rockpool serve"
        case .timedOut: "the server did not respond in time"
        case .needed(let others): "\(others.count) other operations depend on it"
        case .broken(let why): "the server cannot be called: \(why)"
        case .refused(let status, let title, let detail):
            [title ?? "the server answered \(status)", detail].compactMap(\.self).joined(separator: ": ").inOneLine
        }
    }

    var status: ExitStatus {
        switch self {
        case .notRunning: .notRunning
        case .timedOut, .refused(429, _, _), .refused(503, _, _): .busy
        case .broken, .needed, .refused: .failed
        }
    }

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
