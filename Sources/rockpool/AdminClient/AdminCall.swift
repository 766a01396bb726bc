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
    var body: ConfigDocument?
    /// A body that is already JSON, used instead of `body`.
    var json: String?

    static func get(_ path: String, query: [String: String] = [:]) -> AdminCall { AdminCall(method: "GET", path: path, query: query) }
    static func post(_ path: String, body: ConfigDocument? = nil) -> AdminCall { AdminCall(method: "POST", path: path, body: body) }
    static func put(_ path: String, body: ConfigDocument) -> AdminCall { AdminCall(method: "PUT", path: path, body: body) }
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
