// The last event of a URL, kept for a limited number of URLs.
import RockpoolCore
import Testing

@Suite struct KeyEventsTests {
    @Test func theLastEventCounts() {
        var events = KeyEvents()
        #expect(events.last(of: "a") == nil)
        events.note(.stored, of: "a", at: Timestamp(milliseconds: 1))
        events.note(.notStored("no-store"), of: "a", at: Timestamp(milliseconds: 2))
        #expect(events.last(of: "a")?.event == .notStored("no-store") && events.last(of: "a")?.at == Timestamp(milliseconds: 2))
    }

    /// At least the last 4,096 URLs are kept, at most twice as many.
    @Test func thereIsALimit() {
        var events = KeyEvents()
        for number in 0...(2 * KeyEvents.minimumCount) {
            events.note(.evicted, of: "\(number)", at: Timestamp(milliseconds: Int64(number)))
        }
        #expect(events.last(of: "0") == nil)
        #expect((KeyEvents.minimumCount + 1...2 * KeyEvents.minimumCount).allSatisfy { events.last(of: "\($0)") != nil })
    }
}
