// A receiver of webhooks: keeps what it got, and answers with the status of the moment.
import Foundation
import RockpoolCore
import RockpoolTesting
import Synchronization

/// The messages that a webhook or a callback received.
final class MessageReceiver: Sendable {
    /// One POST as received.
    struct Message: Sendable {
        /// The request line.
        var start: String
        var head: MessageHead
        var body: String

        var json: JSONValue? { try? JSONValue.parse(Array(body.utf8)) }
        var id: String { head["webhook-id"] ?? "" }
    }

    private let state: Mutex<(status: Int, messages: [Message])>
    private let server: Mutex<RawServer?>
    let port: Int

    /// - Parameter port: 0 takes a free one.
    static func start(port: Int = 0, status: Int = 204) async throws -> MessageReceiver {
        let box = Box()
        let server = try await RawServer.start(port: port) { connection in
            while true {
                let text = try await connection.read(through: "\r\n\r\n", within: .seconds(60))
                let (start, head) = (String(text.prefix { $0 != "\r\n" }), MessageHead(text))
                let count = head["content-length"].flatMap { Int($0) } ?? 0
                let body = String(decoding: try await connection.read(bytes: count), as: UTF8.self)
                let status = box.receiver?.take(Message(start: start, head: head, body: body)) ?? 500
                try await connection.send("HTTP/1.1 \(status) Done\r\nContent-Length: 0\r\n\r\n")
            }
        }
        let receiver = MessageReceiver(server: server, status: status)
        box.set(receiver)
        return receiver
    }

    private init(server: RawServer, status: Int) {
        state = Mutex((status, []))
        port = server.port
        self.server = Mutex(server)
    }

    private func take(_ message: Message) -> Int {
        state.withLock { state in
            // Probes look whether it is there.
            if message.start.hasPrefix("POST") { state.messages.append(message) }
            return state.status
        }
    }

    /// The messages so far, in order.
    var messages: [Message] { state.withLock(\.messages) }
    var url: String { "http://127.0.0.1:\(port)/hook" }

    func answer(_ status: Int) { state.withLock { $0.status = status } }

    func stop() async { await server.withLock { $0 }?.stop() }

    private final class Box: Sendable {
        private let held = Mutex<MessageReceiver?>(nil)
        var receiver: MessageReceiver? { held.withLock { $0 } }
        func set(_ receiver: MessageReceiver) { held.withLock { $0 = receiver } }
    }
}

extension MessageReceiver.Message {
    /// Checks a signature by openssl, with a secret of plain text.
    func isSigned(with secret: String, in scratch: Scratch) async throws -> Bool {
        let signed = try scratch.write("\(id).\(head["webhook-timestamp"] ?? "").\(body)", to: "signed")
        let key = secret.utf8.map { String(format: "%02x", $0) }.joined()
        let made = try await Command.run(
            "/usr/bin/openssl", ["dgst", "-sha256", "-mac", "HMAC", "-macopt", "hexkey:\(key)", "-r", signed])
        let digits = Array(made.output.prefix(64).utf8)
        let bytes = stride(from: 0, to: digits.count - 1, by: 2).compactMap {
            UInt8(String(decoding: digits[$0...$0 + 1], as: UTF8.self), radix: 16)
        }
        return head["webhook-signature"] == "v1," + Data(bytes).base64EncodedString()
    }
}
