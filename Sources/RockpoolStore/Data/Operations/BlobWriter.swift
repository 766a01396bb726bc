// Bodies too large for a row: complete, durable and renamed before the row that references them is committed (docs/outbox.md#files).
import Crypto
import FoundationEssentials
import GRDB
import Glibc
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

// MARK: - Stored bodies

/// The content of an operation's body, ready for sending. A body in a file is compared with its name whenever it is read
/// (docs/outbox.md#files).
package enum OperationContent: Sendable {
    case bytes([UInt8])
    case stored(StoredContent)

    /// Returns the whole content. - Throws: `DamagedBody`, `FileError`.
    package func bytes() throws -> [UInt8] {
        switch self {
        case .bytes(let bytes): return bytes
        case .stored(let content):
            var (reader, bytes) = (content.reader(), [UInt8]())
            bytes.reserveCapacity(Int(clamping: content.length))
            while case let piece = try reader.next(.mib(1)), piece.readableBytes > 0 { bytes += piece.readableBytesView }
            return bytes
        }
    }
}

/// A body in a file of `blobs/`, plain or sealed.
package struct StoredContent: Sendable {
    /// Bytes of the body.
    package let length: Int64
    private let name: String
    private let path: String
    private let seal: BodySeal

    /// - Throws: `DamagedBody` when the file is missing or has another length.
    init(name: String, length: Int64, path: String, seal: BodySeal) throws {
        (self.name, self.length, self.path, self.seal) = (name, length, path, seal)
        try checkSize()
    }

    /// Returns a reader at the start of the body.
    package func reader() -> StoredContentReader { StoredContentReader(self) }

    fileprivate func read(_ range: Range<Int64>) throws -> ByteBuffer {
        do {
            try checkSize()
            if FileStatus.of(path)?.size != length { return try SealedFile(path, seal).read(range) }
            return try Descriptor(path, O_RDONLY).read(at: range.lowerBound, count: range.count)
        } catch is SealBroken {
            throw DamagedBody(name: name, what: .changed)
        }
    }

    fileprivate func check(_ hash: [UInt8]) throws(DamagedBody) {
        guard let name = Digest.bytes(name), name == hash || seal.isName(name, of: hash) else {
            throw DamagedBody(name: name, what: .changed)
        }
    }

    private func checkSize() throws(DamagedBody) {
        guard let size = FileStatus.of(path)?.size else { throw DamagedBody(name: name, what: .missing) }
        guard SealedChunks.isSize(size, of: length) else { throw DamagedBody(name: name, what: .changed) }
    }
}

/// Reads a stored body from its start. The last bytes are given out only if the whole is what its name says.
package struct StoredContentReader: Sendable {
    private let content: StoredContent
    private var hash = SHA256()
    private var offset: Int64 = 0

    fileprivate init(_ content: StoredContent) { self.content = content }

    /// Returns the next bytes, at most `count`; empty at the end. - Throws: `DamagedBody`, `FileError`.
    package mutating func next(_ count: Int) throws -> ByteBuffer {
        let end = min(offset.addedClamped(Int64(count)), content.length)
        guard end > offset else { return ByteBuffer() }
        let bytes = try content.read(offset..<end)
        unsafe bytes.withUnsafeReadableBytes { unsafe hash.update(bufferPointer: $0) }
        offset = end
        if offset == content.length { try content.check(hash.finalize().bytes) }
        return bytes
    }

    /// Begins again at the start.
    package mutating func rewind() { (hash, offset) = (SHA256(), 0) }
}

/// Thrown for a stored body that is not what was accepted.
package struct DamagedBody: Error, Hashable, CustomStringConvertible {
    package enum What: String, Sendable { case missing, changed }

    /// The name of its file in `blobs/`.
    package let name: String
    package let what: What

    package var description: String {
        switch what {
        case .missing: "its body is missing: blobs/\(name)"
        case .changed: "its body has changed on the disk: blobs/\(name)"
        }
    }
}
