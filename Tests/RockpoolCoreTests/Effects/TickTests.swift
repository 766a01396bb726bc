// The order of ticks (docs/outbox.md#ticks).
import RockpoolCore
import Testing

@Suite struct TickTests {
    @Test func eachIsGreaterThanTheOnesBefore() {
        let ticks = Ticks()
        let counted = (0..<1000).map { _ in ticks.next() }
        #expect(zip(counted, counted.dropFirst()).allSatisfy(<))
        #expect(counted.allSatisfy { .first < $0 && $0 < .last })
    }

    @Test func aLaterRunComesAfterEveryEarlierOne() {
        let first = Ticks()
        first.begin(after: 0)
        let last = (0..<10).map { _ in first.next() }.max() ?? .last
        let again = Ticks()
        again.begin(after: first.run)
        #expect(again.next() > last && again.run == first.run + 1)
        // Another database of the same server knows an earlier run only.
        again.begin(after: 0)
        #expect(again.run == first.run + 1)
    }

    /// What was stored before ticks were counted has times in milliseconds in their place.
    @Test func timesOfBeforeAreEarlier() { #expect(Tick(number: 2_000_000_000_000) < Ticks().next()) }
}
