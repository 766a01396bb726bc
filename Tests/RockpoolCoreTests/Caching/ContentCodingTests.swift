// RFC 9110 §8.4, §12.5.3: stored codings that a client accepts, codings decoded for it, and the response fields after decoding.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct ContentCodingTests {
    @Test(arguments: [
        ("", "", true), ("gzip", "Accept-Encoding: gzip", true), ("gzip", "Accept-Encoding: x-gzip;q=0.1", true), ("gzip", "", false),
        ("gzip", "Accept-Encoding: br", false), ("gzip", "Accept-Encoding: gzip;q=0", false), ("gzip", "Accept-Encoding: *", true),
        ("gzip", "Accept-Encoding: *, gzip;q=0.000", false), ("identity", "", true), ("gzip, br", "Accept-Encoding: gzip", false),
        ("gzip, br", "Accept-Encoding: gzip, br", true),
    ])
    func aClientSaysWhatItTakes(_ coding: String, _ request: String, _ isAccepted: Bool) {
        let head = CachingFixture.response(coding.isEmpty ? "" : "Content-Encoding: \(coding)")
        #expect(ContentCoding.isAccepted(head.fields, by: CachingFixture.request(request)) == isAccepted)
    }

    @Test(arguments: [
        ("gzip", 200, true), ("X-GZIP", 200, true), ("deflate", 200, true), ("gzip", 206, false), ("compress", 200, false),
        ("br", 200, ContentCoding.decodable.contains("br")), ("zstd", 200, ContentCoding.decodable.contains("zstd")),
        ("gzip, gzip", 200, false),
    ])
    func oneCodingOfAWholeIsDecoded(_ coding: String, _ status: Int, _ canBe: Bool) {
        #expect(ContentCoding.canBeDecoded(CachingFixture.response("Content-Encoding: \(coding)", status: status)) == canBe)
    }

    @Test func whatIsSaidOfTheCodedBytesGoes() {
        let coded = CachingFixture.response(
            "Content-Encoding: gzip | Content-Length: 9 | ETag: \"v1\" | Vary: Accept-Encoding | Accept-Ranges: bytes | Content-MD5: x | "
                + "Repr-Digest: sha-256=:x: | Content-Type: text/plain")
        let decoded = ContentCoding.decoded(coded)
        #expect(decoded.fields.map(\.name.canonicalName).sorted() == ["content-type", "etag", "vary"])
        #expect(decoded.fields[.eTag] == "W/\"v1\"")
    }
}
