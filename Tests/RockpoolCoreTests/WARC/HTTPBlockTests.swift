// HTTP messages inside records, payload digests, and their small parsers.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct HTTPBlockTests {
    private func read(_ bytes: [UInt8], isRequest: Bool, step: Int = .max) throws(Refusal) -> (HTTPBlockHead.Message?, rest: String) {
        var reader = HTTPBlockHead(isRequest: isRequest)
        var bytes = bytes[...]
        while !bytes.isEmpty {
            var part = bytes.prefix(step)
            bytes = bytes.dropFirst(part.count)
            if let message = try reader.take(from: &part) { return (message, String(decoding: part + bytes, as: UTF8.self)) }
        }
        return (nil, "")
    }

    @Test(arguments: [1, 5, 1000]) func aResponseComesBackWithItsBody(step: Int) throws {
        let head = ResponseHead(status: 203, fields: [.contentType: "text/plain", .vary: "Accept, Cookie", .eTag: "\"é\""])
        let (message, rest) = try read(HTTPBlock.bytes(of: head) + Array("body\r\n\r\n".utf8), isRequest: false, step: step)
        #expect(message == .response(head) && rest == "body\r\n\r\n")
    }

    @Test(arguments: [1, 1000]) func aRequestComesBack(step: Int) throws {
        let origin = OriginAddress(scheme: .https, host: "a.test", port: 8443)
        let request = RequestHead(method: .get, origin: origin, target: "/x?y", fields: [.acceptLanguage: "de"])
        let (message, _) = try read(HTTPBlock.bytes(of: request), isRequest: true, step: step)
        #expect(message == .request(method: "GET", fields: [.hostField: "a.test:8443", .acceptLanguage: "de"]))
    }

    static let malformed: [(String, Bool)] = [
        ("HTTP/9.9 200 OK\r\n\r\n", false), ("HTTP/1.1 20 OK\r\n\r\n", false), ("HTTP/1.1 020 OK\r\n\r\n", false),
        ("HTTP/1.1 200 OK\n\n", false),
        ("HTTP/1.1 200 OK\r\nno field\r\n\r\n", false), ("HTTP/1.1 200 OK\r\n A: b\r\n\r\n", false),
        ("GET /\r\n\r\n", true), ("G T / HTTP/1.1\r\n\r\n", true), ("GET / HTTP/1.1\r\nA b\r\n\r\n", true), ("GET / HTTP/1.1\n\n", true),
        ("HTTP/1.1 200 OK\r\nA: \(String(repeating: "x", count: 300_000))\r\n\r\n", false),
        ("GET / HTTP/1.1\r\nA: \(String(repeating: "x", count: 300_000))\r\n\r\n", true),
        ("GET / HTTP/1.1\r\n\(String(repeating: "A: b\r\n", count: 300))\r\n", true),
    ]

    @Test(arguments: malformed) func anythingElseIsRefused(text: String, isRequest: Bool) {
        #expect(throws: Refusal.self) { try read(Array(text.utf8), isRequest: isRequest) }
    }

    @Test func anUnfinishedHeadIsNone() throws {
        #expect(try read(Array("HTTP/1.1 200 OK\r\nA: b\r\n".utf8), isRequest: false).0 == nil)
    }
}

@Suite struct PayloadDigestTests {
    private static let ones = [UInt8](repeating: 0xFF, count: 20)

    static let texts: [(String, PayloadDigest?)] = [
        ("sha1:" + String(repeating: "ff", count: 20), PayloadDigest(.sha1, ones)),
        ("SHA1:" + String(repeating: "FF", count: 20), PayloadDigest(.sha1, ones)),
        ("sha-1:" + String(repeating: "7", count: 32), PayloadDigest(.sha1, ones)),
        ("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", PayloadDigest(.sha1, empty)),
        ("sha256:" + String(repeating: "A", count: 51) + "Q====", PayloadDigest(.sha256, [UInt8](repeating: 0, count: 31) + [1])),
        ("md5:d41d8cd98f00b204e9800998ecf8427e", nil), ("sha1", nil), ("sha1:", nil), ("sha1:ff", nil), ("sha1:" + "zz", nil),
        ("sha256:" + String(repeating: "f", count: 63), nil), ("sha256:" + String(repeating: "0", count: 52), nil),
        ("sha1:" + String(repeating: "A", count: 5000), nil),
    ]
    /// SHA-1 of the empty input.
    private static let empty: [UInt8] = [
        0xDA, 0x39, 0xA3, 0xEE, 0x5E, 0x6B, 0x4B, 0x0D, 0x32, 0x55, 0xBF, 0xEF, 0x95, 0x60, 0x18, 0x90, 0xAF, 0xD8, 0x07, 0x09,
    ]

    @Test(arguments: texts) func reading(text: String, digest: PayloadDigest?) { #expect(PayloadDigest(text) == digest) }

    @Test func whatIsWrittenIsRead() {
        let digest = PayloadDigest(.sha256, (0..<32).map { $0 &* 9 })
        #expect(PayloadDigest(digest.text) == digest && digest.text.hasPrefix("sha256:000912"))
    }
}

@Suite struct NamedURLTests {
    static let urls: [(String, String?)] = [
        ("http://A.test:80/x?y=1&z", "http://a.test/x?y=1&z"), ("https://a.test", "https://a.test/"),
        ("https://a.test?q", "https://a.test/?q"),
        ("https://a.test:8443/%7Ex", "https://a.test:8443/%7Ex"), ("/x", nil), ("a.test/x", nil), ("ftp://a.test/", nil), ("*", nil),
        ("", nil),
        ("http://a.test/x#frag", nil), ("http://user@a.test/", nil), ("http://a.test/ö", nil), ("http://a.test:99999/", nil),
        ("http:///x", nil),
    ]

    @Test(arguments: urls) func onlyAbsoluteOnesOfHTTP(text: String, url: String?) { #expect((try? RequestHead(url: text))?.url == url) }
}
