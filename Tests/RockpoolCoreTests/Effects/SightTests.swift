// What a viewer has in front of it when it writes (docs/outbox.md#sight).
import HTTPTypes
import Testing

@testable import RockpoolCore

@Suite struct SightTests {
    private static let item = "https://a.test/notes/1"

    private func shown(_ version: String?, _ content: String? = nil) -> ShownState {
        ShownState(version: version.flatMap { EntityTag($0) }, content: content.map { Array($0.utf8) })
    }

    @Test func theVersionIsTheOneThatWasShownLast() {
        var sight = Sight()
        #expect(sight.version(of: Self.item, for: .ann) == nil)
        sight.note(shown("\"1\""), at: Self.item, to: .ann, asked: 1)
        sight.note(shown("\"2\""), at: Self.item, to: .carl, asked: 2)
        #expect(sight.version(of: Self.item, for: .ann) == "\"1\"", "what another was shown is another's")
        sight.note(shown("\"3\""), at: Self.item, to: .ann, asked: 5)
        sight.note(shown("\"2\""), at: Self.item, to: .ann, asked: 4)
        #expect(sight.version(of: Self.item, for: .ann) == "\"3\"", "an answer that comes late was asked for before")
        #expect(sight.version(of: Self.item + "?fields=title", for: .ann) == nil)
    }

    @Test(
        arguments: [
            ("https://a.test/notes/1", "\"9\"", "\"9\""), ("https://a.test/notes/1", nil, nil), ("https://a.test/notes", "\"9\"", nil),
            ("https://a.test/notes/1/archive", "\"9\"", nil), ("https://a.test/notes/1?x", "\"9\"", "\"9\""),
            ("https://a.test/notes/11", "\"9\"", "\"1\""), ("https://a.test/note", "\"9\"", "\"1\""),
            ("https://b.test/notes/1", "\"9\"", "\"1\""),
            ("https://a.test/", nil, nil),
        ] as [(String, String?, String?)])
    func anOwnWriteNearbyCounts(written: String, version: String?, expected: String?) {
        var sight = Sight()
        sight.note(shown("\"1\""), at: Self.item, to: .ann, asked: 1)
        sight.note(writeTo: written, by: .ann, version: version, at: 2)
        sight.note(writeTo: Self.item, by: .carl, version: "\"7\"", at: 3)
        #expect(sight.version(of: Self.item, for: .ann) == expected)
        // Whoever asks after it sees what it has made.
        sight.note(shown("\"4\""), at: Self.item, to: .ann, asked: 3)
        #expect(sight.version(of: Self.item, for: .ann) == "\"4\"")
    }

    @Test func aReadFromBeforeAnOwnWriteShowsNothingNew() {
        var sight = Sight()
        sight.note(writeTo: Self.item, by: .ann, version: "\"2\"", at: 5)
        sight.note(shown("\"1\""), at: Self.item, to: .ann, asked: 4)
        #expect(sight.version(of: Self.item, for: .ann) == "\"2\"")
    }

    /// Of many own writes not all are remembered: what was shown before one of those may be older than it.
    @Test func whatWasShownBeforeAForgottenWriteDoesNotCount() {
        var sight = Sight()
        sight.note(shown("\"1\""), at: Self.item, to: .ann, asked: 1)
        sight.note(writeTo: Self.item, by: .ann, version: "\"2\"", at: 2)
        for number in 0..<50_000 {
            sight.note(
                writeTo: "https://a.test/notes/other-\(number)", by: Viewer(partition: "viewer \(number)"), version: nil,
                at: UInt64(3 + number))
            if number.isMultiple(of: 500) {
                let version = sight.version(of: Self.item, for: .ann)
                #expect(version == "\"2\"" || version == nil, "\(number)")
            }
        }
        #expect(sight.version(of: Self.item, for: .ann) == nil)
        sight.note(shown("\"5\""), at: Self.item, to: .ann, asked: 60_000)
        #expect(sight.version(of: Self.item, for: .ann) == "\"5\"")
    }

    /// A client that writes to one path all the time, as telemetry does, still knows what it has seen of others.
    @Test func writesElsewhereTakeNothing() {
        var sight = Sight()
        sight.note(shown("\"1\""), at: Self.item, to: .ann, asked: 1)
        for number in 0..<100_000 { sight.note(writeTo: "https://a.test/events", by: .ann, version: nil, at: UInt64(2 + number)) }
        #expect(sight.version(of: Self.item, for: .ann) == "\"1\"")
    }

