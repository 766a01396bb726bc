// Reads stored bodies whole, for those who compute with them (docs/outbox.md#effects).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

extension EntryLookup {
    /// Returns the entry's whole body, decoded from `gzip` or `deflate`; nil if it is gone, in another coding, only a part, or longer than
    /// `limit` bytes.
    /// - Throws: `FileError`, `DatabaseError`.
    func content(of entry: CacheEntry, limit: Int) async throws -> [UInt8]? {
        guard entry.response.part == nil, entry.response.bodyLength <= Int64(limit), let body = try await cache.body(of: entry) else {
            return nil
        }
        guard entry.response.head.fields.contains(.contentEncoding) else {
            return Array(try await cache.read(0..<entry.response.bodyLength, of: body).readableBytesView)
        }
        guard ContentCoding.canBeDecoded(entry.response.head) else { return nil }
        let decoded = DecodedBody(body, in: cache)
        guard await decoded.begin(), let all = try? await decoded.collect(upTo: limit), all.isWhole else { return nil }
        return Array(all.bytes.readableBytesView)
    }
}
