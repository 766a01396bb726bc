// The moment at which memory of closed connections is returned to the system.
import Testing

@testable import RockpoolEngine

struct FreedMemoryTests {
    private func risen(_ count: Int) -> Ebb {
        var ebb = Ebb()
        for _ in 0..<count { ebb.rise() }
        return ebb
    }

    @Test(arguments: [(Ebb.least - 1, false), (Ebb.least, true)]) func aCrowdThatHasLeftGivesItsMemoryBack(count: Int, isDue: Bool) {
        var (alone, together) = (risen(1000), risen(1000))
        let oneByOne = (0..<count).map { _ in alone.fall(by: 1) }
        let atOnce = together.fall(by: count)
        #expect(oneByOne.last == isDue && atOnce == isDue)
        #expect(alone.open == 1000 - count && together.open == 1000 - count)
    }

    @Test func whatWasGivenBackDoesNotCountAgain() {
        var ebb = risen(1000)
        let found = [500, Ebb.least - 1, 1].map { ebb.fall(by: $0) }
        #expect(found == [true, false, true])
    }

    @Test func asManyAsComeAndGoUseItAgain() {
        var ebb = risen(1000)
        let found = (0..<10_000).map { _ in
            defer { ebb.rise() }
            return ebb.fall(by: 1)
        }
        #expect(!found.contains(true))
    }
}
