// A client with one connection that keeps every received byte, which the tests of a server need and an HTTP client hides.
import RockpoolTesting

/// Sends requests as text, each on a new connection, and returns the response bytes as text.
enum RawClient {
    /// A whole response as text.
    struct Answer: Equatable {
        var status: Int
        var head: String
        var body: String

        /// Returns the first field with this name.
        func field(_ name: String) -> String? {
            head.split(separator: "\r\n").first { $0.lowercased().hasPrefix(name.lowercased() + ":") }
                .map { String($0.dropFirst(name.count + 1).drop { $0 == " " }) }
        }
    }

    /// Sends text and returns everything received until the peer closes or resets the connection. Throws when nothing listens at the port.
    static func exchange(_ text: String, port: Int) async throws -> String {
        let connection = try await RawConnection.open("127.0.0.1:\(port)")
        try await connection.send(text)
        // Beside tests that keep every thread busy an answer takes long.
        let received = try await connection.readToEnd(within: .seconds(300))
        await connection.close()
        return received
    }

    /// Sends one request on a new connection; returns nil when no response is received.
    static func send(
        _ method: String, _ target: String, port: Int, fields: [String] = [], body: String? = nil
    ) async throws -> Answer? {
        var lines = ["\(method) \(target) HTTP/1.1", "Host: notes", "Connection: close"] + fields
        if let body { lines.append("Content-Length: \(body.utf8.count)") }
        let text = lines.joined(separator: "\r\n") + "\r\n\r\n" + (body ?? "")
        return answer(in: try await exchange(text, port: port))
    }

    static func answer(in text: String) -> Answer? {
        guard let end = text.firstRange(of: "\r\n\r\n") else { return nil }
        let head = String(text[..<end.lowerBound])
        guard let status = head.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else { return nil }
        return Answer(status: status, head: head, body: String(text[end.upperBound...]))
    }
}
