// The source of a reply's bytes, read at the pace of its reader.
package import HTTPTypes
package import NIOCore
package import RockpoolCore
import RockpoolStore
import Synchronization

/// A body that is read chunk by chunk.
package protocol BodySource: Sendable {
    /// Returns the next chunk, nil at the end.
    func next() async throws(TransferFailure) -> ByteBuffer?
    /// Called when the reader leaves before the end.
    func abandon()
    /// The fields after the body, known at its end (RFC 9110 §6.5).
    var trailers: HTTPFields { get }
}

extension BodySource {
    package var trailers: HTTPFields { [:] }

    /// Reads to the end and discards the bytes.
    package func drain() async throws(TransferFailure) {
        while try await next() != nil {}
    }

    /// Returns the first `limit` bytes. If the body is longer, the rest is abandoned and `isWhole` is false.
    package func collect(upTo limit: Int) async throws(TransferFailure) -> (bytes: ByteBuffer, isWhole: Bool) {
        var all = ByteBuffer()
        while var chunk = try await next() {
            if all.readableBytes + chunk.readableBytes > limit {
                if let head = chunk.readSlice(length: limit - all.readableBytes) { all.writeImmutableBuffer(head) }
                abandon()
                return (all, false)
            }
            all.writeBuffer(&chunk)
        }
        return (all, true)
    }
}

// MARK: - Stored bodies

/// Reads a stored body in pieces, at the pace of the client, where it cannot be sent from its file because it is sealed
/// (`storage.encrypt`).
final class StoredBodySource: BodySource {
    /// Number of bytes read at once.
    private static let step: Int64 = .kib(128)

    private let body: CachedBody
    private let cache: CacheStore
    private let offset = Mutex<Int64>(0)

    init(_ body: CachedBody, in cache: CacheStore) {
        self.body = body
        self.cache = cache
    }

    func next() async throws(TransferFailure) -> ByteBuffer? {
        let range = offset.withLock { offset in
            let range = offset..<min(offset + Self.step, body.length)
            offset = range.upperBound
            return range
        }
        guard !range.isEmpty else { return nil }
        guard let bytes = try? await cache.read(range, of: body), bytes.readableBytes == range.count else { throw .copyLost }
        return bytes
    }

    func abandon() {}
}

// MARK: - Slices

/// A fixed number of bytes of a body; the rest is abandoned.
final class BodySlice: BodySource {
    private let source: any BodySource
    private let left: Mutex<Int64>

    init(_ source: any BodySource, length: Int64) {
        self.source = source
        left = Mutex(length)
    }

    func next() async throws(TransferFailure) -> ByteBuffer? {
        let wanted = left.withLock(\.self)
        guard wanted > 0 else { return nil }
        guard var chunk = try await source.next() else {
            throw TransferFailure(kind: .reset, sent: .yes, detail: "the body ended before the range that was asked for")
        }
        if Int64(chunk.readableBytes) >= wanted {
            chunk = chunk.readSlice(length: Int(wanted)) ?? chunk
            source.abandon()
        }
        left.withLock { $0 -= Int64(chunk.readableBytes) }
        return chunk
    }

    func abandon() { source.abandon() }
}

// MARK: - Several ranges

/// A `multipart/byteranges` body cut from a stored one (RFC 9110 §15.3.7.2).
final class Multipart: BodySource {
    private enum Piece {
        case text(String)
        case bytes(Range<Int64>)
    }

    /// Number of bytes read at once.
    private static let step: Int64 = .kib(256)

    /// Length of the whole multipart body in bytes.
    let length: Int64
    private let body: CachedBody
    private let cache: CacheStore
    private let pieces: Mutex<ArraySlice<Piece>>

    init(_ parts: [MultipartPart], closing: String, of body: CachedBody, in cache: CacheStore) {
        self.body = body
        length = parts.reduce(Int64(closing.utf8.count)) { $0 + $1.length }
        self.cache = cache
        var pieces: [Piece] = []
        for part in parts {
            pieces.append(.text(part.preamble))
            for start in stride(from: part.range.lowerBound, to: part.range.upperBound, by: Int(Self.step)) {
                pieces.append(.bytes(start..<min(start + Self.step, part.range.upperBound)))
            }
        }
        self.pieces = Mutex((pieces + [.text(closing)])[...])
    }

    /// Returns a random boundary, so that no body contains it.
    static func boundary() -> String {
        (0..<2).map { _ in String(UInt64.random(in: .min ... .max), radix: 36) }.joined()
    }

    func next() async throws(TransferFailure) -> ByteBuffer? {
        switch pieces.withLock({ $0.popFirst() }) {
        case nil: return nil
        case .text(let text): return ByteBuffer(string: text)
        case .bytes(let range):
            guard let bytes = try? await cache.read(range, of: body), bytes.readableBytes == range.count else { throw .copyLost }
            return bytes
        }
    }

    func abandon() { pieces.withLock { $0 = [] } }
}

// MARK: - Noting what was shown

/// Passes a body on, and tells its content before the client has the whole of it. Nothing is told of a body that breaks off, or that is
/// larger than what is kept (docs/outbox.md#sight).
final class ShownBody: BodySource {
    private struct State {
        var content = ByteBuffer()
        var tell: (@Sendable ([UInt8]) -> Void)?
    }

    private let source: any BodySource
    private let length: Int64?
    private let state: Mutex<State>

    /// - Parameters:
    ///   - length: of the whole body; nil if it is not known.
    ///   - tell: called once with the whole body.
    init(_ source: any BodySource, length: Int64?, tell: @escaping @Sendable ([UInt8]) -> Void) {
        (self.source, self.length) = (source, length)
        state = Mutex(State(tell: tell))
    }

    func next() async throws(TransferFailure) -> ByteBuffer? {
        let chunk: ByteBuffer?
        do throws(TransferFailure) { chunk = try await source.next() } catch {
            state.withLock { $0.tell = nil }
            throw error
        }
        let told = state.withLock { state -> (tell: @Sendable ([UInt8]) -> Void, content: ByteBuffer)? in
            guard let tell = state.tell else { return nil }
            if let chunk { state.content.writeImmutableBuffer(chunk) }
            if state.content.readableBytes > ShownState.contentLimit { state = State() }
            guard state.tell != nil, chunk == nil || length == Int64(state.content.readableBytes) else { return nil }
            defer { state = State() }
            return (tell, state.content)
        }
        if let told { told.tell(Array(told.content.readableBytesView)) }
        return chunk
    }

    func abandon() {
        state.withLock { $0 = State() }
        source.abandon()
    }

    var trailers: HTTPFields { source.trailers }
}
