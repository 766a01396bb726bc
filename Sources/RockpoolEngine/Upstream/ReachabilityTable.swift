// One reachability machine per declared upstream, and the manual switch (docs/architecture.md#vocabulary *reachability*,
// docs/caching.md#offline-use).
import HTTPTypes
import Logging
package import RockpoolCore
import Synchronization

/// The reachability of each upstream. Requests to undeclared hosts without waiting writes are always sent, unless the network is switched
/// off.
package final class ReachabilityTable: Sendable {
    private struct Table {
        var machines: [String: Reachability] = [:]
        var network = NetworkSwitch()
        var wanted: [String: Timestamp] = [:]
        /// When a probe last met the expectation of the upstream.
        var met: [String: Timestamp] = [:]
        var doubts = Doubts()
        var bandwidths: [String: Bandwidth] = [:]
        var onChange: (@Sendable (ReachabilityChange) -> Void)?
    }

    private let table: Mutex<Table>
    private let changes = Atomic<UInt64>(0)

    /// Changes whenever a permission may be another than before, except by the time.
    package var epoch: UInt64 { changes.load(ordering: .acquiring) }

    package init(upstreams: [Upstream], now: Timestamp) {
        var table = Table()
        for upstream in upstreams { table.machines[upstream.name] = Reachability(upstream, now: now) }
        self.table = Mutex(table)
    }

    /// Sets the listener for changes.
    package func onChange(_ listener: @escaping @Sendable (ReachabilityChange) -> Void) { table.withLock { $0.onChange = listener } }

    /// Returns the permission to send a request to `upstream` (nil: an undeclared host) now. Any result other than `.go` also requests a
    /// probe.
    package func permission(for upstream: String?, now: Timestamp) -> Reachability.Permission {
        permission(for: upstream, now: now, usesTrial: true)
    }

    /// Returns what `permission` would, without using up a trial.
    package func expectedPermission(for upstream: String?, now: Timestamp) -> Reachability.Permission {
        permission(for: upstream, now: now, usesTrial: false)
    }

    private func permission(for upstream: String?, now: Timestamp, usesTrial: Bool) -> Reachability.Permission {
        table.withLock { table in
            guard let upstream, var machine = table.machines[upstream] else {
                return table.network.mode == .offline ? .no(.switchedOff) : .go
            }
            let permission = machine.permits(now: now)
            if usesTrial { table.machines[upstream] = machine }
            if permission != .go { table.wanted[upstream] = now }
            return permission
        }
    }

    /// Records an event observed in traffic or by a probe.
    /// - Parameter random: from 0 up to 1; nil for one of the system's.
    package func record(_ event: Reachability.Event, for upstream: String?, now: Timestamp, random: Double? = nil) {
        guard let upstream else { return }
        var numbers = SystemNumbers()
        let random = random ?? .random(in: 0..<1, using: &numbers)
        let (change, listener): (ReachabilityChange?, (@Sendable (ReachabilityChange) -> Void)?) = table.withLock { table in
            guard let index = table.machines.index(forKey: upstream) else { return (nil, nil) }
            // In its place: a copy would copy its lists with each answer.
            let (before, after, hasChanged) = Self.step(&table.machines.values[index], event, now: now, random: random)
            if hasChanged { changes.wrappingAdd(1, ordering: .releasing) }
            if case .probeAnswered(let verdict) = event {
                if verdict == .expected { table.met[upstream] = now }
                table.doubts.settle(upstream, isMet: verdict == .expected, now: now)
            }
            let change = before == after ? nil : ReachabilityChange(upstream: upstream, from: before, to: after)
            return (change, table.onChange)
        }
        if let change { listener?(change) }
    }

    /// - Returns: the state before and after the event, and true if anything has changed that permits or forbids requests.
    private static func step(
        _ machine: inout Reachability, _ event: Reachability.Event, now: Timestamp, random: Double
    ) -> (before: Reachability.State, after: Reachability.State, hasChanged: Bool) {
        let before = machine.assumedState
        let (wasReachable, wasTrusted, mode) = (machine.isReachable, machine.isTrusted, machine.mode)
        _ = machine.record(event, now: now, random: random)
        let hasChanged =
            wasReachable != machine.isReachable || wasTrusted != machine.isTrusted || mode != machine.mode || before != machine.assumedState
        return (before, machine.assumedState, hasChanged)
    }

    /// Records a response that shows a portal's sign. The URL is in doubt; its upstream only if the sign has spread (`Doubts`).
    /// - Parameter asksProbe: True if a probe can tell something about the response.
    package func note(
        _ sighting: Doubts.Sighting, at place: Doubts.Place, hasExpectation: Bool, asksProbe: Bool = true, now: Timestamp
    ) -> Doubts.Verdict {
        let verdict = table.withLock { $0.doubts.note(sighting, at: place, hasExpectation: hasExpectation, now: now) }
        switch verdict {
        case .believed: break
        case .doubted: if asksProbe { record(.signSeen, for: place.upstream, now: now) }
        case .spread:
            table.withLock { $0.wanted[place.upstream] = now }
            record(.doubted(detail: sighting.sign), for: place.upstream, now: now)
        }
        return verdict
    }

    /// Records an answer that shows the upstream itself; nil for an undeclared host.
    package func hear(_ upstream: String?, now: Timestamp) {
        guard let upstream else { return }
        table.withLock { if $0.machines.keys.contains(upstream) { $0.doubts.hear(upstream, now: now) } }
    }

    /// True if the upstream itself was heard at `moment` or later.
    func wasHeard(_ upstream: String, since moment: Timestamp) -> Bool { table.withLock { $0.doubts.wasHeard(upstream, since: moment) } }

    /// Ends the doubt of a place after an answer without a sign.
    func endDoubt(at place: Doubts.Place) { table.withLock { $0.doubts.end(at: place) } }

    /// True if responses from the address of `upstream` are assumed to be its own; always true for an undeclared host.
    package func isTrusted(_ upstream: String?) -> Bool {
        upstream.flatMap { name in table.withLock { $0.machines[name] } }?.isTrusted ?? true
    }

    /// When a probe last met the expectation of `upstream`; nil if none has.
    package func lastMet(_ upstream: String) -> Timestamp? { table.withLock { $0.met[upstream] } }

    /// True if `upstream` is reachable and trusted, so that Rockpool's own requests may be sent to it.
    package func isUsable(_ upstream: String) -> Bool {
        table.withLock { $0.machines[upstream] }.map { $0.isReachable && $0.isTrusted } ?? false
    }

    /// The current machine of `upstream`.
    package func machine(of upstream: String) -> Reachability? { table.withLock { $0.machines[upstream] } }

    /// The manual mode that applies to all upstreams.
    package var mode: Reachability.Mode { table.withLock { $0.network.mode } }

    /// The manual settings.
    package var network: NetworkSwitch { table.withLock { $0.network } }

    /// True if the network is switched off manually for `upstream` (nil: an undeclared host).
    package func isSwitchedOff(_ upstream: String?) -> Bool { table.withLock { $0.network.mode(of: upstream) == .offline } }

    /// Restores the manual settings from the last run, or from the configuration.
    package func restore(_ network: NetworkSwitch, now: Timestamp) {
        _ = setMode(network.mode, upstream: nil, now: now)
        for (upstream, mode) in network.upstreams { _ = setMode(mode, upstream: upstream, now: now) }
    }

    /// Sets the switch for one upstream (nil: for all upstreams and undeclared hosts).
    ///
    /// - Returns: False if there is no such upstream.
    package func setMode(_ mode: Reachability.Mode, upstream: String?, now: Timestamp) -> Bool {
        let names: [String]? = table.withLock { table in
            if let upstream, table.machines[upstream] == nil { return nil }
            table.network.turn(mode, upstream: upstream)
            changes.wrappingAdd(1, ordering: .releasing)
            return upstream.map { [$0] } ?? Array(table.machines.keys)
        }
        guard let names else { return false }
        for name in names { record(.mode(mode), for: name, now: now) }
        return true
    }

    /// True if within the last 30 s a request to `upstream` was not permitted or was a trial, or its responses were doubted.
    package func wasWantedLately(_ upstream: String, now: Timestamp) -> Bool {
        table.withLock { $0.wanted[upstream].map { now - $0 < .seconds(30) } ?? false }
    }

    /// Records the transfer of a body of `bytes` from `upstream` in `duration`.
    package func record(_ bytes: Int64, in duration: Duration, for upstream: String?, now: Timestamp) {
        guard let upstream else { return }
        table.withLock { table in
            guard table.machines[upstream] != nil else { return }
            table.bandwidths[upstream, default: Bandwidth()].record(bytes, in: duration, now: now)
        }
    }

    /// Returns the bandwidth tier of the connection to `upstream`; nil if it is unknown.
    package func bandwidth(of upstream: String, now: Timestamp) -> Bandwidth.Tier? {
        table.withLock { table in
            if let machine = table.machines[upstream], !machine.isReachable { return Bandwidth.Tier.none }
            return table.bandwidths[upstream]?.tier(at: now)
        }
    }

    /// Keeps the machines of upstreams that remain, and creates those of new ones.
    package func reconfigure(_ upstreams: [Upstream], now: Timestamp) {
        table.withLock { table in
            let known = table.machines
            changes.wrappingAdd(1, ordering: .releasing)
            table.machines = [:]
            table.bandwidths = table.bandwidths.filter { name, _ in upstreams.contains { $0.name == name } }
            for upstream in upstreams {
                var machine = known[upstream.name] ?? Reachability(upstream, now: now)
                if known[upstream.name] == nil { _ = machine.record(.mode(table.network.mode(of: upstream.name)), now: now) }
                table.machines[upstream.name] = machine
            }
        }
    }
}

