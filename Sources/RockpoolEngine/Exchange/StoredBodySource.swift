// A stored body that cannot be sent as its file is, because it lies sealed (`storage.encrypt`).
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

/// Reads a stored body piece by piece, as the client takes it.
final class StoredBodySource: BodySource {
    /// Bytes read at once.
    private static let step: Int64 = 131_072

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
