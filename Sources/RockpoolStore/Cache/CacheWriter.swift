// A body being written to the cache: in memory while small, else in a temporary file; never beyond its reservation
// (docs/storage.md#what-is-stored-where).
import Crypto
import DequeModule
package import NIOCore
import RockpoolCore
import Synchronization

/// Receives a body piece by piece while any reader can read what has arrived. Without `CacheStore.commit`, it is discarded on deinit.
///
/// One task appends, and extends the reservation before every byte beyond the announced length. Any number of tasks read: the state is
/// behind one lock, the temporary file is written and read on one serial file lane, and a byte is returned only after it was written.
package final class CacheWriter: Sendable {
    private enum Phase { case open, full, finished, dead }

    private struct State {
        var hash = SHA256()
        /// The whole body until it is spilled to a file.
        var small: [UInt8] = []
        var spool: SpoolFile?
        /// Bytes received.
        var length: Int64 = 0
        /// Bytes that can be read: those in `small`, or those written.
        var readable: Int64 = 0
        /// Keeps the spool from being unlinked and its bytes counted once it is a stored body.
        var lease: BodyLease?
        var phase = Phase.open
    }

    /// A completed body, whole or partial.
    struct Finished: Sendable {
        var hash: [UInt8]
        var length: Int64
        var small: [UInt8]
        var spool: SpoolFile?
        /// The coding of `small` or of the spool.
        var coding = StoredCoding.plain
        /// The reservation of the spool.
        var fileRoom: Reservation
        /// Keeps the temporary's name from being treated as an orphan until the row is written.
        let owner: CacheWriter
    }

    /// Maximum bytes returned by one `read`.
    private static let readLimit: Int64 = .mib(1)

    private let store: CacheStore
    let number: UInt64
    private let expectedLength: Int64?
    private let maxLength: Int64
    /// True if the body comes from more than one transfer.
    package let isJoined: Bool
    /// Seals the body; nil where it lies on the disk as it came.
    let seal: BodySeal?
    private let state = Mutex(State())
    let fileRoom: Reservation
    let rowRoom: Reservation

    init(
        store: CacheStore, number: UInt64, expectedLength: Int64?, maxLength: Int64, isJoined: Bool, seal: BodySeal?,
        fileRoom: Reservation, rowRoom: Reservation
    ) {
        self.store = store
        self.number = number
        self.expectedLength = expectedLength
        self.maxLength = maxLength
        self.isJoined = isJoined
        self.seal = seal
        self.fileRoom = fileRoom
        self.rowRoom = rowRoom
        store.counters.withLock { _ = $0.writers.insert(number) }
    }

    /// The name in `tmp/` of the body in its stored form, where that differs from the received form.
    var packedName: String { Self.packedName(number) }

    private static func packedName(_ number: UInt64) -> String { "\(number).z" }

    /// The names in `tmp/` of the files that a writer may have.
    static func names(_ number: UInt64) -> [String] { ["\(number)", packedName(number)] }

    /// Bytes that `read` can return now.
    package var length: Int64 { state.withLock(\.readable) }

    /// Appends the next bytes.
    /// - Returns: false when there is no space left or the body is larger than its category allows: the writer accepts no more and cannot
    ///   be committed, but readers that are behind can read what it has. False, too, once it is finished.
    /// - Throws: `FileError` of the disk; the writer is then dead.
    package func append(_ buffer: ByteBuffer) async throws -> Bool {
        let most = min(maxLength, expectedLength ?? .max)
        let length = state.withLock { state -> Int64? in
            guard state.phase == .open else { return nil }
            state.length += Int64(buffer.readableBytes)
            guard state.length <= most else { return nil }
            unsafe buffer.withUnsafeReadableBytes { unsafe state.hash.update(bufferPointer: $0) }
            guard state.length <= CacheStore.inlineLimit, state.spool == nil else { return state.length }
            state.small += buffer.readableBytesView
            state.readable = state.length
            return 0
        }
        guard let length else { return fill() }
        if length == 0 { return true }
        guard await makeRoom(for: length) else { return fill() }
        do {
            try await store.lanes.run(number) { try self.spill(buffer) }
            return true
        } catch {
            die()
            store.noteFailure(error)
            throw error
        }
    }

    private func fill() -> Bool {
        state.withLock { if $0.phase == .open { $0.phase = .full } }
        return false
    }

    /// Returns bytes already appended, for a reader behind the appending task. Reading may continue after the writer was committed, and
    /// after the resulting entry was evicted or replaced: every byte of this writer stays readable to its reader.
    /// - Parameters:
    ///   - offset: the offset of the first byte in the body.
    ///   - count: the maximum number of bytes; never more than 1 MiB are returned.
    /// - Returns: an empty buffer when no byte exists at `offset` yet; nil when the writer is dead.
    /// - Throws: `FileError` of the disk.
    package func read(at offset: Int64, upTo count: Int) async throws -> ByteBuffer? {
        enum Source { case memory(ByteBuffer), file(SpoolFile, Int) }
        let source = state.withLock { state -> Source? in
            if state.phase == .dead { return nil }
            guard (0..<state.readable).contains(offset), count > 0 else { return .memory(ByteBuffer()) }
            let length = Int(min(state.readable - offset, Int64(count), Self.readLimit))
            if let spool = state.spool { return .file(spool, length) }
            return .memory(ByteBuffer(bytes: state.small.dropFirst(Int(offset)).prefix(length)))
        }
        switch source {
        case nil: return nil
        case .memory(let bytes): return bytes
        case .file(let spool, let length): return try await store.lanes.run(number) { try spool.read(at: offset, count: length) }
        }
    }

    private func makeRoom(for length: Int64) async -> Bool {
        let missing = Cost.file(length) - fileRoom.bytes
        guard missing > 0 else { return true }
        let room = SpaceRequest(files: max(missing, store.growthStep))
        guard await store.reserve(room) else { return false }
        fileRoom.grow(by: room)
        return true
    }

    /// Writes to the spool on a file lane. The first call writes `small` first, which stays readable until then.
    private func spill(_ buffer: ByteBuffer) throws {
        let (known, small) = state.withLock { ($0.spool, $0.small) }
        if known == nil { try store.makePlacesAgain() }
        let spool = try known ?? SpoolFile(path: "\(store.directory)/tmp/\(number)", expectedLength: expectedLength, seal: seal)
        try unsafe small.withUnsafeBytes { try unsafe spool.append($0) }
        try unsafe buffer.withUnsafeReadableBytes { try unsafe spool.append($0) }
        state.withLock { state in
            state.spool = spool
            state.small = []
            state.readable = state.length
        }
    }

    private func die() {
        state.withLock { state in
            guard state.phase == .open else { return }
            state.phase = .dead
            state.small = []
            discard(&state)
        }
    }

    /// Ends appending. Readers continue.
    /// - Throws: `IncompleteBody` when the body is shorter than announced, or the writer is dead or finished.
    func finish() throws -> Finished { try finish { expectedLength == nil || expectedLength == $0 } }

    /// Ends appending before the announced length; preallocated space beyond it is released.
    /// - Throws: `IncompleteBody` when there are no bytes, or the writer is dead or finished; `FileError`.
    func finishPart() async throws -> Finished {
        let part = try finish { $0 > 0 }
        if let spool = part.spool {
            try await store.lanes.run(number) {
                try spool.finish()
                try spool.truncate(to: part.length)
            }
        }
        return part
    }

    private func finish(if isEnough: (Int64) -> Bool) throws -> Finished {
        try state.withLock { state in
            guard state.phase == .open, isEnough(state.length) else { throw IncompleteBody() }
            state.phase = .finished
            return Finished(
                hash: state.hash.finalize().bytes, length: state.length, small: state.small, spool: state.spool, fileRoom: fileRoom,
                owner: self)
        }
    }

    /// Keeps the spool, which is a stored body now, while a reader may use this writer.
    func hold(_ lease: BodyLease) { state.withLock { $0.lease = lease } }

    /// Unlinks a spool that has not become a stored body, on a file lane, and releases its space only then.
    private func discard(_ state: inout State) {
        guard let spool = state.spool else { return }
        let lease = state.lease
        state.spool = nil
        state.lease = nil
        let rooms = [fileRoom, rowRoom]
        store.lanes.start(number) {
            spool.discard()
            withExtendedLifetime((lease, rooms)) {}
        }
    }

    deinit {
        state.withLock { discard(&$0) }
        store.counters.withLock { _ = $0.writers.remove(number) }
    }
}