extension Reachability {
    fileprivate init(_ upstream: Upstream, now: Timestamp) {
        self.init(probeInterval: upstream.probe?.interval, expects: upstream.hasExpectation, now: now)
    }
}

// MARK: - The wall clock

/// The trust in the wall clock: lost after a jump, restored by an upstream's `Date` (docs/storage.md#clock). `ClockTrust` behind a lock,
/// with a monotonic clock.
package final class ClockWatch: Sendable {
    private let trust: Mutex<ClockTrust>
    private let steady: @Sendable () -> TimeSpan

    /// - Parameter steady: a monotonic clock that also runs while the machine sleeps; nil selects the system's.
    init(wall: Timestamp, steady: (@Sendable () -> TimeSpan)?) {
        let start = ContinuousClock.now
        let steady = steady ?? { TimeSpan(milliseconds: Int64((ContinuousClock.now - start) / .milliseconds(1))) }
        self.steady = steady
        trust = Mutex(ClockTrust(lastSeen: nil, wall: wall, steady: steady()))
    }

    /// Starts from the last run's time: a wall clock more than a day ahead of it must be confirmed first.
    package func begin(lastSeen: Timestamp?, wall: Timestamp) {
        trust.withLock { $0 = ClockTrust(lastSeen: lastSeen, wall: wall, steady: steady()) }
    }

    /// Compares both clocks.
    /// - Returns: true if data may be removed because of its age.
    func observe(_ wall: Timestamp) -> Bool { trust.withLock { $0.observe(wall: wall, steady: steady()) } }

    /// Confirms the wall clock by the `Date` of an upstream's response.
    /// - Returns: true if this ended a doubt.
    func confirm(by head: ResponseHead, wall: Timestamp) -> Bool {
        trust.withLock { trust in
            guard trust.doubt != nil, let date = head.fields[.date].flatMap({ HTTPDate.parse($0) }) else { return false }
            trust.confirm(date, wall: wall)
            return trust.doubt == nil
        }
    }
}
