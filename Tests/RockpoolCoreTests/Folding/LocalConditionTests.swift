// Conditions that the state a client reads already contradicts (docs/outbox.md#optimistic-replies; RFC 9110 §13.1).
import HTTPTypes
import RockpoolCore
import Testing

struct LocalConditionTests {
    static let copy = LocalCondition(presence: .present, tags: [EntityTag("\"v1\""), EntityTag("W/\"v1-gzip\"")].compactMap(\.self))
    static let queued = LocalCondition(presence: .present, lastPending: 17)

    @Test(
        arguments: [
            (copy, [:], false), (copy, [.ifMatch: "\"v1\""], false), (copy, [.ifMatch: "\"v0\""], true), (copy, [.ifMatch: "*"], false),
            (copy, [.ifMatch: "\"v0\", \"v1-gzip\""], false), (copy, [.ifMatch: "\"loc-3-v0\""], false),
            (copy, [.ifMatch: "v1"], false), (copy, [.ifMatch: "v0"], true), (copy, [.ifMatch: "v0, v1-gzip"], false),
            (queued, [.ifMatch: "v1"], true), (queued, [.ifMatch: "loc-17-v1"], false), (queued, [.ifMatch: "loc-16-v1"], true),
            (copy, [.ifNoneMatch: "*"], true), (copy, [.ifNoneMatch: "\"v1\""], false),
            (queued, [.ifMatch: "\"v1\""], true), (queued, [.ifMatch: "\"loc-16-v1\""], true), (queued, [.ifMatch: "\"loc-17-v1\""], false),
            (queued, [.ifMatch: "\"loc-16\", \"loc-17\""], false),
            (LocalCondition(presence: .absent), [.ifMatch: "*"], true), (LocalCondition(presence: .absent), [.ifMatch: "\"v1\""], true),
            (LocalCondition(presence: .absent), [.ifNoneMatch: "*"], false),
            (LocalCondition(presence: .unknown), [.ifMatch: "\"v1\""], false),
            (LocalCondition(presence: .unknown), [.ifNoneMatch: "*"], false),
            (LocalCondition(presence: .present), [.ifMatch: "\"v1\""], false),
        ] as [(LocalCondition, HTTPFields, Bool)])
    func onlyAKnownStateRefuses(state: LocalCondition, fields: HTTPFields, isRefused: Bool) {
        #expect((state.contradiction(of: fields) != nil) == isRefused)
    }
}