/// Thrown when the body ended before its announced length.
package struct IncompleteBody: Error {}

// MARK: - Waiting for space

/// The queue of writers that wait for cache space: first come, first served, while a single eviction run frees it (docs/storage.md#ledger,
/// docs/storage.md#eviction). Space freed by a run goes to the next writer in the queue, not to a writer that arrives at that moment, so
/// that no two runs evict for the same need.
final class SpaceQueue: Sendable {
    private struct State {
        var waiting: Deque<(room: SpaceRequest, answer: CheckedContinuation<Bool, Never>)> = []
        /// True while a run is active; the run calls `next` until `next` returns nil.
        var isRunning = false
    }

    private let footprint: Footprint
    private let bodies: BodyFiles
    private let state = Mutex(State())

    init(footprint: Footprint, bodies: BodyFiles) {
        self.footprint = footprint
        self.bodies = bodies
    }

    /// Reserves space at once when the queue is empty and the space is available; otherwise waits in the queue for it.
    /// - Parameter run: called when space must be freed and no run is active; the run must call `next`.
    /// - Returns: false when eviction cannot free enough space.
    func reserve(_ room: SpaceRequest, orStart run: () -> Void) async -> Bool {
        await withCheckedContinuation { continuation in
            let isDue = state.withLock { state in
                if state.waiting.isEmpty, let answer = answer(to: room) {
                    continuation.resume(returning: answer)
                    return false
                }
                state.waiting.append((room, continuation))
                defer { state.isRunning = true }
                return !state.isRunning
            }
            if isDue { run() }
        }
    }

