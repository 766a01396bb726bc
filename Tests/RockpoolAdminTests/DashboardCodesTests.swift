// One-time codes of the dashboard (docs/security-model.md#admin-callers).
import RockpoolCore
import Testing

@testable import RockpoolAdmin

@Suite struct DashboardCodesTests {
    private let start = Timestamp(milliseconds: 1_000_000)

    @Test func aCodeIsGoodOnceAndForAMinute() {
        let codes = DashboardCodes()
        let (first, second) = (codes.issue(now: start), codes.issue(now: start))
        #expect(first.code != second.code && first.code.count == 32)
        #expect(codes.use(first.code, now: start + .seconds(59)))
        #expect(!codes.use(first.code, now: start + .seconds(59)))
        #expect(!codes.use(second.code, now: start + .seconds(61)))
        #expect(!codes.use("", now: start))
    }
}
