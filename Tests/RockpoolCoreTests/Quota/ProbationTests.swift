// Probation of entries that were not read yet (docs/storage.md#eviction).
import RockpoolCore
import Testing

@Suite struct ProbationTests {
    @Test(arguments: [(0, 1_000, 0), (100, 1_000, 0), (101, 1_000, 1), (1_000, 1_000, 900), (0, 0, 0)])
    func aTenthMayStay(_ bytes: Int64, _ evictable: Int64, _ surplus: Int64) {
        #expect(Probation.surplus(bytes, of: evictable) == surplus)
    }

    @Test func theLastKeysAreRememberedOnce() {
        var keys = EvictedKeys(capacity: 2)
        for key in ["a", "b", "c"] { keys.note(key) }
        let taken = ["a", "b", "b", "c"].map { keys.take($0) }
        #expect(taken == [false, true, false, true])
    }
}
