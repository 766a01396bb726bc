// A body on its way into the cache: in memory while small, else in a temporary file; never beyond what was reserved (storage.md §3).
import Crypto
package import NIOCore
import RockpoolCore
import Synchronization

/// Takes a body piece by piece, and gives what it has to anyone meanwhile. Dropped without `CacheStore.commit`, nothing of it stays.
///
/// One task appends; the ledger is asked before every byte that was not announced. Any number of tasks read: the state is behind one
/// lock, the temporary file is written and read on one serial file lane, and a byte is given only after it was written.
package final class CacheWriter: Sendable {
    private enum Phase { case open, full, finished, dead }

    private struct State {
        var hash = SHA256()
        /// All of the body until it is spilled.
        var small: [UInt8] = []
        var spool: SpoolFile?
        /// Bytes taken.
        var length: Int64 = 0
        /// Bytes that can be read: those in `small`, or those written.
        var readable: Int64 = 0
        /// Keeps the spool, a stored body by now, from being unlinked and no longer counted.
        var lease: BodyLease?
        var phase = Phase.open
    }

    /// A whole body, or all there is of one.
    struct Finished: Sendable {
        var hash: [UInt8]
        var length: Int64
        var small: [UInt8]
        var spool: SpoolFile?
        /// How `small` or the spool holds it.
        var coding = StoredCoding.plain
        /// What the spool takes.
        var fileRoom: Reservation
        /// Keeps the temporary's name from being taken for an orphan until the row is written.
        let owner: CacheWriter
    }

    /// Bytes that one `read` gives at most.
    private static let readLimit: Int64 = 1_048_576

    private let store: CacheStore
    let number: UInt64
    private let expectedLength: Int64?
    private let maxLength: Int64
    /// Whether the body comes by more than one transfer.
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
        store.counters.withLock { $0.spools.formUnion(["\(number)", packedName]) }
    }

    /// The name in `tmp/` of the body as it is going to be stored, where that is not as it came.
    var packedName: String { "\(number).z" }

    /// Bytes that `read` can give by now.
    package var length: Int64 { state.withLock(\.readable) }

    /// Takes the next bytes.
    /// - Returns: false when there is no room left or the body is larger than its category allows: the writer takes no more and
    ///   cannot be committed, but what it has stays readable for those behind. False, too, once it is finished.
    /// - Throws: `FileError` of the disk; the writer is dead then too.
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

    /// Bytes that were appended already, for a reader that is behind the one who appends. It may go on after the writer was
    /// committed, and after what became of it was evicted or replaced: what it holds of this writer it can read to the end.
    /// - Parameters:
    ///   - offset: of the first byte in the body.
    ///   - count: how many at most; never more than 1 MiB are given.
    /// - Returns: empty when nothing is there from `offset` on yet; nil when the writer is dead.
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
        let room = Room(files: max(missing, store.growthStep))
        guard await store.reserve(room) else { return false }
        fileRoom.grow(by: room)
        return true
    }

    /// On a file lane. The first time, what was small goes first, and stays readable until it is written.
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

    /// Ends the appending. Readers go on.
    /// - Throws: `IncompleteBody` when the body is shorter than announced, or the writer is dead or finished.
    func finish() throws -> Finished { try finish { expectedLength == nil || expectedLength == $0 } }

    /// Ends the appending before the announced length; what was preallocated beyond is given back.
    /// - Throws: `IncompleteBody` when there is nothing, or the writer is dead or finished; `FileError`.
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
                hash: Array(state.hash.finalize()), length: state.length, small: state.small, spool: state.spool, fileRoom: fileRoom,
                owner: self)
        }
    }

    /// The spool is a stored body now: it stays while anyone may read from here.
    func hold(_ lease: BodyLease) { state.withLock { $0.lease = lease } }

    /// Unlinks on a file lane what has not become a stored body, and gives the room back only then.
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
        store.counters.withLock { $0.spools.subtract(["\(number)", packedName]) }
    }
}

/// The body ended before its announced length.
package struct IncompleteBody: Error {}
