// Writes one reply at the client's pace: a slow client slows the upstream and never fills the proxy's memory (docs/architecture.md#parts).
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
    private static let joinLimit = Int.kib(16)
    /// Bytes of a file per write: the granularity at which the number of sent bytes is known.
    private static let fileStep = Int.mib(1)

    let channel: any Channel
    let wire: ReplyWire
    let isHead: Bool
    /// True for HTTP/1.0, which has no chunked coding and no persistent connections by default.
    let isOldClient: Bool
    let keepsAlive: Bool
    /// The unsent bytes of all streams of a stream's client; nil elsewhere.
    var backlog: StreamBacklog?
    var sent = SentBytes()

    /// Sends the reply, and reports its end.
    /// - Returns: true if the connection may carry another reply; nil when the reply and the connection broke off.
    func finish(_ reply: Reply) async -> Bool? {
        do {
            let staysOpen = try await send(reply)
            reply.ended(ReplyEnd(bytes: sent.count))
            return staysOpen
        } catch {
            // A read cancelled because the client left is not a failure of the upstream.
            let failure = (error as? TransferFailure).flatMap { Task.isCancelled && $0.kind == .cancelled ? nil : $0 }
            reply.ended(ReplyEnd(bytes: sent.count, error: failure?.bodyErrorName ?? ReplyEnd.clientLeft))
            return nil
        }
    }

    /// Sends the reply. Returns true if the connection may carry another; throws when it is broken.
    func send(_ reply: Reply) async throws -> Bool {
        let framing = framing(of: reply)
        if wire == .stream {
            try await sendAsParts(reply, framing: framing)
            return false
        }
        let staysOpen = keepsAlive && framing != .untilClose
        var buffer = channel.allocator.buffer(capacity: .kib(1))
        let connection = !staysOpen ? "close" : isOldClient ? "keep-alive" : nil
        HeadSerializer.write(reply.head, framing: framing, connection: connection, into: &buffer)
        if isHead || framing == .bodiless {
            try await channel.writeAndFlush(buffer)
            // Read to its end although nothing is sent, so that the stored copy is complete.
            if case .stream(let source, _) = reply.body { try await source.drain() }
            return staysOpen
        }
        switch reply.body {
        case .none: try await channel.writeAndFlush(buffer)
        case .bytes(let bytes):
            try await send(buffer, body: bytes)
        case .file(let path, let offset, let length, let lease) where wire != .plain:
            let file = FileBody(path: path, offset: offset, length: length, lease: lease)
            try await send(buffer, source: file, framing: framing)
        case .file(let path, let offset, let length, let lease):
            defer { withExtendedLifetime(lease) {} }
            try await send(buffer, file: path, offset: Int(offset), length: Int(length))
        case .stream(let source, let length):
            // A short body often arrives with its head.
            if length != nil, let whole = (source as? BodyPipe)?.takeWhole(upTo: Self.joinLimit) {
                try await send(buffer, body: whole)
            } else {
                try await send(buffer, source: source, framing: framing)
            }
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

    private func send(_ head: ByteBuffer, body bytes: ByteBuffer) async throws {
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

    private func send(_ head: ByteBuffer, source: any BodySource, framing: ReplyFraming) async throws {
        let (channel, isChunked) = (channel, framing == .chunked)
        var last = channel.write(head)
        // Deferred, so that available parts of the body are flushed with the head.
        channel.eventLoop.execute { channel.flush() }
        do {
            while let chunk = try await source.next() {
                var buffer = chunk
                if isChunked {
                    buffer = channel.allocator.buffer(capacity: chunk.readableBytes + 16)
                    HeadSerializer.writeChunk(chunk, into: &buffer)
                }
                let isBehind = !channel.isWritable || sent.isScarce
                last = channel.writeAndFlush(buffer)
                sent.addHeld(chunk.readableBytes, when: last)
                if isBehind { try await last.get() }
            }
            if isChunked {
                var end = channel.allocator.buffer(string: "0\r\n")
                HeadSerializer.writeTrailers(source.trailers, into: &end)
                last = channel.writeAndFlush(end)
            }
            // Awaited for either framing, because a close that follows must not discard the last bytes.
            try await last.get()
        } catch {
            source.abandon()
            if framing == .untilClose { await reset() }
            throw error
        }
    }

    /// Closes the connection so that the client does not mistake it for the end of the body: with a reset, and without TLS `close_notify`.
    private func reset() async {
        try? await (channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0)).get()
        try? await channel.eventLoop.submit { [channel] in
            let pipeline = channel.pipeline.syncOperations
            let secured = try? pipeline.context(handlerType: NIOSSLServerHandler.self)
            if let secured { secured.close(promise: nil) } else { pipeline.close(promise: nil) }
        }.get()
    }
}
