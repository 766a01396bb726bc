// Transfers that broke off: what came is kept as a part, and the rest is appended to it later (RFC 9111 §3.3, §3.4).
import Glibc
package import RockpoolCore

extension CacheStore {
    /// Makes an entry of what was received before a transfer broke off, in place of an older part of the same variant. The writer is
    /// used up whatever happens.
    /// - Parameter response: its head is a 206 whose `Content-Range` describes exactly the bytes written (`CacheWriter.length`).
    /// - Throws: `IncompleteBody` when nothing was received, the writer is dead or the head is no 206; `WholeIsStored`; `FileError`,
    ///   `DatabaseError`. Nothing is stored then.
    package func commitPart(
        _ writer: consuming CacheWriter, key: CacheKey, response: StoredResponse, groups: [String] = []
    ) async throws -> CacheEntry {
        guard response.head.status == 206 else { throw IncompleteBody() }
        return try await store(try await writer.finishPart(), key: key, response: response, groups: groups)
    }

    /// Room for a body that begins with the body of `entry`: a writer that already holds those bytes, checked and copied, so that the
    /// remainder can be appended and the whole committed.
    /// - Parameter expectedLength: of the whole body.
    /// - Returns: nil when there is no room, as for `beginWrite(expectedLength:category:)`, or the stored body is gone or bad.
    package func beginWrite(continuing entry: CacheEntry, expectedLength: Int64?, category: Category) async -> CacheWriter? {
        guard let writer = await beginWrite(expectedLength: expectedLength, category: category) else { return nil }
        guard let body = try? await body(of: entry), (try? await copy(body, into: writer)) == true else { return nil }
        return writer
    }

    /// - Returns: false when the writer does not take it.
    private func copy(_ body: CachedBody, into writer: CacheWriter) async throws -> Bool {
        switch body {
        case .bytes(let bytes): return try await writer.append(bytes)
        case .file(let path, let offset, let length, let lease):
            defer { withExtendedLifetime(lease) {} }
            for start in stride(from: Int64(0), to: length, by: Self.copyStep) {
                let count = Int(min(Int64(Self.copyStep), length - start))
                let bytes = try await lanes.run(0) {
                    try Descriptor(path, O_RDONLY).read(at: offset + start, count: count)
                }
                guard try await writer.append(bytes) else { return false }
            }
            return true
        }
    }

    /// Bytes copied at once.
    private static let copyStep = 1_048_576
}

/// A part does not take the place of a whole response that is stored.
package struct WholeIsStored: Error {}