    /// Marks a run as active.
    /// - Returns: false when one is active already.
    func startRun() -> Bool {
        state.withLock { state in
            defer { state.isRunning = true }
            return !state.isRunning
        }
    }

    /// Answers the writers at the front of the queue while their reservations are granted or refused.
    /// - Returns: the space that the next writer needs; `SpaceRequest()` when the queue is empty but the low mark is not reached yet; nil when the
    ///   run is over.
    func next() -> SpaceRequest? {
        state.withLock { state in
            while let first = state.waiting.first {
                guard let answer = answer(to: first.room) else { return first.room }
                state.waiting.removeFirst().answer.resume(returning: answer)
            }
            state.isRunning = shortfall(for: SpaceRequest()) > 0 || missing(for: SpaceRequest()) > 0
            return state.isRunning ? SpaceRequest() : nil
        }
    }

    /// Refuses the first writer in the queue, because no further entry can be evicted.
    /// - Returns: false when the queue was empty, which ends the run.
    func giveUp() -> Bool {
        state.withLock { state in
            let first = state.waiting.popFirst()
            first?.answer.resume(returning: false)
            state.isRunning = first != nil
            return state.isRunning
        }
    }

    /// Returns the bytes that must still be removed before `room` can be granted.
    func shortfall(for room: SpaceRequest) -> Int64 { footprint.ledger.shortfall(for: room, leaving: bodies.leavingBytes) }

    /// Returns by how many bytes the disk usage with `room` would exceed the limit, free pages included.
    func missing(for room: SpaceRequest) -> Int64 { footprint.ledger.missing(for: room) }

    private func answer(to room: SpaceRequest) -> Bool? {
        switch footprint.reserve(room) {
        case .granted: true
        case .refused: false
        case .evict: nil
        }
    }
}
