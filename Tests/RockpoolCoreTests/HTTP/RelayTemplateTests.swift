import HTTPTypes
import Testing

@testable import RockpoolCore

struct RelayTemplateTests {
    private static let sample =
        "HTTP/1.1 200 OK\r\nServer: a\r\nDate: Fri, 27 Nov 2026 05:00:00 GMT\r\nCache-Control: no-store\r\nContent-Length: 5\r\n\r\n"

    private static let reply: HTTPFields = {
        var fields: HTTPFields = [.server: "a", .date: "Fri, 27 Nov 2026 05:00:00 GMT", .cacheControl: "no-store"]
        fields.append(HTTPField(name: .via, value: "1.1 rockpool"))
        return fields
    }()

    private func pattern(_ head: String = sample, status: Int = 200, reply: HTTPFields = reply) -> RelayTemplate? {
        RelayTemplate(of: Array(head.utf8), answeredBy: ResponseHead(status: status, fields: reply))
    }

    /// Returns the result of comparing `head`: `differs`, `more`, or what is taken from it.
    private func result(_ template: RelayTemplate, _ head: String) -> String {
        let bytes = Array(head.utf8)
        switch template.compare(bytes.span) {
        case .differs: return "differs"
        case .incomplete: return "more"
        case .matches(let match):
            let passed = match.passed.map { String(decoding: bytes[$0.lowerBound..<$0.upperBound - 2], as: UTF8.self) }
            let rest = "\(match.length.map(String.init) ?? "chunked") \(match.closes ? "close" : "keep")"
            return "\(match.headLength - bytes.count) \(rest) \(passed)"
        }
    }

    @Test func valuesOfFreeFieldsMayDiffer() throws {
        let template = try #require(pattern())
        let rest = Array("Cache-Control: no-store\r\nVia: 1.1 rockpool\r\n".utf8)
        #expect(template.parts == [.lines(Array("Server: a\r\n".utf8)), .passed(0), .lines(rest)])
        let later = Self.sample.replacing("05:00:00", with: "05:00:01").replacing("Length: 5", with: "Length: 77")
        #expect(result(template, later) == #"0 77 keep ["Date: Fri, 27 Nov 2026 05:00:01 GMT"]"#)
        #expect(result(template, later + "body") == #"-4 77 keep ["Date: Fri, 27 Nov 2026 05:00:01 GMT"]"#)
    }

    @Test func everyPrefixIsIncomplete() throws {
        let template = try #require(pattern())
        for count in 0..<Self.sample.utf8.count {
            #expect(result(template, String(decoding: Self.sample.utf8.prefix(count), as: UTF8.self)) == "more", "\(count)")
        }
    }

    @Test(arguments: [
        ("200 OK", "404 No"), ("Server: a", "Server: b"), ("Server: a\r\n", ""), ("Server: a", "Server: a\r\nSet-Cookie: s=1"),
        ("no-store", "max-age=60"), ("Content-Length: 5", "Transfer-Encoding: chunked"), ("Length: 5", "Length: +5"),
        ("Length: 5", "Length: 5, 5"), ("Length: 5", "Length: "), ("Length: 5", "Length: 9999999999999999999"), ("Date: ", "Date : "),
        ("GMT\r\nCache", "GMT\nCache"), ("05:00:00", "05:00\u{0}:00"), ("05:00:00", "05:00\r:00"), ("\r\n\r\n", "\r\n X: folded\r\n\r\n"),
    ]) func whateverElseDiffersIsAnotherResponse(_ old: String, _ new: String) throws {
        let template = try #require(pattern())
        #expect(result(template, Self.sample.replacing(old, with: new)) == "differs")
    }

    @Test func theConnectionsOwnFieldsAreReadAndLeftOut() throws {
        let head = Self.sample.replacing("Server", with: "Connection: keep-alive\r\nKeep-Alive: timeout=5, max=99\r\nServer")
        let template = try #require(pattern(head))
        #expect(result(template, head.replacing("max=99", with: "max=98")).hasPrefix("0 5 keep [\"Date"))
        #expect(result(template, head.replacing("Connection: keep-alive", with: "Connection: close")).hasPrefix("0 5 close [\"Date"))
        #expect(result(template, head.replacing("Connection: keep-alive", with: "Connection: x-secret")) == "differs")
    }

    @Test(arguments: [
        Self.sample.replacing("HTTP/1.1", with: "HTTP/1.0"), Self.sample.replacing("Content-Length: 5\r\n", with: ""),
        Self.sample.replacing("Server: a", with: "Upgrade: h2c"), Self.sample.replacing("Server: a", with: "Transfer-Encoding: chunked"),
        Self.sample.replacing("Content-Length: 5", with: "Transfer-Encoding: gzip, chunked"),
    ]) func responsesOfOtherFramingHaveNone(_ head: String) { #expect(pattern(head) == nil) }

    @Test func onlyWhatIsNeverStoredHasOne() {
        #expect(pattern(reply: [.server: "a", .date: "Fri, 27 Nov 2026 05:00:00 GMT", .cacheControl: "private"]) == nil)
        for status in [204, 206, 304, 404] { #expect(pattern(status: status) == nil) }
    }

    @Test func aReplyThatThePipelineChangedHasNone() {
        var fields = Self.reply
        fields[.date] = "Fri, 27 Nov 2026 06:00:00 GMT"
        #expect(pattern(reply: fields) == nil)
        fields = Self.reply
        fields[.eTag] = "\"added\""
        #expect(pattern(reply: fields) == nil)
    }

    @Test func aResponseWithoutDateGetsOne() throws {
        let template = try #require(pattern(Self.sample.replacing("Date: Fri, 27 Nov 2026 05:00:00 GMT\r\n", with: "")))
        #expect(template.parts.contains(.date))
    }
}
