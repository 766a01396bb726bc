// Bodies too large for a row: complete, durable and renamed before the row that references them is committed (docs/outbox.md#files).
import Crypto
import FoundationEssentials
import GRDB
package import NIOCore
package import RockpoolCore
import Synchronization

/// Receives a body piece by piece. Without `finish`, it is discarded on deinit.
package final class BlobWriter: Sendable {
    private struct State {
        var hash = SHA256()
        var length: Int64 = 0
    }

    private let store: DataStore
    private let number: UInt64
    private let spool: SpoolFile
    private let room: Reservation
    private let state = Mutex(State())

    init(store: DataStore, number: UInt64, spool: SpoolFile, room: Reservation) {
        self.store = store
        self.number = number
        self.spool = spool
        self.room = room
    }

    /// - Throws: `DataStoreError.full`, `FileError`.
    package func append(_ buffer: ByteBuffer) async throws {
        let length = state.withLock { state in
            unsafe buffer.withUnsafeReadableBytes { unsafe state.hash.update(bufferPointer: $0) }
            state.length += Int64(buffer.readableBytes)
            return state.length
        }
        let missing = Cost.file(length) - room.bytes
        if missing > 0 {
            let more = SpaceRequest(files: max(missing, .mib(1)))
            guard store.footprint.reserve(more) == .granted else { throw DataStoreError.full }
            room.grow(by: more)
        }
        do {
            try await store.lanes.run(number) { try unsafe buffer.withUnsafeReadableBytes { try unsafe self.spool.append($0) } }
        } catch let error as FileError where error.saysFull {
            throw store.diskIsFull()
        }
    }

    /// Makes the body durable under its final name. Pass the result to `append(_: QueuedWriteDraft)` or to `discard`.
    /// - Throws: `FileError`; a failed fsync is not retried.
    package func finish() async throws -> OperationBody {
        let (hash, length) = state.withLock { ($0.hash.finalize().bytes, $0.length) }
        let name = Digest.hex(spool.isSealed ? store.seal.name(of: hash) : hash)
        store.held.withLock { $0.unattached[name, default: 0] += 1 }
        do {
            try await store.lanes.run(number) {
                FailPoint.blobWritten.reached()
                try self.spool.finish()
                try self.spool.synchronize()
                FailPoint.blobSynchronized.reached()
                let target = self.store.blobPath(name)
                let replaced = FileStatus.of(target)?.allocated ?? 0
                let actual = self.spool.allocated
                try Paths.move(self.spool.path, to: target)
                self.spool.release()
                try Paths.synchronizeDirectory("\(self.store.directory)/blobs")
                self.store.footprint.settle(reserved: self.room.take().files, actual: actual - replaced)
            }
        } catch {
            store.releaseBlob(name)
            throw error
        }
        return .blob(sha256: name, length: length)
    }

    deinit { store.held.withLock { _ = $0.spools.remove("\(number)") } }
}

extension DataStore {
    /// Begins a body of more than `inlineLimit` bytes, or of unknown length.
    /// - Throws: `.full`, `FileError`.
    package func blobWriter(expectedLength: Int64?) async throws -> BlobWriter {
        let asked = SpaceRequest(files: Cost.file(max(0, expectedLength ?? .mib(1))))
        while footprint.reserve(asked) != .granted {
            guard try await shedDelivered() else { throw DataStoreError.full }
        }
        let room = Reservation(granted: asked, of: footprint)
        let number = held.withLock { held in
            held.nextFile += 1
            held.spools.insert("\(held.nextFile)")
            return held.nextFile
        }
        let path = "\(directory)/blobs/tmp/\(number)"
        do {
            let spool = try await lanes.run(number) {
                try SpoolFile(path: path, expectedLength: expectedLength, seal: self.seal.isSealing ? self.seal : nil)
            }
            return BlobWriter(store: self, number: number, spool: spool, room: room)
        } catch let error as FileError where error.saysFull {
            throw diskIsFull()
        }
    }

    /// Discards a blob that no operation references: its file is removed, unless another operation has the same body.
    package func discard(_ body: OperationBody) {
        guard case .blob(let sha256, _) = body else { return }
        releaseBlob(sha256)
        // The failed commit may still be in the log and reference the blob after a crash: the file is left to the cleanup.
        guard trouble == nil else { return }
        Task { try? await removeUnnamed([sha256]) }
    }

    /// Returns the content of a body. - Throws: `DamagedBody` when its file is missing or has another length.
    package func content(of body: OperationBody) throws -> OperationContent {
        switch body {
        case .none: return .bytes([])
        case .inline(let bytes): return .bytes(bytes)
        case .blob(let sha256, let length):
            return .stored(try StoredContent(name: sha256, length: length, path: blobPath(sha256), seal: seal))
        }
    }

    func blobPath(_ name: String) -> String { "\(directory)/blobs/\(name)" }

    func releaseBlob(_ name: String) {
        held.withLock { held in
            let left = (held.unattached[name] ?? 1) - 1
            held.unattached[name] = left > 0 ? left : nil
        }
    }

    /// Inserts the blob's row, in the transaction of the operation that references it.
    func attachBlob(of body: OperationBody, in db: Database) throws {
        guard case .blob(let sha256, let length) = body else { return }
        guard let hash = Digest.bytes(sha256), let size = FileStatus.of(blobPath(sha256))?.size,
            SealedChunks.isSize(size, of: length)
        else {
            throw DataStoreError.unavailable("blob \(sha256) is not there")
        }
        try db.execute(
            sql: "INSERT INTO blob (sha, length) VALUES (?, ?) ON CONFLICT DO NOTHING", arguments: [hash.data, length])
    }
}
