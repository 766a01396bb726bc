// Clients that write as fast as they receive responses, and record the acknowledgements.
import RockpoolTesting
import Synchronization
import Testing

/// The writes sent and acknowledged in the course of a test.
final class WriteBurst: Sendable {
    private struct State {
        var next = 0
        var acknowledged: Set<String> = []
        var refused: [String] = []
    }

    private let state = Mutex(State())

    /// Titles of the notes that were acknowledged with a 202; each was sent once.
    var acknowledged: Set<String> { state.withLock { $0.acknowledged } }
    /// Responses other than a 202; lost connections are not included.
    var refused: [String] { state.withLock { $0.refused } }

    /// Returns the idempotency key sent with a note; for every other note nil, so that the proxy generates one.
    static func key(of title: String) -> String? {
        title.last?.isNumber == true && (title.last?.wholeNumberValue ?? 0) % 2 == 0 ? "key-" + title : nil
    }

    /// Writes on one connection until the connection is lost or the task is cancelled.
    func write(to gateway: String) async {
        guard let connection = try? await RawConnection.open(gateway) else { return }
        while !Task.isCancelled {
            let title = state.withLock { state in
                state.next += 1
                return "note-\(state.next)"
            }
            guard let answer = try? await send(title, on: connection) else { break }
            state.withLock {
                if answer.status == 202 { $0.acknowledged.insert(title) } else { $0.refused.append("\(title): \(answer.status)") }
            }
        }
        await connection.close()
    }

    private func send(_ title: String, on connection: RawConnection) async throws -> MessageHead {
        let body = #"{"title":"\#(title)"}"#
        let key = Self.key(of: title).map { "Idempotency-Key: \"\($0)\"\r\n" } ?? ""
        try await connection.send(
            "POST /v1/notes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\(key)"
                + "Content-Length: \(body.utf8.count)\r\n\r\n"
                + body)
        return try await connection.response().head
    }
}
