// The bandwidth estimate of an upstream: the transfers that count, the limits of the tiers, and the validity period.
import RockpoolCore
import Testing

struct BandwidthTests {
    private static let large: Int64 = 1_000_000

    private func measured(_ samples: (bytes: Int64, duration: Duration)...) -> Bandwidth.Tier? {
        var bandwidth = Bandwidth()
        for sample in samples { bandwidth.record(sample.bytes, in: sample.duration, now: noon) }
        return bandwidth.tier(at: noon)
    }

    @Test func nothingIsKnownAtFirst() { #expect(Bandwidth().tier(at: noon) == nil) }

    @Test func onlyLongBodiesTell() {
        #expect(measured((Bandwidth.leastBytes.bytes - 1, .seconds(60))) == nil)
        #expect(measured((Bandwidth.leastBytes.bytes, .seconds(60))) == .low)
    }

    @Test(arguments: [
        (Bandwidth.highFrom, Bandwidth.Tier.high), (Bandwidth.highFrom - 1, .medium), (Bandwidth.mediumFrom, .medium),
        (Bandwidth.mediumFrom - 1, .low),
    ])
    func theTiersBeginWhereTheySay(rate: Int64, tier: Bandwidth.Tier) {
        #expect(measured((rate * 10, .seconds(10))) == tier)
    }

    @Test func whatComesAtOnceIsNoDivisionByZero() { #expect(measured((Self.large, .zero)) == .high) }

    @Test func newerBodiesCountMore() {
        #expect(measured((Self.large, .seconds(1)), (Self.large, .seconds(100))) == .high)
        #expect(measured((Self.large, .seconds(1)), (Self.large, .seconds(100)), (Self.large, .seconds(100))) == .medium)
    }

    @Test(arguments: [1, -1]) func anOldMeasurementTellsNothing(direction: Int64) {
        var bandwidth = Bandwidth()
        bandwidth.record(Self.large, in: .seconds(100), now: noon)
        let limit = Bandwidth.validity.milliseconds
        #expect(bandwidth.tier(at: noon + .milliseconds(direction * limit)) == .low)
        let later = noon + .milliseconds(direction * (limit + 1))
        #expect(bandwidth.tier(at: later) == nil)
        // An old measurement does not affect the next one.
        bandwidth.record(Self.large, in: .seconds(1), now: later)
        #expect(bandwidth.tier(at: later) == .high)
    }
}
