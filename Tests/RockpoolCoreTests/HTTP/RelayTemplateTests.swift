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

    /// A field that `Connection` names belongs to one connection (RFC 9110 §7.6.1): nothing is learned from such a response.
    @Test(arguments: ["x-const", "keep-alive, x-const", "close, x-const", ""]) func aNamedFieldTeachesNothing(_ value: String) {
        let named = "X-Const: c\r\nConnection: \(value)\r\nContent-Length:"
        #expect(pattern(Self.sample.replacing("Content-Length:", with: named)) == nil)
        #expect(pattern(Self.sample.replacing("Content-Length:", with: "Connection: Keep-Alive\r\nContent-Length:")) != nil)
    }

    @Test func everyPrefixIsIncomplete() throws {
        let template = try #require(pattern())
        for count in 0..<Self.sample.utf8.count {
            #expect(result(template, String(decoding: Self.sample.utf8.prefix(count), as: UTF8.self)) == "more", "\(count)")
        }
    }

    /// A shorter head with a short body is another response, not the beginning of one.
    @Test(arguments: ["", "ok", "[]", "{}", "8 bytes!"]) func aShorterHeadDiffersWhateverItsBody(_ body: String) throws {
        let fields = [
            "Date: Fri, 27 Nov 2026 05:00:00 GMT", "ETag: \"1\"", "Content-Length: 5", "Connection: keep-alive", "X-Request-Id: 7",
        ]
        for last in fields {
            let others = fields.filter { $0 != last } + [last]
            let head = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n" + others.map { $0 + "\r\n" }.joined()
            var reply: HTTPFields = [.cacheControl: "no-store"]
            for line in others where !line.hasPrefix("Connection") && !line.hasPrefix("Content-Length") {
                let parts = line.split(separator: ":", maxSplits: 1)
                let name = try #require(HTTPField.Name(String(parts[0])))
                reply.append(HTTPField(name: name, value: String(parts[1].dropFirst())))
            }
            let template = try #require(pattern(head + "\r\n", reply: reply))
            let shorter = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n" + others.dropLast().map { $0 + "\r\n" }.joined()
            #expect(result(template, shorter + "\r\n" + body) == "differs", "\(last)")
        }
    }

    /// The path of a `Location` may differ in answers to writes; a URL may not.
    @Test func aPathMayDifferInAnswersToWrites() throws {
        let head = "HTTP/1.1 201 Created\r\nLocation: /notes/1\r\nContent-Length: 0\r\n\r\n"
        let reply = ResponseHead(status: 201, fields: [.location: "/notes/1"])
        let template = try #require(RelayTemplate(of: Array(head.utf8), answeredBy: reply, for: .write))
        #expect(result(template, head.replacing("/notes/1", with: "/notes/22")) == #"0 0 keep ["Location: /notes/22"]"#)
        for other in ["//notes/1", "http://elsewhere.test/", "notes/1"] {
            #expect(result(template, head.replacing("/notes/1", with: other)) == "differs", "\(other)")
        }
        #expect(RelayTemplate(of: Array(head.utf8), answeredBy: reply) == nil)
        let empty = "HTTP/1.1 204 No Content\r\nDate: Fri, 27 Nov 2026 05:00:00 GMT\r\n\r\n"
        let none = ResponseHead(status: 204, fields: [.date: "Fri, 27 Nov 2026 05:00:00 GMT"])
        #expect(try #require(RelayTemplate(of: Array(empty.utf8), answeredBy: none, for: .write)).isBodiless)
        for status in [205, 206, 207, 303, 400, 500] {
            let other = Array(head.replacing("201", with: "\(status)").utf8)
            #expect(RelayTemplate(of: other, answeredBy: ResponseHead(status: status, fields: reply.fields), for: .write) == nil)
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
