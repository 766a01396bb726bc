// Live writes that a crash interrupts are uncertain operations afterwards; ended and queued ones leave nothing (docs/outbox.md#live-writes).
import Foundation
import GRDB
import HTTPTypes
import NIOCore
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct LiveWriteTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    /// Returns the store as the next start finds it after a kill at this moment.
    private func killed(_ store: DataStore, _ settings: StorageSettings = storage()) async throws -> DataStore {
        let copy = try scratch.copy(scratch.state, to: "killed-\(UUID().uuidString)")
        try FileManager.default.removeItem(atPath: "\(copy)/lock")
        time.advance(.seconds(5))
        return try openData(copy, time, settings)
    }

    private func rows(_ store: DataStore) async throws -> Int? {
        try await store.queue.outside { try Int.fetchOne($0, sql: "SELECT count(*) FROM live_write") }
    }

    /// Returns the number of writes under way in the file.
    private func slots(_ store: DataStore) -> Int { LiveWriteFile(directory: store.directory).interrupted.count }

    /// Returns a body that no slot has room for.
    private func wide(_ count: Int = LiveWriteFile.slotLength) -> OperationBody { .inline(bytes(count)) }

    private func references(_ store: DataStore) async throws -> [Int] {
        try await store.queue.outside { try Int.fetchAll($0, sql: "SELECT refs FROM blob") }
    }

    private func blob(_ store: DataStore) async throws -> OperationBody {
        let writer = try await store.blobWriter(expectedLength: nil)
        try await writer.append(ByteBuffer(bytes: bytes(DataStore.inlineLimit + 7)))
        return try await writer.finish()
    }

    @Test func aLiveWriteUnderWayIsUncertainAfterACrash() async throws {
        let store = try openData(scratch.state, time)
        var live = write(
            "live", fields: [.contentType: "application/json", .authorization: "Bearer secret"], clientKey: "mine", principal: "p")
        live.collection = "/v1/notes"
        live.localID = LocalID.make(now: time.now, random: (1, 2))
        live.share = .unproved
        live.baseETag = "\"7\""
        let sentAt = time.now
        _ = try await store.record(live: live)
        #expect(try await store.operations().items.isEmpty)
        #expect(Data(try FileBytes.read(LiveWriteFile.path(scratch.state))).range(of: Data("Bearer".utf8)) == nil)

        let again = try await killed(store)
        let operation = try #require(try await again.operation(id: "live"))
        #expect(operation.state == .uncertain && operation.reason == .crashed && operation.idempotencyKey == "mine")
        #expect(operation.keyIsClients && operation.principal == "p" && operation.isUnproved && operation.lane == "notes")
        #expect(operation.body == live.body && operation.request.fields == [.contentType: "application/json"])
        #expect(operation.firstSentAt == sentAt && operation.lostAt == sentAt && operation.nextAttemptAt == time.now)
        #expect(operation.localID == live.localID && operation.baseETag == "\"7\"" && operation.place == operation.sequence)
        let attempts = try await again.attempts(of: operation)
        #expect(attempts.map(\.number) == [0] && attempts.map(\.sent) == [.maybe] && attempts.map(\.error) == ["crashed"])
        // The client repeats its request.
        let earlier = try await again.operation(clientKey: "mine", principal: "p", upstream: "notes", fingerprint: live.fingerprint)
        #expect(earlier?.operation.id == "live" && earlier?.isSame == true)
        var later = write("later")
        later.principal = "p"
        let rules = LaneRules(now: time.now)
        // A create may have taken effect: what names it waits, and nothing else.
        #expect(try await again.blocker(of: later.summary(now: time.now), in: "notes", rules: rules) == nil)
        #expect(try await rows(again) == 0)
        let counted = try await again.queue.outside { db in
            (try ShareSums.counted(in: db), try ShareSums.bytes(on: "*", in: db))
        }
        #expect(counted.0["*"] == counted.1 && counted.1 > 0)
        await again.close()
        await store.close()
    }

    /// A key that the client has chosen is the upstream's own: it is no local id, and is never replaced.
    @Test func aLiveCreateWithAChosenKeyKeepsItAfterACrash() async throws {
        let store = try openData(scratch.state, time)
        var live = write("live")
        (live.collection, live.entityID, live.newItem) = ("/v1/notes", "k1", .chosen("k1"))
        _ = try await store.record(live: live)
        let again = try await killed(store)
        let operation = try #require(try await again.operation(id: "live"))
        #expect(operation.newItem == .chosen("k1") && operation.isCreate && operation.localID == nil && operation.entityID == "k1")
        try await #expect(again.queue.outside { try Int.fetchOne($0, sql: "SELECT count(*) FROM id_map") } == 0)
        await again.close()
        await store.close()
    }

    @Test(arguments: [true, false]) func anAnsweredOneLeavesNothing(isWide: Bool) async throws {
        let store = try openData(scratch.state, time)
        func write(_ id: String) -> QueuedWriteDraft { isWide ? RockpoolStoreTests.write(id, body: wide()) : RockpoolStoreTests.write(id) }
        let traces = [
            try await store.record(live: write("1")), try await store.record(live: write("2")), try await store.record(live: write("3")),
        ]
        #expect(traces.allSatisfy { $0.isInFile == !isWide })
        store.end(traces[1])
        // Its row is still there; its mark is enough.
        #expect(try await rows(store) == (isWide ? 3 : 0))
        #expect(slots(store) == (isWide ? 0 : 2))
        let again = try await killed(store)
        #expect(try await again.operations().items.map(\.id) == ["1", "3"])
        #expect(slots(again) == 0)
        await again.close()
        // A row's slot is used again only after the row is gone, one of the file at once.
        let fourth = try await store.record(live: write("4"))
        #expect(try await rows(store) == (isWide ? 3 : 0))
        #expect(Set([traces[0], traces[2], fourth].map(\.slot)).count == 3)
        #expect(isWide || fourth.slot == traces[1].slot)
        // What was in the slot before has ended.
        store.end(traces[1])
        let fifth = try await store.record(live: write("5"))
        store.end(fifth)
        store.end(fifth)
        #expect(try await killed(store).operations().items.map(\.id) == ["1", "3", "4"])
        for trace in [traces[0], traces[2], fourth] { store.end(trace) }
        let third = try await killed(store)
        #expect(try await third.operations().items.isEmpty)
        await third.close()
        await store.close()
        let stopped = try openData(scratch.state, time)
        #expect(try await stopped.operations().items.isEmpty)
        #expect(try await rows(stopped) == 0)
        await stopped.close()
    }

    /// More writes at a time than the file has slots, of all sizes: each is recorded once, and its order is kept.
    @Test func manyAtATimeAreAllRecorded() async throws {
        let store = try openData(scratch.state, time)
        let ids = (0..<LiveWriteFile.slotCount + 20).map { "\($0 + 100)" }
        let traces = try await withThrowingTaskGroup(of: (String, LiveWriteTrace).self) { group in
            for (number, id) in ids.enumerated() {
                group.addTask { [self] in (id, try await store.record(live: write(id, body: wide(number * 40)))) }
            }
            return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
        #expect(traces.values.contains { $0.isInFile } && traces.values.contains { !$0.isInFile })
        for id in ids where Int(id)! % 3 == 0 { store.end(traces[id]!) }
        let again = try await killed(store)
        var all = OperationFilter()
        all.limit = 500
        let operations = try await again.operations(all).items
        #expect(operations.map(\.id).sorted() == ids.filter { Int($0)! % 3 != 0 })
        for operation in operations {
            #expect(
                try await again.bytes(of: try #require(try await again.operation(id: operation.id)).body)
                    == bytes((Int(operation.id)! - 100) * 40))
        }
        await again.close()
        await store.close()
    }

    /// Within a second nothing of an answered write is in the file any more.
    @Test func whatIsLeftOfEndedOnesIsOverwritten() async throws {
        let store = try openData(scratch.state, time)
        let secret = Array("patient 4711".utf8)
        func isInFile() throws -> Bool { Data(try FileBytes.read(LiveWriteFile.path(scratch.state))).range(of: Data(secret)) != nil }
        let trace = try await store.record(live: write("1", body: .inline(secret)))
        #expect(try isInFile())
        store.end(trace)
        let deadline = ContinuousClock.now + .seconds(60)
        while try isInFile(), ContinuousClock.now < deadline { try await Task.sleep(for: .milliseconds(20)) }
        #expect(try !isInFile())
        // Its slot is used again.
        #expect(try await store.record(live: write("2")).slot == trace.slot)
        await store.close()
    }

    /// A power failure in the middle of a record: it was not sent yet.
    @Test(arguments: [0, 5, 15, 25, 300]) func aTornRecordIsNone(place: Int) async throws {
        let store = try openData(scratch.state, time)
        let traces = [try await store.record(live: write("1")), try await store.record(live: write("2"))]
        let copy = try scratch.copy(scratch.state, to: "torn")
        await store.close()
        try FileManager.default.removeItem(atPath: "\(copy)/lock")
        var file = try FileBytes.read(LiveWriteFile.path(copy))
        file[LiveWriteFile.slotLength * (Int(traces[0].slot) + 1) + place] ^= 0x20
        try Data(file).write(to: URL(fileURLWithPath: LiveWriteFile.path(copy)))
        #expect(LiveWriteFile(directory: copy).damaged == 1)
        let again = try openData(copy, time)
        #expect(try await again.operations().items.map(\.id) == ["2"])
        #expect(LiveWriteFile(directory: copy).damaged == 0)
        await again.close()
    }

    /// Where the file cannot be used, live writes are rows; a file that is cut off keeps what it has.
    @Test func withoutTheFileTheyAreRows() async throws {
        try FileManager.default.createDirectory(atPath: LiveWriteFile.path(scratch.state), withIntermediateDirectories: true)
        chmod(scratch.state, 0o700)
        let store = try openData(scratch.state, time)
        #expect(try await store.record(live: write("1")).isInFile == false)
        #expect(try await rows(store) == 1)
        await store.close()
    }

    /// A file that is cut off meanwhile ends nothing but its records, and the next start begins it anew.
    @Test func aFileThatIsCutOffMeanwhileHarmsNothing() async throws {
        let store = try openData(scratch.state, time)
        let first = try await store.record(live: write("1"))
        #expect(truncate(LiveWriteFile.path(scratch.state), 0) == 0)
        store.end(first)
        _ = try await store.record(live: write("2"))
        let again = try await killed(store)
        #expect(try await again.operations().items.map(\.id) == ["2"])
        #expect(try await again.record(live: write("3")).isInFile)
        await again.close()
        await store.close()
    }

    @Test func aQueuedOneIsThereOnce() async throws {
        let store = try openData(scratch.state, time)
        let trace = try await store.record(live: write("1"))
        var lost = write("1")
        lost.state = .uncertain
        lost.reason = .lostAnswer
        lost.firstSentAt = time.now
        // A kill between the commit and the end of the record finds both.
        _ = try await store.take(lost)
        let between = try await killed(store)
        #expect(try await between.operations().items.map(\.id) == ["1"])
        #expect(try await between.operation(id: "1")?.reason == .lostAnswer)
        await between.close()
        var second = write("2")
        second.state = .uncertain
        second.firstSentAt = time.now
        let other = try await store.record(live: write("2"))
        _ = try await store.take(second, ending: other)
        store.end(other)
        store.end(trace)
        #expect(try await rows(store) == 0 && slots(store) == 0)
        let again = try await killed(store)
        #expect(try await again.operations().items.map(\.id) == ["1", "2"])
        await again.close()
        await store.close()
    }

    /// A refused acceptance keeps the record until the client has its refusal.
    @Test func aRefusedAcceptanceChangesNothing() async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(write("0", clientKey: "same", principal: "p"))
        let second = write("1", clientKey: "same", principal: "p")
        let trace = try await store.record(live: second)
        await #expect(throws: DataStoreError.self) { try await store.take(second, ending: trace) }
        #expect(slots(store) == 1)
        let again = try await killed(store)
        // The operation with this key is in the outbox already.
        #expect(try await again.operations().items.map(\.id) == ["0"])
        #expect(try await rows(again) == 0)
        await again.close()
        await store.close()
    }

    @Test func aLargeBodyIsKeptByReference() async throws {
        let store = try openData(scratch.state, time)
        let body = try await blob(store)
        let trace = try await store.record(live: write("1", body: body))
        #expect(try await references(store) == [1])
        let again = try await killed(store)
        let operation = try #require(try await again.operation(id: "1"))
        #expect(try await again.bytes(of: operation.body) == bytes(DataStore.inlineLimit + 7))
        #expect(try await references(again) == [1])
        await again.close()
        // Answered: the file goes with the row.
        store.discard(body)
        store.end(trace)
        let ended = try await killed(store)
        #expect(try await references(ended).isEmpty && Paths.names(in: "\(ended.directory)/blobs") == ["tmp"])
        await ended.close()
        await store.deleteEndedLiveWrites()
        #expect(try await references(store).isEmpty)
        while Paths.names(in: "\(scratch.state)/blobs") != ["tmp"] { try await Task.sleep(for: .milliseconds(5)) }
        await store.close()
    }

    @Test func aLargeBodyThatIsQueuedHasOneReference() async throws {
        let store = try openData(scratch.state, time)
        let body = try await blob(store)
        let trace = try await store.record(live: write("1", body: body))
        _ = try await store.take(write("1", body: body), ending: trace)
        #expect(try await references(store) == [1])
        await store.close()
    }

    /// The limit holds: a live write is not recorded where nothing could be queued, and its end is no failure.
    @Test func aFullOutboxRecordsNothing() async throws {
        let store = try openData(scratch.state, time, storage(data: .mb(8)))
        var count = 0
        await #expect(throws: DataStoreError.self) {
            while count < 20 {
                _ = try await store.record(live: write("\(count)", body: .inline(bytes(1_000_000))))
                count += 1
            }
        }
        #expect(count > 0 && count < 20)
        #expect(try await rows(store) == count)
        await store.close()
        let again = try openData(scratch.state, time, storage(data: .mb(8)))
        #expect(try await again.operations().items.count == count)
        await again.close()
    }

    @Test func bodiesAreSealedLikeThoseOfOperations() async throws {
        var settings = storage()
        settings.encrypt = .private
        let store = try openData(scratch.state, time, settings)
        _ = try await store.record(live: write("1", body: .inline(Array("in the clear".utf8))))
        _ = try await store.record(live: write("2", body: wide()))
        let stored = try await store.queue.outside { try Data.fetchOne($0, sql: "SELECT body FROM live_write") }
        #expect(stored.map { BodySeal.isSealed(Array($0)) } == true)
        #expect(slots(store) == 1)
        #expect(Data(try FileBytes.read(LiveWriteFile.path(scratch.state))).range(of: Data("in the clear".utf8)) == nil)
        let again = try await killed(store, settings)
        #expect(try await again.operation(id: "1")?.body == .inline(Array("in the clear".utf8)))
        #expect(try await again.operation(id: "2")?.body == wide())
        await again.close()
        await store.close()
    }

    /// A copy for another machine has no live writes: this server still sees to them.
    @Test func aBackupHasNoLiveWrites() async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(write("queued"))
        _ = try await store.record(live: write("under-way"))
        var archive: [UInt8] = []
        try await store.backup(keys: false, configuration: nil, version: "test") { archive += $0 }
        let text = Data(archive)
        #expect(text.range(of: Data("key-queued".utf8)) != nil && text.range(of: Data("key-under-way".utf8)) == nil)
        await store.close()
    }

    /// `doctor --recover` keeps those under way, and drops those that had ended.
    @Test func aRecoveredOutboxHasThem() async throws {
        let store = try openData(scratch.state, time)
        let body = try await blob(store)
        _ = try await store.record(live: write("1", body: body))
        store.end(try await store.record(live: write("2")))
        store.end(try await store.record(live: write("3", body: wide())))
        _ = try await store.record(live: write("4"))
        let copy = try scratch.copy(scratch.state, to: "damaged")
        await store.close()
        try FileManager.default.removeItem(atPath: "\(copy)/lock")
        let report = try await DataStore.recover(from: copy, into: "\(scratch.path)/new")
        #expect(report.isWhole)
        let again = try openData("\(scratch.path)/new", time)
        let operations = try await again.operations().items
        #expect(operations.map(\.id) == ["1", "4"] && operations.allSatisfy { $0.state == .uncertain })
        #expect(try await references(again) == [1])
        await again.close()
    }
}
