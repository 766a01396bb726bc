// RFC 9111 §4: requests that share one fetch, and requests that must not.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct CollapsingTests {
    @Test(
        arguments: [
            ("", nil, nil), ("Cache-Control: max-stale=5", nil, nil),
            ("Accept: application/json | Authorization: x | Cookie: a=1", nil, nil),
            ("Range: bytes=0-1", .range, .range), ("If-None-Match: \"a\"", .condition, .condition), ("If-Match: *", .condition, .condition),
            ("If-Modified-Since: @0", .condition, .condition), ("If-Unmodified-Since: @0", .condition, .condition),
            ("If-Range: \"a\"", .condition, .condition), ("Cache-Control: no-store", .requestDirective, .requestDirective),
            ("Cache-Control: no-cache", nil, .requestDirective), ("Pragma: no-cache", nil, .requestDirective),
            ("Cache-Control: max-age=0", nil, .requestDirective), ("Cache-Control: max-age=99", nil, .requestDirective),
            ("Cache-Control: min-fresh=1", nil, .requestDirective), ("Cache-Control: only-if-cached", nil, .requestDirective),
            ("X-HTTP-Method-Override: PUT", .overrideHeader, .overrideHeader), ("X-Forwarded-Host: a", .overrideHeader, .overrideHeader),
            ("Accept: Text/Event-Stream", .eventStream, .eventStream),
        ] as [(String, RequestCollapsing.Obstacle?, RequestCollapsing.Obstacle?)])
    func obstacles(_ fields: String, toLeading: RequestCollapsing.Obstacle?, toFollowing: RequestCollapsing.Obstacle?) {
        let request = CachingFixture.request(fields)
        let wishes = CacheControl(request: request.fields)
        #expect(RequestCollapsing.obstacleToLeading(request, hasBody: false, wishes: wishes) == toLeading)
        #expect(RequestCollapsing.obstacleToFollowing(request, hasBody: false, wishes: wishes) == toFollowing)
        #expect(RequestCollapsing.obstacleToFollowing(request, hasBody: true, wishes: wishes) == .requestBody)
    }

    @Test(arguments: [HTTPRequest.Method.head, .post, .options, .put])
    func onlyGet(_ method: HTTPRequest.Method) {
        let request = CachingFixture.request(method: method)
        #expect(RequestCollapsing.obstacleToLeading(request, hasBody: false, wishes: CacheControl()) == .method)
        #expect(RequestCollapsing.obstacleToFollowing(request, hasBody: false, wishes: CacheControl()) == .method)
    }

    struct Case: Sendable, CustomTestStringConvertible {
        var response = "Cache-Control: max-age=60"
        var leader = ""
        var follower = ""
        var partition = StoragePartition.shared
        var identity: String?
        var release: RequestCollapsing.Release?
        var testDescription: String { "\(response) \(leader) \(follower) \(partition) \(identity ?? "-")" }
    }

    @Test(arguments: [
        Case(), Case(identity: "i"), Case(partition: .identity("i"), identity: "i"),
        Case(partition: .identity("i"), identity: "j", release: .isPrivate), Case(partition: .identity("i"), release: .isPrivate),
        Case(partition: .anonymous, release: .isPrivate), Case(partition: .anonymous, identity: "", release: .isPrivate),
        Case(partition: .anonymous, identity: "anonymous", release: .isPrivate),
        Case(response: "Cache-Control: max-age=60 | Vary: A", leader: "A: 1", follower: "A: 1"),
        Case(response: "Cache-Control: max-age=60 | Vary: A", leader: "A: 1", follower: "A: 2", release: .vary),
        Case(response: "Cache-Control: max-age=60 | Vary: A", leader: "A: 1", release: .vary),
        Case(response: "Cache-Control: max-age=60 | Vary: *", release: .vary),
        Case(
            response: "Cache-Control: max-age=60 | Vary: Accept-Encoding", leader: "Accept-Encoding: gzip, br",
            follower: "Accept-Encoding: br,gzip"),
        // Stored, but every use requires validation.
        Case(response: "Cache-Control: no-cache, max-age=60", release: .mustValidate), Case(response: "", release: .mustValidate),
        Case(response: "Cache-Control: max-age=0", release: .mustValidate),
        Case(response: "Cache-Control: max-age=60 | Age: 60", release: .mustValidate),
        Case(response: "Cache-Control: max-age=0, stale-while-revalidate=5"),
        Case(response: "Cache-Control: max-age=0", follower: "Cache-Control: max-stale=5"),
        Case(response: "Cache-Control: max-age=0, must-revalidate", follower: "Cache-Control: max-stale=5", release: .mustValidate),
    ])
    func outcomes(_ given: Case) {
        let arrival = RequestCollapsing.Arrival.stored(CachingFixture.stored(given.response, for: given.leader), given.partition)
        let outcome = RequestCollapsing.outcome(
            of: arrival, for: CachingFixture.request(given.follower), identity: given.identity, now: CachingFixture.start)
        #expect(outcome == given.release.map { .release($0) } ?? .share)
    }

    @Test func failuresAndWhatIsNotKept() {
        for (arrival, release) in [(RequestCollapsing.Arrival.failed, RequestCollapsing.Release.failed), (.notStored, .notStored)] {
            let outcome = RequestCollapsing.outcome(of: arrival, for: CachingFixture.request(), identity: nil, now: CachingFixture.start)
            #expect(outcome == .release(release))
        }
    }

    @Test func whatIsWorthRemembering() {
        #expect(RequestCollapsing.Release.allCases.filter(\.isLasting) == [.isPrivate, .notStored, .mustValidate])
    }
}

