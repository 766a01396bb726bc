// Requests recognised before decoding, and above all requests that must not be (RFC 9112 §2–§5).
import HTTPTypes
import Testing

@testable import RockpoolCore

struct PlainRequestTests {
    private static let plain = "GET /a?b=[1]&c=%20 HTTP/1.1\r\nHost: localhost:1\r\nAccept: a, b\r\nX-Tag: t\r\n\r\n"

    private func read(_ text: String, limits: ClientLimits = ClientLimits()) -> FastPathRequest? {
        FastPathRequest(Array(text.utf8).span, limits: limits)
    }

    private func isPlain(_ text: String, limits: ClientLimits = ClientLimits()) -> Bool { read(text, limits: limits) != nil }

    @Test func whatItFinds() throws {
        let (bytes, plain) = (Array(Self.plain.utf8), try #require(read(Self.plain)))
        func text(_ range: Range<Int>?) -> String? { range.map { String(decoding: bytes[$0], as: UTF8.self) } }
        func value(_ name: String) -> Range<Int>? { plain.value(of: Array(name.utf8), in: bytes.span) }
        #expect(text(plain.target) == "/a?b=[1]&c=%20" && text(plain.host) == "localhost:1" && plain.length == Self.plain.utf8.count)
        #expect(text(value("accept")) == "a, b" && text(value("x-tag")) == "t" && value("accept-encoding") == nil)
    }

    @Test func aFieldThatComesTwiceHasNoValue() throws {
        let text = "GET / HTTP/1.1\r\nHost: h\r\nAccept: a\r\naccept: a\r\n\r\n"
        let plain = try #require(read(text))
        #expect(plain.value(of: Array("accept".utf8), in: Array(text.utf8).span)?.isEmpty == true)
    }

    @Test func aHeadIsPlain() { #expect(read("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n")?.isHead == true && read(Self.plain)?.isHead == false) }

    @Test func conditionsAndARangeAreFound() throws {
        let text = "GET / HTTP/1.1\r\nHost: h\r\nIf-None-Match: \"a\"\r\nrange: bytes=0-1\r\nIF-MODIFIED-SINCE: x\r\n\r\n"
        let (bytes, plain) = (Array(text.utf8), try #require(read(text)))
        let values = [plain.ifNoneMatch, plain.range, plain.ifModifiedSince].map { String(decoding: bytes[$0], as: UTF8.self) }
        #expect(values == ["\"a\"", "bytes=0-1", "x"])
        for name in ["If-None-Match", "Range", "If-Modified-Since"] {
            #expect(!isPlain("GET / HTTP/1.1\r\nHost: h\r\n\(name): a\r\n\(name): a\r\n\r\n"), "twice")
        }
    }

    @Test(arguments: SecretFields.identifying.map(\.canonicalName))
    func aCredentialIsKnownByItsBytes(name: String) throws {
        func request(_ lines: String) throws -> (FastPathRequest, [UInt8]) {
            let text = "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n\(lines)C: d\r\n\r\n"
            return (try #require(read(text)), Array(text.utf8))
        }
        let (plain, bytes) = try request("\(name): one\r\n")
        let known = Array("\(name): one\n".utf8)
        #expect(plain.hasCredential && plain.lines.credentialLines.map { String(decoding: bytes[$0], as: UTF8.self) } == ["\(name): one"])
        func isKnown(_ credential: [UInt8], of plain: FastPathRequest, _ bytes: [UInt8]) -> Bool {
            plain.lines.hasCredential(credential, in: bytes.span)
        }
        #expect(isKnown(known, of: plain, bytes))
        for other in ["", "\(name): on\n", "\(name): one", "\(name): ones\n", "\(name): one\n\(name): one\n"] {
            #expect(!isKnown(Array(other.utf8), of: plain, bytes), "\(other)")
        }
        let twice = "\(name): one\r\n\(name): two\r\n"
        // Of that the gate refuses two.
        guard name != "authorization" else { return }
        let (two, twoBytes) = try request(twice)
        #expect(!isKnown(known, of: two, twoBytes))
        #expect(try !request("").0.hasCredential)
    }

    @Test func twoAuthorizationsAreNotPlain() {
        #expect(!isPlain("GET / HTTP/1.1\r\nHost: h\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n"))
        #expect(isPlain("GET / HTTP/1.1\r\nHost: h\r\nAuthorization: a\r\nCookie: b\r\n\r\n"))
    }

    @Test func nothingBehindTheHeadMatters() {
        #expect(read(Self.plain + "POST /x HTTP/1.1\r\n")?.length == Self.plain.utf8.count)
    }

    @Test(arguments: [
        "Connection: keep-alive", "connection: Keep-Alive", "Proxy-Connection: keep-alive", "User-Agent: a (b; c) d/1.0",
        "Origin: http://o",
        "Sec-Fetch-Mode: cors", "X-Request-Tag: ~!@#$%^&*()_+{}|:\"<>?", "Referer: http://r/", "DNT: 1", "Hosts: h",
    ])
    func fieldsThatPass(field: String) { #expect(isPlain("GET / HTTP/1.1\r\nHost: h\r\n\(field)\r\n\r\n")) }

    @Test func absoluteTargetsPass() { #expect(isPlain("GET http://h:80/a HTTP/1.1\r\nHost: h\r\n\r\n")) }

    @Test func noPrefixIsWhole() {
        for count in 0..<Self.plain.utf8.count {
            #expect(!isPlain(String(decoding: Self.plain.utf8.prefix(count), as: UTF8.self)), "\(count) bytes")
        }
    }

    /// Each has an error in the first line; `\n` stands for CR LF.
    @Test(arguments: [
        "get / HTTP/1.1\n", "GET  / HTTP/1.1\n", "GET /  HTTP/1.1\n", "GET / HTTP/1.1 \n", " GET / HTTP/1.1\n", "\nGET / HTTP/1.1\n",
        "GET\t/ HTTP/1.1\n", "GET /\tHTTP/1.1\n", "GET / HTTP/1.0\n", "GET / HTTP/1.2\n", "GET / http/1.1\n", "GET / HTTP/2.0\n", "GET /\n",
        "GET /# HTTP/1.1\n", "GET /\u{7F} HTTP/1.1\n", "GET /\u{E9} HTTP/1.1\n", "GET /\0 HTTP/1.1\n",
        "GET /\\ HTTP/1.1\n", "GET /^ HTTP/1.1\n", "GET * HTTP/1.1\n", "GET h:80 HTTP/1.1\n", "GET https://h/ HTTP/1.1\n",
        "GET ftp://h/ HTTP/1.1\n", "GET HTTP://h/ HTTP/1.1\n", "GET  HTTP/1.1\n", "GETS / HTTP/1.1\n", "HEADS / HTTP/1.1\n",
        "HEAD  / HTTP/1.1\n", "head / HTTP/1.1\n",
        "POST / HTTP/1.1\n", "OPTIONS / HTTP/1.1\n",
    ])
    func startLinesThatDoNot(line: String) {
        #expect(!isPlain((line + "Host: h\n\n").replacingCRLF))
    }

    @Test(arguments: [
        "", "Host: h\nHost: h\n", "Host: h\nhost: i\n", "Host:h\n", "Host : h\n", "Host:  h\n", "Host: h \n", "Host:\th\n", "Host: h\t\n",
        "Host: \n", "Host:\n", "Host: h\n X: y\n", "Host: h\n\tX: y\n", " Host: h\n", "Host: h\nX: y\n z\n", "Host: h\nX:y\n",
        "Host: h\nX: y \n", "Host: h\nX: \n", "Host: h\nX:\n", "Host: h\nX\n", "Host: h\n: y\n", "Host: h\nX Y: z\n", "Host: h\nX\0: z\n",
        "Host: h\nX: \0\n", "Host: h\nX: a\tb\n", "Host: h\nX: \u{E9}\n", "Host: h\nX: \u{7F}\n", "Host: h\nX: a\rb\n", "Host: h\nX(: y\n",
        "Host: h\n\u{E9}: y\n", "Host: h\r\r\n", "Host: h\nX: 12345678\u{1F}2345678\n", "Host: h\nX: 12345678\u{80}2345678\n",
    ])
    func fieldLinesThatDoNot(lines: String) { #expect(!isPlain(("GET / HTTP/1.1\n" + lines + "\n").replacingCRLF)) }

    @Test(arguments: ["\n", "\r", "\r\r\n", "\n\r"])
    func lineEndsThatDoNot(end: String) {
        #expect(!isPlain("GET / HTTP/1.1\(end)Host: h\r\n\r\n"))
        #expect(!isPlain("GET / HTTP/1.1\r\nHost: h\(end)\r\n"))
        #expect(!isPlain("GET / HTTP/1.1\r\nHost: h\r\n\(end)"))
    }

    @Test(arguments: PlainFields.deciding + ["rockpool-policy", "if-anything", "content-md5", "proxy-foo", "sec-websocket-key"])
    func fieldsThatDecide(name: String) {
        for spelling in [name, name.uppercased(), name.capitalizedWords] {
            #expect(!isPlain("GET / HTTP/1.1\r\nHost: h\r\n\(spelling): keep-alive\r\n\r\n"))
        }
    }

    @Test(arguments: ["close", "keep-alive, close", "upgrade", "keep-alive,x", "Keep-Alive, Accept"])
    func connectionsThatDoNot(value: String) { #expect(!isPlain("GET / HTTP/1.1\r\nHost: h\r\nConnection: \(value)\r\n\r\n")) }

    @Test func whatMovesARequestIsOnTheList() {
        #expect(UnkeyedField.overriding.subtracting(PlainFields.deciding).isEmpty)
    }

    @Test func limitsHold() {
        func head(fields: Int, value: Int = 1) -> String {
            "GET /abc HTTP/1.1\r\nHost: h\r\n" + (0..<fields).map { "X\($0): \(String(repeating: "v", count: value))\r\n" }.joined()
                + "\r\n"
        }
        var limits = ClientLimits()
        #expect(isPlain(head(fields: 32)) && !isPlain(head(fields: 33)))
        // Host counts as a field, as in the request gate.
        limits.fields = 3
        #expect(isPlain(head(fields: 2), limits: limits) && !isPlain(head(fields: 3), limits: limits))
        let conditional = head(fields: 2).replacing("X1: v", with: "Range: bytes=0-1")
        #expect(isPlain(conditional, limits: limits))
        limits.fields = 2
        #expect(!isPlain(conditional, limits: limits), "each field counts")
        limits = ClientLimits()
        limits.targetBytes = ByteCount(3)
        #expect(!isPlain(head(fields: 1), limits: limits))
        limits.targetBytes = ByteCount(4)
        #expect(isPlain(head(fields: 1), limits: limits))
        limits.fieldBytes = ByteCount(106)
        #expect(isPlain(head(fields: 1, value: 100), limits: limits) && !isPlain(head(fields: 1, value: 101), limits: limits))
        limits.headBytes = ByteCount(Int64(head(fields: 1).utf8.count))
        #expect(isPlain(head(fields: 1), limits: limits) && !isPlain(head(fields: 1, value: 2), limits: limits))
        #expect(isPlain(head(fields: 1, value: 8000)) && !isPlain(head(fields: 1, value: 8192)))
    }

    @Test func itsClassesOfBytesAreThoseOfTheGate() {
        for byte in UInt8.min ... .max {
            #expect(PlainByte.isToken(byte) == FieldByte.isTokenByte(byte), "\(byte)")
            #expect(PlainByte.isTarget(byte) == RequestTarget.isTargetByte(byte), "\(byte)")
            for shift in stride(from: 0, to: 64, by: 8) {
                let filled: UInt64 = 0x4141_4141_4141_4141 & ~(0xFF << UInt64(shift)) | UInt64(byte) << UInt64(shift)
                #expect(!PlainByte.areText(filled) || PlainByte.isText(byte), "\(byte)")
                #expect(PlainByte.areText(filled) || !PlainByte.isText(byte), "\(byte) would take the slow path")
            }
        }
    }
}

extension String {
    fileprivate var replacingCRLF: String { split(separator: "\n", omittingEmptySubsequences: false).joined(separator: "\r\n") }
    fileprivate var capitalizedWords: String {
        split(separator: "-").map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined(separator: "-")
    }
}
