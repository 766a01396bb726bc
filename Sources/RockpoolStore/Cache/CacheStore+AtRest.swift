// Bodies as stored on the disk: deflated where that saves space, checked, and restored bit for bit (docs/storage.md#what-is-stored-where).
import Crypto
package import NIOCore
import RockpoolCore
import Synchronization

extension CacheStore {
    /// Returns the body in the form in which it will be stored: deflated if that saves enough, and in its row if it then fits. Returns the
    /// body unchanged when there is no space for the second copy or the disk refuses it: storing the body matters more than storing it
    /// compactly.
    func packed(_ body: CacheWriter.Finished, of head: ResponseHead) async throws -> CacheWriter.Finished {
        try await sealed(await deflated(body, of: head))
    }

    /// The body and its name as they are sealed, if its writer seals.
    private func sealed(_ body: CacheWriter.Finished) async throws -> CacheWriter.Finished {
        guard let seal = body.owner.seal else { return body }
        var sealed = body
        sealed.hash = seal.name(of: body.hash)
        sealed.coding = body.coding.sealing
        if let spool = body.spool {
            try await lanes.run(body.owner.number) { try spool.finish() }
        } else {
            sealed.small = try seal.seal(body.small)
        }
        return sealed
    }

    /// The most bytes that are compressed where they are: another thread would take longer to wake up.
    private static let tinyLength: Int64 = .kib(4)

    private func deflated(_ body: CacheWriter.Finished, of head: ResponseHead) async -> CacheWriter.Finished {
        guard AtRest.isWorthTrying(head, length: body.length), !AtRest.isDense(body.small) else { return body }
        let most = Int(AtRest.most(body.length))
        let compress: @Sendable () throws -> [UInt8]? = {
            guard let spool = body.spool else { return unsafe body.small.withUnsafeBytes { unsafe Deflate.compress($0, upTo: most) } }
            return try unsafe spool.read(at: 0, count: Int(body.length)).withUnsafeReadableBytes { unsafe Deflate.compress($0, upTo: most) }
        }
        let isTiny = body.spool == nil && body.length <= Self.tinyLength
        let deflated = isTiny ? try? compress() : try? await lanes.run(body.owner.number, compress)
        guard let deflated = deflated ?? nil else { return body }
        return await (try? repacked(body, as: deflated)) ?? body
    }

    private func repacked(_ body: CacheWriter.Finished, as deflated: [UInt8]) async throws -> CacheWriter.Finished? {
        var packed = body
        packed.coding = .deflated
        let isSmall = deflated.count <= Self.inlineLimit
        packed.small = isSmall ? deflated : []
        guard body.spool != nil else { return packed }
        // Readers of the writer continue with its own file; its space stays reserved until they finish.
        packed.spool = nil
        let room = isSmall ? SpaceRequest(rows: rowCost(Int64(deflated.count))) : SpaceRequest(files: Cost.file(Int64(deflated.count)))
        guard await reserve(room) else { return nil }
        if isSmall {
            body.owner.rowRoom.grow(by: room)
        } else {
            packed.fileRoom = Reservation(granted: room, of: footprint)
            packed.spool = try await lanes.run(body.owner.number) { [directory] in
                let spool = try SpoolFile(
                    path: "\(directory)/tmp/\(body.owner.packedName)", expectedLength: Int64(deflated.count), seal: body.owner.seal)
                try unsafe deflated.withUnsafeBytes { try unsafe spool.append($0) }
                return spool
            }
        }
        return packed
    }

    /// Returns the stored body as it was received from the origin; nil when its hash no longer matches.
    /// - Parameter stored: the bytes of the row or of the file, opened where they were sealed.
    func unpacked(_ stored: [UInt8], entry: CacheEntry) -> [UInt8]? {
        entry.bodyCoding.expanded(stored, to: Int(entry.response.bodyLength))
            .flatMap { seal.isName(entry.bodyHash, of: Array(SHA256.hash(data: $0)), entry.bodyCoding) ? $0 : nil }
    }

