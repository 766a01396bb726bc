// One pack made of several: the objects of each one after the other, behind a head and before a checksum of their own
// (https://git-scm.com/docs/gitformat-pack).
import NIOCore
import RockpoolCore
import RockpoolStore

/// Reads the objects of the pack within the stored answer to a fetch.
struct StoredPackReader: Sendable {
    /// Number of bytes read at once.
    private static let step: Int64 = .kib(128)
    /// What a pack begins with, and the version of its form.
    private static let name = Array("PACK".utf8)
    private static let version: UInt32 = 2

    private let body: CachedBody
    private let cache: CacheStore
    private var offset: Int64 = 0
    /// Packets that are not whole.
    private var packets = ByteBuffer()
    /// Bytes of the pack. The last ones may be its checksum.
    private var content = ByteBuffer()
    /// The number of its objects.
    let count: UInt32
    private let checksumLength: Int

    /// Reads the head; nil if the answer has no pack.
    /// - Parameter usesSHA256: true for the pack of a repository whose objects are named by SHA-256.
    init?(_ body: CachedBody, in cache: CacheStore, usesSHA256: Bool) async {
        (self.body, self.cache) = (body, cache)
        checksumLength = PackChecksum.length(usesSHA256: usesSHA256)
        var start = (offset: Int64(0), packets: ByteBuffer(), content: ByteBuffer())
        while start.content.readableBytes < 12 {
            guard (try? await Self.read(body, in: cache, at: &start.offset, rest: &start.packets, into: &start.content)) == true else {
                return nil
            }
        }
        guard start.content.readBytes(length: Self.name.count) == Self.name, start.content.readInteger() == Self.version,
            let count: UInt32 = start.content.readInteger()
        else { return nil }
        (offset, packets, content, self.count) = (start.offset, start.packets, start.content, count)
    }

    /// Returns further bytes of the objects; nil at the end.
    mutating func next() async throws(TransferFailure) -> ByteBuffer? {
        while true {
            let known = content.readableBytes - checksumLength
            if known > 0 { return content.readSlice(length: known) }
            if try await Self.read(body, in: cache, at: &offset, rest: &packets, into: &content) { continue }
            guard known == 0 else { throw .copyLost }
            return nil
        }
    }

    /// Reads on; false at the end. Packets of texts, of progress and without content are left out.
    private static func read(
        _ body: CachedBody, in cache: CacheStore, at offset: inout Int64, rest packets: inout ByteBuffer, into content: inout ByteBuffer
    ) async throws(TransferFailure) -> Bool {
        let range = offset..<min(offset + step, body.length)
        guard !range.isEmpty else { return false }
        guard var bytes = try? await cache.read(range, of: body), bytes.readableBytes == range.count else { throw .copyLost }
        offset = range.upperBound
        packets.writeBuffer(&bytes)
        while packets.readableBytes >= 4 {
            guard let length = GitPacket.length(in: packets.readableBytesView) else { throw .copyLost }
            guard length >= 4 else {
                packets.moveReaderIndex(forwardBy: 4)
                continue
            }
            guard var packet = packets.readSlice(length: length) else { break }
            packet.moveReaderIndex(forwardBy: 4)
            if packet.readInteger() == AssembledPack.band { content.writeBuffer(&packet) }
        }
        packets.discardReadBytes()
        return true
    }
}

/// The answer to a fetch, made while it is read.
actor AssembledPack: BodySource {
    /// The side band of a pack's bytes.
    static let band: UInt8 = 1

    private var parts: [StoredPackReader]
    /// What precedes the pack; nil once it was read.
    private var introduction: [UInt8]?
    private var checksum: PackChecksum
    private var isOver = false

    /// - Parameters:
    ///   - introduction: precedes the pack.
    ///   - usesSHA256: true if the objects are named by SHA-256.
    init(_ parts: [StoredPackReader], behind introduction: [UInt8], usesSHA256: Bool) {
        (self.parts, self.introduction, checksum) = (parts, introduction, PackChecksum(usesSHA256: usesSHA256))
    }

    func next() async throws(TransferFailure) -> ByteBuffer? {
        if let introduction {
            self.introduction = nil
            var head = ByteBuffer(string: "PACK")
            head.writeInteger(UInt32(2))
            head.writeInteger(parts.reduce(0) { $0 &+ $1.count })
            var bytes = ByteBuffer(bytes: introduction)
            bytes.writeImmutableBuffer(packets(of: head))
            return bytes
        }
        while var part = parts.first {
            let piece = try await part.next()
            parts[0] = part
            if let piece { return packets(of: piece) }
            parts.removeFirst()
        }
        guard !isOver else { return nil }
        isOver = true
        var end = Self.packets(of: ByteBuffer(bytes: checksum.value()))
        end.writeBytes(GitPacket.flushBytes)
        return end
    }

    nonisolated func abandon() {}

    private func packets(of bytes: ByteBuffer) -> ByteBuffer {
        checksum.add(bytes)
        return Self.packets(of: bytes)
    }

    private static func packets(of bytes: ByteBuffer) -> ByteBuffer {
        var (rest, packets) = (bytes, ByteBuffer())
        while let piece = rest.readSlice(length: min(rest.readableBytes, GitPacket.limit - 5)), piece.readableBytes > 0 {
            packets.writeBytes(GitPacket.length(piece.readableBytes + 5))
            packets.writeInteger(band)
            packets.writeImmutableBuffer(piece)
        }
        return packets
    }
}
