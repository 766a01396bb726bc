// The checksum of a pack without objects, as `git pack-objects` writes it (RockpoolStore/Cache/CacheStore+AtRest.swift).
import NIOCore
import RockpoolStore
import Testing

@Suite struct PackChecksumTests {
    @Test(arguments: [
        (false, "029d08823bd8a8eab510ad6ac75c823cfd3ed31e"),
        (true, "7ed890d8a45760f3eecf73045b1d1047085af4776dc683d78eac82203df1993f"),
    ])
    func aPackEndsWithTheDigestOfItsRepository(usesSHA256: Bool, digest: String) {
        var checksum = PackChecksum(usesSHA256: usesSHA256)
        checksum.add(ByteBuffer(string: "PACK"))
        checksum.add(ByteBuffer(bytes: [0, 0, 0, 2, 0, 0, 0, 0]))
        let value = checksum.value()
        #expect(value.count == PackChecksum.length(usesSHA256: usesSHA256))
        #expect(value.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() == digest)
    }
}
