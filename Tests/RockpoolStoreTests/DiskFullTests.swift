// A full disk: a small file system of its own, where the machine permits mounting one (docs/storage.md#faults).
import Foundation
import Glibc
import NIOCore
import RockpoolCore
import RockpoolTesting
import Testing

@testable import RockpoolStore

/// A file system in memory, unmounted after the test.
final class SmallDisk: Sendable {
    let path: String
    private let scratch: Scratch

    static let isPossible = (try? SmallDisk(megabytes: 1)) != nil

    struct Refused: Error {}

    init(megabytes: Int) throws {
        scratch = try Scratch()
        path = "\(scratch.path)/disk"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        guard mount("tmpfs", path, "tmpfs", 0, "size=\(megabytes)m,mode=0700") == 0 else { throw Refused() }
    }

    deinit { umount2(path, CInt(MNT_DETACH)) }

    private var filler: String { "\(path)/filler" }

    /// Another program takes all space but `rest` bytes.
    func fill(leaving rest: Int64) throws {
        let length = FreeSpace.bytes(at: path) - rest
        let file = try Descriptor(filler, O_WRONLY | O_CREAT)
        try file.allocate(length)
    }

    func clear() { Paths.remove(filler) }
}

@Suite(.enabled(if: SmallDisk.isPossible, "needs the right to mount a file system"), .serialized) struct DiskFullTests {
    let disk: SmallDisk
    let time = ManualTime()

    init() throws { disk = try SmallDisk(megabytes: 64) }

    private func cache() throws -> CacheStore { try openCache("\(disk.path)/cache", time, storage(cache: .mb(500))) }

    @Test func aLimitLargerThanTheDiskIsHeldByTheDisk() async throws {
        let store = try cache()
        for n in 0..<300 { try await store.put("/\(n)", bytes(500_000, seed: UInt64(n + 1)), at: time.now) }
        let usage = try await store.usage()
        #expect(usage.limitReason == .disk && usage.evictions > 100 && usage.entries > 40)
        #expect(store.trouble == nil)
        await store.close()
    }

    /// What is reserved, and what each category may keep, are parts of what the disk holds.
    @Test func aSmallDiskIsUsedAndOldEntriesLeaveForNewOnes() async throws {
        let small = try SmallDisk(megabytes: 20)
        let store = try openCache("\(small.path)/cache", time, storage(cache: .mb(500)))
        for n in 0..<150 {
            #expect(try await store.put("/\(n)", bytes(300_000, seed: UInt64(n + 1)), category: .important, at: time.now) != nil, "\(n)")
            time.advance(.seconds(1))
        }
        let usage = try await store.usage()
        #expect(usage.limitReason == .disk && usage.entries > 40 && usage.evictions > 50)
        #expect(try await !store.lookup(key("/149")).isEmpty)
        await store.close()
    }

    @Test func whenOthersFillTheDiskNothingIsStoredUntilThereIsRoomAgain() async throws {
        let store = try cache()
        let before = bytes(200_000, seed: 1)
        try await store.put("/a", before, at: time.now)
        try disk.fill(leaving: 0)
        for n in 0..<8 {
            _ = try? await store.put("/b\(n)", bytes(3_000_000, seed: 2), at: time.now, announced: n % 2 == 0)
            time.advance(.seconds(1))
        }
        #expect(try await store.only("/b0") == nil)
        disk.clear()
        time.advance(.minutes(1))
        #expect(try await store.put("/b", bytes(3_000_000, seed: 2), at: time.now) != nil)
        #expect(store.trouble == nil)
        #expect(try await store.only("/b") != nil)
        #expect(Paths.names(in: "\(disk.path)/cache/tmp") == [])
        await store.close()
        // Every stored body is complete, even if other writes were abandoned on the way.
        let again = try cache()
        for target in ["/a", "/b"] {
            guard let entry = try await again.only(target) else { continue }
            #expect(try await again.bytes(of: entry) == (target == "/a" ? before : bytes(3_000_000, seed: 2)))
        }
        await again.close()
    }

    @Test func anOutboxOnAFullDiskRefusesAndStillRecordsWhatWasSent() async throws {
        let directory = "\(disk.path)/state"
        let store = try openData(directory, time, storage(data: .mb(20)))
        for n in 0..<5 { _ = try await store.append(write("op-\(n)", body: .inline(bytes(20_000, seed: UInt64(n))), lane: "lane-\(n)")) }
        for n in 0..<5 { #expect(try await store.lease(id: "op-\(n)", now: time.now) != nil) }
        try disk.fill(leaving: 0)
        await #expect(throws: DataStoreError.diskFull) {
            for n in 0..<400 { _ = try await store.append(write("more-\(n)", body: .inline(bytes(20_000)), lane: "more-\(n)")) }
        }
        #expect(store.trouble?.fault == .full)
        // The outcome of a request that was in flight is recorded with the reserve's space.
        for n in 0..<5 {
            let done = try await store.finish(
                id: "op-\(n)", disposition: Disposition(state: .delivered), result: nil, attempt: AttemptRecord(sent: .yes), now: time.now)
            #expect(done.state == .delivered)
        }
        disk.clear()
        #expect(store.trouble == nil, "before anything is written")
        _ = try await store.append(write("after", lane: "after"))
        #expect(store.trouble == nil)
        await store.close()
        let again = try openData(directory, time, storage(data: .mb(20)))
        for n in 0..<5 { #expect(try await again.operation(id: "op-\(n)")?.state == .delivered) }
        #expect(try await again.operation(id: "after") != nil)
        await again.close()
    }

    /// The disk refuses what `data_limit` would permit: a body that becomes a file, and a row.
    @Test(arguments: [true, false]) func aFullDiskIsTold(isFile: Bool) async throws {
        let store = try openData("\(disk.path)/state", time, storage(data: .mb(500)))
        #expect(store.trouble == nil)
        try disk.fill(leaving: isFile ? .mib(2) : .kib(100))
        await #expect(throws: DataStoreError.diskFull) {
            guard isFile else { return _ = try await store.append(write("1", body: .inline(bytes(500_000)))) }
            let writer = try await store.blobWriter(expectedLength: nil)
            for _ in 0..<5 { try await writer.append(ByteBuffer(bytes: bytes(1_000_000))) }
            _ = try await writer.finish()
        }
        let trouble = try #require(store.trouble)
        #expect(trouble.fault == .full)
        // The file of the body goes with the last reference to its writer, on any thread.
        for _ in 0..<100_000 where isFile && FreeSpace.bytes(at: disk.path) < .mib(1) { await Task.yield() }
        // What still fits does not end it.
        time.advance(.seconds(3))
        if isFile { _ = try await store.append(write("small")) }
        await #expect(throws: DataStoreError.diskFull) { try await store.append(write("large", body: .inline(bytes(1_000_000)))) }
        #expect(store.trouble?.since == trouble.since)
        disk.clear()
        #expect(store.trouble == nil)
        await store.close()
    }

    /// A body that finds no room on a disk that has some is refused with the reason, and is no fault of the outbox.
    @Test func aBodyLargerThanWhatIsFreeIsNoFault() async throws {
        let store = try openData("\(disk.path)/state", time, storage(data: .mb(500)))
        try disk.fill(leaving: .mib(10))
        await #expect(throws: DataStoreError.diskFull) {
            let writer = try await store.blobWriter(expectedLength: nil)
            for _ in 0..<12 { try await writer.append(ByteBuffer(bytes: bytes(1_000_000))) }
            _ = try await writer.finish()
        }
        try await eventually("the body's file is gone") { store.trouble == nil }
        await store.close()
    }
}
