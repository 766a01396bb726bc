// RFC 9111 §3.3, §3.4: parts are stored where it is safe, serve only ranges within them, and are combined only with strong ETags.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct PartialResponseTests {
    static let minute = "Cache-Control: max-age=60"

    /// A stored part with the bytes `range` of a thousand, tagged "a".
    private func part(_ range: Range<Int64>, _ fields: String = "ETag: \"a\" | " + minute, of length: Int64 = 1000) -> StoredResponse {
        let place = ContentRange.part(range, of: length).fieldValue
        return CachingFixture.stored("\(fields) | Content-Range: \(place)", status: 206, bodyLength: Int64(range.count))
    }

    // MARK: storing

    @Test(
        arguments: [
            ("bytes=0-99", "bytes 0-99/1000", "", nil), ("bytes=-100", "bytes 900-999/1000", "Content-Length: 100", nil),
            ("bytes=900-", "bytes 900-999/1000", "", nil), ("bytes=0-5000", "bytes 0-999/1000", "", nil),
            // A server may send fewer bytes than requested, but not others.
            ("bytes=0-99", "bytes 0-49/1000", "", nil), ("bytes=0-99", "bytes 0-100/1000", "", .partial),
            ("bytes=0-99", "bytes 100-199/1000", "", .partial), ("bytes=0-99", "bytes 0-99/*", "", .partial),
            ("bytes=0-99", "bytes */1000", "", .partial), ("bytes=0-99", "", "", .partial), ("bytes=0-99", "rubbish", "", .partial),
            ("bytes=0-99", "bytes 0-99/1000", "Content-Length: 99", .partial),
            ("bytes=0-99", "bytes 0-99/1000", "Content-Range: x", .partial),
            ("", "bytes 0-99/1000", "", .partial), ("bytes=0-1,5-6", "bytes 0-1/1000", "", .partial),
            ("lines=0-99", "bytes 0-99/1000", "", .partial),
            ("bytes=0-1,5-6", "", "Content-Type: multipart/byteranges; boundary=x", .partial),
            ("bytes=0-99", "bytes 0-99/1000", "Cache-Control: no-store", .noStore), ("bytes=0-99", "bytes 0-99/1000", "Vary: *", .varyStar),
        ] as [(String, String, String, Storability.Reason?)])
    func stores(_ range: String, place: String, fields: String, refusal: Storability.Reason?) {
        let lines = [Self.minute, place.isEmpty ? "" : "Content-Range: \(place)", fields].filter { !$0.isEmpty }
        let decision = Storability.decide(
            request: CachingFixture.request(range.isEmpty ? "" : "Range: \(range)"),
            response: CachingFixture.response(lines.joined(separator: " | "), status: 206), context: StorageContext())
        switch decision {
        case .store(let plan): #expect(refusal == nil && plan.partition == .shared)
        case .refuse(let reason): #expect(reason == refusal)
        }
    }

    @Test func offlineFirstKeepsPartsThatOnlyOfflineCanUse() {
        let decide = { (policy: CachePolicy) in
            Storability.decide(
                request: CachingFixture.request("Range: bytes=0-9"),
                response: CachingFixture.response("Content-Range: bytes 0-9/99 | Cache-Control: no-cache", status: 206),
                context: StorageContext(policy: policy))
        }
        #expect(decide(.standard) == .refuse(.neverReusable))
        #expect(decide(.offlineFirst) == .store(StoragePlan(partition: .shared, stripped: [.setCookie])))
    }

    @Test func aPartThatIsAllIsStoredAsWhole() {
        let head = StoragePlan(partition: .shared).head(
            of: CachingFixture.response("Content-Range: bytes 0-9/10 | Date: @0 | A: 1", status: 206), receivedAt: CachingFixture.start)
        #expect(head.status == 200)
        #expect(head.fields == CachingFixture.fields("Date: @0 | A: 1 | Content-Length: 10 | Accept-Ranges: bytes"))
        let part = CachingFixture.response("Content-Range: bytes 0-8/10 | Date: @0 | Content-Length: 9", status: 206)
        #expect(StoragePlan(partition: .shared).head(of: part, receivedAt: CachingFixture.start) == part)
    }

    @Test(
        arguments: [
            ("Content-Length: 1000 | ETag: \"a\"", 200, 300, "bytes 0-299/1000"), ("Content-Length: 1000 | ETag: \"a\"", 200, 0, nil),
            ("Content-Length: 1000 | ETag: \"a\"", 200, 999, "bytes 0-998/1000"), ("Content-Length: 1000 | ETag: \"a\"", 200, 1000, nil),
            ("Content-Length: 1000 | ETag: \"a\"", 200, 2000, nil), ("Content-Length: 1000 | ETag: W/\"a\"", 200, 300, nil),
            ("Content-Length: 1000 | ETag: a", 200, 300, nil), ("Content-Length: 1000 | Last-Modified: @-900", 200, 300, nil),
            ("ETag: \"a\"", 200, 300, nil), ("Content-Length: 1000 | ETag: \"a\"", 404, 300, nil),
            ("Content-Length: x | ETag: \"a\"", 200, 300, nil),
            ("Content-Range: bytes 400-499/1000 | ETag: \"a\"", 206, 10, "bytes 400-409/1000"),
            ("Content-Range: bytes 400-499/1000 | ETag: \"a\"", 206, 100, nil),
            ("Content-Range: bytes 400-499/* | ETag: \"a\"", 206, 10, nil),
            ("ETag: \"a\"", 206, 10, nil), ("Content-Length: 1000 | ETag: \"a\"", 200, -1, nil),
        ] as [(String, Int, Int64, String?)])
    func interrupted(_ fields: String, status: Int, received: Int64, place: String?) {
        let head = CachingFixture.response(fields, status: status)
        let kept = PartialResponse.interrupted(head, to: CachingFixture.request(), received: received)
        #expect(kept?.fields[.contentRange] == place)
        #expect(kept == nil || (kept?.status == 206 && kept?.fields[.contentLength] == String(received)))
        #expect(PartialResponse.interrupted(head, to: CachingFixture.request(method: .post), received: received) == nil)
    }

    // MARK: using

    @Test(arguments: [
        ("", 1, "complete"), ("Range: bytes=0-99", 1, "fresh"), ("Range: bytes=0-299", 1, "fresh"), ("Range: bytes=-10", 1, "partial"),
        ("Range: bytes=250-300", 1, "partial"), ("Range: bytes=300-", 1, "partial"), ("Range: bytes=0-", 1, "partial"),
        ("Range: bytes=0-1,5-6", 1, "partial"), ("Range: lines=1-2", 1, "complete"), ("Range: bytes=0-9 | If-Range: \"b\"", 1, "complete"),
        // Stale: a request for the complete body revalidates with the tag; for a short range the range is requested again.
        ("", 61, "complete"), ("Range: bytes=0-99", 61, "stale"), ("Range: bytes=0-9 | Cache-Control: max-age=0", 1, "request-directive"),
        ("Cache-Control: no-cache", 1, "partial"), ("If-None-Match: \"x\"", 1, "partial"), ("If-Modified-Since: @0", 1, "partial"),
        ("Cache-Control: only-if-cached", 1, "504 partial"), ("Cache-Control: only-if-cached | Range: bytes=0-9", 1, "fresh"),
        ("Cache-Control: only-if-cached | Range: bytes=0-9", 61, "504 stale"), ("Cache-Control: no-store", 1, "request-no-store"),
    ])
    func aBeginningIsReused(_ request: String, now: Int64, expected: String) {
        #expect(outcome([part(0..<300)], request, now: now) == expected)
    }

    @Test func whatCannotBeCompletedIsFetched() {
        #expect(outcome([part(1..<300)], "") == "partial")
        #expect(outcome([part(0..<300, "ETag: W/\"a\"")], "") == "partial")
        #expect(outcome([part(0..<300, "Last-Modified: @-900")], "") == "partial")
        #expect(outcome([part(0..<300, "ETag: \"a\" | Vary: A")], "A: 1") == "vary-miss")
        #expect(outcome([CachingFixture.stored(Self.minute, status: 206, bodyLength: 9)], "Range: bytes=0-1") == "partial")
    }

    @Test func headGetsNothingOfAPart() {
        #expect(outcome([part(0..<300)], "", method: .head) == "partial")
        #expect(outcome([part(0..<300)], "Range: bytes=0-9", method: .head) == "partial")
        let offline = ReuseContext(policy: .offlineFirst, isReachable: false)
        #expect(outcome([part(0..<300)], "", now: 900, method: .head, context: offline) == "offline", "its fields are those of the whole")
    }

    @Test func offlineAPartIsStillAPart() {
        let offline = ReuseContext(policy: .offlineFirst, isReachable: false)
        #expect(outcome([part(0..<300)], "Range: bytes=0-9", now: 900, context: offline) == "offline")
        #expect(outcome([part(0..<300)], "", now: 900, context: ReuseContext(strategy: .cacheOnly)) == "504 partial")
        #expect(outcome([part(0..<300)], "", now: 900, context: offline) == "complete")
    }

    @Test func aWholeBesideAPartIsTaken() {
        let whole = CachingFixture.stored(Self.minute + " | ETag: \"w\"", bodyLength: 1000)
        #expect(outcome([part(0..<300), whole], "") == "fresh")
        #expect(outcome([part(0..<300), whole], "Range: bytes=500-") == "fresh")
        #expect(Revalidation.conditionals(candidates: [part(0..<300), whole], selected: 1) == [.ifNoneMatch: "\"w\""])
    }

    private func outcome(
        _ candidates: [StoredResponse], _ request: String, now: Int64 = 1, method: HTTPRequest.Method = .get,
        context: ReuseContext = ReuseContext()
    ) -> String {
        let decision = Reuse.decide(
            candidates: candidates, request: CachingFixture.request(request, method: method), context: context, now: CachingFixture.at(now))
        switch decision {
        case .fresh: return "fresh"
        case .stale(_, _, let reason): return reason.detail
        case .validate(_, _, _, let reason): return "validate \(reason.rawValue)"
        case .complete(_, let fields):
            #expect(fields == CachingFixture.fields("Range: bytes=299- | If-Range: \"a\""))
            return "complete"
        case .none(let reason): return reason.rawValue
        case .gatewayTimeout(let reason): return "504 \(reason.rawValue)"
        }
    }

    // MARK: combining

    /// Combined with the stored bytes 300 to 599 of a thousand, tagged "a".
    @Test(
        arguments: [
            ("bytes 600-999/1000", "\"a\"", "bytes 300-999/1000", [.stored(0..<300), .received(0..<400)]),
            ("bytes 500-999/1000", "\"a\"", "bytes 300-999/1000", [.stored(0..<300), .received(100..<500)]),
            ("bytes 0-299/1000", "\"a\"", "bytes 0-599/1000", [.received(0..<300), .stored(0..<300)]),
            ("bytes 0-399/1000", "\"a\"", "bytes 0-599/1000", [.received(0..<300), .stored(0..<300)]),
            ("bytes 400-499/1000", "\"a\"", "bytes 300-599/1000", [.stored(0..<300)]),
            ("bytes 0-999/1000", "\"a\"", "", [.received(0..<300), .stored(0..<300), .received(600..<1000)]),
            ("bytes 601-999/1000", "\"a\"", nil, []), ("bytes 0-298/1000", "\"a\"", nil, []), ("bytes 600-998/999", "\"a\"", nil, []),
            ("bytes 600-999/*", "\"a\"", nil, []), ("bytes */1000", "\"a\"", nil, []), ("bytes 600-999/1000", "\"b\"", nil, []),
            ("bytes 600-999/1000", "W/\"a\"", nil, []), ("bytes 600-999/1000", "", nil, []), ("rubbish", "\"a\"", nil, []),
        ] as [(String, String, String?, [PartialResponse.Piece])])
    func combines(_ place: String, tag: String, union: String?, pieces: [PartialResponse.Piece]) {
        let answer = CachingFixture.response("Content-Range: \(place)" + (tag.isEmpty ? "" : " | ETag: \(tag)"), status: 206)
        let combined = PartialResponse.combined(
            part(300..<600), with: answer, sent: Moment(at: CachingFixture.at(8), tick: .first), responseTime: CachingFixture.at(9))
        #expect(combined?.response.head.fields[.contentRange] ?? (combined == nil ? nil : "") == union)
        #expect(combined?.pieces ?? [] == pieces)
        let length: Int64 = pieces.reduce(0) { sum, piece in
            switch piece {
            case .stored(let range), .received(let range): sum + Int64(range.count)
            }
        }
        #expect((combined?.response.bodyLength ?? 0) == length)
    }

    @Test func theLastPieceMakesItWholeAndUpToDate() {
        let stored = part(0..<300, "ETag: \"a\" | Cache-Control: max-age=60 | A: 1 | Age: 50 | Content-Type: a/b")
        let answer = CachingFixture.response(
            "Content-Range: bytes 300-999/1000 | Content-Length: 700 | ETag: \"a\" | A: 2 | Cache-Control: max-age=9", status: 206)
        let combined = PartialResponse.combined(
            stored, with: answer, sent: Moment(at: CachingFixture.at(8), tick: .first), responseTime: CachingFixture.at(9))
        let expected =
            "ETag: \"a\" | A: 2 | Cache-Control: max-age=9 | Content-Type: a/b | Content-Length: 1000 | Date: @9 | Accept-Ranges: bytes"
        #expect(combined?.response.head.status == 200 && combined?.response.part == nil && combined?.response.bodyLength == 1000)
        #expect(
            Set(combined?.response.head.fields.map(\.description) ?? []) == Set(CachingFixture.fields(expected).map(\.description)))
        #expect(combined?.response.responseTime == CachingFixture.at(9))
    }

    @Test func aStoredWholeTakesTheFieldsOfAPart() {
        let stored = CachingFixture.stored("ETag: \"a\" | A: 1", bodyLength: 1000)
        let answer = CachingFixture.response("Content-Range: bytes 0-9/1000 | ETag: \"a\" | A: 2", status: 206)
        let combined = PartialResponse.combined(
            stored, with: answer, sent: Moment(at: CachingFixture.start, tick: .first), responseTime: CachingFixture.start)
        #expect(combined?.response.head.status == 200 && combined?.response.head.fields[values: HTTPField.Name("A") ?? .accept] == ["2"])
        #expect(combined?.pieces == [.stored(0..<1000)])
        let shorter = CachingFixture.stored("ETag: \"a\"", bodyLength: 999)
        #expect(
            PartialResponse.combined(
                shorter, with: answer, sent: Moment(at: CachingFixture.start, tick: .first), responseTime: CachingFixture.start) == nil)
    }

    @Test func aHeadTellsOfAPartToo() {
        let head = { (length: Int64) in
            Revalidation.head(
                part(0..<300), by: CachingFixture.response("ETag: \"a\""), length: length,
                sent: Moment(at: CachingFixture.start, tick: .first),
                responseTime: CachingFixture.at(5))
        }
        #expect(head(300) == .outdated)
        guard case .freshened(let stored) = head(1000) else {
            Issue.record("expected .freshened for the same representation")
            return
        }
        #expect(stored.head.status == 206 && stored.part == .part(0..<300, of: 1000) && stored.responseTime == CachingFixture.at(5))
    }
}
