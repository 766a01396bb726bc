// RFC 10008 §2.7: requests cached by their body, and the distinction between bodies.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct BodyKeyTests {
    @Test(
        arguments: [
            ("QUERY", false, 0, nil), ("QUERY", true, 65_536, nil), ("QUERY", false, 65_537, .tooLarge), ("POST", true, 9, nil),
            ("POST", false, 9, .method), ("POST", true, 65_537, .tooLarge), ("PUT", true, 9, .method), ("GET", true, 0, .method),
            ("DELETE", true, 0, .method), ("query", true, 0, .method), ("PROPFIND", true, 0, nil), ("REPORT", true, 9, nil),
            ("PROPFIND", false, 0, .method), ("OPTIONS", true, 0, nil),
        ] as [(String, Bool, Int64, BodyKey.Obstacle?)])
    func obstacles(_ name: String, isDeclared: Bool, length: Int64, expected: BodyKey.Obstacle?) throws {
        let method = try #require(HTTPRequest.Method(name))
        #expect(BodyKey.obstacle(method, isDeclared: isDeclared, length: length) == expected)
    }

    @Test(arguments: [
        ("Content-Type: Application/JSON", "content-type: application/json", true),
        ("Content-Type: application/json; Charset=UTF-8", "Content-Type: application/json;charset=\"utf-8\"", true),
        ("Content-Type: a/b; x=\"1\" ;", "Content-Type: a/b;X=1", true), ("Content-Type: a/b; x=Y", "Content-Type: a/b; x=y", false),
        ("Content-Type: a/b; x=\"1;2\"", "Content-Type: A/b; x=\"1;2\"", true),
        ("Content-Type: a/b; x=\"1; 2\"", "Content-Type: a/b; x=\"1;2\"", false),
        ("Content-Type: a/b; x=\"\"", "Content-Type: a/b; x=", false), ("Content-Type: a/b; x=\"1 2\"", "Content-Type: a/b; x=1 2", false),
        ("Content-Type: a/b; x", "Content-Type: a/b; X", true), ("Content-Type: a/b; x=\"\\a\"", "Content-Type: a/b; x=a", false),
        ("Content-Type: a/b", "Content-Type: a/c", false), ("Content-Type: a/b", "", false), ("Content-Type:", "", false),
        ("Content-Encoding: GZIP ,br", "Content-Encoding: gzip, br", true), ("Content-Encoding: gzip", "", false),
        ("Content-Encoding: gzip, br", "Content-Encoding: br, gzip", false),
        ("Content-Encoding: gzip | Content-Encoding: br", "Content-Encoding: gzip,br", true),
        ("Content-Language: de", "Content-Language: en", false), ("Content-Location: /a", "Content-Location: /A", false),
        ("Accept: a/b", "Accept: a/c", true), ("Content-Type: a | Content-Encoding: b", "Content-Encoding: b | Content-Type: a", true),
        ("Content-Type: a", "Content-Encoding: a", false),
    ])
    func metadata(_ a: String, _ b: String, isSame: Bool) {
        let (a, b) = (BodyKey.preamble(CachingFixture.fields(a), bodyLength: 3), BodyKey.preamble(CachingFixture.fields(b), bodyLength: 3))
        #expect((a == b) == isSame)
    }

    /// The length prefixes keep adjacent parts distinct.
    @Test func partsAreDelimited() {
        let preamble = BodyKey.preamble(CachingFixture.fields("Content-Type: a/b | Content-Encoding: gzip"), bodyLength: 12)
        #expect(String(decoding: preamble, as: UTF8.self) == "12:content-type3:a/b16:content-encoding4:gzip12:")
        let forged = BodyKey.preamble(CachingFixture.fields("Content-Type: a/b16:content-encoding4:gzip"), bodyLength: 12)
        #expect(forged != preamble)
        #expect(BodyKey.preamble([:], bodyLength: 1) != BodyKey.preamble([:], bodyLength: 11))
    }
}
