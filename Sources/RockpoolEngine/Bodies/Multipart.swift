// The body of a reply with several ranges (RFC 9110 §15.3.7.2): the head and the bytes of each part in turn, read on demand.
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

/// A `multipart/byteranges` body cut from a stored one.
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
