// What makes two requests alike, and what of a request is passed on unread (docs/architecture.md#relays).
import HTTPTypes
import Testing

@testable import RockpoolCore

struct RequestShapeTests {
    private let arrival = RequestShape.Arrival(listener: "l:1", isLocalClient: true)

    private func read(_ lines: String, target: String = "/a") throws -> (request: FastPathRequest, bytes: [UInt8]) {
        let bytes = Array("GET \(target) HTTP/1.1\r\nHost: h\r\n\(lines)\r\n".utf8)
        let request = FastPathRequest(bytes.span, limits: ClientLimits())
        return (try #require(request), bytes)
    }

    private func shape(_ lines: String, target: String = "/a", countsTarget: Bool = true) throws -> RequestShape {
        let (request, bytes) = try read(lines, target: target)
        return RequestShape(of: request, in: bytes.span, at: arrival, path: countsTarget ? nil : request.path(in: bytes.span))
    }

    @Test(arguments: [
        ("traceparent: 00-1\r\n", "traceparent: 00-2\r\n"), ("X-Request-Id: 1\r\n", "X-Request-Id: 2\r\nX-Correlation-Id: 3\r\n"),
        ("User-Agent: a\r\n", "User-Agent: b\r\n"), ("X-Mine: a\r\n", ""), ("Accept: a\r\nX-Mine: b\r\n", "X-Other: b\r\nAccept: a\r\n"),
        ("Authorization: Bearer one\r\n", "Authorization: Bearer two\r\n"),
    ]) func aReadIsTheSameWhateverElseItCarries(one: String, other: String) throws {
        #expect(try shape(one) == shape(other))
    }

    @Test(arguments: [
        ("Accept: a\r\n", "Accept: b\r\n"), ("Origin: http://a\r\n", ""), ("Authorization: a\r\n", ""),
        ("Cookie: a=b\r\n", "X-Api-Key: a=b\r\n"),
        ("X-Csrf-Token: a\r\n", "X-Csrf-Token: b\r\n"), ("Signature-Input: a\r\n", ""), ("X-Amz-Copy-Source: /a\r\n", ""),
        ("SOAPAction: a\r\n", ""), ("Tus-Resumable: 1.0.0\r\n", ""), ("If: (<a>)\r\n", "If: (<b>)\r\n"), ("User_Agent: a\r\n", ""),
        ("Range: bytes=0-1\r\n", ""), ("X-Tenant: a\r\n", ""), ("Accept: a\r\nAccept: b\r\n", "Accept: b\r\nAccept: a\r\n"),
    ]) func whatDecisionsLookAtTellsReadsApart(one: String, other: String) throws {
        #expect(try shape(one) != shape(other))
    }

    @Test func theTargetCountsWhereItIsPartOfTheShape() throws {
        #expect(try shape("", target: "/a") != shape("", target: "/b"))
        #expect(try shape("", target: "/a", countsTarget: false) == shape("", target: "/b?c", countsTarget: false))
        #expect(try shape("", target: "http://h/a", countsTarget: false) != shape("", target: "http://i/a", countsTarget: false))
    }

    @Test func aWriteCountsWithItsCredentialAndItsTarget() throws {
        func shape(_ lines: String, target: String = "/a") throws -> RequestShape {
            let bytes = Array("POST \(target) HTTP/1.1\r\nHost: h\r\n\(lines)Content-Length: 2\r\n\r\n{}".utf8)
            let write = PlainWrite(bytes.span, limits: ClientLimits())
            return RequestShape(of: try #require(write), in: bytes.span, at: arrival)
        }
        #expect(try shape("traceparent: 1\r\n") == shape("traceparent: 2\r\nX-Mine: a\r\n"))
        #expect(try shape("Authorization: one\r\n") != shape("Authorization: two\r\n"))
        #expect(try shape("Content-Type: a/b\r\n") != shape("Content-Type: a/c\r\n"))
        #expect(try shape("", target: "/a") != shape("", target: "/b"))
        #expect(try shape("Idempotency-Key: 1\r\n") == shape("Idempotency-Key: 2\r\n"))
        #expect(try shape("Idempotency-Key: 1\r\n") != shape(""))
    }

    // MARK: what is sent

    private func sent(_ lines: OutboundLines, for text: String) throws -> String {
        let (request, bytes) = try read(text)
        var out: [UInt8] = []
        lines.write(request.lines, in: bytes.span, to: &out)
        return String(decoding: out, as: UTF8.self)
    }

    @Test func whatIsNotReadIsPassedOnInItsPlace() throws {
        let (request, bytes) = try read("Accept: a\r\nX-Request-Id: 1\r\nConnection: keep-alive\r\nReferer: r\r\nX-Mine: m\r\n")
        let example = ["Accept: a\r\n", "X-Request-Id: 1\r\n", "Referer: s\r\n", "X-Mine: m\r\n", "Via: 1.1 v\r\n"].map { Array($0.utf8) }
        let made = OutboundLines(request.lines, in: bytes.span, sent: example)
        let lines = try #require(made)
        let same = "Accept: a\r\nX-Request-Id: 1\r\nConnection: keep-alive\r\nReferer: r\r\nX-Mine: m\r\n"
        #expect(try sent(lines, for: same) == "Accept: a\r\nX-Request-Id: 1\r\nReferer: s\r\nX-Mine: m\r\nVia: 1.1 v\r\n")
        let other = "traceparent: t\r\nAccept: a\r\nX-Two: 2\r\nX-Two: 3\r\nConnection: keep-alive\r\nReferer: r\r\nX-Request-Id: 9\r\n"
        #expect(
            try sent(lines, for: other)
                == "traceparent: t\r\nAccept: a\r\nX-Two: 2\r\nX-Two: 3\r\nReferer: s\r\nX-Request-Id: 9\r\nVia: 1.1 v\r\n")
    }

    @Test(arguments: ["X-Request-Id: 2\r\n", "", "x-request-id: 1\r\n"]) func whatWasChangedIsNoExample(_ line: String) throws {
        let (request, bytes) = try read("X-Request-Id: 1\r\nAccept: a\r\n")
        let example = [line, "Accept: a\r\n"].filter { !$0.isEmpty }.map { Array($0.utf8) }
        #expect(OutboundLines(request.lines, in: bytes.span, sent: example) == nil)
    }

    @Test func fieldsAreReadByTheNamesOfAnExample() throws {
        let (request, bytes) = try read("Accept: a\r\nX-Request-Id: 1\r\nAuthorization: b\r\n")
        let names = PlainLineNames(of: request.lines, in: bytes.span)
        let (other, otherBytes) = try read("Accept: a\r\ntraceparent: 2\r\nAuthorization: c\r\nX-Request-Id: 3\r\n")
        let found = names.fields(of: other.lines, in: otherBytes.span, .free, .credential).map { "\($0.name.rawName): \($0.value)" }
        #expect(found == ["traceparent: 2", "Authorization: c", "X-Request-Id: 3"])
    }

    /// What is written to disk with a write is what its decision looks at, and these.
    @Test func noSecretIsPassedOnUnread() {
        for name in SecretFields.all { #expect(name.plainKind != .free, "\(name)") }
    }
}
