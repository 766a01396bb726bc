// Values of JSON that are URLs of the origin become URLs of the gateway, and the other way; everything else keeps its bytes.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct GatewayLinksTests {
    private let gateway: GatewayAddress

    init() throws {
        gateway = try #require(
            GatewayAddress(origin: OriginAddress(scheme: .https, host: "api.test"), base: "http://localhost:7630"))
    }

    private func outward(_ text: String) -> String? {
        GatewayLinks.replaced(Array(text.utf8), by: gateway, .outward).map { String(decoding: $0, as: UTF8.self) }
    }

    private func inward(_ text: String) -> String? {
        GatewayLinks.replaced(Array(text.utf8), by: gateway, .inward).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(arguments: [
        (#"{"next":"https://api.test/n?p=2"}"#, #"{"next":"http://localhost:7630/n?p=2"}"#),
        (#"{"next" : "https:\/\/api.test\/n?p=2\u0026q=1" , "a":1}"#, #"{"next" : "http:\/\/localhost:7630\/n?p=2\u0026q=1" , "a":1}"#),
        (#"["http://api.test:80/a","HTTPS://api.test:443"]"#, #"["http://localhost:7630/a","http://localhost:7630"]"#),
        (#""https://api.test""#, #""http://localhost:7630""#),
        (
            #"{"e":"","x":"\"https://api.test/","u":"https://api.test/ü","y":["https://api.test/"]}"#,
            #"{"e":"","x":"\"https://api.test/","u":"https://api.test/ü","y":["http://localhost:7630/"]}"#
        ),
    ])
    func aValueThatIsALinkIsReplaced(_ text: String, _ expected: String) {
        #expect(outward(text) == expected)
        // In parts of any size.
        for size in [1, 2, 3, 7] {
            var (links, passed, rest) = (GatewayLinks(gateway, .outward), [UInt8](), Array(text.utf8)[...])
            while !rest.isEmpty {
                passed += links.pass(rest.prefix(size))
                rest = rest.dropFirst(size)
            }
            #expect(String(decoding: passed + links.finish(), as: UTF8.self) == expected)
        }
    }

    @Test(arguments: [
        #"{"https://api.test/a":1}"#, #"{"https://api.test/a" : 1}"#, #"{"text":"see https://api.test/a"}"#,
        #"{"text":"https://api.test/a is down"}"#, #"{"u":"https://api.test.evil.test/"}"#, #"{"u":"https://api.test:8443/"}"#,
        #"{"u":"https://user@api.test/"}"#, #"{"u":"ftp://api.test/"}"#, #"{"u":"//api.test/"}"#, #"{"a":"\\","b":"x"}"#,
        #"{"u":"https://api.test/\n"}"#, #"{"u":"https://api.test/a"#, "https://api.test/", "", "\"",
    ])
    func allElseKeepsItsBytes(_ text: String) {
        #expect(outward(text) == nil)
        var links = GatewayLinks(gateway, .outward)
        #expect(links.pass(text.utf8) + links.finish() == Array(text.utf8))
    }

    @Test func aLongStringIsPassedOn() {
        let text = "{\"u\":\"https://api.test/" + String(repeating: "a", count: 8_000) + "\",\"n\":\"https://api.test/n\"}"
        #expect(outward(text) == text.replacing("\"https://api.test/n\"", with: "\"http://localhost:7630/n\""))
    }

    @Test func whatAClientSendsBackIsTheOrigins() {
        let text = #"{"self":"http://localhost:7630/n/1","other":"http://localhost:7631/n","name":"http://localhost:7630 x"}"#
        #expect(inward(text) == text.replacing("http://localhost:7630/n", with: "https://api.test/n"))
        #expect(inward(#"{"self":"https://api.test/n/1"}"#) == nil)
    }

    @Test func pathsOfGatewaysAreFollowed() throws {
        let origin = OriginAddress(scheme: .https, host: "api.test")
        let gateway = try #require(GatewayAddress(origin: origin, base: "http://localhost:7630", prefix: "/notes", basePath: "/api/v2"))
        let text = #"["https://api.test/api/v2/n","https:\/\/api.test\/api\/v2","https://api.test/api/v20","https://api.test/x"]"#
        let expected =
            #"["http://localhost:7630/notes/n","http:\/\/localhost:7630\/notes","https://api.test/api/v20","https://api.test/x"]"#
        let out = try #require(GatewayLinks.replaced(Array(text.utf8), by: gateway, .outward))
        #expect(String(decoding: out, as: UTF8.self) == expected)
        let back = try #require(GatewayLinks.replaced(out, by: gateway, .inward))
        #expect(String(decoding: back, as: UTF8.self) == text)
    }

    @Test(arguments: [
        ("Cache-Control", "no-transform"), ("Content-Digest", "sha-256=:x:"), ("Content-MD5", "x"), ("Signature", "sig=:x:"),
        ("X-Hub-Signature-256", "sha256=x"), ("X-Amz-Content-Sha256", "x"), ("X-Goog-Hash", "crc32c=x"), ("X-Checksum", "x"),
    ])
    func whatVouchesForTheBytesKeepsThem(_ name: String, _ value: String) throws {
        let plain: HTTPFields = [.contentType: "application/json", .eTag: "\"a\""]
        #expect(GatewayAddress.mayReplaceLinks(of: plain))
        var fields = plain
        fields[try #require(HTTPField.Name(name))] = value
        #expect(!GatewayAddress.mayReplaceLinks(of: fields))
    }
}
