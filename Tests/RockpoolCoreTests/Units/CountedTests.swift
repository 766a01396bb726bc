// Numbers with their nouns.
import RockpoolCore
import Testing

@Suite struct CountedTests {
    @Test func oneIsSingularAndEveryOtherNumberPlural() {
        #expect([-1, 0, 1, 2].map { $0.counted("write") } == ["-1 writes", "0 writes", "1 write", "2 writes"])
        #expect([1, 3].map { Int64($0).counted("entry is", "entries are") } == ["1 entry is", "3 entries are"])
    }
}
