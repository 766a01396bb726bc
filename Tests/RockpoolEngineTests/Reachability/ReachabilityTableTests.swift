// The table of reachability machines: permissions, the manual switch, and notifications of changes.
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Synchronization
import Testing

struct ReachabilityTableTests {
    private let clock = ManualClock()
    private let table: ReachabilityTable

    init() { table = ReachabilityTable(upstreams: [.notes(), Upstream(name: "other", origin: .notes)], now: clock.now) }

    private func permission(_ upstream: String?) -> Reachability.Permission { table.permission(for: upstream, now: clock.now) }

    @Test func everyoneMayGoAtTheStart() {
        #expect(permission("notes") == .go)
        #expect(permission(nil) == .go)
        #expect(permission("unknown") == .go)
    }

    @Test func oneFailureIsOneUpstreams() {
        table.record(.failed(.refused), for: "notes", now: clock.now)
        #expect(permission("notes") == .no(.offline))
        #expect(permission("other") == .go)
        #expect(permission(nil) == .go)
    }

    @Test func oneRequestASecondMayTryAndTheSecondIsUsedUp() {
        table.record(.failed(.refused), for: "notes", now: clock.now)
        clock.advance(by: .seconds(1))
        #expect(permission("notes") == .trial)
        #expect(permission("notes") == .no(.offline))
    }

    @Test func askingInVainIsRememberedForHalfAMinute() {
        #expect(!table.wasWantedLately("notes", now: clock.now))
        table.record(.failed(.connectTimeout), for: "notes", now: clock.now)
        _ = permission("notes")
        clock.advance(by: .milliseconds(29_999))
        #expect(table.wasWantedLately("notes", now: clock.now))
        clock.advance(by: .milliseconds(1))
        #expect(!table.wasWantedLately("notes", now: clock.now))
    }

    private func note(_ url: String, asksProbe: Bool = true) -> Doubts.Verdict {
        table.note(
            .init(sign: "200 a page"), at: .init(upstream: "notes", url: url), hasExpectation: true, asksProbe: asksProbe, now: clock.now)
    }

    private var isProbeDue: Bool { table.machine(of: "notes")?.probeDue(now: clock.now, somethingWaits: false) == true }

    /// An earlier successful probe does not clear a suspicious response; only a probe after that response does.
    @Test func aGoodProbeOfEarlierAcquitsNobody() {
        table.record(.probeAnswered(.expected), for: "notes", now: clock.now)
        #expect(note("/a") == .doubted)
        clock.advance(by: .seconds(1))
        #expect(isProbeDue)
        table.record(.probeAnswered(.expected), for: "notes", now: clock.now)
        #expect(!isProbeDue && table.lastMet("notes") == clock.now && note("/a") == .believed)
    }

    @Test func aSignOfOneURLConcernsNothingElse() {
        #expect(note("/a", asksProbe: false) == .doubted && !isProbeDue)
        #expect(note("/a") == .doubted && isProbeDue)
        #expect(table.isTrusted("notes") && table.isUsable("notes") && table.machine(of: "notes")?.state == .online)
        #expect(permission("notes") == .go)
    }

    @Test func signsOfTwoURLsConcernTheUpstreamUntilTheProbe() {
        #expect(note("/a") == .doubted && note("/b") == .spread)
        #expect(!table.isTrusted("notes") && !table.isUsable("notes") && table.isTrusted(nil) && table.isTrusted("other"))
        table.record(.answered, for: "notes", now: clock.now)
        #expect(!table.isTrusted("notes") && isProbeDue)
        table.record(.probeAnswered(.expected), for: "notes", now: clock.now)
        #expect(table.isTrusted("notes") && table.isUsable("notes"))
    }

    @Test func anUpstreamThatIsHeardIsNotDoubtedAsAWhole() {
        #expect(note("/a") == .doubted)
        table.hear("notes", now: clock.now)
        table.hear(nil, now: clock.now)
        #expect(note("/b") == .doubted && table.isTrusted("notes"))
        clock.advance(by: .seconds(2))
        #expect(note("/a") == .doubted, "nothing odd has come since")
    }