@Suite struct UncollapsibleKeysTests {
    private func key(_ number: Int) -> CacheKey { CacheKey(CachingFixture.request(target: "/\(number)")) }

    @Test func rememberedForItsSpanAndNoLonger() {
        var keys = HitForMissKeys(span: .seconds(10))
        keys.note(key(1), now: CachingFixture.at(0))
        keys.note(key(1), now: CachingFixture.at(9))
        #expect(keys.contains(key(1), now: CachingFixture.at(9)) && !keys.contains(key(2), now: CachingFixture.at(9)))
        #expect(!keys.contains(key(1), now: CachingFixture.at(10)))
        keys.note(key(1), now: CachingFixture.at(10))
        #expect(keys.contains(key(1), now: CachingFixture.at(19)) && keys.count == 1)
    }

    @Test func theOldestLeavesFirst() {
        var keys = HitForMissKeys(limit: 3)
        for number in 1...4 { keys.note(key(number), now: CachingFixture.at(Int64(number))) }
        #expect((1...4).map { keys.contains(key($0), now: CachingFixture.at(5)) } == [false, true, true, true])
        keys.note(key(5), now: CachingFixture.at(200))
        #expect(keys.count == 1)
    }

    @Test func aClockThatGoesBackForgetsAndDoesNotGrow() {
        var keys = HitForMissKeys(limit: 4, span: .seconds(10))
        keys.note(key(1), now: CachingFixture.at(1000))
        #expect(!keys.contains(key(1), now: CachingFixture.at(0)))
        for second in stride(from: Int64(999), to: 0, by: -1) { keys.note(key(1), now: CachingFixture.at(second)) }
        #expect(keys.contains(key(1), now: CachingFixture.at(1)) && keys.count <= 4)
        #expect(!keys.contains(key(1), now: CachingFixture.at(11)))
        keys.note(key(2), now: .distantFuture)
        keys.note(key(3), now: Timestamp(milliseconds: .min))
        #expect(keys.contains(key(3), now: Timestamp(milliseconds: .min)))
    }

    /// Key 2 is added again while its first entry, now in the future, is still queued behind key 1.
    @Test func forgettingAnOldLineKeepsTheNewOne() {
        var keys = HitForMissKeys(limit: 3, span: .seconds(10))
        for (number, second) in [(1, 0), (2, 8), (2, 5), (3, 5), (4, 5)] as [(Int, Int64)] {
            keys.note(key(number), now: CachingFixture.at(second))
        }
        #expect((1...4).map { keys.contains(key($0), now: CachingFixture.at(5)) } == [false, true, true, true])
    }

    @Test func aLimitOfNothingIsOne() {
        var keys = HitForMissKeys(limit: 0)
        for number in 1...3 { keys.note(key(number), now: CachingFixture.start) }
        #expect(keys.count == 1 && keys.contains(key(3), now: CachingFixture.start))
    }
}
