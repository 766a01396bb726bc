// Scrubbing real stores with real damage: bad entries are removed, foreign files stay, and missing data is reported
// (docs/storage.md#scrub).
import Foundation
import GRDB
import NIOCore
import RockpoolCore
import Synchronization
import Testing

@testable import RockpoolStore

@Suite struct ScrubTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    enum Damage: String, CaseIterable { case flipped, truncated, grown, deleted }

    private func damage(_ path: String, _ damage: Damage) throws {
        if damage == .deleted { return try FileManager.default.removeItem(atPath: path) }
        let handle = try #require(FileHandle(forUpdatingAtPath: path))
        defer { try? handle.close() }
        let size = try handle.seekToEnd()
        switch damage {
        case .flipped:
            try handle.seek(toOffset: size / 2)
            let byte = try #require(try handle.read(upToCount: 1)?.first)
            try handle.seek(toOffset: size / 2)
            try handle.write(contentsOf: Data([byte ^ 1]))
        case .truncated: try handle.truncate(atOffset: size - 1)
        case .grown: try handle.write(contentsOf: Data([1]))
        case .deleted: break
        }
    }

    /// Returns the bytes of every file.
    private func image(_ directory: String) -> [String: Data] {
        Scratch.files(under: directory).reduce(into: [:]) { $0[$1] = FileManager.default.contents(atPath: $1) }
    }

    private func filled() async throws -> CacheStore {
        let store = try openCache(scratch.cache, time)
        for n in 0..<12 { _ = try await store.put("/file/\(n)", bytes(50_000 + n, seed: UInt64(n + 1)), at: time.now) }
        for n in 0..<12 { _ = try await store.put("/row/\(n)", bytes(900 + n, seed: UInt64(n + 50)), category: .important, at: time.now) }
        return store
    }

    private func isWhole(_ store: CacheStore) async throws {
        let again = await store.scrub(dryRun: true, now: time.now)
        #expect(again.isClean, "\(again)")
        #expect(try await store.audit(now: time.now).driftBytes == 0)
        #expect(store.footprint.parts.files == Scratch.files(under: store.bodies.root).reduce(0) { $0 + Scratch.allocated($1) })
    }

    /// A queued body is compared with its name whenever it is read, and its last bytes are withheld if it differs (docs/outbox.md#files).
    @Test(arguments: Damage.allCases, [false, true]) func aDamagedBodyIsNeverReadWhole(_ damage: Damage, isSealed: Bool) async throws {
        var settings = storage()
        settings.encrypt = isSealed ? .private : .off
        let store = try openData(scratch.state, time, settings)
        let writer = try await store.blobWriter(expectedLength: 2_500_000)
        let body = bytes(2_500_000)
        try await writer.append(ByteBuffer(bytes: body))
        let stored = try await writer.finish()
        _ = try await store.append(write("1", body: stored))
        guard case .blob(let name, _) = stored, case .stored(let content) = try store.content(of: stored) else {
            return #expect(Bool(false), "expected a file")
        }
        #expect(try store.content(of: stored).bytes() == body)
        var reader = content.reader()
        _ = try reader.next(.kib(64))
        reader.rewind()
        let start = try reader.next(.mib(1))
        #expect(Array(start.readableBytesView) == Array(body.prefix(.mib(1))))
        let sound = try await store.damagedBodies()
        #expect(sound.isEmpty)
        try self.damage("\(scratch.state)/blobs/\(name)", damage)
        var read = 0
        let error = #expect(throws: DamagedBody.self) {
            var reader = content.reader()
            while case let piece = try reader.next(.kib(64)), piece.readableBytes > 0 { read += piece.readableBytes }
        }
        #expect(read < body.count && error?.what == (damage == .deleted ? .missing : .changed) && error?.name == name)
        #expect(throws: DamagedBody.self) { try store.content(of: stored).bytes() }
        let found = try await store.damagedBodies()
        #expect(found.map(\.sha256) == (damage == .flipped ? [] : [name]) && found.allSatisfy { $0.operations == ["1"] })
        let seal = store.seal
        await store.close()
        let stopped = await DataStore.damagedBodiesWhileStopped(scratch.state, seal: seal, now: time.now)
        #expect(stopped?.map(\.sha256) == [name] && stopped?.first?.operations == ["1"])
    }

    @Test func aSoundCacheIsFoundSoundAndAllOfItIsRead() async throws {
        let store = try await filled()
        let seen = Mutex<[ScrubProgress]>([])
        let report = await store.scrub(now: time.now) { step in seen.withLock { $0.append(step) } }
        #expect(report.isClean, "\(report)")
        #expect(report.cache?.bodies.checked == 24)
        let bytes = try #require(report.cache).bodies.bytes
        #expect(bytes == 610_932)
        let steps = seen.withLock(\.self)
        #expect(steps.map(\.checked) == Array(1...24))
        #expect(steps.allSatisfy { $0.total == 24 && $0.store == "cache" })
        await store.close()
    }

    @Test(arguments: Damage.allCases) func aBadBodyGoesAndTheRestStays(_ kind: Damage) async throws {
        let store = try await filled()
        let entry = try #require(try await store.only("/file/3"))
        let used = try await store.usage().usedBytes
        try damage(store.bodies.path(of: entry.bodyHash), kind)
        let dry = await store.scrub(dryRun: true, now: time.now)
        #expect(try await store.only("/file/3") != nil)
        let real = await store.scrub(now: time.now)
        for report in [dry, real] {
            #expect(report.cache?.bodies.bad == (kind == .deleted ? 0 : 1) && report.cache?.bodies.missing == (kind == .deleted ? 1 : 0))
            #expect(report.cache?.dropped == 1 && report.errors.isEmpty, "\(report)")
        }
        #expect(try await store.only("/file/3") == nil)
        #expect(try await store.usage().entries == 23)
        #expect(try await store.usage().badBodies == (kind == .deleted ? 0 : 1))
        #expect(try await store.usage().usedBytes < used)
        #expect(!FileManager.default.fileExists(atPath: store.bodies.path(of: entry.bodyHash)))
        try await isWhole(store)
        await store.close()
    }

    @Test func aFlippedByteInARowIsFound() async throws {
        let store = try await filled()
        let entry = try #require(try await store.only("/row/5"))
        try await store.queue.commit { db in
            let body = try #require(try Data.fetchOne(db, sql: "SELECT body FROM entry WHERE id = ?", arguments: [entry.id]))
            try db.execute(
                sql: "UPDATE entry SET body = ? WHERE id = ?", arguments: [Data([body[0] ^ 1]) + body.dropFirst(), entry.id])
        }
        #expect(await store.scrub(dryRun: true, now: time.now).cache?.bodies.bad == 1)
        let report = await store.scrub(now: time.now)
        #expect(report.cache?.bodies.bad == 1 && report.cache?.dropped == 1)
        #expect(try await store.only("/row/5") == nil)
        try await isWhole(store)
        await store.close()
    }

    @Test func orphansGoAndForeignFilesAreListedAndLeftAlone() async throws {
        let store = try await filled()
        let (orphan, stranger) = (String(repeating: "cd", count: 32), "\(store.bodies.root)/cd/notes.txt")
        try FileManager.default.createDirectory(atPath: "\(store.bodies.root)/cd", withIntermediateDirectories: true)
        for path in ["\(store.bodies.root)/cd/\(orphan)", stranger, "\(store.bodies.root)/readme"] {
            try Data(bytes(5000)).write(to: URL(fileURLWithPath: path))
        }
        for dryRun in [true, false] {
            let report = await store.scrub(dryRun: dryRun, now: time.now)
            #expect(report.cache?.orphans == 1 && report.cache?.drift.ledgerBytes == -8192)
            #expect(report.cache?.foreign == .init(count: 2, names: ["readme", "cd/notes.txt"]))
        }
        #expect(!FileManager.default.fileExists(atPath: "\(store.bodies.root)/cd/\(orphan)"))
        #expect(FileManager.default.fileExists(atPath: stranger))
        await store.close()
    }

    @Test func wrongSumsAreToldInBytesAndCorrected() async throws {
        let store = try await filled()
        let entry = try #require(try await store.only("/file/1"))
        let before = try await store.usage()
        try await store.queue.commit { db in
            try db.execute(sql: "UPDATE usage SET entries = entries + 3, bytes = bytes - 5000 WHERE category = 'assets'")
            try db.execute(sql: "DELETE FROM usage WHERE category = 'important'")
            try db.execute(sql: "UPDATE total SET bytes = bytes + 4096")
            try db.execute(sql: "UPDATE body SET refs = refs + 2 WHERE sha = ?", arguments: [entry.bodyHash.data])
        }
        for dryRun in [true, false] {
            let drift = try #require(await store.scrub(dryRun: dryRun, now: time.now).cache?.drift)
            let important = try #require(before.byCategory["important"])
            #expect(drift.entries == 3 + important.entries && drift.entryBytes == 5000 + important.bytes)
            #expect(drift.bodyBytes == 4096 && drift.references == 1)
        }
        #expect(try await store.usage().byCategory == before.byCategory)
        try await isWhole(store)
        _ = try await store.remove(where: .all)
        #expect(Scratch.files(under: store.bodies.root).isEmpty)
        await store.close()
    }

    @Test func aWrongSumIsNotCountedForever() async throws {
        let store = try await filled()
        try await store.queue.commit { try $0.execute(sql: "UPDATE total SET bytes = bytes + 1000000") }
        await store.close()
        let again = try openCache(scratch.cache, time)
        let wrong = try await again.usage().bodyBytes
        let report = await again.scrub(now: time.now)
        #expect(report.cache?.drift.bodyBytes == 1_000_000 && report.cache?.drift.ledgerBytes == 1_000_000)
        #expect(try await again.usage().bodyBytes == wrong - 1_000_000)
        try await isWhole(again)
        await again.close()
    }

    @Test func aBodyThatTakesMoreThanItsRowSaysIsCountedAsItIs() async throws {
        let store = try await filled()
        let entry = try #require(try await store.only("/file/2"))
        try await store.queue.commit { db in
            try db.execute(sql: "UPDATE body SET allocated = allocated - 4096 WHERE sha = ?", arguments: [entry.bodyHash.data])
            try db.execute(sql: "UPDATE total SET bytes = bytes - 4096")
        }
        #expect(await store.scrub(now: time.now).cache?.bodies.bad == 0)
        try await isWhole(store)
        await store.close()
    }

    @Test func aDryRunOfAStoppedStoreChangesNoByte() async throws {
        let store = try await filled()
        let entry = try #require(try await store.only("/file/4"))
        await store.close()
        let data = try openData(scratch.state, time)
        _ = try await data.append(write("1"))
        await data.close()
        try damage("\(scratch.cache)/bodies/\(Digest.hex(entry.bodyHash.prefix(1)))/\(Digest.hex(entry.bodyHash))", .flipped)
        let before = (image(scratch.cache), image(scratch.state))
        let report = await CacheStore.scrubWhileStopped(scratch.cache, now: time.now)
            .merged(with: await DataStore.scrubWhileStopped(scratch.state, now: time.now))
        #expect(report.cache?.bodies.bad == 1 && report.cache?.bodies.checked == 24 && report.cache?.dropped == 1)
        #expect(report.data?.pages == [] && report.errors.isEmpty && report.dryRun, "\(report)")
        #expect(image(scratch.cache) == before.0 && image(scratch.state) == before.1)
    }

    @Test func damagedPagesAreToldAndThenNoFileIsRemoved() async throws {
        let store = try openData(scratch.state, time)
        for n in 0..<60 { _ = try await store.append(write("\(n)", body: .inline(bytes(6000, seed: UInt64(n + 1))))) }
        await store.close()
        let orphan = "\(scratch.state)/blobs/\(String(repeating: "cd", count: 32))"
        try Data([1]).write(to: URL(fileURLWithPath: orphan))
        let handle = try #require(FileHandle(forWritingAtPath: "\(scratch.state)/data.sqlite"))
        for page in 90..<93 as Range<UInt64> {
            try handle.seek(toOffset: page * 8192)
            try handle.write(contentsOf: Data(repeating: 0x5A, count: 8192))
        }
        try handle.close()
        let again = try openData(scratch.state, time)
        let report = await again.scrub(now: time.now)
        #expect(report.data?.pages.isEmpty == false && !report.isClean)
        #expect(FileManager.default.fileExists(atPath: orphan))
        await again.close()
    }

    // MARK: the data store

    private func blob(_ store: DataStore, _ seed: UInt64) async throws -> OperationBody {
        let writer = try await store.blobWriter(expectedLength: nil)
        try await writer.append(ByteBuffer(bytes: bytes(1_100_000, seed: seed)))
        return try await writer.finish()
    }

    @Test(arguments: Damage.allCases) func aBadBlobIsToldWithItsOperationAndNeverRemoved(_ kind: Damage) async throws {
        let store = try openData(scratch.state, time)
        for n in 1...3 { _ = try await store.append(write("\(n)", body: try await blob(store, UInt64(n)))) }
        _ = try await store.transition(id: "3", to: .cancelled, reason: .discarded, from: [.pending], now: time.now)
        let names = try await store.openOperations().compactMap { operation -> String? in
            if case .blob(let name, _) = operation.body { name } else { nil }
        }
        let path = "\(scratch.state)/blobs/\(names[0])"
        try damage(path, kind)
        let report = await store.scrub(now: time.now)
        let what = kind == .deleted ? "missing" : "bad"
        #expect(report.data?.badBlobs == [.init(sha256: names[0], what: what, operations: ["1"])], "\(report)")
        #expect(report.data?.blobs.checked == (kind == .deleted ? 2 : 3) && report.errors.isEmpty)
        #expect(FileManager.default.fileExists(atPath: path) == (kind != .deleted))
        #expect(try await store.operation(id: "1")?.state == .pending)
        await store.close()
    }

    @Test func onlyOldBlobsOfNobodyGo() async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(write("1", body: try await blob(store, 1)))
        let held = try await blob(store, 2)
        let (old, young) = (String(repeating: "ab", count: 32), String(repeating: "cd", count: 32))
        for (name, age) in [(old, -301.0), (young, -290), ("notes.txt", -900)] {
            let path = "\(scratch.state)/blobs/\(name)"
            try Data([1]).write(to: URL(fileURLWithPath: path))
            let date = Date(timeIntervalSince1970: Double(time.now.seconds) + age)
            try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: path)
        }
        for dryRun in [true, false] {
            let report = await store.scrub(dryRun: dryRun, now: time.now)
            #expect(report.data?.orphans == 1 && report.data?.foreign == .init(count: 1, names: ["notes.txt"]), "\(report)")
        }
        let left = Set(Paths.names(in: "\(scratch.state)/blobs"))
        #expect(left.count == 5 && left.isSuperset(of: ["tmp", young, "notes.txt"]) && !left.contains(old))
        _ = try await store.append(write("2", body: held))
        #expect(await store.scrub(now: time.now).data?.blobs.checked == 2)
        await store.close()
    }

    // MARK: concurrent writers

    @Test func aScrubAmongWritersDropsNothingThatIsGood() async throws {
        let store = try openCache(scratch.cache, time, storage(cache: .mb(6)))
        await withTaskGroup(of: Void.self) { tasks in
            for task in 0..<4 {
                tasks.addTask {
                    for n in 0..<60 {
                        let size = n % 2 == 0 ? 40_000 + n * 700 : 3000
                        _ = try? await store.put(
                            "/\(task)/\(n % 25)", bytes(size, seed: UInt64(task * 100 + n % 30 + 1)), at: self.time.now)
                        if n % 9 == 0 { _ = try? await store.remove(where: .urls(["https://api.example.com/\(task)/\(n / 2)"])) }
                    }
                }
            }
            tasks.addTask {
                for _ in 0..<6 {
                    let report = await store.scrub(now: self.time.now)
                    #expect(report.isClean, "\(report)")
                }
            }
        }
        #expect(try await store.usage().badBodies == 0)
        try await isWhole(store)
        #expect(Scratch.allocated(scratch.cache) <= 6_000_000)
        await store.close()
    }

    @Test func cleanupAuditsTheLedgerOnceADay() async throws {
        let store = try await filled()
        #expect(try await store.usage().auditedAt == nil)
        let first = time.now
        _ = await store.cleanup(CleanupOptions(), settings: CleanupSettings(), now: first)
        let sound = try await store.usage()
        #expect(sound.auditedAt == first && sound.driftBytes == 0)
        let entry = try #require(try await store.only("/file/0"))
        try damage(store.bodies.path(of: entry.bodyHash), .truncated)
        let handle = try #require(FileHandle(forWritingAtPath: store.bodies.path(of: entry.bodyHash)))
        try handle.truncate(atOffset: 0)
        try handle.close()
        time.advance(.hours(23))
        _ = await store.cleanup(CleanupOptions(dryRun: true), settings: CleanupSettings(), now: time.now)
        #expect(try await store.usage().auditedAt == first)
        time.advance(.hours(1))
        try await store.queue.commit {
            try $0.execute(sql: "UPDATE entry SET fresh_until = 9000000000000, kept_until = 9000000000000, used_at = 9000000000000")
        }
        _ = await store.cleanup(CleanupOptions(), settings: CleanupSettings(), now: time.now)
        let usage = try await store.usage()
        #expect(usage.auditedAt == time.now && usage.driftBytes > 0)
        await store.close()
    }
}
