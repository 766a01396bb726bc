// The smallest bound applies and is reported.
import Testing

@testable import RockpoolCore

@Suite struct DiskBoundTests {
    @Test(arguments: [
        (0, 2000, 500, DiskBound(limit: 1000, reason: .configured)), (600, 900, 500, .init(limit: 1000, reason: .configured)),
        (600, 899, 500, .init(limit: 999, reason: .minFree)), (600, 400, 500, .init(limit: 500, reason: .minFree)),
        (600, 399, 0, .init(limit: 999, reason: .disk)), (600, 300, 500, .init(limit: 400, reason: .disk)),
        (0, 100, 500, .init(limit: 0, reason: .disk)), (-5, .max, 0, .init(limit: 1000, reason: .configured)),
        (.max, .max, .max, .init(limit: 0, reason: .minFree)), (0, -1, -1, .init(limit: 0, reason: .disk)),
    ])
    func bounds(used: Int64, free: Int64, minFree: Int64, expected: DiskBound) {
        #expect(DiskBound.decide(configured: 1000, used: used, free: free, minFree: minFree) == expected)
    }
}
