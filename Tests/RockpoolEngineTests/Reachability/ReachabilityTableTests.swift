// The table of machines: permissions, the switch by hand, and what is told of changes.
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

    /// A probe that found it in order ten minutes before or, by a clock set back since, after.
    @Test(arguments: [(599, false), (601, true), (-599, false), (-601, true), (-315_360_000, true)] as [(Int64, Bool)])
    func anUpstreamFoundInOrderIsNotSuspectedForTenMinutes(seconds: Int64, isSuspected: Bool) {
        table.record(.probeAnswered(.expected), for: "notes", now: clock.now)
        clock.advance(by: .seconds(seconds))
        #expect(table.suspect("notes", detail: "a page", now: clock.now) == isSuspected)
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
        let changes = Mutex<[ReachabilityTable.Change]>([])
        table.onChange { change in changes.withLock { $0.append(change) } }
        table.record(.failed(.refused), for: "notes", now: clock.now)
        table.record(.failed(.refused), for: "notes", now: clock.now)
        table.record(.answered, for: "notes", now: clock.now)
        table.record(.answered, for: "unknown", now: clock.now)
        table.record(.failed(.refused), for: nil, now: clock.now)
        let seen = changes.withLock { $0.map { "\($0.upstream) \($0.from)-\($0.to)" } }
        #expect(seen == ["notes online-offline", "notes offline-online"])
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

    /// Contract §6: `offline` means that no packet leaves, for an upstream that came with SIGHUP as well.
    @Test func aNewUpstreamIsSwitchedOffWithAllOthers() {
        _ = table.setMode(.offline, upstream: nil, now: clock.now)
        table.reconfigure([.notes(), Upstream(name: "new", origin: .notes)], now: clock.now)
        #expect(permission("new") == .no(.switchedOff))
    }
}
