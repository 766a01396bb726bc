// A stored body that cannot be sent directly from its file, because it is sealed (`storage.encrypt`).
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

/// Reads a stored body in pieces, at the pace of the client.
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
