// The reachability machine of one upstream, driven event by event.
import HTTPTypes
import Testing

@testable import RockpoolCore

private func at(_ milliseconds: Int64) -> Timestamp { Timestamp(milliseconds: 1_000_000 + milliseconds) }

@Suite struct ReachabilityTests {
    private typealias FailureKind = Reachability.FailureKind

    @Test(arguments: [Reachability.FailureKind.refused, .dns, .connectTimeout])
    func someFailuresEndItAtOnce(kind: Reachability.FailureKind) {
        var machine = Reachability(now: at(0))
        #expect(machine.permits(now: at(0)) == .go)
        #expect(machine.record(.failed(kind, detail: "no"), now: at(5)) == .became(.offline, was: .online))
        #expect((machine.state, machine.since, machine.lastError) == (.offline, at(5), "no"))
        #expect(!machine.isReachable)
        #expect(machine.record(.failed(kind), now: at(6)) == .none)
        #expect((machine.since, machine.lastError) == (at(5), kind.rawValue))
        #expect(machine.record(.answered, now: at(9)) == .became(.online, was: .offline))
        #expect((machine.since, machine.lastError) == (at(9), nil))
    }

    @Test func resetsMakeItSuspectUntilAProbeFailsToo() {
        var machine = Reachability(now: at(0))
        #expect(machine.record(.failed(.reset), now: at(1)) == .became(.suspect, was: .online))
        for time in 2..<9 { #expect(machine.record(.failed(.reset), now: at(Int64(time))) == .none) }
        #expect(machine.permits(now: at(9)) == .go)
        #expect(machine.record(.probeFailed(.reset), now: at(10)) == .became(.offline, was: .suspect))
    }

    @Test func silenceOnTheThirdInARow() {
        let kind = Reachability.FailureKind.firstByteTimeout
        var machine = Reachability(now: at(0))
        #expect(machine.record(.failed(kind), now: at(1)) == .became(.suspect, was: .online))
        #expect(machine.record(.failed(kind), now: at(2)) == .none)
        #expect(machine.permits(now: at(2)) == .go)
        #expect(machine.isReachable)
        #expect(machine.record(.answered, now: at(3)) == .became(.online, was: .suspect))
        #expect(machine.record(.failed(kind), now: at(4)) == .became(.suspect, was: .online))
        #expect(machine.record(.failed(kind), now: at(5)) == .none)
        #expect(machine.record(.failed(kind), now: at(6)) == .became(.offline, was: .suspect))
    }

    /// Three time-outs count if their URLs or their clients differ; otherwise a probe is asked for, which decides.
    @Test(arguments: [
        (["/a|1", "/a|1", "/a|1"], false), (["/a|1", "/a?x=1|1", "/a?x=2|1"], false), (["/a|1", "/b|1", "/a|1"], false),
        (["/a|1", "/b|1", "/c|1"], true), (["/a|1", "/a|2", "/a|3"], true), (["/a|1", "/b|1", "/a|2"], true),
        (["/a|1", "/a|1", "/a|1", "/b|1", "/c|1"], true),
    ])
    func oneSlowURLOfOneClientSaysNothingAboutOthers(strikes: [String], goesOffline: Bool) {
        var machine = Reachability(now: at(0))
        for (time, strike) in strikes.enumerated() {
            let parts = strike.split(separator: "|").map(String.init)
            let witness = Reachability.Witness(target: parts[0], client: Int32(parts[1]).map { .process($0) })
            _ = machine.record(.failed(.firstByteTimeout, witness: witness), now: at(Int64(time)))
        }
        #expect(machine.state == (goesOffline ? .offline : .suspect))
        #expect(goesOffline || machine.probeDue(now: at(600), somethingWaits: false), "the probe decides")
        guard !goesOffline else { return }
        var other = machine
        #expect(machine.record(.probeFailed(.firstByteTimeout), now: at(700)) == .became(.offline, was: .suspect))
        #expect(other.record(.probeAnswered(.expected), now: at(700)) == .became(.online, was: .suspect))
        #expect(!other.probeDue(now: at(2000), somethingWaits: false))
    }

    @Test func certificatesNeverMakeItOffline() {
        var machine = Reachability(now: at(0))
        #expect(machine.record(.failed(.tls), now: at(1)) == .became(.suspect, was: .online))
        for time in 2..<9 { #expect(machine.record(.failed(.tls), now: at(Int64(time))) == .none) }
        #expect(machine.record(.failed(.refused), now: at(10)) == .became(.offline, was: .suspect))
        #expect(machine.record(.probeFailed(.tls), now: at(11)) == .became(.suspect, was: .offline))
    }

    @Test func quickFailuresLetOneTryASecond() {
        var machine = Reachability(now: at(0))
        _ = machine.record(.failed(.refused), now: at(0))
        #expect(machine.permits(now: at(999)) == .no(.offline))
        #expect(machine.permits(now: at(1000)) == .trial)
        #expect(machine.permits(now: at(1001)) == .no(.offline))
        #expect(machine.record(.failed(.dns), now: at(1002)) == .none)
        #expect(machine.permits(now: at(1999)) == .no(.offline))
        #expect(machine.permits(now: at(2000)) == .trial)
        #expect(machine.permits(now: at(-60_000)) == .trial, "the clock was set back")
        #expect(machine.record(.failed(.connectTimeout), now: at(2001)) == .none)
        #expect(machine.permits(now: at(9000)) == .no(.offline), "trial requests have become rare")
        #expect(machine.record(.probeFailed(.refused), now: at(9001)) == .none)
        #expect(machine.permits(now: at(9002)) == .trial)
    }

    @Test func aClockThatGoesBackHoldsUpNoProbe() {
        var machine = Reachability(now: at(3_600_000))
        _ = machine.record(.failed(.refused), now: at(3_600_000))
        #expect(!machine.probeDue(now: at(3_600_100), somethingWaits: true))
        #expect(machine.probeDue(now: at(0), somethingWaits: true))
        _ = machine.record(.probeFailed(.refused), now: at(0))
        #expect(!machine.probeDue(now: at(100), somethingWaits: true))
    }

    @Test func slowFailuresLeaveItToTheProbes() {
        var machine = Reachability(now: at(0))
        _ = machine.record(.failed(.connectTimeout), now: at(0))
        #expect(machine.permits(now: at(60_000)) == .no(.offline))
        #expect(machine.record(.probeAnswered(.expected), now: at(60_001)) == .became(.online, was: .offline))
        #expect(machine.permits(now: at(60_002)) == .go)
    }

    @Test func probesBackOffWhileSomethingWaits() {
        var machine = Reachability(now: at(0))
        _ = machine.record(.answered, now: at(0))
        #expect(!machine.probeDue(now: at(99_999), somethingWaits: true))
        _ = machine.record(.failed(.refused), now: at(0))
        #expect(machine.nextProbeAt(somethingWaits: false) == nil)
        for (time, next) in [(500, 1500), (1500, 3500), (3500, 5500)] as [(Int64, Int64)] {
            #expect(!machine.probeDue(now: at(time - 1), somethingWaits: true))
            #expect(machine.probeDue(now: at(time), somethingWaits: true))
            _ = machine.record(.probeFailed(.refused), now: at(time))
            #expect(machine.nextProbeAt(somethingWaits: true) == at(next))
        }
    }

    @Test(arguments: [(0.0, 400), (0.5, 500), (0.999, 600), (-3, 400), (7, 600)])
    func probesAreSpread(random: Double, delay: Int64) {
        var machine = Reachability(now: at(0))
        _ = machine.record(.failed(.refused), now: at(0), random: random)
        #expect(machine.nextProbeAt(somethingWaits: true) == at(delay))
    }

    /// What nobody has asked anything is asked by a probe, once; what it is before that is not called online.
    @Test func whatWasNeverTriedIsNotOnline() {
        var machine = Reachability(now: at(0))
        #expect(machine.shownState == .untried && machine.isReachable && machine.permits(now: at(0)) == .go)
        #expect(machine.nextProbeAt(somethingWaits: false) == at(2000))
        _ = machine.record(.probeUndecided, now: at(2000))
        #expect(machine.shownState == .untried && machine.nextProbeAt(somethingWaits: false) == at(32_000))
        _ = machine.record(.mode(.offline), now: at(2500))
        #expect(machine.shownState == .offline && machine.nextProbeAt(somethingWaits: true) == nil)
        _ = machine.record(.mode(.auto), now: at(2600))
        var other = machine
        _ = machine.record(.answered, now: at(3000))
        #expect(machine.shownState == .online && machine.since == at(3000) && machine.nextProbeAt(somethingWaits: false) == nil)
        #expect(other.record(.probeFailed(.dns), now: at(3000)) == .became(.offline, was: .online) && other.shownState == .offline)
    }

    @Test func declaredProbesRunAtTheirInterval() {
        var machine = Reachability(probeInterval: .seconds(10), now: at(0))
        _ = machine.record(.answered, now: at(0))
        #expect(machine.nextProbeAt(somethingWaits: true) == at(10_000))
        _ = machine.record(.answered, now: at(4000))
        #expect(machine.nextProbeAt(somethingWaits: false) == at(14_000), "a response counts like a probe")
        _ = machine.record(.failed(.refused), now: at(5000))
        #expect(machine.nextProbeAt(somethingWaits: false) == at(15_000))
        #expect(machine.nextProbeAt(somethingWaits: true) == at(5500))
    }

    @Test func anUnwellUpstreamStaysSuspectUntilItsProbeSaysOtherwise() {
        var machine = Reachability(probeInterval: .seconds(10), now: at(0))
        #expect(machine.record(.probeAnswered(.unexpected(status: 503)), now: at(1)) == .became(.suspect, was: .online))
        #expect(machine.lastError == "the probe was answered with 503")
        #expect(machine.record(.answered, now: at(2)) == .none)
        #expect(machine.permits(now: at(3)) == .go)
        #expect(machine.record(.probeAnswered(.expected), now: at(4)) == .became(.online, was: .suspect))
    }

    @Test func aPortalIsLeftOnlyByAProbe() {
        var machine = Reachability(now: at(0))
        #expect(machine.record(.portalSeen(detail: "login"), now: at(1)) == .became(.captive, was: .online))
        #expect(machine.permits(now: at(99_999)) == .no(.captive))
        #expect(!machine.isReachable)
        #expect(machine.record(.answered, now: at(2)) == .none)
        #expect(machine.record(.failed(.tls), now: at(3)) == .none)
        #expect(machine.record(.probeAnswered(.captive(detail: "still")), now: at(4)) == .none)
        #expect(machine.lastError == "still")
        #expect(machine.record(.probeAnswered(.expected), now: at(5)) == .became(.online, was: .captive))
        _ = machine.record(.portalSeen(detail: "login"), now: at(6))
        #expect(machine.record(.probeFailed(.dns), now: at(7)) == .became(.offline, was: .captive))
    }

    /// A client that is answered a hundred times a second does not postpone the probe that decides.
    @Test(arguments: [nil, TimeSpan.seconds(10)], [false, true])
    func noAnswerPostponesAProbeThatIsAskedFor(interval: TimeSpan?, isDoubt: Bool) {
        var machine = Reachability(probeInterval: interval, now: at(0))
        for time in stride(from: Int64(0), to: 3000, by: 10) {
            _ = machine.record(.answered, now: at(time))
            #expect(machine.record(isDoubt ? .doubted(detail: "a page") : .signSeen, now: at(time)) != .became(.captive, was: .online))
            _ = machine.record(.answered, now: at(time + 5))
            let isDue = machine.probeDue(now: at(time + 5), somethingWaits: false)
            #expect(isDue == (time % 500 == 0), "\(time)")
            if isDue { _ = machine.record(.probeAnswered(.expected), now: at(time + 5)) }
        }
    }

    @Test func aSignAsksForAProbeAndChangesNothingElse() {
        var machine = Reachability(now: at(0))
        #expect(!machine.probeDue(now: at(1), somethingWaits: true))
        #expect(machine.record(.signSeen, now: at(1)) == .none)
        #expect(machine.state == .online && machine.isTrusted && machine.isReachable && machine.lastError == nil)
        #expect(machine.permits(now: at(1)) == .go && machine.probeDue(now: at(1), somethingWaits: false))
        #expect(machine.record(.probeUndecided, now: at(2)) == .none)
        #expect(machine.nextProbeAt(somethingWaits: false) == at(502))
        #expect(machine.record(.probeAnswered(.expected), now: at(600)) == .none)
        #expect(machine.nextProbeAt(somethingWaits: true) == nil)
    }

    @Test func aDoubtEndsWithTheProbeAlone() {
        var machine = Reachability(now: at(0))
        #expect(machine.record(.doubted(detail: "a page"), now: at(1)) == .became(.suspect, was: .online))
        #expect(machine.record(.answered, now: at(2)) == .none)
        #expect(!machine.isTrusted && machine.permits(now: at(3)) == .go && machine.lastError == "a page")
        #expect(machine.record(.probeAnswered(.expected), now: at(4)) == .became(.online, was: .suspect))
        #expect(machine.isTrusted)
        _ = machine.record(.doubted(detail: "a page"), now: at(5))
        #expect(machine.record(.probeAnswered(.captive(detail: "elsewhere")), now: at(6)) == .became(.captive, was: .suspect))
        #expect(machine.record(.signSeen, now: at(7)) == .none && machine.record(.doubted(detail: "x"), now: at(7)) == .none)
    }

    @Test func aPersonDecides() {
        var machine = Reachability(probeInterval: .seconds(10), now: at(0))
        #expect(machine.record(.mode(.offline), now: at(1)) == .modeBecame(.offline))
        #expect(machine.record(.mode(.offline), now: at(2)) == .none)
        #expect(machine.permits(now: at(3)) == .no(.switchedOff))
        #expect(!machine.isReachable)
        #expect(!machine.probeDue(now: .distantFuture, somethingWaits: true))
        #expect(machine.record(.mode(.online), now: at(4)) == .modeBecame(.online))
        #expect(machine.record(.failed(.connectTimeout), now: at(5)) == .became(.offline, was: .online))
        #expect(machine.permits(now: at(6)) == .go)
        #expect(machine.isReachable)
        #expect(machine.record(.mode(.auto), now: at(7)) == .modeBecame(.auto))
        #expect((machine.mode, machine.state) == (.auto, .offline))
        #expect(machine.probeDue(now: at(7), somethingWaits: false))
    }
}

@Suite struct ProbeVerdictTests {
    private static let origin = OriginAddress(scheme: .https, host: "api.example.com")
    private static let strict = Probe(path: "/healthz", expect: [204])

    private func verdict(
        _ status: Int, _ lines: [(HTTPField.Name, String)] = [], probe: Probe? = Self.strict, hasBody: Bool = true
    ) -> ProbeVerdict {
        let fields = HTTPFields(lines.map { HTTPField(name: $0, value: $1) })
        return ProbeVerdict.judge(ResponseHead(status: status, fields: fields), to: probe, origin: Self.origin, hasBody: hasBody)
    }

    @Test func statuses() {
        #expect(verdict(204) == .expected)
        #expect(verdict(500) == .unexpected(status: 500))
        #expect(verdict(500, probe: Probe(path: "/")) == .expected)
        #expect(verdict(404, probe: nil) == .expected)
        #expect(verdict(511, probe: nil) == .captive(detail: "511: the network asks for a login"))
    }

    @Test(
        arguments: [
            ("http://login.hotel.test/?u=#top", "login.hotel.test"), ("//login.hotel.test/", "login.hotel.test"),
            ("https://api.example.com/x", nil),
            ("http://API.example.com/x", nil), ("/login", nil), ("::", nil),
        ] as [(String, String?)])
    func redirects(location: String, host: String?) {
        #expect(verdict(302, [(.location, location)], probe: nil) == (host.map { .captive(detail: "redirected to \($0)") } ?? .expected))
    }

    @Test func pagesWhereNoneBelong() {
        #expect(verdict(200, [(.contentType, "Text/HTML; charset=utf-8")]) == .captive(detail: "a page where none belongs"))
        #expect(verdict(200, [(.contentType, "application/json")]) == .unexpected(status: 200))
        #expect(verdict(200, [(.contentType, "text/html")], hasBody: false) == .unexpected(status: 200))
        #expect(verdict(200, [(.contentType, "text/html")], probe: nil) == .expected)
    }
}
