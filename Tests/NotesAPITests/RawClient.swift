// A client of one connection that keeps every byte: what a proxy's tests need and an HTTP client hides.
import NIOCore
import NIOPosix

/// One TCP connection. Sends text, collects what comes back.
final class RawClient: Sendable {
    /// A whole answer as text.
    struct Answer: Equatable {
        var status: Int
        var head: String
        var body: String

        /// The first field of this name.
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

    /// Sends text and gives everything that comes back until the other side closes.
    func exchange(_ text: String) async throws -> String {
        try await channel.executeThenClose { inbound, outbound in
            try await outbound.write(ByteBuffer(string: text))
            var all = ByteBuffer()
            do {
                for try await piece in inbound { all.writeImmutableBuffer(piece) }
            } catch is IOError {
                // A reset is a close without an answer.
            }
            return String(buffer: all)
        }
    }

    /// One request on a connection of its own; nil when no answer comes.
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
