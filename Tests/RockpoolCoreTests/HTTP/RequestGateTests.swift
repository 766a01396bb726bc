// Requests accepted by the gate behind the decoder, and the status of each refusal.
import HTTPTypes
import Testing

@testable import RockpoolCore

private func fields(_ lines: [(String, String)]) -> HTTPFields {
    HTTPFields(lines.compactMap { line in HTTPField.Name(line.0).map { HTTPField(name: $0, value: line.1) } })
}

private func status(
    _ method: String, _ target: String, version: (major: Int, minor: Int) = (1, 1), _ lines: [(String, String)],
    limits: ClientLimits = ClientLimits()
) -> Int {
    do {
        _ = try RequestGate.check(method: method, target: target, version: version, fields: fields(lines), limits: limits)
        return 200
    } catch { return error.status }
}

private func status(_ lines: [(String, String)], limits: ClientLimits = ClientLimits()) -> Int {
    status("GET", "http://a/", lines, limits: limits)
}

@Suite struct RequestGateTests {
    private static let host = ("Host", "a")

    @Test(arguments: [
        ([("Content-Length", "5")], Framing.length(5)), ([("Content-Length", "010")], .length(10)), ([("Content-Length", "0")], .length(0)),
        ([("Transfer-Encoding", "chunked")], .chunked), ([("transfer-encoding", "CHUNKED")], .chunked), ([], .none),
        ([("Content-Length", "9007199254740992")], .length(1 << 53)),
    ])
    func framing(lines: [(String, String)], expected: Framing) throws {
        let fields = fields([Self.host] + lines)
        #expect(try RequestGate.check(method: "POST", target: "/p", version: (1, 1), fields: fields, limits: ClientLimits()) == expected)
    }

    @Test(arguments: [
        ([("Content-Length", "5"), ("Transfer-Encoding", "chunked")], 400), ([("Transfer-Encoding", "gzip, chunked")], 501),
        ([("Transfer-Encoding", "identity, chunked")], 501), ([("Transfer-Encoding", "chunked, chunked")], 400),
        ([("Transfer-Encoding", "chunked"), ("Transfer-Encoding", "chunked")], 400), ([("Transfer-Encoding", "blegh")], 400),
        ([("Transfer-Encoding", "x"), ("Transfer-Encoding", "chunked")], 400), ([("Transfer-Encoding", "chunked,")], 400),
        ([("Transfer-Encoding", ",chunked")], 400), ([("Transfer-Encoding", "\"chunked\"")], 400), ([("Transfer-Encoding", "")], 400),
        ([("Transfer-Encoding", ""), ("Content-Length", "5")], 400), ([("Transfer-Encoding", "chunked;q=1")], 400),
        ([("Content-Length", "5"), ("Content-Length", "5")], 400), ([("Content-Length", "5, 5")], 400), ([("Content-Length", "+5")], 400),
        ([("Content-Length", "-0")], 400), ([("Content-Length", "1_0")], 400), ([("Content-Length", "5 5")], 400),
        ([("Content-Length", "")], 400), ([("Content-Length", "0x5")], 400), ([("Content-Length", "٥")], 400),
        ([("Content-Length", "18446744073709551621")], 413),
        ([("Content-Length", "9007199254740993")], 413),
    ])
    func badFraming(lines: [(String, String)], expected: Int) {
        #expect(status("POST", "/p", [Self.host] + lines) == expected)
    }

    @Test func codingNeedsHTTP11() {
        #expect(status("POST", "/p", version: (1, 0), [Self.host, ("Transfer-Encoding", "chunked")]) == 400)
    }

    @Test(arguments: [
        ([], 400), ([("Host", "")], 400), ([("Host", "a"), ("Host", "a")], 400), ([("Host", "a"), ("host", "evil.test")], 400),
        ([("Host", "a/x")], 400), ([("Host", "127.0.0.1:80,evil")], 400), ([("Host", "a:abc")], 400), ([("Host", "http://a")], 400),
        ([("Host", "a#x")], 400), ([("Host", "a\tb")], 400), ([("Host", "a b")], 400), ([("Host", "u@a")], 400), ([("Host", "a:")], 200),
        ([("Host", "[::1]:80")], 200), ([("Host", "other.test")], 200),
    ])
    func host(lines: [(String, String)], expected: Int) {
        #expect(status(lines) == expected)
        #expect(status("GET", "/g", lines) == expected)
    }