    // Verification of a body against its origin's digests and against the stored bytes (RFC 9530 §2, §3).

    /// Compares a body with the digests that its origin sent, and with that in its URL. A body joined from several transfers is read again
    /// from where it is stored, and so is one whose URL names another digest than SHA-256; for any other body, only the SHA-256 computed
    /// during the transfer is compared.
    /// - Throws: `UnprovenBody`, `FileError`.
    func prove(_ body: CacheWriter.Finished, of head: ResponseHead, under key: CacheKey) async throws {
        let named = head.status == 200 && !key.isOfHead ? key.contentDigest : nil
        let digests = head.status == 206 ? [] : BodyDigests(head.fields).all + (named.map { [$0] } ?? [])
        if !body.owner.isJoined, named?.algorithm != .sha512 {
            guard digests.allSatisfy({ $0.algorithm != .sha256 || $0.bytes == body.hash }) else { throw UnprovenBody() }
            return
        }
        let hash = body.hash
        let isProven = try await lanes.run(body.owner.number) {
            var sums = Sums(for: digests)
            if let spool = body.spool {
                for start in stride(from: Int64(0), to: body.length, by: Sums.step) {
                    sums.update(try spool.read(at: start, count: Int(min(Int64(Sums.step), body.length - start))))
                }
            } else {
                sums.update(ByteBuffer(bytes: body.small))
            }
            return sums.agree(with: digests + [.init(algorithm: .sha256, bytes: hash)])
        }
        guard isProven else { throw UnprovenBody() }
    }
}

/// The digests of one body, for each algorithm an origin may use.
private struct Sums {
    /// Bytes read at once.
    static let step = Int.mib(1)

    private var sha256 = SHA256()
    /// Computed only where the origin sent such a digest.
    private var sha512: SHA512?
    private var md5: Insecure.MD5?

    init(for digests: [BodyDigests.Digest]) {
        if digests.contains(where: { $0.algorithm == .sha512 }) { sha512 = SHA512() }
        if digests.contains(where: { $0.algorithm == .md5 }) { md5 = Insecure.MD5() }
    }

    mutating func update(_ bytes: ByteBuffer) {
        unsafe bytes.withUnsafeReadableBytes { bytes in
            unsafe sha256.update(bufferPointer: bytes)
            unsafe sha512?.update(bufferPointer: bytes)
            unsafe md5?.update(bufferPointer: bytes)
        }
    }

    func agree(with digests: [BodyDigests.Digest]) -> Bool {
        let (sha256, sha512, md5) = (sha256.finalize().bytes, sha512.map { Array($0.finalize()) }, md5.map { Array($0.finalize()) })
        return digests.allSatisfy { digest in
            switch digest.algorithm {
            case .sha256: digest.bytes == sha256
            case .sha512: digest.bytes == sha512
            case .md5: digest.bytes == md5
            }
        }
    }
}

/// Thrown when the bytes of a body do not match the digest of its origin or of the transfers it was joined from.
package struct UnprovenBody: Error {}

/// The digest of the bytes of a pack, by the function that names the repository's objects: not a protection, but part of the format
/// (https://git-scm.com/docs/gitformat-pack).
package struct PackChecksum: Sendable {
    private var hash: any HashFunction & Sendable

    package init(usesSHA256: Bool) { hash = usesSHA256 ? SHA256() : Insecure.SHA1() }

    /// Its length in bytes.
    package static func length(usesSHA256: Bool) -> Int { usesSHA256 ? SHA256.byteCount : Insecure.SHA1.byteCount }

    package mutating func add(_ bytes: ByteBuffer) { hash.update(data: Array(bytes.readableBytesView)) }

    package func value() -> [UInt8] { Self.digest(of: hash) }

    private static func digest(of hash: some HashFunction) -> [UInt8] { Array(hash.finalize()) }
}
