// An upstream's body on its way to the client, with a copy into the cache that counts only when it is whole (RFC 9111 §3.3).
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

/// Passes chunks on and writes them to the cache. Whatever ends early discards the copy.
final class Tee: BodySource {
    private let source: BodyPipe
    private let cache: CacheStore
    private let key: CacheKey
    private let response: StoredResponse
    private let logger: Logger
    private let writer: Mutex<CacheWriter?>
    /// Bytes still to come, when the length was announced.
    private let missing: Mutex<Int64?>

    init(source: BodyPipe, length: Int64?, writer: CacheWriter, cache: CacheStore, key: CacheKey, response: StoredResponse, logger: Logger)
    {
        self.source = source
        self.writer = Mutex(writer)
        self.missing = Mutex(length)
        self.cache = cache
        self.key = key
        self.response = response
        self.logger = logger
    }

    func next() async throws(TransferFailure) -> ByteBuffer? {
        do {
            guard let chunk = try await source.next() else {
                await commit()
                return nil
            }
            await copy(chunk)
            if isLast(chunk), try await source.next() == nil { await commit() }
            return chunk
        } catch {
            discard()
            throw error
        }
    }

    func abandon() {
        discard()
        source.abandon()
    }

    /// Whether the announced length is reached: whoever has the last byte may ask again at once, and `stored` was promised.
    private func isLast(_ chunk: ByteBuffer) -> Bool {
        missing.withLock { missing in
            missing = missing.map { $0 - Int64(chunk.readableBytes) }
            return missing == 0
        }
    }

    private func copy(_ chunk: ByteBuffer) async {
        guard let writer = writer.withLock({ $0 }) else { return }
        do {
            if try await !writer.append(chunk) { discard() }
        } catch {
            logger.warning("cache write failed, the response goes on uncached: \(error)")
            discard()
        }
    }

    private func commit() async {
        guard let writer = takeWriter() else { return }
        do {
            _ = try await cache.commit(writer, key: key, response: response)
        } catch {
            logger.warning("cache commit failed: \(error)")
        }
    }

    /// A writer that is let go of without a commit takes back what it wrote.
    private func discard() { _ = takeWriter() }

    private func takeWriter() -> CacheWriter? {
        writer.withLock {
            let writer = $0
            $0 = nil
            return writer
        }
    }
}