    @Test func oldClientsNeedNoHostWhereTheTargetHasOne() {
        #expect(status("GET", "http://a/", version: (1, 0), []) == 200)
        #expect(status("CONNECT", "a:443", version: (1, 0), []) == 200)
        #expect(status("GET", "/g", version: (1, 0), []) == 400)
        #expect(status("GET", "/g", version: (1, 0), [("Host", "a/b")]) == 400)
    }

    @Test(arguments: [(0, 9, 505), (1, 0, 200), (1, 1, 200), (1, 2, 505), (2, 0, 505), (3, 0, 505), (-1, 1, 505)])
    func version(major: Int, minor: Int, expected: Int) {
        #expect(status("GET", "/", version: (major, minor), [Self.host]) == expected)
    }

    @Test func anotherVersionHasAProblemOfItsOwn() {
        let refusal = #expect(throws: Refusal.self) {
            try RequestGate.check(method: "GET", target: "/", version: (2, 0), fields: [:], limits: ClientLimits())
        }
        #expect(refusal == .versionNotSupported && refusal?.problem == "version-not-supported")
    }

    @Test(arguments: [
        ("TRACE", "/", [], 405), ("G(T", "/", [], 400), ("", "/", [], 400), ("get", "/", [], 200), ("QUERY", "/", [], 200),
        ("CONNECT", "a:443", [("Content-Length", "0")], 400), ("CONNECT", "a:443", [("Transfer-Encoding", "chunked")], 400),
        ("CONNECT", "a:443", [], 200), ("GET", "/", [("Expect", "foo")], 417), ("POST", "/", [("Expect", "100-Continue")], 200),
        ("POST", "/", [("Expect", "y 100-continue")], 417), ("GET", "/", [("Authorization", "a"), ("Authorization", "b")], 400),
        ("GET", "/", [("Idempotency-Key", "a"), ("Idempotency-Key", "a")], 400), ("GET", "/", [("Cookie", "a"), ("Cookie", "b")], 200),
        ("GET", "/", [("Range", "bytes=0-1"), ("Range", "bytes=2-3")], 200), ("GET", "/", [("X", "caf\u{FFFD}")], 400),
        ("GET", "/", [("X", "\u{FFFD}")], 400), ("GET", "/", [("X", "é\u{FFFC}")], 200),
        ("GET", "/", [("Connection", "close, Cookie")], 400),
        ("GET", "/", [("Upgrade", "websocket")], 200),
    ])
    func meaning(method: String, target: String, lines: [(String, String)], expected: Int) {
        #expect(status(method, target, [Self.host] + lines) == expected)
    }

    @Test func limitsHoldToTheByte() {
        var limits = ClientLimits()
        limits.targetBytes = ByteCount(4)
        #expect(status("GET", "/abc", [Self.host], limits: limits) == 200)
        #expect(status("GET", "/abcd", [Self.host], limits: limits) == 414)
        limits = ClientLimits()
        limits.fields = 2
        #expect(status([Self.host, ("X", "1")], limits: limits) == 200)
        #expect(status([Self.host, ("X", "1"), ("X", "2")], limits: limits) == 431)
        limits = ClientLimits()
        limits.fieldBytes = ByteCount(10)  // "X: 12345\r\n"
        #expect(status([Self.host, ("X", "12345")], limits: limits) == 200)
        #expect(status([Self.host, ("X", "123456")], limits: limits) == 431)
        limits = ClientLimits()
        limits.headBytes = ByteCount(19)  // "/" + "Host: a\r\n" + "X: 1234\r\n"
        #expect(status("GET", "/", [Self.host, ("X", "1234")], limits: limits) == 200)
        #expect(status("GET", "/", [Self.host, ("X", "12345")], limits: limits) == 431)
    }

    @Test func admissionSaysWhatWasRead() throws {
        let head = fields([("Host", "B:81"), ("Content-Length", "2")])
        let admission = try RequestGate.admit(method: "POST", target: "http://A/x", version: (1, 1), fields: head, limits: ClientLimits())
        #expect(admission.target == .absolute(OriginAddress(scheme: .http, host: "a"), pathAndQuery: "/x"))
        #expect(admission.host == Authority(host: "b", port: 81))
        #expect(admission.framing == .length(2))
    }
}
