// What a lookup gives: one stored variant, and where its body is (design §1, "entry").
package import NIOCore
package import RockpoolCore

/// One stored response.
package struct CacheEntry: Sendable {
    /// Its row; never reused.
    package let id: Int64
    /// What it was found by.
    package let key: CacheKey
    package var response: StoredResponse
    package var storedAt: Timestamp
    package var isPinned: Bool
    /// SHA-256 of the body, or the name that its seal makes of that.
    package let bodyHash: [UInt8]
    /// Whether the body is a file of `bodies/`, not in the row.
    package let bodyIsInFile: Bool
    /// How its body lies there.
    var bodyCoding = StoredCoding.plain
}

/// A body whose checksum held, or a slice of one.
package enum CachedBody: Sendable {
    case bytes(ByteBuffer)
    /// `length` bytes from `offset` on, to be opened while the lease lives: until then the file is not unlinked.
    case file(path: String, offset: Int64, length: Int64, lease: BodyLease)
    /// These bytes of a body that lies sealed; read with `CacheStore.read(_:of:)`.
    case sealed(SealedFile, Range<Int64>, lease: BodyLease)

    /// Bytes of the body.
    package var length: Int64 {
        switch self {
        case .bytes(let buffer): Int64(buffer.readableBytes)
        case .file(_, _, let length, _): length
        case .sealed(_, let range, _): Int64(range.count)
        }
    }

    /// The bytes at these positions, counted from the first of this body; nothing is read or copied (RFC 9110 §14.1.2).
    /// - Returns: nil when it has not all of them.
    package func slice(_ range: Range<Int64>) -> CachedBody? {
        guard range.lowerBound >= 0, range.upperBound <= length else { return nil }
        switch self {
        case .bytes(let buffer):
            return buffer.getSlice(at: buffer.readerIndex + Int(range.lowerBound), length: range.count).map(CachedBody.bytes)
        case .file(let path, let offset, _, let lease):
            return .file(path: path, offset: offset + range.lowerBound, length: Int64(range.count), lease: lease)
        case .sealed(let file, let whole, let lease):
            return .sealed(file, whole.lowerBound + range.lowerBound..<whole.lowerBound + range.upperBound, lease: lease)
        }
    }
}

/// Which entries a removal takes.
package enum CacheFilter: Hashable, Sendable {
    /// Exactly these, every identity and variant.
    case urls([String])
    /// All whose URL starts so.
    case prefix(String)
    case category(String)
    /// All that are of this cache group of one origin, or of any where it is nil (RFC 9875).
    case group(String, origin: OriginAddress?)
    case upstream(OriginAddress)
    case all
}

/// What a removal took (or would take).
package struct RemovalCount: Hashable, Sendable, Codable {
    package var entries: Int
    package var bytes: Int64

    package init(entries: Int = 0, bytes: Int64 = 0) {
        self.entries = entries
        self.bytes = bytes
    }
}

/// Entries and bytes of one category.
package struct CategoryUsage: Hashable, Sendable, Codable {
    package var entries: Int
    package var bytes: Int64
    /// Of `entries`, those that are pinned.
    package var pinnedEntries = 0
    /// Of `bytes`, those that are pinned.
    package var pinnedBytes: Int64 = 0
}

/// How much the cache takes, and of what (contract §5, `/v1/storage`).
package struct CacheUsage: Sendable {
    package var entries: Int
    package var byCategory: [String: CategoryUsage]
    /// Everything under the directory, as `du` counts it.
    package var usedBytes: Int64
    /// Promised to writers.
    package var reservedBytes: Int64
    /// What the log may still grow by: held against the limit too.
    package var unusedLogBytes: Int64
    /// The configured limit, or less where the disk has less.
    package var limitBytes: Int64
    /// Which bound `limitBytes` is.
    package var limitReason: DiskBound.Reason
    package var databaseBytes: Int64
    package var logBytes: Int64
    /// Files of `bodies/`.
    package var bodyBytes: Int64
    /// Free pages: compaction gives them back.
    package var reclaimableBytes: Int64
    package var pinnedBytes: Int64
    package var memoryBytes: Int64
    /// Entries evicted since the start.
    package var evictions: Int
    /// Bodies whose checksum did not hold since the start.
    package var badBodies: Int
    /// Of the file system, for us.
    package var freeDiskBytes: Int64
    /// What the ledger counted for bodies beyond what they took on the disk, at the last audit; negative: less. Anything but 0 is a bug.
    package var driftBytes: Int64
    /// When the ledger was last compared with the disk; nil: not since the start.
    package var auditedAt: Timestamp?
}
