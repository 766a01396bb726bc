// Files that other programs delete, truncate or add: the ledger stays correct, and foreign files stay (docs/storage.md#ledger,
// docs/storage.md#faults).
import Foundation
import GRDB
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct BodyFilesTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    private var bodies: String { "\(scratch.cache)/bodies" }

    private func bodyBytes() -> Int64 { Scratch.files(under: bodies).reduce(0) { $0 + Scratch.allocated($1) } }

    @Test func filesThatVanishedAreGivenBackAndTheCacheGoesOn() async throws {
        let store = try openCache(scratch.cache, time, storage(cache: .mb(8)))
        for n in 0..<40 { _ = try await store.put("/\(n)", bytes(100_000, seed: UInt64(n + 1)), at: time.now) }
        for shard in try FileManager.default.contentsOfDirectory(atPath: bodies) {
            try FileManager.default.removeItem(atPath: "\(bodies)/\(shard)")
        }
        _ = try await store.remove(where: .all)
        #expect(store.footprint.parts.files == 0)
        for n in 0..<80 { #expect(try await store.put("/\(n)", bytes(100_000, seed: UInt64(n + 1)), at: time.now) != nil) }
        // Count on the writer's thread, which creates and deletes files: eviction may be in progress.
        let (counted, found) = try await store.queue.outside { _ in (store.footprint.parts.files, bodyBytes()) }
        #expect(counted == found)
        await store.close()
    }

    @Test func aFileThatComesBackIsCountedOnce() async throws {
        let store = try openCache(scratch.cache, time)
        let body = bytes(100_000)
        _ = try await store.put("/a", body, at: time.now)
        let file = try #require(Scratch.files(under: bodies).first)
        try FileManager.default.removeItem(atPath: file)
        _ = try await store.put("/b", body, at: time.now)
        #expect(store.footprint.parts.files == bodyBytes())
        // A truncated file is replaced, and the row records the new body.
        #expect(truncate(file, 10) == 0)
        _ = try await store.put("/c", body, at: time.now)
        #expect(store.footprint.parts.files == bodyBytes())
        let total = try await store.queue.outside { try Int64.fetchOne($0, sql: "SELECT bytes FROM total") }
        #expect(total == bodyBytes())
        _ = try await store.remove(where: .all)
        #expect(store.footprint.parts.files == 0)
        await store.close()
    }

    @Test func aDiskThatDoesNotAnswerCostsNoEntry() async throws {
        let first = try openCache(scratch.cache, time)
        _ = try await first.put("/a", bytes(100_000), at: time.now)
        await first.close()
        let store = try openCache(scratch.cache, time)
        let file = try #require(Scratch.files(under: bodies).first)
        // Opening through a symbolic link that refers to itself fails with ELOOP, for root too.
        try FileManager.default.moveItem(atPath: file, toPath: "\(scratch.path)/away")
        let shard = String(file.prefix(upTo: try #require(file.lastIndex(of: "/"))))
        try FileManager.default.removeItem(atPath: shard)
        try FileManager.default.createSymbolicLink(atPath: shard, withDestinationPath: shard)
        let entry = try #require(try await store.only("/a"))
        await #expect(throws: FileError.self) { try await store.body(of: entry) }
        try FileManager.default.removeItem(atPath: shard)
        try FileManager.default.createDirectory(atPath: shard, withIntermediateDirectories: false)
        try FileManager.default.moveItem(atPath: "\(scratch.path)/away", toPath: file)
        #expect(try await store.bytes(of: entry) == bytes(100_000))
        #expect(try await store.usage().badBodies == 0)
        await store.close()
    }

    @Test func onlyUnnamedBodiesAreRemovedAndWhatIsNotOursStays() async throws {
        let store = try openCache(scratch.cache, time)
        _ = try await store.put("/a", bytes(100_000), at: time.now)
        let shards = BodyShards(root: store.bodies.root)
        let named = try #require(shards.shards().flatMap { shards.names(inShard: $0).bodies }.first)
        let orphan = [UInt8](repeating: 0xab, count: 32)
        let manager = FileManager.default
        try manager.createDirectory(atPath: "\(bodies)/ab", withIntermediateDirectories: true)
        try manager.createDirectory(atPath: "\(bodies)/photos", withIntermediateDirectories: true)
        let foreign = ["ab/notes.txt", "ab/\(String(repeating: "cd", count: 32))", "ab/\(String(repeating: "AB", count: 32))", "photos/a"]
        for path in foreign + ["ab/\(Digest.hex(orphan))"] { try Data([1]).write(to: URL(fileURLWithPath: "\(bodies)/\(path)")) }
        let link = [UInt8](repeating: 0xab, count: 31) + [0]
        try manager.createSymbolicLink(atPath: "\(bodies)/ab/\(Digest.hex(link))", withDestinationPath: "\(bodies)/photos/a")
        try manager.createSymbolicLink(atPath: "\(bodies)/cc", withDestinationPath: "\(bodies)/photos")
        #expect(!shards.shards().contains("photos") && !shards.shards().contains("cc"))
        let found = shards.names(inShard: "ab")
        #expect(Set(found.bodies) == [orphan, link] && found.foreign.count == 3)
        let before = store.footprint.parts.files
        let removed = try await store.queue.outside { store.bodies.removeUnnamed([orphan, link, named], in: $0) }
        #expect(removed == 1 && store.footprint.parts.files == before)
        for path in foreign { #expect(manager.fileExists(atPath: "\(bodies)/\(path)")) }
        let entry = try #require(try await store.only("/a"))
        #expect(try await store.bytes(of: entry) == bytes(100_000))
        await store.close()
        let again = try openCache(scratch.cache, time)
        _ = await again.cleanup(CleanupOptions(aggressive: true), settings: CleanupSettings(), now: time.now)
        for path in foreign { #expect(manager.fileExists(atPath: "\(bodies)/\(path)")) }
        await again.close()
    }

    @Test func aDirectoryThatHoldsOtherThingsIsNoCache() async throws {
        let manager = FileManager.default
        try manager.createDirectory(atPath: "\(scratch.cache)/tmp", withIntermediateDirectories: true)
        try Data([1]).write(to: URL(fileURLWithPath: "\(scratch.cache)/tmp/letter"))
        #expect(throws: ForeignDirectory(directory: scratch.cache, name: "tmp")) { try openCache(scratch.cache, time) }
        #expect(Scratch.files(under: scratch.cache) == ["\(scratch.cache)/tmp/letter"])
        let tag = "\(scratch.cache)/CACHEDIR.TAG"
        try Data("Signature: 8a477f597d28d172789f06886806bc55\n# cargo\n".utf8).write(to: URL(fileURLWithPath: tag))
        #expect(throws: ForeignDirectory(directory: scratch.cache, name: "CACHEDIR.TAG")) { try openCache(scratch.cache, time) }
    }

    @Test(arguments: [0o770, 0o707, 0o702])
    func aDirectoryThatOthersMayWriteIsNotUsed(_ mode: UInt32) async throws {
        await (try openCache(scratch.cache, time)).close()
        #expect(chmod(scratch.cache, mode) == 0)
        #expect(throws: WritableByOthers(directory: scratch.cache)) { try openCache(scratch.cache, time) }
        #expect(chmod(scratch.cache, 0o755) == 0)
        await (try openCache(scratch.cache, time)).close()
    }

    @Test(arguments: [Data(), nil])
    func aCacheWhoseTagIsEmptyOrGoneIsStillOurs(_ tag: Data?) async throws {
        await (try openCache(scratch.cache, time)).close()
        let path = "\(scratch.cache)/CACHEDIR.TAG"
        try FileManager.default.removeItem(atPath: path)
        try tag?.write(to: URL(fileURLWithPath: path))
        await (try openCache(scratch.cache, time)).close()
        #expect(FileManager.default.contents(atPath: path)?.isEmpty == false)
    }

    @Test func theSmallestCacheGoesOnAfterAnyNumberOfBodies() async throws {
        let store = try openCache(scratch.cache, time, storage(cache: .mb(2)))
        for n in 0..<600 {
            let entry = try await store.put("/\(n)", bytes(33_000, seed: UInt64(n + 1)), at: time.now)
            if entry == nil { return #expect(Bool(false), "no room for body \(n)") }
        }
        let shards = try FileManager.default.contentsOfDirectory(atPath: bodies)
        #expect(shards.count < 30 && Scratch.allocated(scratch.cache) <= 2_000_000)
        await store.close()
    }
}
