// Upstream responses that are forwarded, and those replaced by a 502.
import HTTPTypes
import Testing

@testable import RockpoolCore

private func fields(_ lines: [(String, String)]) -> HTTPFields {
    HTTPFields(lines.compactMap { line in HTTPField.Name(line.0).map { HTTPField(name: $0, value: line.1) } })
}

@Suite struct ResponseGateTests {
    @Test(arguments: [
        (200, "GET", [("Content-Length", "5")], Framing.length(5)), (200, "GET", [("Transfer-Encoding", "chunked")], .chunked),
        (200, "GET", [], nil), (200, "HEAD", [("Content-Length", "6")], Framing.none), (404, "HEAD", [], Framing.none),
        (204, "GET", [("Content-Length", "5")], Framing.none), (304, "GET", [("Content-Length", "5")], Framing.none),
        (103, "GET", [], Framing.none), (200, "CONNECT", [], Framing.none), (503, "CONNECT", [("Content-Length", "1")], .length(1)),
    ])
    func framing(status: Int, method: String, lines: [(String, String)], expected: Framing?) throws {
        #expect(try ResponseGate.check(status: status, fields: fields(lines), requestMethod: method) == expected)
    }

    @Test(arguments: [
        (99, []), (600, []), (101, []), (407, [("Proxy-Authenticate", "Basic")]),
        (200, [("Content-Length", "5"), ("Content-Length", "6")]),
        (200, [("Content-Length", "-1")]), (200, [("Transfer-Encoding", "identity"), ("Content-Length", "5")]),
        (200, [("Transfer-Encoding", "gzip, chunked")]), (200, [("Transfer-Encoding", "chunked"), ("Content-Length", "5")]),
        (200, [("Content-Length", "99999999999999999999")]),
    ])
    func badGateway(status: Int, lines: [(String, String)]) {
        for method in ["GET", "HEAD"] {
            let refusal = #expect(throws: Refusal.self) {
                try ResponseGate.check(status: status, fields: fields(lines), requestMethod: method)
            }
            #expect(refusal?.status == 502)
        }
    }

    /// Parses the lines of `text`, which end in LF; Latin-1 as on the wire.
    private func heads(_ text: String, limits: ResponseHeadLines.Limits = .init()) throws -> [ResponseHead] {
        var reader = ResponseHeadLines(limits: limits)
        let bytes = text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
        return try bytes.split(separator: 0x0A, omittingEmptySubsequences: false).dropLast().compactMap { try reader.take($0 + [0x0A]) }
    }

    @Test func headsAreReadLineByLine() throws {
        let read = try heads("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nX-A: \t caf\u{E9} \r\nETag:\"x\"\r\n\r\n")
        #expect(read.map(\.status) == [100, 200])
        #expect(read.last?.fields[.eTag] == "\"x\"")
        let bytes = read.last?.fields.first { $0.name.canonicalName == "x-a" }?.withUnsafeBytesOfValue { Array($0) }
        #expect(bytes == [0x63, 0x61, 0x66, 0xE9])
    }

    @Test(arguments: ["HTTP/2 204 \r\n\r\n", "HTTP/1.0 204\r\n\r\n", "HTTP/1.1 204 a  b\r\n\r\n"])
    func statusLine(text: String) throws {
        #expect(try heads(text).map(\.status) == [204])
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\rContent-Length: 4\r\n", "HTTP/1.1 99 X\r\n", "HTTP/1.1 020 X\r\n", "HTTP/1.1 600 X\r\n", "HTTP/1.1 2000 X\r\n",
        "HTTP/1.1  200 X\r\n", "hello world\r\n",
        "ICY 200 OK\r\n", "HTTP/1.1 20a X\r\n", "HTTP/1.1 200 OK\n", "HTTP/1.1 200 OK\r\nX-A: a\u{0}b\r\n", "HTTP/1.1 200 OK\r\nX A: x\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n", "HTTP/1.1 200 OK\r\n folded\r\n", "HTTP/1.1 200 OK\r\n: x\r\n",
        "HTTP/1.1 200 OK\r\nX\r\n",
        "HTTP/1.1 200 OK\r\nX: a\rb\r\n", "HTTP/1.1 200 OK\r\nX: a\n", "HTTP/1.1 200 OK\r\nX: \u{7F}\r\n",
        "HTTP/1.1 200 OK\r\n\u{E9}: x\r\n",
        "HTTP/1.1 200 \u{0}\r\n", "\r\n",
    ])
    func malformedLine(text: String) {
        #expect(throws: Refusal.self) { try heads(text) }
    }

    @Test func headsAreBounded() throws {
        var limits = ResponseHeadLines.Limits()
        limits.fields = 2
        #expect(try heads("HTTP/1.1 200 OK\r\nX: 1\r\nX: 2\r\n\r\n", limits: limits).count == 1)
        #expect(throws: Refusal.self) { try heads("HTTP/1.1 200 OK\r\nX: 1\r\nX: 2\r\nX: 3\r\n\r\n", limits: limits) }
        limits.headBytes = ByteCount(17)
        #expect(throws: Refusal.self) { try heads("HTTP/1.1 200 OK\r\n\r\n", limits: limits) }
        limits.headBytes = ByteCount(19)
        limits.interim = 2
        let interim = "HTTP/1.1 102 P\r\n\r\n"
        #expect(try heads(interim + interim + "HTTP/1.1 200 OK\r\n\r\n", limits: limits).map(\.status) == [102, 102, 200])
        #expect(throws: Refusal.self) { try heads(interim + interim + interim, limits: limits) }
    }
}
