// The mark of a copy that an own write has made out of date (docs/outbox.md#effects).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct OwnWriteMarkTests {
    private static let sent = Tick(number: 100)

    private func copy(_ mark: OwnWriteMark?, status: Int = 200, fields: HTTPFields = [:], isInvalidated: Bool = false) -> StoredResponse {
        var response = StoredResponse(
            head: ResponseHead(status: status, fields: fields), requestTime: .distantPast, asked: Self.sent,
            responseTime: .distantPast)
        response.ownWrite = mark
        response.isInvalidated = isInvalidated
        return response
    }

    private static let included = OwnWriteMark(at: Tick(number: 150), isIncluded: true)
    private static let lacking = OwnWriteMark(at: Tick(number: 150), isIncluded: false)

    @Test func aCopyIncludesWritesUntilItsRequestOrTheLastOneWorkedIn() {
        #expect(copy(nil).includesWritesUntil == Self.sent)
        #expect(copy(Self.included).includesWritesUntil == Tick(number: 150))
        #expect(copy(Self.lacking).includesWritesUntil == Self.sent)
        let earlier = OwnWriteMark(at: Tick(number: 50), isIncluded: true)
        #expect(copy(earlier).includesWritesUntil == Self.sent)
    }

    @Test func onlyACopyWithoutAnEffectIsDirty() {
        #expect(!copy(nil).isDirty && !copy(Self.included).isDirty && copy(Self.lacking).isDirty)
        #expect(!copy(nil, isInvalidated: true).isDirty, "somebody else's write may have changed nothing")
    }

    @Test func aKnownStateIsAWholeCopyWithEveryOwnWrite() {
        #expect(copy(nil).isKnownState && copy(Self.included, isInvalidated: true).isKnownState)
        #expect(!copy(Self.lacking).isKnownState)
        #expect(copy(nil, isInvalidated: true).isKnownState, "a write of another client is not what this one has seen")
        #expect(!copy(nil, status: 404).isKnownState && !copy(Self.included, status: 404).isKnownState)
        #expect(!copy(Self.included, status: 206, fields: [.contentRange: "bytes 0-1/5"]).isKnownState)
    }
}