    /// Two programs of one credential: a whole representation was made from the state from which it differs least. One that is equal to an
    /// earlier state undoes a change.
    @Test(
        arguments: [
            (#"{"a": 9, "b": 1}"#, "\"1\""), (#"{"a": 9, "b": 2}"#, "\"2\""), (#"{"a": 1, "b": 1}"#, "\"2\""),
            (#"{"a": 9, "b": 9}"#, "\"2\""),
            (#"{"a": 1, "b": 2}"#, "\"2\""), ("[]", "\"2\""),
        ])
    func aRepresentationWasMadeFromTheNearestState(written: String, expected: String) throws {
        var sight = Sight()
        sight.note(shown("\"1\"", #"{"a": 1, "b": 1}"#), at: Self.item, to: .ann, asked: 1)
        sight.note(shown("\"2\"", #"{"a": 1, "b": 2}"#), at: Self.item, to: .ann, asked: 2)
        let value = try JSONValue.parse(Array(written.utf8))
        #expect(sight.version(of: Self.item, for: .ann, replacement: value) == expected)
        #expect(sight.version(of: Self.item, for: .ann) == "\"2\"")
        // Nothing of before an own write.
        sight.note(writeTo: Self.item, by: .ann, version: "\"3\"", at: 3)
        #expect(sight.version(of: Self.item, for: .ann, replacement: value) == "\"3\"")
    }

    @Test func statesWithoutAVersionAreToldByTheirContent() {
        var sight = Sight()
        sight.note(shown(nil, "one"), at: Self.item, to: .ann, asked: 1)
        sight.note(shown(nil, "two"), at: Self.item, to: .ann, asked: 2)
        sight.note(shown(nil, "one"), at: Self.item, to: .ann, asked: 3)
        #expect(sight.ground(of: Self.item, for: .ann) == .shown(shown(nil, "one")))
        #expect(sight.ground(of: Self.item, for: .carl) == .unknown)
    }

    /// What was noted last may be noted again without a look, as hot replies do, until something changes.
    @Test func onlyChangesCount() {
        var sight = Sight()
        sight.note(shown("\"1\""), at: Self.item, to: .ann, asked: 1)
        let noted = sight.changes
        sight.note(shown("\"1\""), at: Self.item, to: .ann, asked: 2)
        #expect(sight.changes == noted)
        sight.note(shown("\"2\""), at: Self.item, to: .ann, asked: 3)
        #expect(sight.changes > noted)
        let changed = sight.changes
        sight.note(writeTo: Self.item, by: .ann, version: nil, at: 4)
        #expect(sight.changes > changed)
    }

    @Test func theVersionsAreKeptOverARestart() throws {
        var sight = Sight()
        sight.note(shown("\"1\"", "content"), at: Self.item, to: .ann, asked: 1)
        sight.note(shown("\"7\""), at: Self.item, to: .carl, asked: 2)
        sight.note(writeTo: Self.item, by: .carl, version: "\"8\"", at: 3)
        sight.note(shown("W/\"1\""), at: "https://a.test/weak", to: .ann, asked: 4)
        sight.note(shown("\"1\""), at: "https://a.test/gone", to: .ann, asked: 5)
        sight.note(writeTo: "https://a.test/gone/below", by: .ann, version: nil, at: 6)
        var next = Sight()
        for record in sight.records.compactMap({ Sight.Record(json: $0.json) }) { next.note(record) }
        #expect(next.version(of: Self.item, for: .ann) == "\"1\"" && next.version(of: Self.item, for: .carl) == "\"8\"")
        #expect(next.version(of: "https://a.test/weak", for: .ann) == nil && next.version(of: "https://a.test/gone", for: .ann) == nil)
        next.note(writeTo: Self.item, by: .ann, version: nil, at: 7)
        #expect(next.version(of: Self.item, for: .ann) == nil, "ticks count on over a restart")
        let odd: [JSONValue] = [["x"], [1, 2, 3, 4], "text", ["ann", .null, "https://a.test/", -1, ""], ["a", "b", 3, 4, 5, 6, 7, 8, 9]]
        for value in odd { #expect(Sight.Record(json: value) == nil) }
    }

    private static let programs = ["till", "tablet"].map { name in
        Viewer(partition: "shop", program: Viewer.Program(address: "10.0.0.1", userAgent: name))
    }

    /// A site's devices often share one credential: what one was shown, and what it wrote, is its own.
    @Test func programsOfOneCredentialAreToldApart() {
        let (till, tablet) = (Self.programs[0], Self.programs[1])
        let unknown = Viewer(partition: "shop", program: Viewer.Program(address: "10.0.0.2", userAgent: "till"))
        var sight = Sight()
        sight.note(shown("\"1\""), at: Self.item, to: till, asked: 1)
        sight.note(shown("\"1\""), at: Self.item, to: tablet, asked: 2)
        sight.note(writeTo: Self.item, by: tablet, version: "\"2\"", at: 3)
        #expect(sight.version(of: Self.item, for: till) == "\"1\"", "the other one's write is not its own")
        #expect(sight.version(of: Self.item, for: tablet) == "\"2\"")
        #expect(sight.version(of: Self.item, for: unknown) == "\"2\"", "one that was shown nothing may be any of them")
        sight.note(writeTo: Self.item, by: Viewer(partition: "shop"), version: "\"3\"", at: 4)
        #expect(sight.version(of: Self.item, for: till) == "\"3\"", "a write of nobody in particular may be anyone's")
    }

    @Test func aProgramHasItsOwnWaitingWritesInFrontOfItAndThoseItWasShown() {
        let (till, tablet) = (Self.programs[0], Self.programs[1])
        var sight = Sight()
        #expect(sight.reach(of: Self.item, for: till) == nil)
        sight.note(ShownState(version: EntityTag("\"1\""), until: 5), at: Self.item, to: till, asked: 1)
        sight.note(ShownState(version: EntityTag("\"1\"")), at: Self.item, to: tablet, asked: 2)
        let (tills, tablets) = (sight.reach(of: Self.item, for: till), sight.reach(of: Self.item, for: tablet))
        #expect(tills?.contains(5, by: tablet.program) == true && tills?.contains(6, by: tablet.program) == false)
        #expect(tills?.contains(6, by: till.program) == true && tills?.contains(6, by: nil) == true)
        #expect(tablets?.contains(5, by: till.program) == false)
    }

    @Test(arguments: [
        ("127.0.0.1", "::1", true), ("10.0.0.1", "::ffff:10.0.0.1", true), ("10.0.0.1", "10.0.0.2", false), ("", "10.0.0.2", false),
    ])
    func aProgramIsToldByItsAddress(one: String, other: String, isSame: Bool) {
        let programs = [one, other].map { Viewer.Program(address: $0, userAgent: "curl/8") }
        #expect((programs[0] == programs[1]) == isSame)
        #expect(Viewer.Program(address: "", userAgent: "") == nil)
        #expect(Viewer.Program(address: one, userAgent: "curl/9") != programs[0])
    }

    /// A reply is noted when it begins, and once more with its content: both count.
    @Test func contentsAreBounded() {
        var sight = Sight()
        let content = String(repeating: "x", count: ShownState.contentLimit)
        for number in 0..<600 {
            let url = "https://a.test/\(number)"
            for state in [shown("\"1\""), shown("\"1\"", content)] { sight.note(state, at: url, to: .ann, asked: UInt64(number)) }
        }
        let kept = (0..<600).filter { sight.ground(of: "https://a.test/\($0)", for: .ann) != .unknown }
        #expect((128...256).contains(kept.count) && kept.last == 599, "two generations of 8 MiB: \(kept.count)")
    }

    @Test func itIsBounded() {
        var sight = Sight()
        for number in 0..<50_000 {
            sight.note(shown("\"1\""), at: "https://a.test/\(number)", to: .ann, asked: UInt64(number))
            if number % 10 == 0 {
                sight.note(
                    writeTo: "https://a.test/w/\(number)", by: Viewer(partition: "viewer \(number)"), version: nil, at: UInt64(number))
            }
        }
        #expect(sight.version(of: "https://a.test/0", for: .ann) == nil && sight.version(of: "https://a.test/49999", for: .ann) != nil)
    }

    @Test(
        arguments: [
            (200, "\"1\"", "\"1\""), (304, "\"1\"", "\"1\""), (206, "\"1\"", "\"1\""), (404, "\"1\"", nil), (200, "W/\"1\"", nil),
            (200, nil, nil), (200, LocalETag(sequence: 3, base: EntityTag("\"1\"")).fieldValue, "\"1\""),
            (200, LocalETag(sequence: 3).fieldValue, nil),
        ] as [(Int, String?, String?)])
    func aReplyShowsTheUpstreamsVersion(status: Int, tag: String?, expected: String?) {
        let head = ResponseHead(status: status, fields: tag.map { [.eTag: $0] } ?? [:])
        #expect(ShownState(head, content: nil, includes: nil)?.condition == expected)
    }

    /// A copy that lacks an own write shows no state, also where its reply comes from memory.
    @Test(arguments: [true, false])
    func aCopyThatLacksAnOwnWriteShowsNothing(isIncluded: Bool) {
        var copy = CachingFixture.stored("ETag: \"1\"")
        copy.ownWrite = OwnWriteMark(at: Tick(number: 9), isIncluded: isIncluded)
        #expect((ShownState(copy, content: nil) != nil) == isIncluded)
    }
}

extension Sight {
    /// The version by which a write can be conditional.
    fileprivate func version(of url: String, for viewer: Viewer, replacement: JSONValue? = nil) -> String? {
        switch ground(of: url, for: viewer, replacement: replacement) {
        case .shown(let state): state.condition
        case .written(let version): version
        case .unknown: nil
        }
    }
}

extension Viewer {
    fileprivate static let ann = Viewer(partition: "ann")
    fileprivate static let carl = Viewer(partition: "carl")
}
