// Requests counted before a response is stored (docs/caching.md#categories, `min_uses`).
import RockpoolCore
import Testing

@Suite struct UseCountTests {
    @Test func eachKeyIsCountedAndTheOldestAreForgotten() {
        var counts = UseCounts(capacity: 2)
        let first = ["a", "a", "b", "a"].map { counts.count($0) }
        #expect(first == [1, 2, 1, 3])
        // A third key begins a generation; the older one still counts, until the next begins.
        let second = ["c", "a", "d", "e", "a"].map { counts.count($0) }
        #expect(second[0...1] == [1, 4] && second[2...3] == [1, 1])
        #expect(second[4] < 5)
    }
}
