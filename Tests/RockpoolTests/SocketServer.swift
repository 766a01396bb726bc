// A server on `admin.sock` of a temporary directory that sends prepared responses and records the requests.
import Foundation
import Synchronization

/// A server with one response for each connection, in order: "" closes at once, nil keeps silent until the server is closed.
final class SocketServer: Sendable {
    let directory: URL
    private let descriptor: Int32
    private let seen = Seen()

    /// The requests received, in order.
    private final class Seen: Sendable {
        let requests = Mutex<[String]>([])
    }

    /// Runs a test with a server; the socket and the directory are removed afterwards.
    @discardableResult
    static func with<Value>(answers: [String?], _ test: (SocketServer) async throws -> Value) async throws -> Value {
        let server = try SocketServer(answers: answers)
        defer {
            server.close()
            try? FileManager.default.removeItem(at: server.directory)
        }
        return try await test(server)
    }

    /// Returns the directory of a server that has ended, with or without its socket file.
    static func abandoned(leavingSocket: Bool) throws -> URL {
        let server = try SocketServer(answers: [])
        server.close()
        if !leavingSocket { try FileManager.default.removeItem(at: server.directory) }
        return server.directory
    }

    private init(answers: [String?]) throws {
        directory = URL(fileURLWithPath: "/tmp/rp-\(UInt32.random(in: .min ... .max))")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: (directory.path + "/admin.sock").utf8) }
        let bound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
        }
        guard bound == 0, listen(descriptor, 8) == 0 else { throw CocoaError(.fileWriteUnknown) }
        Thread.detachNewThread { [seen, descriptor] in
            for answer in answers { Self.serve(answer, on: descriptor, seen: seen) }
        }
    }

    private static func serve(_ answer: String?, on descriptor: Int32, seen: Seen) {
        let connection = accept(descriptor, nil, nil)
        guard connection >= 0 else { return }
        let request = request(on: connection)
        seen.requests.withLock { $0.append(request) }
        guard let answer else { return }
        let bytes = Array(answer.utf8)
        _ = write(connection, bytes, bytes.count)
        _ = Foundation.close(connection)
    }

    /// Returns the requests received so far.
    func requests() -> [String] { seen.requests.withLock { $0 } }

    private func close() {
        shutdown(descriptor, Int32(SHUT_RDWR))
        _ = Foundation.close(descriptor)
    }

    /// Reads the head and body of one request, up to its Content-Length or its last chunk: a server that responds and closes earlier may
    /// break off the client's transmission.
    private static func request(on connection: Int32) -> String {
        var text = ""
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = read(connection, &buffer, buffer.count)
            guard count > 0 else { return text }
            text += String(decoding: buffer[..<count], as: UTF8.self)
            guard let end = text.range(of: "\r\n\r\n") else { continue }
            if text[..<end.lowerBound].contains("Transfer-Encoding: chunked") {
                if text[end.lowerBound...].hasSuffix("\r\n0\r\n\r\n") { return text }
                continue
            }
            let length = text.range(of: "Content-Length: ").flatMap { Int(text[$0.upperBound...].prefix { $0.isNumber }) } ?? 0
            if text[end.upperBound...].utf8.count >= length { return text }
        }
    }
}
