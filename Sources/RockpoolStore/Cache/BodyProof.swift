// Verification of a body against its origin's digests and against the stored bytes (RFC 9530 §2, §3).
import Crypto
import NIOCore
import RockpoolCore

extension CacheStore {
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
