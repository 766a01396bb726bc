// Writes one reply at the client's pace: a slow client slows the upstream, it never fills our memory (design §6).
import Glibc
import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOPosix
import RockpoolCore
import RockpoolEngine

/// Writes replies of one connection.
struct ReplyWriter: Sendable {
    /// Bytes handed to the channel at once: a client that takes fewer within the idle limit is cut off.
    private static let part = 256 * 1024

    let channel: any Channel
    let isHead: Bool
    /// HTTP/1.0 clients know neither chunked nor persistent connections by default.
    let isOldClient: Bool
    let keepsAlive: Bool

    /// Sends the reply. Returns whether the connection may carry another; throws when it is broken.
    func send(_ reply: Reply) async throws -> Bool {
        let framing = framing(of: reply)
        let staysOpen = keepsAlive && framing != .untilClose
        var buffer = channel.allocator.buffer(capacity: 1024)
        let connection = !staysOpen ? "close" : isOldClient ? "keep-alive" : nil
        HeadSerializer.write(reply.head, framing: framing, connection: connection, into: &buffer)
        if isHead || framing == .bodiless {
            try await channel.writeAndFlush(buffer)
            // Read to its end even where none is sent: whoever stores it learns that it is whole.
            if case .stream(let source, _) = reply.body { try await source.drain() }
            return staysOpen
        }
        switch reply.body {
        case .none: try await channel.writeAndFlush(buffer)
        case .bytes(let bytes):
            try await send(buffer, bytes)
        case .file(let path, let length, let lease):
            defer { withExtendedLifetime(lease) {} }
            try await send(buffer, file: path, length: length)
        case .stream(let source, _): try await send(buffer, source, isChunked: framing == .chunked)
        }
        return staysOpen
    }

    private func framing(of reply: Reply) -> ReplyFraming {
        let status = reply.head.status
        if status < 200 || status == 204 || status == 304 { return .bodiless }
        switch reply.body {
        case .none(let length): return isHead ? length.map { .length($0) } ?? .bodiless : .length(0)
        case .bytes(let bytes): return .length(Int64(bytes.readableBytes))
        case .file(_, let length, _): return .length(length)
        case .stream(_, let length?): return .length(length)
        case .stream: return isHead ? .bodiless : isOldClient ? .untilClose : .chunked
        }
    }

    private func send(_ head: ByteBuffer, file path: String, length: Int64) async throws {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw IOError(errnoCode: errno, reason: "open") }
        let handle = NIOFileHandle(_deprecatedTakingOwnershipOfDescriptor: descriptor)
        defer { try? handle.close() }
        channel.write(head, promise: nil)
        // In parts, so that a slow client that does read is seen to.
        for start in stride(from: 0, to: Int(length), by: Self.part) {
            let region = FileRegion(fileHandle: handle, readerIndex: start, endIndex: min(start + Self.part, Int(length)))
            try await channel.writeAndFlush(IOData.fileRegion(region))
        }
        if length == 0 { try await channel.writeAndFlush(ByteBuffer()) }
    }

    private func send(_ head: ByteBuffer, _ bytes: ByteBuffer) async throws {
        var (buffer, rest) = (head, bytes)
        while rest.readableBytes > Self.part, var part = rest.readSlice(length: Self.part) {
            buffer.writeBuffer(&part)
            try await channel.writeAndFlush(buffer)
            buffer.clear()
        }
        buffer.writeBuffer(&rest)
        try await channel.writeAndFlush(buffer)
    }

    private func send(_ head: ByteBuffer, _ source: any BodySource, isChunked: Bool) async throws {
        var buffer = head
        do {
            try await channel.writeAndFlush(buffer)
            while let chunk = try await source.next() {
                buffer.clear()
                if isChunked { HeadSerializer.writeChunk(chunk, into: &buffer) } else { buffer = chunk }
                if channel.isWritable {
                    channel.writeAndFlush(buffer, promise: nil)
                } else {
                    try await channel.writeAndFlush(buffer)
                }
            }
            // Awaited for either framing: the connection may be closed next, and must not take the last bytes with it.
            try await channel.writeAndFlush(isChunked ? channel.allocator.buffer(string: "0\r\n\r\n") : ByteBuffer())
        } catch {
            source.abandon()
            throw error
        }
    }
}