    @Test func aProbeThatWasNotMetLatelyKeepsEverythingOddInDoubt() {
        for _ in 0..<3 {
            #expect(note("/a") == .doubted)
            table.record(.probeAnswered(.unexpected(status: 500)), for: "notes", now: clock.now)
            table.record(.probeAnswered(.expected), for: "notes", now: clock.now)
        }
        #expect(note("/a") == .doubted)
    }

    @Test func theSwitchIsKeptByUpstreamAndForAll() {
        #expect(table.setMode(.offline, upstream: "notes", now: clock.now))
        #expect(table.isSwitchedOff("notes") && !table.isSwitchedOff(nil) && table.network == NetworkSwitch(upstreams: ["notes": .offline]))
        #expect(!table.setMode(.offline, upstream: "nobody", now: clock.now))
        #expect(table.setMode(.auto, upstream: nil, now: clock.now))
        #expect(!table.isSwitchedOff("notes") && table.network == NetworkSwitch())
        table.restore(NetworkSwitch(mode: .offline, upstreams: ["notes": .online]), now: clock.now)
        #expect(table.isSwitchedOff(nil) && !table.isSwitchedOff("notes"))
    }

    @Test func theWayToAnUpstreamThatIsAwayIsGoodForNothing() {
        #expect(table.bandwidth(of: "notes", now: clock.now) == nil)
        table.record(1_000_000, in: .seconds(1), for: "notes", now: clock.now)
        table.record(1_000_000, in: .seconds(1), for: "unknown", now: clock.now)
        #expect(table.bandwidth(of: "notes", now: clock.now) == .high && table.bandwidth(of: "unknown", now: clock.now) == nil)
        table.record(.failed(.refused), for: "notes", now: clock.now)
        #expect(table.bandwidth(of: "notes", now: clock.now) == Bandwidth.Tier.none)
    }

    @Test func changesAreToldOnceEach() {
        let changes = Mutex<[ReachabilityChange]>([])
        table.onChange { change in changes.withLock { $0.append(change) } }
        table.record(.failed(.refused), for: "notes", now: clock.now)
        table.record(.failed(.refused), for: "notes", now: clock.now)
        table.record(.answered, for: "notes", now: clock.now)
        table.record(.answered, for: "unknown", now: clock.now)
        table.record(.failed(.refused), for: nil, now: clock.now)
        let seen = changes.withLock { $0.map { "\($0.upstream) \($0.from)-\($0.to)" } }
        #expect(seen == ["notes untried-offline", "notes offline-online"])
    }

    @Test func theSwitchForAllHoldsForUndeclaredHostsToo() {
        #expect(table.setMode(.offline, upstream: nil, now: clock.now))
        #expect(table.mode == .offline)
        for upstream in ["notes", "other", nil] { #expect(permission(upstream) == .no(.switchedOff)) }
        #expect(table.setMode(.auto, upstream: nil, now: clock.now))
        for upstream in ["notes", "other", nil] { #expect(permission(upstream) == .go) }
    }

    @Test func theSwitchForOneIsItsAlone() {
        #expect(table.setMode(.offline, upstream: "notes", now: clock.now))
        #expect(permission("notes") == .no(.switchedOff))
        #expect(permission("other") == .go)
        #expect(!table.setMode(.offline, upstream: "unknown", now: clock.now))
    }

    @Test func onlineByHandAlwaysTries() {
        _ = table.setMode(.online, upstream: "notes", now: clock.now)
        table.record(.failed(.refused), for: "notes", now: clock.now)
        #expect(permission("notes") == .go)
    }

    @Test func reconfiguringKeepsWhatIsKnownOfThoseThatStay() {
        table.record(.failed(.connectTimeout), for: "notes", now: clock.now)
        table.reconfigure([.notes()], now: clock.now)
        #expect(permission("notes") == .no(.offline))
        #expect(table.machine(of: "other") == nil)
    }

    /// Contract §6: `offline` means that no packet is sent, also for an upstream added by SIGHUP.
    @Test func aNewUpstreamIsSwitchedOffWithAllOthers() {
        _ = table.setMode(.offline, upstream: nil, now: clock.now)
        table.reconfigure([.notes(), Upstream(name: "new", origin: .notes)], now: clock.now)
        #expect(permission("new") == .no(.switchedOff))
    }
}
