// A body on its way into the cache: in memory while small, else in a temporary file; never beyond what was reserved (storage.md §3).
import Crypto
package import NIOCore
import RockpoolCore
import Synchronization

/// Takes a body piece by piece. Dropped without `CacheStore.commit`, nothing of it stays.
///
/// One task appends; the ledger is asked before every byte that was not announced.
package final class CacheWriter: Sendable {
    private struct State {
        var hash = SHA256()
        var small: [UInt8] = []
        var spool: SpoolFile?
        var length: Int64 = 0
        var isDead = false
    }

    /// A whole body.
    struct Finished: Sendable {
        var hash: [UInt8]
        var length: Int64
        var small: [UInt8]
        var spool: SpoolFile?
        /// Keeps the temporary's name from being taken for an orphan until the row is written.
        let owner: CacheWriter
    }

    private let store: CacheStore
    private let number: UInt64
    private let expectedLength: Int64?
    private let maxLength: Int64
    private let state = Mutex(State())
    let fileRoom: Reservation
    let rowRoom: Reservation

    /// Larger steps than a chunk, so that the ledger is not asked for each.
    private static let step: Int64 = 262_144

    init(store: CacheStore, number: UInt64, expectedLength: Int64?, maxLength: Int64, fileRoom: Reservation, rowRoom: Reservation) {
        self.store = store
        self.number = number
        self.expectedLength = expectedLength
        self.maxLength = maxLength
        self.fileRoom = fileRoom
        self.rowRoom = rowRoom
        store.counters.withLock { _ = $0.spools.insert("\(number)") }
    }

    /// Takes the next bytes.
    /// - Returns: false when there is no room left or the body is larger than its category allows: the writer is dead, the
    ///   exchange streams on uncached.
    /// - Throws: `FileError` of the disk; the writer is dead then too.
    package func append(_ buffer: ByteBuffer) async throws -> Bool {
        let bytes = buffer.readableBytesView
        let length = state.withLock { state -> Int64? in
            if state.isDead { return nil }
            buffer.withUnsafeReadableBytes { state.hash.update(bufferPointer: $0) }
            state.length += Int64(bytes.count)
            guard state.length <= CacheStore.inlineLimit, state.spool == nil else { return state.length }
            state.small += bytes
            return 0
        }
        guard let length, length <= min(maxLength, expectedLength ?? .max) else { return die() }
        if length == 0 { return true }
        guard await makeRoom(for: length) else { return die() }
        do {
            try await store.lanes.run(number) { try self.spill(buffer) }
            return true
        } catch {
            _ = die()
            throw error
        }
    }

    private func makeRoom(for length: Int64) async -> Bool {
        let missing = Cost.file(length) - fileRoom.bytes
        guard missing > 0 else { return true }
        let bytes = max(missing, Self.step)
        guard await store.reserve(bytes) else { return false }
        fileRoom.grow(by: bytes)
        return true
    }

    /// On a file lane. The first time, what was small goes first.
    private func spill(_ buffer: ByteBuffer) throws {
        let (spool, small) = try state.withLock { state -> (SpoolFile, [UInt8]) in
            if let spool = state.spool { return (spool, []) }
            let spool = try SpoolFile(path: "\(store.directory)/tmp/\(number)", expectedLength: expectedLength)
            state.spool = spool
            defer { state.small = [] }
            return (spool, state.small)
        }
        try small.withUnsafeBytes { try spool.append($0) }
        try buffer.withUnsafeReadableBytes { try spool.append($0) }
    }

    private func die() -> Bool {
        state.withLock { state in
            state.isDead = true
            state.small = []
            discard(&state)
        }
        return false
    }

    /// The whole body. - Throws: `IncompleteBody` when it is shorter than announced, or the writer is dead.
    func finish() throws -> Finished {
        try state.withLock { state in
            guard !state.isDead, expectedLength == nil || expectedLength == state.length else { throw IncompleteBody() }
            defer { state = State(isDead: true) }
            return Finished(
                hash: Array(state.hash.finalize()), length: state.length, small: state.small, spool: state.spool, owner: self)
        }
    }

    /// Unlinks on a file lane, and gives the room back only then.
    private func discard(_ state: inout State) {
        guard let spool = state.spool else { return }
        state.spool = nil
        let rooms = [fileRoom, rowRoom]
        store.lanes.start(number) {
            Paths.remove(spool.path)
            spool.release()
            _ = rooms
        }
    }

    deinit {
        state.withLock { discard(&$0) }
        store.counters.withLock { _ = $0.spools.remove("\(number)") }
    }
}

/// The body ended before its announced length.
package struct IncompleteBody: Error {}
