// A stored body for a client that does not take its coding (RFC 9110 §8.4).
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

/// What a stored `gzip` or `deflate` body is when it is decoded, read as it is asked for.
final class DecodedBody: BodySource {
    /// Bytes that are read, and bytes that are made, at once.
    private static let step: Int64 = 65_536
    private static let chunk = 131_072

    private struct State {
        var input = ByteBuffer()
        var offset: Int64 = 0
        /// Made already, by `begin`.
        var first: ByteBuffer?
        /// Whether the last piece was as long as it may be: then more of the same input may be waiting.
        var wasFull = false
    }

    private let body: CachedBody
    private let cache: CacheStore
    private let inflation = Inflation()
    private let state = Mutex(State())

    init(_ body: CachedBody, in cache: CacheStore) {
        self.body = body
        self.cache = cache
    }

    /// Whether its beginning can be decoded. To be asked once, before anything is read.
    func begin() async -> Bool {
        guard let first = try? await next() else { return body.length == 0 }
        state.withLock { $0.first = first }
        return true
    }

    func next() async throws(TransferFailure) -> ByteBuffer? {
        if let first = state.withLock({ $0.first.take() }) { return first }
        while true {
            let (isEmpty, offset) = state.withLock { ($0.input.readableBytes == 0 && !$0.wasFull, $0.offset) }
            if isEmpty {
                if offset >= body.length {
                    guard inflation.isWhole || body.length == 0 else { throw .undecodable }
                    return nil
                }
                let range = offset..<min(offset + Self.step, body.length)
                guard let bytes = try? await cache.read(range, of: body), bytes.readableBytes == range.count else { throw .copyLost }
                state.withLock { ($0.input, $0.offset) = (bytes, range.upperBound) }
            }
            let piece = try expand()
            if piece.readableBytes > 0 { return piece }
        }
    }

    private func expand() throws(TransferFailure) -> ByteBuffer {
        do throws(UndecodableBody) {
            var input = state.withLock(\.input)
            let piece = try inflation.expand(&input, upTo: Self.chunk)
            state.withLock { ($0.input, $0.wasFull) = (input, piece.readableBytes == Self.chunk) }
            return piece
        } catch {
            throw .undecodable
        }
    }

    func abandon() {}
}

extension TransferFailure {
    static let undecodable = TransferFailure(
        kind: .protocolError, sent: .yes, detail: "the stored body is not of the coding it is said to be")
}
