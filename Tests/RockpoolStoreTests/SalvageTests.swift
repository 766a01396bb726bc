// Recovery of a damaged outbox: real databases with real damage; the recovered operations can be sent (docs/storage.md#recovery).
import Foundation
import GRDB
import HTTPTypes
import NIOCore
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct SalvageTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    private var target: String { "\(scratch.path)/recovered" }

    /// Returns a store with 120 operations in 7 lanes, some of them sent, one body in a file, one conflict, and an authority.
    private func filled() async throws -> DataStore {
        let store = try openData(scratch.state, time)
        for n in 0..<120 {
            _ = try await store.append(write("op\(n)", body: .inline(bytes(1100 + n % 50, seed: UInt64(n + 1))), lane: "lane\(n % 7)"))
        }
        for n in 0..<5 {
            _ = try await store.lease(id: "op\(n)", now: time.now)
            _ = try await store.finish(
                id: "op\(n)", disposition: Disposition(state: .delivered), result: nil, attempt: AttemptRecord(sent: .yes), now: time.now)
        }
        let writer = try await store.blobWriter(expectedLength: nil)
        try await writer.append(ByteBuffer(bytes: bytes(1_200_000)))
        _ = try await store.append(write("large", body: try await writer.finish(), lane: "large"))
        _ = try store.adminToken()
        try FileManager.default.createDirectory(atPath: "\(scratch.state)/ca", withIntermediateDirectories: true)
        for name in ["ca.key", "ca.crt"] {
            try Data(name.utf8).write(to: URL(fileURLWithPath: "\(scratch.state)/ca/\(name)"))
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: "\(scratch.state)/ca/\(name)")
        }
        return store
    }

    private func image(_ directory: String) -> [String: Data] {
        Scratch.files(under: directory).reduce(into: [:]) { $0[$1] = FileManager.default.contents(atPath: $1) }
    }

    private func ask<T: DatabaseValueConvertible>(_ sql: String) throws -> [T] {
        let database = try DatabaseQueue(path: "\(scratch.state)/data.sqlite")
        defer { try? database.close() }
        return try database.read { try T.fetchAll($0, sql: sql) }
    }

    private func overwrite(page: Int, with byte: UInt8) throws {
        let handle = try #require(FileHandle(forWritingAtPath: "\(scratch.state)/data.sqlite"))
        try handle.seek(toOffset: UInt64(page - 1) * 8192)
        try handle.write(contentsOf: Data(repeating: byte, count: 8192))
        try handle.close()
    }

    /// Checks that the store opens, that its first operations can be leased, and that no sequence is reused.
    private func isUsable(after last: Int64) async throws {
        let store = try openData(target, time)
        let open = try await store.openOperations()
        var firsts: [String: String] = [:]
        for operation in open where operation.state == .pending { firsts[operation.lane] = firsts[operation.lane] ?? operation.id }
        #expect(firsts.count == 8)
        for id in firsts.values { #expect(try await store.lease(id: id, now: time.now)?.id == id) }
        #expect(try await store.append(write("new", lane: "new")).sequence > last)
        #expect(try await store.queue.outside { try String.fetchAll($0, sql: "PRAGMA integrity_check") } == ["ok"])
        await store.close()
    }

    @Test func aSoundStoreComesOverWhole() async throws {
        let store = try await filled()
        let operations = try await store.operations(OperationFilter(states: Set(OperationState.allCases), limit: 1000)).items
        await store.close()
        let before = image(scratch.state)
        let report = try await DataStore.recover(from: scratch.state, into: target)
        #expect(image(scratch.state) == before)
        #expect(report.isWhole && report.blobs == 1 && report.unplaced == nil, "\(report)")
        #expect(report.operations == ["pending": 116, "delivered": 5])
        #expect(report.copied == ["admin-token", "ca/ca.crt", "ca/ca.key", "install-key", "live-writes"])
        #expect(FileStatus.of(target)?.permissions == 0o700 && FileStatus.of("\(target)/ca/ca.key")?.permissions == 0o600)
        #expect(Set(Paths.names(in: target)) == ["admin-token", "blobs", "ca", "data.sqlite", "install-key", "live-writes"])
        let again = try openData(target, time)
        #expect(try await again.operations(OperationFilter(states: Set(OperationState.allCases), limit: 1000)).items == operations)
        #expect(try await again.deliveredTotal() == 5)
        #expect(await again.scrub(now: time.now).isClean)
        await again.close()
        try await isUsable(after: 121)
    }

    @Test(arguments: [UInt8(0), 0x5A, 0x0D], [false, true]) func aLostLeafCostsItsRowsOnly(_ byte: UInt8, _ isMany: Bool) async throws {
        await (try await filled()).close()
        let leaves: [Int] = try ask("SELECT pageno FROM dbstat WHERE name = 'op' AND pagetype = 'leaf' ORDER BY path")
        #expect(leaves.count > 6)
        let lost = isMany ? [leaves[2], leaves[3], leaves[leaves.count - 2]] : [leaves[2]]
        let cells: [Int] = try ask(
            "SELECT ncell FROM dbstat WHERE name = 'op' AND pageno IN (\(lost.map(String.init).joined(separator: ",")))")
        let root: [Int] = try ask("SELECT rootpage FROM sqlite_master WHERE name IN ('op_lane', 'op_state')")
        for page in lost + root { try overwrite(page: page, with: byte) }
        let before = image(scratch.state)
        let report = try await DataStore.recover(from: scratch.state, into: target)
        #expect(image(scratch.state) == before)
        let operations = try #require(report.tables.first { $0.name == "op" })
        #expect(operations.rows == 121 - cells.reduce(0, +) && !operations.isWhole && operations.unplaced == 0, "\(report)")
        #expect(operations.unreadable.count == (isMany ? 2 : 1))
        #expect(report.tables.allSatisfy { $0.isWhole || $0.name == "op" })
        #expect(report.blobs == 1 && report.lostBlobs.isEmpty)
        try await isUsable(after: 121)
    }

    @Test(arguments: [UInt8(0), 0x5A], [false, true]) func aLostFirstPageIsPutBack(_ byte: UInt8, _ isVacuumed: Bool) async throws {
        let store = try await filled()
        if isVacuumed { try await store.queue.outside { try $0.execute(sql: "VACUUM") } }
        await store.close()
        try overwrite(page: 1, with: byte)
        let before = image(scratch.state)
        let report = try await DataStore.recover(from: scratch.state, into: target)
        #expect(image(scratch.state) == before)
        #expect(report.isWhole && report.notes.count == 1 && report.operations == ["pending": 116, "delivered": 5], "\(report)")
        try await isUsable(after: 121)
    }

    @Test func theRightmostLeafAndItsParentCanBeLostToo() async throws {
        await (try await filled()).close()
        let leaves: [Int] = try ask("SELECT pageno FROM dbstat WHERE name = 'op' AND pagetype = 'leaf' ORDER BY path")
        try overwrite(page: try #require(leaves.last), with: 0)
        let report = try await DataStore.recover(from: scratch.state, into: target)
        let operations = try #require(report.tables.first { $0.name == "op" })
        #expect(!operations.isWhole && operations.rows > 90)
        // The operation with the large body was the last one: its body is kept, so that its owner can be found.
        #expect(report.blobs == 0 && report.unplacedBlobs == 1)
        #expect(Paths.names(in: "\(target)/unplaced-blobs").count == 1)
        let store = try openData(target, time)
        #expect(try await store.append(write("new", lane: "new")).sequence > 121)
        await store.close()
    }

    @Test func whatRefersToALostRowIsWrittenDownBeside() async throws {
        let store = try await filled()
        for n in 5..<12 { _ = try await store.lease(id: "op\(n)", now: time.now) }
        await store.close()
        let first: [Int] = try ask("SELECT pageno FROM dbstat WHERE name = 'op' AND pagetype = 'leaf' ORDER BY path LIMIT 1")
        try overwrite(page: try #require(first.first), with: 0)
        let report = try await DataStore.recover(from: scratch.state, into: target)
        let attempts = try #require(report.tables.first { $0.name == "attempt" })
        #expect(attempts.unplaced > 0 && attempts.isWhole && !report.isWhole)
        let text = try String(contentsOfFile: try #require(report.unplaced), encoding: .utf8)
        let lines = text.split(separator: "\n")
        #expect(lines.count == attempts.unplaced)
        #expect(lines.allSatisfy { $0.hasPrefix(#"{"table":"attempt","why":"FOREIGN KEY"#) })
        #expect(FileStatus.of("\(target)/unplaced.jsonl")?.permissions == 0o600)
    }

    @Test func aTornLogGivesWhatWasCommittedBeforeTheTear() async throws {
        let store = try await filled()
        try await store.queue.outside { try $0.truncateLog() }
        // Few enough that no page is checkpointed into the database file.
        for n in 0..<10 { _ = try await store.append(write("late\(n)", lane: "late")) }
        let crashed = try scratch.copy(scratch.state, to: "crashed")
        await store.close()
        let log = "\(crashed)/data.sqlite-wal"
        let size = try #require(FileStatus.of(log)?.size)
        let handle = try #require(FileHandle(forWritingAtPath: log))
        try handle.truncate(atOffset: UInt64(size / 2 + 100))
        try handle.close()
        let before = image(crashed)
        let report = try await DataStore.recover(from: crashed, into: target)
        #expect(image(crashed) == before)
        let operations = try #require(report.tables.first { $0.name == "op" })
        #expect(operations.isWhole && operations.rows > 121 && operations.rows < 131, "\(report)")
        let again = try openData(target, time)
        let late = try await again.openOperations().map(\.id).filter { $0.hasPrefix("late") }
        #expect(late == (0..<late.count).map { "late\($0)" })
        await again.close()
    }

    @Test func aBodyThatIsNoLongerWhatItWasIsToldAndNotCopied() async throws {
        await (try await filled()).close()
        let name = try #require(Paths.names(in: "\(scratch.state)/blobs").first { $0 != "tmp" })
        let handle = try #require(FileHandle(forWritingAtPath: "\(scratch.state)/blobs/\(name)"))
        try handle.seek(toOffset: 700_000)
        try handle.write(contentsOf: Data([1, 2, 3]))
        try handle.close()
        let report = try await DataStore.recover(from: scratch.state, into: target)
        #expect(report.lostBlobs == [.init(sha256: name, operations: ["large"])] && report.blobs == 0 && !report.isWhole)
        #expect(Paths.names(in: "\(target)/blobs") == ["tmp"])
    }

    @Test func anOlderStoreIsRecoveredAsItIsAndBroughtUpToDateWhenOpened() async throws {
        try FileManager.default.createDirectory(
            atPath: scratch.state, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let identity = DatabaseIdentity(
            applicationID: DataSchema.identity.applicationID, migrations: [DataSchema.version1], synchronous: .full)
        let old = try StoreDatabase(path: "\(scratch.state)/data.sqlite", identity: identity, limit: .mb(100))
        try await old.pool.write { db in
            try db.execute(
                sql: """
                    INSERT INTO op (seq, id, idem_key, key_origin, fingerprint, principal, upstream, origin, method, target, lane,
                        intent, headers, body_len, state, accepted_at, next_at)
                    VALUES (3, 'old', 'k', 'proxy', zeroblob(32), '', 'notes', 'http://notes', 'POST', '/v1/notes', 'lane', 'create', ?, 0,
                        'pending', 7, 8)
                    """, arguments: [FieldCodec.encode([:])])
        }
        try old.pool.close()
        let report = try await DataStore.recover(from: scratch.state, into: target)
        #expect(report.isWhole && report.operations == ["pending": 1], "\(report)")
        let store = try openData(target, time)
        #expect(try await store.lease(id: "old", now: time.now) != nil)
        await store.close()
    }

    @Test func whatCannotBeDoneIsRefusedBeforeAnythingIsWritten() async throws {
        let store = try await filled()
        await #expect(throws: DataStoreError.locked(pid: getpid())) { try await DataStore.recover(from: scratch.state, into: target) }
        await store.close()
        let inside = "\(scratch.state)/new"
        await #expect(throws: RecoveryRefusal.within(inside)) { try await DataStore.recover(from: scratch.state, into: inside) }
        try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: true)
        try Data().write(to: URL(fileURLWithPath: "\(target)/mine"))
        await #expect(throws: RecoveryRefusal.notEmpty(target)) { try await DataStore.recover(from: scratch.state, into: target) }
        let empty = "\(scratch.path)/empty"
        await #expect(throws: RecoveryRefusal.noDatabase("\(empty)/data.sqlite")) {
            try await DataStore.recover(from: empty, into: "\(empty)2")
        }
        for page in 1...60 { try overwrite(page: page, with: 0) }
        let fresh = "\(scratch.path)/fresh"
        await #expect {
            try await DataStore.recover(from: scratch.state, into: fresh)
        } throws: {
            if case .unreadable = $0 as? RecoveryRefusal { true } else { false }
        }
        #expect(Paths.names(in: fresh).isEmpty && !Paths.names(in: scratch.state).contains("new"))
    }
}
