// Writes one reply at the client's pace: a slow client slows the upstream and never fills the proxy's memory (docs/architecture.md#parts).
import Glibc
import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import RockpoolCore
import RockpoolEngine
import Synchronization

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
    /// True if the client takes fields after the body.
    var acceptsTrailers = false
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
                HeadSerializer.writeTrailers(acceptsTrailers ? source.trailers : [:], into: &end)
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

/// A reply on an HTTP/2 stream: the same head and body, framed by the connection (RFC 9113 §8.1).
extension ReplyWriter {
    /// Sends the reply as parts, at the pace of the client's flow-control window. Throws when the stream is broken.
    func sendAsParts(_ reply: Reply, framing: ReplyFraming) async throws {
        let head = Self.headPart(reply.head, framing: framing)
        if isHead || framing == .bodiless {
            channel.write(head, promise: nil)
            try await channel.writeAndFlush(HTTPServerResponsePart.end(nil))
            if case .stream(let source, _) = reply.body { try await source.drain() }
            return
        }
        channel.write(head, promise: nil)
        var trailers: HTTPHeaders?
        switch reply.body {
        case .none: break
        case .bytes(let bytes):
            let written = channel.eventLoop.makePromise(of: Void.self)
            channel.write(HTTPServerResponsePart.body(.byteBuffer(bytes)), promise: written)
            sent.add(bytes.readableBytes, when: written.futureResult)
        case .file(let path, let offset, let length, let lease):
            try await sendPieces(of: FileBody(path: path, offset: offset, length: length, lease: lease))
        case .stream(let source, _):
            try await sendParts(of: source)
            let fields = acceptsTrailers ? source.trailers : [:]
            if !fields.isEmpty { trailers = HTTPHeaders(fields.map { ($0.name.canonicalName, $0.value) }) }
        }
        try await channel.writeAndFlush(HTTPServerResponsePart.end(trailers))
    }

    /// Sends a streamed body with at most one chunk waiting for the client's window.
    private func sendParts(of source: any BodySource) async throws {
        let channel = channel
        channel.eventLoop.execute { channel.flush() }
        do {
            while let chunk = try await source.next() {
                let isBehind = !channel.isWritable
                let written = sendPart(chunk)
                if isBehind || !channel.isWritable { try await written.get() }
            }
        } catch {
            source.abandon()
            throw error
        }
    }

    /// Reads each piece of the file after the client has received the previous one; a piece is at most as large as the part received so
    /// far.
    private func sendPieces(of file: FileBody) async throws {
        let channel = channel
        channel.eventLoop.execute { channel.flush() }
        while let piece = try await file.next(upTo: backlog?.piece(after: sent.count) ?? UnsentBytes.least) {
            try await sendPart(piece).get()
        }
    }

    private func sendPart(_ bytes: ByteBuffer) -> EventLoopFuture<Void> {
        let written = channel.eventLoop.makePromise(of: Void.self)
        channel.writeAndFlush(HTTPServerResponsePart.body(.byteBuffer(bytes)), promise: written)
        sent.add(bytes.readableBytes, when: written.futureResult)
        return written.futureResult
    }

    /// Returns a head for the codec, which converts it to HTTP/2. Fields of an HTTP/1 connection are omitted.
    static func headPart(_ head: ResponseHead, framing: ReplyFraming) -> HTTPServerResponsePart {
        var headers = HTTPHeaders()
        headers.reserveCapacity(head.fields.count + 1)
        for field in head.fields where field.name != .contentLength && field.name != .transferEncoding && field.name != .connection {
            headers.add(name: field.name.rawName, value: field.value)
        }
        if case .length(let length) = framing { headers.add(name: "content-length", value: String(length)) }
        return .head(HTTPResponseHead(version: .http2, status: HTTPResponseStatus(statusCode: head.status), headers: headers))
    }
}

/// The transport of replies.
enum ReplyWire {
    /// Bytes on a socket; the kernel can send files directly.
    case plain
    /// Bytes through TLS.
    case tls
    /// Parts that become the frames of one HTTP/2 stream.
    case stream
}

/// Compares the unsent bytes of a channel with those at the client's last progress (docs/security-model.md#slow-clients).
struct WriteProgress {
    /// The minimum progress in bytes per idle limit; a slower client is disconnected.
    private static let leastTaken = Int.kib(256)

    /// True for an HTTP/2 stream, whose progress is visible as writability after each received piece.
    let isStream: Bool
    /// The unsent bytes when the wait for the client began, or at its last progress.
    private var unsentBytes = 0

    init(isStream: Bool) { self.isStream = isStream }

    /// Begins a wait for the client.
    mutating func restart(on channel: any Channel) { unsentBytes = unsent(on: channel) }

    /// Returns true if the client has taken enough since the last progress, which is then the present one.
    mutating func advance(on channel: any Channel) -> Bool {
        let unsent = unsent(on: channel)
        guard unsent <= unsentBytes - Self.leastTaken else { return false }
        unsentBytes = unsent
        return true
    }

    /// Bytes written that the socket has not accepted yet. On the event loop only.
    private func unsent(on channel: any Channel) -> Int {
        isStream ? 0 : (try? channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
    }
}

/// Counts the bytes of one reply as their writes succeed, and those that wait for the client.
final class SentBytes: Sendable {
    private let bytes = Atomic<Int64>(0)
    /// The client's share of the memory for bodies; nil where its streams are counted elsewhere.
    private let memory: SharedBudget.Share?

    init(in memory: SharedBudget.Share? = nil) { self.memory = memory }

    var count: Int64 { bytes.load(ordering: .relaxed) }

    /// True if the client has more in memory than its share: nothing more is written before it has taken what was.
    var isScarce: Bool { memory?.isExceeded ?? false }

    func add(_ count: Int) { bytes.add(Int64(count), ordering: .relaxed) }

    /// Adds bytes of the body once the write that carries them has succeeded.
    func add(_ count: Int, when written: EventLoopFuture<Void>) { written.whenSuccess { self.add(count) } }

    /// The same for bytes that are in memory until then.
    func addHeld(_ count: Int, when written: EventLoopFuture<Void>) {
        memory?.change(by: count)
        written.whenComplete { result in
            self.memory?.change(by: -count)
            if case .success = result { self.add(count) }
        }
    }
}

/// Runs jobs of tasks between the events of one loop. Blocking work (the disk, the upstream) has its own threads.
final class LoopExecutor: TaskExecutor {
    let loop: any EventLoop

    init(_ loop: any EventLoop) { self.loop = loop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
