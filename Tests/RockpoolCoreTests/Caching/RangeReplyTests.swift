// RFC 9110 §14.2, §15.3.7 and §15.5.17: replies to Range requests from ten stored bytes, and from a part of a body.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct RangeReplyTests {
    enum Expected: Sendable, Equatable {
        case whole, missing
        case part(Range<Int64>, String)
        case parts([Range<Int64>])
        case unsatisfiable
    }

    private func outcome(
        _ request: String, stored: String = "", status: Int = 200, length: Int64 = 1000, method: HTTPRequest.Method = .get
    ) -> Expected {
        let reply = RangeReply.decide(
            request: CachingFixture.request(request, method: method), stored: CachingFixture.response(stored, status: status),
            bodyLength: length, boundary: "b")
        switch reply {
        case .whole: return .whole
        case .part(let head, let range):
            #expect(head.status == 206 && head.fields[.contentLength] == String(range.count))
            return .part(range, head.fields[.contentRange] ?? "")
        case .parts(_, let parts, _): return .parts(parts.map(\.range))
        case .unsatisfiable(let head):
            #expect(head.status == 416 && head.fields[.contentRange] == "bytes */\(length)" && head.fields[.contentLength] == "0")
            return .unsatisfiable
        case nil: return .missing
        }
    }

    @Test(
        arguments: [
            ("", .whole), ("Range: bytes=0-9", .part(0..<10, "bytes 0-9/1000")),
            ("Range: bytes=990-", .part(990..<1000, "bytes 990-999/1000")),
            ("Range: bytes=-10", .part(990..<1000, "bytes 990-999/1000")), ("Range: bytes=0-", .part(0..<1000, "bytes 0-999/1000")),
            ("Range: bytes=1000-", .unsatisfiable), ("Range: bytes=-0", .unsatisfiable), ("Range: bytes=9-8", .whole),
            ("Range: lines=0-1", .whole), ("Range: bytes=0-1 | Range: bytes=0-1", .whole),
            ("Range: bytes=0-0,-1", .parts([0..<1, 999..<1000])),
            ("Range: bytes=-1,0-0", .parts([999..<1000, 0..<1])), ("Range: bytes=0-4,5-9", .part(0..<10, "bytes 0-9/1000")),
            ("Range: bytes=0-0,5000-", .part(0..<1, "bytes 0-0/1000")),
            ("Range: bytes=0-480,482-999", .parts([0..<481, 482..<1000])),
            ("Range: bytes=0-999,0-999,-1000", .part(0..<1000, "bytes 0-999/1000")),
        ] as [(String, Expected)])
    func ranges(_ request: String, expected: Expected) {
        #expect(outcome(request) == expected)
        #expect(outcome(request, method: .head) == .whole)
        #expect(outcome(request, status: 404) == .whole)
        #expect(outcome(request, length: 0) == .whole)
    }

    /// Programs that fetch what has changed of a file ask for many ranges at once. Many small ones of a small body would cost more than the
    /// whole (RFC 9110 §17.15).
    @Test(
        arguments: [
            (20, 1, 1_000_000, true), (200, 4096, 10_000_000, true), (201, 4096, 10_000_000, false), (16, 1, 1000, true),
            (17, 1, 500, false), (200, 1, 100_000, true), (200, 1, 5000, false),
        ] as [(Int, Int64, Int64, Bool)])
    func manyRanges(count: Int, size: Int64, length: Int64, areParts: Bool) {
        let starts = (0..<count).map { Int64($0) * (length / Int64(count)) }
        let asked = starts.map { "\($0)-\($0 + size - 1)" }.joined(separator: ",")
        let expected: Expected = areParts ? .parts(starts.map { $0..<$0 + size }) : .whole
        #expect(outcome("Range: bytes=\(asked)", length: length) == expected)
        // Ranges that overlap cost no more than the whole.
        let all = Array(repeating: "0-", count: min(count, 200)).joined(separator: ",")
        #expect(outcome("Range: bytes=\(all)", length: length) == .part(0..<length, "bytes 0-\(length - 1)/\(length)"))
    }

    static let tagged = "ETag: \"a\" | Last-Modified: @-60 | Date: @0"

    @Test(arguments: [
        ("\"a\"", tagged, true), ("\"b\"", tagged, false), ("W/\"a\"", tagged, false), ("\"a\"", "ETag: W/\"a\"", false),
        ("W/\"a\"", "ETag: W/\"a\"", false), ("\"a\"", "", false), ("@-60", tagged, true), ("@-59", tagged, false), ("@-61", tagged, false),
        ("@0", "Last-Modified: @0 | Date: @0", false), ("@-1", "Last-Modified: @-1 | Date: @0", true),
        ("@-60", "Last-Modified: @-60", false),
        ("@-60", "Date: @0", false), ("a", "ETag: a", false), ("", tagged, false), ("rubbish", tagged, false),
    ])
    func ifRange(_ condition: String, stored: String, isMet: Bool) {
        let expected: Expected = isMet ? .part(0..<1, "bytes 0-0/1000") : .whole
        #expect(outcome("Range: bytes=0-0 | If-Range: \(condition)", stored: stored) == expected)
    }

    @Test func aConditionGivenTwiceIsNotMet() {
        #expect(outcome("Range: bytes=0-0 | If-Range: \"a\" | If-Range: \"a\"", stored: Self.tagged) == .whole)
    }

    @Test func aPartCarriesTheFieldsOfTheWhole() {
        let stored = CachingFixture.response("ETag: \"a\" | Content-Type: a/b | Content-Length: 1000 | Vary: A | Cache-Control: max-age=9")
        let reply = RangeReply.decide(
            request: CachingFixture.request("Range: bytes=5-6"), stored: stored, bodyLength: 1000, boundary: "b")
        guard case .part(let head, _) = reply else {
            Issue.record("\(String(describing: reply))")
            return
        }
        let expected =
            "ETag: \"a\" | Content-Type: a/b | Content-Length: 2 | Vary: A | Cache-Control: max-age=9 | Content-Range: bytes 5-6/1000"
        #expect(Set(head.fields.map(\.description)) == Set(CachingFixture.fields(expected).map(\.description)))
    }

    @Test func partsAreWrittenAsTheyAreCounted() {
        let body = String(repeating: "0123456789", count: 100)
        let reply = RangeReply.decide(
            request: CachingFixture.request("Range: bytes=0-1,-3"),
            stored: CachingFixture.response("Content-Type: text/plain | ETag: \"a\""),
            bodyLength: 1000, boundary: "xyz")
        guard case .parts(let head, let parts, let closing) = reply else {
            Issue.record("\(String(describing: reply))")
            return
        }
        let bytes = Array(body.utf8)
        let text = parts.map { $0.preamble + String(decoding: bytes[Int($0.range.lowerBound)..<Int($0.range.upperBound)], as: UTF8.self) }
        let whole = text.joined() + closing
        #expect(
            whole == "\r\n--xyz\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/1000\r\n\r\n01"
                + "\r\n--xyz\r\nContent-Type: text/plain\r\nContent-Range: bytes 997-999/1000\r\n\r\n789\r\n--xyz--\r\n")
        #expect(head.status == 206 && head.fields[.contentLength] == String(whole.utf8.count))
        #expect(head.fields[.contentType] == "multipart/byteranges; boundary=xyz" && head.fields[.eTag] == "\"a\"")
        #expect(head.fields[.contentRange] == nil)
    }

    /// The stored part holds the bytes 200 to 299 of a thousand.
    @Test(
        arguments: [
            ("Range: bytes=200-299", .part(0..<100, "bytes 200-299/1000")), ("Range: bytes=250-259", .part(50..<60, "bytes 250-259/1000")),
            ("Range: bytes=299-299", .part(99..<100, "bytes 299-299/1000")), ("Range: bytes=199-250", .missing),
            ("Range: bytes=250-300", .missing), ("Range: bytes=200-", .missing), ("Range: bytes=-10", .missing), ("", .missing),
            ("Range: bytes=200-201,210-211", .missing), ("Range: bytes=200-201,202-203", .part(0..<4, "bytes 200-203/1000")),
            ("Range: bytes=5000-", .missing), ("Range: bytes=200-299 | If-Range: \"b\"", .missing),
            ("Range: bytes=200-299 | If-Range: \"a\"", .part(0..<100, "bytes 200-299/1000")), ("Range: lines=1-2", .missing),
        ] as [(String, Expected)])
    func outOfAPart(_ request: String, expected: Expected) {
        let stored = "Content-Range: bytes 200-299/1000 | ETag: \"a\""
        #expect(outcome(request, stored: stored, status: 206, length: 100) == expected)
        #expect(outcome(request, stored: stored, status: 206, length: 100, method: .head) == .missing)
        #expect(outcome(request, stored: "ETag: \"a\"", status: 206, length: 100) == .missing)
    }

    @Test func theEndOfAPart() {
        let stored = "Content-Range: bytes 900-999/1000"
        #expect(outcome("Range: bytes=-10", stored: stored, status: 206, length: 100) == .part(90..<100, "bytes 990-999/1000"))
        #expect(outcome("Range: bytes=950-", stored: stored, status: 206, length: 100) == .part(50..<100, "bytes 950-999/1000"))
        #expect(outcome("Range: bytes=-101", stored: stored, status: 206, length: 100) == .missing)
    }
}
