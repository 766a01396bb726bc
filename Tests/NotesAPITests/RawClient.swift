// A client with one connection that keeps every received byte, which the tests of a proxy need and an HTTP client hides.
import NIOCore
import NIOPosix

/// One TCP connection that sends text and collects the response bytes.
final class RawClient: Sendable {
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

    private let channel: NIOAsyncChannel<ByteBuffer, ByteBuffer>

    private init(_ channel: NIOAsyncChannel<ByteBuffer, ByteBuffer>) { self.channel = channel }

    static func connect(port: Int) async throws -> RawClient {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        return RawClient(channel)
    }

    /// Sends text and returns everything received until the peer closes the connection.
    func exchange(_ text: String) async throws -> String {
        try await channel.executeThenClose { inbound, outbound in
            try await outbound.write(ByteBuffer(string: text))
            var all = ByteBuffer()
            do {
                for try await piece in inbound { all.writeImmutableBuffer(piece) }
            } catch is IOError {
                // A reset counts as a close without a response.
            }
            return String(buffer: all)
        }
    }

    /// Sends one request on a new connection; returns nil when no response is received.
    static func send(
        _ method: String, _ target: String, port: Int, fields: [String] = [], body: String? = nil
    ) async throws -> Answer? {
        var lines = ["\(method) \(target) HTTP/1.1", "Host: notes", "Connection: close"] + fields
        if let body { lines.append("Content-Length: \(body.utf8.count)") }
        let text = lines.joined(separator: "\r\n") + "\r\n\r\n" + (body ?? "")
        return answer(in: try await connect(port: port).exchange(text))
    }

    static func answer(in text: String) -> Answer? {
        guard let end = text.firstRange(of: "\r\n\r\n") else { return nil }
        let head = String(text[..<end.lowerBound])
        guard let status = head.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else { return nil }
        return Answer(status: status, head: head, body: String(text[end.upperBound...]))
    }
}
