// Writes one reply at the client's pace: a slow client slows the upstream, it never fills our memory (design §6).
import Glibc
import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import RockpoolCore
import RockpoolEngine

/// Writes replies of one connection.
struct ReplyWriter: Sendable {
    /// Bodies up to this many bytes are copied behind their head: cheaper than a second buffer on its way to the socket.
    private static let joinLimit = 16 * 1024
    /// Bytes of a file that are written at once: so closely is it known how much of it a client took.
    private static let fileStep = 1_048_576

    let channel: any Channel
    let wire: ReplyWire
    let isHead: Bool
    /// HTTP/1.0 clients know neither chunked nor persistent connections by default.
    let isOldClient: Bool
    let keepsAlive: Bool
    /// What the client of a stream has not taken, of all its streams; nil elsewhere.
    var backlog: StreamBacklog?
    let sent = SentBytes()

    /// Sends the reply, and says how that ended.
    /// - Returns: whether the connection may carry another; nil when the reply broke off, and the connection with it.
    func finish(_ reply: Reply) async -> Bool? {
        do {
            let staysOpen = try await send(reply)
            reply.ended(ReplyEnd(bytes: sent.count))
            return staysOpen
        } catch {
            // A reader whose client has left is cancelled: then that is no failure of the upstream.
            let failure = (error as? TransferFailure).flatMap { Task.isCancelled && $0.kind == .cancelled ? nil : $0 }
            reply.ended(ReplyEnd(bytes: sent.count, error: failure?.bodyErrorName ?? ReplyEnd.clientLeft))
            return nil
        }
    }

    /// Sends the reply. Returns whether the connection may carry another; throws when it is broken.
    func send(_ reply: Reply) async throws -> Bool {
        let framing = framing(of: reply)
        if wire == .stream {
            try await sendAsParts(reply, framing)
            return false
        }
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
        case .file(let path, let offset, let length, let lease) where wire != .plain:
            let file = FileBody(path: path, offset: offset, length: length, lease: lease)
            try await send(buffer, file, framing)
        case .file(let path, let offset, let length, let lease):
            defer { withExtendedLifetime(lease) {} }
            try await send(buffer, file: path, offset: Int(offset), length: Int(length))
        case .stream(let source, _): try await send(buffer, source, framing)
        }
        return staysOpen
    }

    private func framing(of reply: Reply) -> ReplyFraming {
        let status = reply.head.status
        if status < 200 || status == 204 || status == 304 { return .bodiless }
        switch reply.body {
        case .none(let length): return isHead ? length.map { .length($0) } ?? .bodiless : .length(0)
        case .bytes(let bytes): return .length(Int64(bytes.readableBytes))
        case .file(_, _, let length, _): return .length(length)
        case .stream(_, let length?): return .length(length)
        case .stream: return isHead ? .bodiless : isOldClient ? .untilClose : .chunked
        }
    }

    private func send(_ head: ByteBuffer, file path: String, offset: Int, length: Int) async throws {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw IOError(errnoCode: errno, reason: "open") }
        let handle = NIOFileHandle(_deprecatedTakingOwnershipOfDescriptor: descriptor)
        defer { try? handle.close() }
        guard length > 0 else { return try await channel.writeAndFlush(head) }
        var last = channel.write(head)
        for start in stride(from: offset, to: offset + length, by: Self.fileStep) {
            let end = min(start + Self.fileStep, offset + length)
            last = channel.write(IOData.fileRegion(FileRegion(fileHandle: handle, readerIndex: start, endIndex: end)))
            sent.add(end - start, when: last)
        }
        channel.flush()
        try await last.get()
    }

    private func send(_ head: ByteBuffer, _ bytes: ByteBuffer) async throws {
        guard bytes.readableBytes > Self.joinLimit else {
            var whole = head
            whole.writeImmutableBuffer(bytes)
            try await channel.writeAndFlush(whole)
            return sent.add(bytes.readableBytes)
        }
        channel.write(head, promise: nil)
        try await channel.writeAndFlush(bytes)
        sent.add(bytes.readableBytes)
    }

    private func send(_ head: ByteBuffer, _ source: any BodySource, _ framing: ReplyFraming) async throws {
        let (channel, isChunked) = (channel, framing == .chunked)
        var last = channel.write(head)
        // A moment later: what there already is of the body goes with it.
        channel.eventLoop.execute { channel.flush() }
        do {
            while let chunk = try await source.next() {
                var buffer = chunk
                if isChunked {
                    buffer = channel.allocator.buffer(capacity: chunk.readableBytes + 16)
                    HeadSerializer.writeChunk(chunk, into: &buffer)
                }
                let isBehind = !channel.isWritable
                last = channel.writeAndFlush(buffer)
                sent.add(chunk.readableBytes, when: last)
                if isBehind { try await last.get() }
            }
            if isChunked { last = channel.writeAndFlush(channel.allocator.buffer(string: "0\r\n\r\n")) }
            // Awaited for either framing: the connection may be closed next, and must not take the last bytes with it.
            try await last.get()
        } catch {
            source.abandon()
            if framing == .untilClose { await reset() }
            throw error
        }
    }

    /// Closes the connection so that the client does not take that for the end of its body: with a reset, and without TLS's own goodbye.
    private func reset() async {
        try? await (channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0)).get()
        try? await channel.eventLoop.submit { [channel] in
            let pipeline = channel.pipeline.syncOperations
            let secured = try? pipeline.context(handlerType: NIOSSLServerHandler.self)
            if let secured { secured.close(promise: nil) } else { pipeline.close(promise: nil) }
        }.get()
    }
}
