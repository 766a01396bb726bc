// Which kept connections are used again after one was silent.
import RockpoolCore
import Testing

@testable import RockpoolNetwork

@Suite struct ConnectionTrustTests {
    @Test func onlyConnectionsFromAfterTheSilenceAreUsed() {
        var trust = ConnectionTrust()
        let (origin, noon) = (OriginAddress(scheme: .http, host: "a"), ContinuousClock.now)
        #expect(trust.longestAge(to: origin, at: noon) == nil)
        trust.distrust(origin, at: noon)
        #expect(trust.longestAge(to: origin, at: noon) == 0 && trust.longestAge(to: origin, at: noon + .milliseconds(1999)) == 0)
        #expect(trust.longestAge(to: origin, at: noon + .milliseconds(5500)) == 4)
        #expect(trust.longestAge(to: OriginAddress(scheme: .http, host: "b"), at: noon) == nil)
        trust.distrust(origin, at: noon + .seconds(100))
        #expect(trust.longestAge(to: origin, at: noon + .seconds(110)) == 9)
        #expect(trust.longestAge(to: origin, at: noon + .seconds(290)) == nil)
    }
}
