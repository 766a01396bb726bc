// Recovery after accidents: the state left by a crash, a damaged file or a newer version, and the store's reaction
// (docs/storage.md#recovery).
import Foundation
import GRDB
import NIOCore
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct RecoveryTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    /// Waits for the sweep after an unclean stop.
    private func settled(_ store: CacheStore) async throws {
        while store.isSweeping { try await store.lanes.run(1) {} }
    }

    @Test func aKilledCacheKeepsItsEntriesAndLosesItsOrphans() async throws {
        let store = try openCache(scratch.cache, time)
        _ = try await store.put("/a", bytes(100_000), at: time.now)
        let writer = try #require(await store.beginWrite(expectedLength: 200_000, category: .assets))
        _ = try await writer.append(ByteBuffer(bytes: bytes(150_000)))
        let crashed = try scratch.copy(scratch.cache, to: "crashed")
        await store.close()
        let orphan = "\(crashed)/bodies/ab/\(String(repeating: "ab", count: 32))"
        try FileManager.default.createDirectory(atPath: "\(crashed)/bodies/ab", withIntermediateDirectories: true)
        try Data(bytes(50_000)).write(to: URL(fileURLWithPath: orphan))

        let again = try openCache(crashed, time)
        try await settled(again)
        #expect(Scratch.files(under: "\(crashed)/tmp").isEmpty)
        #expect(!FileManager.default.fileExists(atPath: orphan))
        let entry = try #require(try await again.lookup(key("/a")).first)
        #expect(try await again.bytes(of: entry) == bytes(100_000))
        #expect(try await again.usage().bodyBytes == Scratch.files(under: "\(crashed)/bodies").reduce(0) { $0 + Scratch.allocated($1) })
        #expect(try await again.put("/b", bytes(100), at: time.now) != nil)
        await again.close()
    }

    @Test func aKillWithAnEmptyLogIsNoCleanStop() async throws {
        let (store, data) = (try openCache(scratch.cache, time), try openData(scratch.state, time))
        _ = try await store.put("/a", bytes(100_000), at: time.now)
        for n in 0..<50 { _ = try await data.append(write("\(n)", body: .inline(bytes(5000)))) }
        try await store.queue.outside { try $0.truncateLog() }
        try await data.queue.outside { try $0.truncateLog() }
        let (cache, state) = (try scratch.copy(scratch.cache, to: "crashed"), try scratch.copy(scratch.state, to: "crashed-state"))
        await store.close()
        await data.close()
        let orphan = "\(cache)/bodies/ab/\(String(repeating: "ab", count: 32))"
        try FileManager.default.createDirectory(atPath: "\(cache)/bodies/ab", withIntermediateDirectories: true)
        try Data(bytes(50_000)).write(to: URL(fileURLWithPath: orphan))
        let again = try openCache(cache, time)
        try await settled(again)
        #expect(!FileManager.default.fileExists(atPath: orphan))
        await again.close()
        let handle = try #require(FileHandle(forWritingAtPath: "\(state)/data.sqlite"))
        for page in 3..<12 as Range<UInt64> {
            try handle.seek(toOffset: page * 8192)
            try handle.write(contentsOf: Data(repeating: 0x5A, count: 8192))
        }
        try handle.close()
        #expect { try openData(state, time) } throws: { if case .corrupt = $0 as? DataStoreError { true } else { false } }
    }

    @Test func theMarkOfACleanStopIsThereOnlyWhileNothingRuns() async throws {
        func isMarked() -> [Bool] { [scratch.cache, scratch.state].map { FileManager.default.fileExists(atPath: "\($0)/clean") } }
        for _ in 0..<2 {
            let (store, data) = (try openCache(scratch.cache, time), try openData(scratch.state, time))
            #expect(!store.isSweeping && isMarked() == [false, false])
            await store.close()
            await data.close()
            #expect(isMarked() == [true, true])
        }
    }

    @Test(arguments: [Data("garbage, garbage, garbage".utf8), Data(repeating: 0, count: 30_000)])
    func aDamagedCacheIsSetAsideAndStartedAfresh(_ garbage: Data) async throws {
        let store = try openCache(scratch.cache, time)
        _ = try await store.put("/a", bytes(100_000), at: time.now)
        await store.close()
        try garbage.write(to: URL(fileURLWithPath: "\(scratch.cache)/cache.sqlite"))
        let again = try openCache(scratch.cache, time)
        try await settled(again)
        #expect(try await again.lookup(key("/a")).isEmpty)
        #expect(try Data(contentsOf: URL(fileURLWithPath: "\(scratch.cache)/cache.sqlite.corrupt-\(time.now.milliseconds)")) == garbage)
        #expect(Scratch.files(under: "\(scratch.cache)/bodies").isEmpty)
        #expect(try await again.put("/a", bytes(100), at: time.now) != nil)
        await again.close()
    }

    @Test func aCacheOfANewerVersionIsSetAside() async throws {
        await (try openCache(scratch.cache, time)).close()
        let raw = try DatabaseQueue(path: "\(scratch.cache)/cache.sqlite")
        try await raw.write { try $0.execute(sql: "PRAGMA user_version = 99") }
        try raw.close()
        let store = try openCache(scratch.cache, time)
        #expect(FileManager.default.fileExists(atPath: "\(scratch.cache)/cache.sqlite.corrupt-\(time.now.milliseconds)"))
        await store.close()
    }

    @Test func aDamagedDataStoreIsLeftAsItIs() async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(write("1"))
        await store.close()
        let path = "\(scratch.state)/data.sqlite"
        let garbage = Data("SQLite format 4, or so it seems".utf8)
        try garbage.write(to: URL(fileURLWithPath: path))
        #expect { try openData(scratch.state, time) } throws: { error in
            guard case .corrupt(path, _)? = error as? DataStoreError else { return false }
            return "\(error)".contains("rockpool doctor --recover")
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == garbage)
    }

    @Test func aBadPageIsFoundAfterAnUncleanStop() async throws {
        let store = try openData(scratch.state, time)
        for n in 0..<50 { _ = try await store.append(write("\(n)", body: .inline(bytes(5000)))) }
        try await store.queue.outside { _ = try $0.checkpoint(.passive) }
        let crashed = try scratch.copy(scratch.state, to: "crashed")
        await store.close()
        try FileManager.default.removeItem(atPath: "\(crashed)/lock")
        let handle = try #require(FileHandle(forWritingAtPath: "\(crashed)/data.sqlite"))
        for page in 3..<12 as Range<UInt64> {
            try handle.seek(toOffset: page * 8192)
            try handle.write(contentsOf: Data(repeating: 0x5A, count: 8192))
        }
        try handle.close()
        // The write-ahead log still held good copies of the pages; without it the damaged pages are read, and the check must run.
        try Data([1, 2, 3]).write(to: URL(fileURLWithPath: "\(crashed)/data.sqlite-wal"))
        #expect { try openData(crashed, time) } throws: {
            if case .corrupt = $0 as? DataStoreError { true } else { false }
        }
    }

    @Test func aBadPageAfterACleanStopIsToldWithTheWayOut() async throws {
        let store = try openData(scratch.state, time)
        for n in 0..<50 { _ = try await store.append(write("\(n)", body: .inline(bytes(5000)))) }
        let root = try await store.queue.outside { try Int64.fetchOne($0, sql: "SELECT rootpage FROM sqlite_master WHERE name = 'op'") }
        await store.close()
        let handle = try #require(FileHandle(forWritingAtPath: "\(scratch.state)/data.sqlite"))
        try handle.seek(toOffset: UInt64(try #require(root) - 1) * 8192)
        try handle.write(contentsOf: Data(repeating: 0, count: 8192))
        try handle.close()
        await #expect {
            _ = try await openData(scratch.state, time).openOperations()
        } throws: { error in
            if case .corrupt = error as? DataStoreError { "\(error)".contains("rockpool doctor --recover") } else { false }
        }
    }

    /// After a clean stop no log remains that would reveal the loss; every start reports the error, not only the first.
    @Test func anEmptiedDataStoreIsRefused() async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(write("1"))
        await store.close()
        let path = "\(scratch.state)/data.sqlite"
        #expect(truncate(path, 0) == 0)
        for _ in 0..<2 {
            #expect(throws: DataStoreError.lost(path: path)) { try openData(scratch.state, time) }
        }
        #expect(unlink(path) == 0)
        await (try openData(scratch.state, time)).close()
    }

    /// A database that is gone while bodies of accepted writes are there: nothing is removed, and nothing begins anew by itself.
    @Test func aMissingDataStoreWithBodiesIsRefused() async throws {
        let store = try openData(scratch.state, time)
        let writer = try await store.blobWriter(expectedLength: nil)
        try await writer.append(ByteBuffer(bytes: bytes(1_100_000)))
        _ = try await store.append(write("1", body: try await writer.finish()))
        await store.close()
        let path = "\(scratch.state)/data.sqlite"
        #expect(unlink(path) == 0)
        let before = Paths.names(in: "\(scratch.state)/blobs")
        for _ in 0..<2 {
            #expect { try openData(scratch.state, time) } throws: { "\($0)".contains("restore it from a backup") }
        }
        #expect(Paths.names(in: "\(scratch.state)/blobs") == before && before.count == 2)
        // The way that the message names.
        try FileManager.default.moveItem(atPath: "\(scratch.state)/blobs", toPath: "\(scratch.path)/blobs-before")
        await (try openData(scratch.state, time)).close()
    }

    @Test func aNewerDataStoreIsRefused() async throws {
        await (try openData(scratch.state, time)).close()
        let path = "\(scratch.state)/data.sqlite"
        let raw = try DatabaseQueue(path: path)
        try await raw.write { try $0.execute(sql: "PRAGMA user_version = 99") }
        try raw.close()
        let refusal = DataStoreError.newerSchema(path: path, found: 99, known: DataSchema.identity.migrations.count)
        #expect(throws: refusal) { try openData(scratch.state, time) }
    }

    @Test func aSecondServerIsToldWhoHasTheStore() async throws {
        let store = try openData(scratch.state, time)
        #expect(throws: DataStoreError.locked(pid: getpid())) { try openData(scratch.state, time) }
        #expect(throws: DataStoreError.locked(pid: getpid())) { try StoreLock.acquire(scratch.state) }
        await store.close()
    }

    /// A command that reads the store holds its lock without a pid: a start waits for it, and names no process that is gone.
    @Test func aStartWaitsForACommandThatReads() async throws {
        await (try openData(scratch.state, time)).close()
        try Data("4194303\n".utf8).write(to: URL(fileURLWithPath: "\(scratch.state)/lock"))
        let reader = try #require(try StoreLock.toLook(scratch.state))
        // A start blocks its thread, of which tasks have no more than there are cores: a task might release too late.
        Thread.detachNewThread {
            usleep(300_000)
            reader.release()
        }
        await (try openData(scratch.state, time)).close()
        try Data("4194303\n".utf8).write(to: URL(fileURLWithPath: "\(scratch.state)/lock"))
        let other = try #require(try StoreLock.toLook(scratch.state))
        #expect(throws: DataStoreError.locked(pid: nil)) { try openData(scratch.state, time) }
        other.release()
    }

    @Test func aStateDirectoryOpenToOthersIsRefused() throws {
        try FileManager.default.createDirectory(
            atPath: scratch.state, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o750])
        #expect(throws: DataStoreError.readableByOthers(path: scratch.state)) { try openData(scratch.state, time) }
    }

    @Test func whatWasInFlightIsUncertainAfterAKill() async throws {
        let store = try openData(scratch.state, time)
        for id in ["sent", "waiting"] { _ = try await store.append(write(id)) }
        _ = try await store.lease(id: "sent", now: time.now)
        let crashed = try scratch.copy(scratch.state, to: "crashed")
        await store.close()
        let again = try openData(crashed, time)
        let sent = try #require(try await again.operation(id: "sent"))
        #expect(sent.state == .uncertain && sent.reason == .crashed)
        #expect(try await again.attempts(of: sent).map(\.sent) == [.maybe])
        #expect(try await again.operation(id: "waiting")?.state == .pending)
        await again.close()
    }
}
