// Export of the cache to bundles: shared entries in pages, bodies in pieces.
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore
import Testing

@Suite struct ExportTests {
    private func filled() async throws -> (CacheStore, Scratch) {
        let (scratch, time) = (try Scratch(), ManualTime())
        let cache = try openCache(scratch.cache, time)
        try await cache.put("/a", [1], at: time.now, fields: [.vary: "Accept"], vary: [.accept: "x"])
        time.advance(.seconds(1))
        try await cache.put("/a", [2], at: time.now, fields: [.vary: "Accept"], vary: [.accept: "y"])
        try await cache.put("/b", bytes(100_000), at: time.now)
        try await cache.put("/c", [4], category: .important, at: time.now)
        return (cache, scratch)
    }

    @Test func sharedEntriesInPages() async throws {
        let (cache, scratch) = try await filled()
        defer { withExtendedLifetime(scratch) {} }
        var (urls, last): ([String], Int64) = ([], 0)
        while true {
            let page = try await cache.sharedEntries(prefix: "https://api.example.com/", category: nil, after: last, limit: 3)
            guard let end = page.last?.id else { break }
            #expect(page.count <= 3)
            last = end
            urls += page.map { $0.key.url.replacing("https://api.example.com", with: "") }
        }
        #expect(urls == ["/a", "/a", "/b", "/c"])
        #expect(try await cache.sharedEntries(prefix: "", category: "important", after: 0, limit: 9).map(\.response.bodyLength) == [1])
        #expect(try await cache.sharedEntries(prefix: "https://other", category: nil, after: 0, limit: 9).isEmpty)
    }

    @Test(arguments: [(0, 10), (99_990, 10), (0, 100_000), (99_990, 50), (200_000, 10)]) func aBodyInPieces(
        offset: Int, count: Int
    ) async throws {
        let (cache, scratch) = try await filled()
        defer { withExtendedLifetime(scratch) {} }
        for (path, whole) in [("/b", bytes(100_000)), ("/c", [4])] {
            let entry = try #require(try await cache.entries(ofURL: "https://api.example.com\(path)").first)
            let body = try #require(try await cache.body(of: entry))
            let piece = try await cache.read(Int64(offset)..<Int64(offset + count), of: body)
            #expect(Array(piece.readableBytesView) == (offset + count <= whole.count ? Array(whole.dropFirst(offset).prefix(count)) : []))
        }
    }
}
