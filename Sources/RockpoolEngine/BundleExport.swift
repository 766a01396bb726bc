// Exports the shared cache entries as a WARC file that other tools can read (ISO 28500:2017; docs/reference/admin-api.md#bundles `cache
// export`).
import HTTPTypes
package import NIOCore
package import RockpoolCore
package import RockpoolStore

/// Writes a bundle: a `warcinfo` record, then a `request` and a `response` record for every entry.
///
/// The bundle excludes entries of a principal, entries selected by a credential, and entries that a URL alone does not find.
package struct BundleExport: Sendable {
    private let cache: CacheStore
    private let active: ActiveConfiguration
    private let now: @Sendable () -> Timestamp
    private let prefix: String
    private let category: String?

    /// - Parameters:
    ///   - prefix: the common prefix of the exported URLs; "" selects all.
    ///   - category: exports entries of this category only.
    ///   - now: the wall clock, for the times of the records.
    package init(
        cache: CacheStore, active: ActiveConfiguration, prefix: String = "", category: String? = nil,
        now: @escaping @Sendable () -> Timestamp
    ) {
        self.cache = cache
        self.active = active
        self.now = now
        self.prefix = prefix
        self.category = category
    }

    /// Entries read at once, and bytes of a body read at once.
    private static let page = 64
    private static let step = Int.kib(256)

    /// Passes the bundle to `write` piece by piece and holds one piece at most. Entries stored meanwhile may be missing.
    package func run(_ write: (ByteBuffer) async throws -> Void) async throws {
        try await write(ByteBuffer(bytes: information))
        var last: Int64 = 0
        while true {
            let entries = try await cache.sharedEntries(prefix: prefix, category: category, after: last, limit: Self.page)
            guard let end = entries.last?.id else { return }
            last = end
            for entry in entries {
                guard let request = request(of: entry), let body = try await cache.body(of: entry) else { continue }
                try await write(ByteBuffer(bytes: heads(of: entry, request: request, body: body)))
                try await self.write(body, write)
                try await write(ByteBuffer(bytes: WARCHead.recordEnd))
            }
        }
    }

    private func write(_ body: CachedBody, _ write: (ByteBuffer) async throws -> Void) async throws {
        var sent: Int64 = 0
        while sent < body.length {
            let piece = try await cache.read(sent..<sent + min(Int64(Self.step), body.length - sent), of: body)
            guard piece.readableBytes > 0 else { throw BodyGone() }
            sent += Int64(piece.readableBytes)
            try await write(piece)
        }
    }

    /// The file of a body ended early; every later byte of the bundle would be wrong.
    private struct BodyGone: Error {}

    private var information: [UInt8] {
        let text = Array("software: rockpool\r\nformat: WARC File Format 1.1\r\nconformsTo: ISO 28500:2017\r\n".utf8)
        let head = WARCHead(
            type: "warcinfo", id: UUIDv7.make(at: now()), date: now(), contentLength: Int64(text.count),
            [WARCHead.contentType: "application/warc-fields"])
        return head.serialized + text + WARCHead.recordEnd
    }

    /// Returns the request that finds `entry` again; nil when it contains a secret, when there is none, or when only a part is stored.
    private func request(of entry: CacheEntry) -> RequestHead? {
        guard let request = try? RequestHead(url: entry.key.url, fields: entry.response.requestFields),
            CacheKey(request) == entry.key, entry.response.part == nil,
            !request.fields.contains(where: { active.isSecret($0.name) })
        else { return nil }
        return request
    }

    /// Returns the whole `request` record, and the `response` record up to its payload.
    private func heads(of entry: CacheEntry, request: RequestHead, body: CachedBody) -> [UInt8] {
        let stored = entry.response
        let requestBlock = HTTPBlock.bytes(of: request)
        var head = stored.head
        head.fields[.contentLength] = String(body.length)
        let responseBlock = HTTPBlock.bytes(of: head)
        let requestID = UUIDv7.make(at: now())
        let requestHead = WARCHead(
            type: "request", id: requestID, date: stored.requestTime, contentLength: Int64(requestBlock.count),
            [WARCHead.targetURI: request.url, WARCHead.contentType: "application/http; msgtype=request"])
        let responseHead = WARCHead(
            type: "response", id: UUIDv7.make(at: now()), date: stored.requestTime,
            contentLength: Int64(responseBlock.count) + body.length,
            [
                WARCHead.targetURI: request.url,
                WARCHead.concurrentTo: "<urn:uuid:\(requestID)>",
                WARCHead.contentType: "application/http; msgtype=response",
                WARCHead.payloadDigest: PayloadDigest(.sha256, entry.bodyHash).text,
                BundleField.category: stored.category,
                BundleField.receivedAt: RFC3339.format(stored.responseTime),
                BundleField.assignedSeconds: stored.assignedTTL.map { String($0.seconds) },
                BundleField.invalidated: stored.isInvalidated ? "true" : nil,
            ])
        return requestHead.serialized + requestBlock + WARCHead.recordEnd + responseHead.serialized + responseBlock
    }
}

/// Named fields of Rockpool; other tools ignore unknown fields (ISO 28500:2017 §5.1).
enum BundleField {
    static let category = "Rockpool-Category"
    /// When the response, or the last 304 for it, was received (RFC 9111 §4.2.3); `WARC-Date` is when it was requested.
    static let receivedAt = "Rockpool-Received-At"
    /// The freshness lifetime assigned to a response without one of its own.
    static let assignedSeconds = "Rockpool-Assigned-Seconds"
    /// The response must not be used without validation (RFC 9111 §4.4).
    static let invalidated = "Rockpool-Invalidated"
}
