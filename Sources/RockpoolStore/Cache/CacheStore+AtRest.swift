// Bodies as stored on the disk: deflated where that saves space, checked, and restored bit for bit (docs/storage.md#what-is-stored-where).
import Crypto
import NIOCore
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
}
