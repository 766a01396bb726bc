// The result of a lookup: one stored variant, and where its body is (docs/architecture.md#vocabulary, "entry").
package import NIOCore
package import RockpoolCore

/// One stored response.
package struct CacheEntry: Sendable {
    /// The id of its row; never reused.
    package let id: Int64
    /// The key it was found by.
    package let key: CacheKey
    package var response: StoredResponse
    package var storedAt: Timestamp
    package var isPinned: Bool
    /// SHA-256 of the body, or the name that its seal makes of that.
    package let bodyHash: [UInt8]
    /// True if the body is a file of `bodies/`, false if it is in the row.
    package let bodyIsInFile: Bool
    /// The coding in which the body is stored.
    var bodyCoding = StoredCoding.plain
}

/// A body with a verified checksum, or a slice of one.
package enum CachedBody: Sendable {
    case bytes(ByteBuffer)
    /// `length` bytes from `offset`, to be opened during the lifetime of the lease, which keeps the file from being unlinked.
    case file(path: String, offset: Int64, length: Int64, lease: BodyLease)
    /// These bytes of a body that lies sealed; read with `CacheStore.read(_:of:)`.
    case sealed(SealedFile, Range<Int64>, lease: BodyLease)

    /// Length in bytes.
    package var length: Int64 {
        switch self {
        case .bytes(let buffer): Int64(buffer.readableBytes)
        case .file(_, _, let length, _): length
        case .sealed(_, let range, _): Int64(range.count)
        }
    }

    /// Returns the bytes at these positions, counted from the first byte of this body; nothing is read or copied (RFC 9110 §14.1.2).
    /// - Returns: nil when the range exceeds the body.
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

/// The selection of entries to remove.
package enum CacheFilter: Hashable, Sendable {
    /// Exactly these URLs, every identity and variant.
    case urls([String])
    /// All URLs with this prefix.
    case prefix(String)
    case category(String)
    /// All entries in this cache group of one origin, or of every origin when nil (RFC 9875).
    case group(String, origin: OriginAddress?)
    case upstream(OriginAddress)
    case all
}

/// The entries and bytes that were (or would be) removed.
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
    /// The pinned part of `entries`.
    package var pinnedEntries = 0
    /// The pinned part of `bytes`.
    package var pinnedBytes: Int64 = 0
}

/// The space used by the cache, by kind (docs/reference/admin-api.md#storage, `/v1/storage`).
package struct CacheUsage: Sendable {
    package var entries: Int
    package var byCategory: [String: CategoryUsage]
    /// Everything under the directory, as `du` counts it.
    package var usedBytes: Int64
    /// Bytes reserved for writers.
    package var reservedBytes: Int64
    /// Bytes that the log may still grow by; they count against the limit too.
    package var unusedLogBytes: Int64
    /// The configured limit, or less when the disk has less space.
    package var limitBytes: Int64
    /// The bound that determines `limitBytes`.
    package var limitReason: DiskBound.Reason
    package var databaseBytes: Int64
    package var logBytes: Int64
    /// Bytes of the files in `bodies/`.
    package var bodyBytes: Int64
    /// Bytes of free pages; compaction returns them to the file system.
    package var reclaimableBytes: Int64
    package var pinnedBytes: Int64
    package var memoryBytes: Int64
    /// Entries evicted since the start.
    package var evictions: Int
    /// Bodies that failed their checksum since the start.
    package var badBodies: Int
    /// Free bytes of the file system, as available to this process.
    package var freeDiskBytes: Int64
    /// Bytes that the ledger counted for bodies beyond their allocated size at the last audit (negative: fewer). Any value but 0 is a bug.
    package var driftBytes: Int64
    /// The time of the last comparison of the ledger with the disk; nil when there was none since the start.
    package var auditedAt: Timestamp?
}
