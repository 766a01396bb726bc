// Reads the body of a queueable write completely before anything is sent: an incomplete body must reach neither upstream nor outbox.
import NIOCore
import RockpoolCore
import RockpoolStore

/// Reads request bodies into memory, or into a blob of the data store: above `memoryLimit`, and where the client has more in memory than it may.
enum Spool {
    /// The size in bytes above which a body becomes a file (docs/outbox.md#files).
    static let memoryLimit = Int.mib(1)
    /// The size in bytes up to which a trial of an absent upstream holds a body of unknown length: if nothing of it is sent, it is queued.
    private static let trialLimit = Int.mib(16)

    enum Outcome {
        case whole(Whole)
        /// The body cannot be stored, but the upstream is reachable: the body is streamed through, and the problem is the reply if that
        /// fails. `held` is the same body where it can be queued if none of it is taken.
        case passing(OutboundRequest.Body, orElse: Problem, held: HeldBody? = nil)
        case refused(Problem)
    }

    /// A complete body, which may be in a file.
    struct Whole: Sendable {
        let stored: OperationBody
        let outbound: OutboundRequest.Body
        private let data: DataStore?

        init(_ bytes: ByteBuffer) {
            stored = bytes.readableBytes == 0 ? .none : .inline(Array(bytes.readableBytesView))
            outbound = bytes.readableBytes == 0 ? .none : .bytes(bytes)
            data = nil
        }

        init(_ body: OperationBody, in data: DataStore) throws {
            stored = body
            outbound = OutboundRequest.Body(try data.content(of: body))
            self.data = data
        }

        /// Releases the file when no operation refers to it; cleanup deletes it.
        func discard() { data?.discard(stored) }
    }

    /// - Parameter isTrial: true if the upstream is away, and this request may try it.
    /// - Throws: the failure that interrupted the body.
    static func read(
        _ exchange: Exchange, limit: ByteCount, isReachable: Bool, isTrial: Bool, into data: DataStore
    ) async throws(TransferFailure) -> Outcome {
        guard let body = exchange.body else { return .whole(Whole(ByteBuffer())) }
        if let length = exchange.bodyLength, length > limit.bytes {
            return isReachable ? .passing(.stream(body, length: length), orElse: tooLarge(limit)) : .refused(tooLarge(limit))
        }
        var bytes = ByteBuffer()
        let held = isTrial && exchange.bodyLength == nil ? trialLimit : memoryLimit
        while var chunk = try await body.next() {
            let hasRoom = exchange.held.take(chunk.readableBytes)
            bytes.writeBuffer(&chunk)
            let isTooLarge = bytes.readableBytes > limit.bytes
            guard isTooLarge || !hasRoom || bytes.readableBytes > held else { continue }
            // The length is unknown and the body is already large: while the upstream is reachable, stream it instead of storing it.
            if exchange.bodyLength == nil, isReachable {
                if isTooLarge { return .passing(.stream(BodyPipe(bytes, then: body), length: nil), orElse: tooLarge(limit)) }
                let held = HeldBody(bytes, then: body)
                return .passing(.stream(held.passed(), length: nil), orElse: unsized, held: held)
            }
            if isTooLarge {
                body.abandon()
                return .refused(tooLarge(limit))
            }
            exchange.held.release()
            return try await readBlob(bytes, body: body, length: exchange.bodyLength, limit: limit, isReachable: isReachable, data: data)
        }
        guard bytes.readableBytes > memoryLimit else { return .whole(Whole(bytes)) }
        return try await readBlob(bytes, body: body, length: nil, limit: limit, isReachable: isReachable, data: data)
    }

    /// Stores a body that was to be passed on, and of which nothing was taken.
    /// - Throws: the failure that interrupted the body.
    static func keep(_ held: HeldBody, limit: ByteCount, into data: DataStore) async throws(TransferFailure) -> Outcome {
        try await readBlob(held.start, body: held.rest, length: nil, limit: limit, isReachable: false, data: data)
    }

    private static func readBlob(
        _ start: ByteBuffer, body: BodyPipe, length: Int64?, limit: ByteCount, isReachable: Bool, data: DataStore
    ) async throws(TransferFailure) -> Outcome {
        var total = Int64(start.readableBytes)
        do {
            let writer: BlobWriter
            do { writer = try await data.blobWriter(expectedLength: length) } catch let error as DataStoreError
                where isReachable && error.isNoRoom
            {
                // The body need not be stored while the upstream is reachable.
                return .passing(.stream(BodyPipe(start, then: body), length: length), orElse: error.noRoom)
            }
            try await writer.append(start)
            while let chunk = try await body.next() {
                total += Int64(chunk.readableBytes)
                guard total <= limit.bytes else {
                    body.abandon()
                    return .refused(tooLarge(limit))
                }
                try await writer.append(chunk)
            }
            return .whole(try Whole(try await writer.finish(), in: data))
        } catch let failure as TransferFailure {
            throw failure
        } catch let error as DataStoreError where error.isNoRoom {
            body.abandon()
            return .refused(error.noRoom)
        } catch {
            body.abandon()
            return .refused(Problem(.notQueueable, detail: "the outbox could not keep this body: \(error)", retryAfter: 5))
        }
    }

    /// The refusal of a body that was passed on as it came, and of which nothing is kept.
    private static let unsized = Problem(
        .notQueueable, detail: "the upstream cannot be reached; a body without Content-Length is queued once that is known: send it again",
        retryAfter: 5)

    /// The refusal of a body that could only be passed through, while its upstream is unreachable.
    static func tooLarge(_ limit: ByteCount) -> Problem {
        Problem(.bodyTooLarge, detail: "the upstream cannot be reached, and a body past queue.max_body (\(limit)) is not queued")
    }
}

extension OutboundRequest.Body {
    /// An operation's body as it is sent.
    init(_ content: OperationContent) {
        switch content {
        case .bytes(let bytes): self = bytes.isEmpty ? .none : .bytes(ByteBuffer(bytes: bytes))
        case .stored(let content): self = .stored(StoredBodyReader(content.reader()), length: content.length)
        }
    }
}

/// A stored body as it is sent.
private struct StoredBodyReader: BodyReader {
    private var reader: StoredContentReader

    init(_ reader: StoredContentReader) { self.reader = reader }

    mutating func next(_ count: Int) throws(TransferFailure) -> ByteBuffer {
        do { return try reader.next(count) } catch {
            throw TransferFailure(kind: error is DamagedBody ? .damaged : .cancelled, sent: .maybe, detail: "\(error)")
        }
    }

    mutating func rewind() { reader.rewind() }
}
