// One reachability machine per declared upstream, and the manual switch (design §1 *reachability*, features G8).
package import Logging
package import RockpoolCore
import Synchronization

/// What is known of each upstream's reachability. Undeclared hosts that no write waits for are always tried, except when offline by hand.
package final class ReachabilityTable: Sendable {
    /// A change worth telling: of one upstream's state.
    package struct Change: Equatable, Sendable {
        package var upstream: String
        package var from: Reachability.State
        package var to: Reachability.State

        package init(upstream: String, from: Reachability.State, to: Reachability.State) {
            self.upstream = upstream
            self.from = from
            self.to = to
        }
    }

    private struct Table {
        var machines: [String: Reachability] = [:]
        var mode = Reachability.Mode.auto
        var wanted: [String: Timestamp] = [:]
        /// When a probe last found the upstream in order.
        var acquitted: [String: Timestamp] = [:]
        var bandwidths: [String: Bandwidth] = [:]
        var onChange: (@Sendable (Change) -> Void)?
    }

    private let table: Mutex<Table>

    package init(upstreams: [Upstream], now: Timestamp) {
        var table = Table()
        for upstream in upstreams { table.machines[upstream.name] = Reachability(probeInterval: upstream.probe?.interval, now: now) }
        self.table = Mutex(table)
    }

    /// Names what hears of changes.
    package func onChange(_ listener: @escaping @Sendable (Change) -> Void) { table.withLock { $0.onChange = listener } }

    /// Whether a request may go to `upstream` (nil: an undeclared host) now. Asking while it may not also asks for a probe.
    package func permission(for upstream: String?, now: Timestamp) -> Reachability.Permission {
        table.withLock { table in
            guard let upstream, var machine = table.machines[upstream] else {
                return table.mode == .offline ? .no(.switchedOff) : .go
            }
            let permission = machine.permits(now: now)
            table.machines[upstream] = machine
            if permission != .go { table.wanted[upstream] = now }
            return permission
        }
    }

    /// Records what traffic or a probe has shown.
    package func record(_ event: Reachability.Event, for upstream: String?, now: Timestamp, random: Double = .random(in: 0..<1)) {
        guard let upstream else { return }
        let (change, listener): (Change?, (@Sendable (Change) -> Void)?) = table.withLock { table in
            guard var machine = table.machines[upstream] else { return (nil, nil) }
            let before = machine.state
            _ = machine.record(event, now: now, random: random)
            table.machines[upstream] = machine
            if event == .probeAnswered(.expected) { table.acquitted[upstream] = now }
            let change = before == machine.state ? nil : Change(upstream: upstream, from: before, to: machine.state)
            return (change, table.onChange)
        }
        if let change { listener?(change) }
    }

    /// An answer in the place of `upstream` looks like a portal's: it is doubted, and a probe is asked to decide.
    ///
    /// - Returns: whether the suspicion stands. It does not for ten minutes after a probe has found the upstream itself there: then
    ///   this is how it answers.
    package func suspect(_ upstream: String, detail: String, now: Timestamp) -> Bool {
        let isAcquitted = table.withLock { table in
            table.wanted[upstream] = now
            // Within ten minutes either way: a clock that was set back does not acquit it until it is there again.
            return table.acquitted[upstream].map { (now - $0).magnitude < .minutes(10) } ?? false
        }
        if !isAcquitted { record(.doubted(detail: detail), for: upstream, now: now) }
        return !isAcquitted
    }

    /// The machine of `upstream` as it stands.
    package func machine(of upstream: String) -> Reachability? { table.withLock { $0.machines[upstream] } }

    /// The switch for all upstreams.
    package var mode: Reachability.Mode { table.withLock { $0.mode } }

    /// Turns the switch for one upstream, or for all and for undeclared hosts when nil.
    ///
    /// - Returns: false when there is no such upstream.
    package func setMode(_ mode: Reachability.Mode, upstream: String?, now: Timestamp) -> Bool {
        let names: [String]? = table.withLock { table in
            if let upstream { return table.machines[upstream] == nil ? nil : [upstream] }
            table.mode = mode
            return Array(table.machines.keys)
        }
        guard let names else { return false }
        for name in names { record(.mode(mode), for: name, now: now) }
        return true
    }

    /// Whether a client asked for `upstream` in vain within the last half minute.
    package func wasWantedLately(_ upstream: String, now: Timestamp) -> Bool {
        table.withLock { $0.wanted[upstream].map { now - $0 < .seconds(30) } ?? false }
    }

    /// A body of `bytes` came from `upstream` in `duration`.
    package func record(_ bytes: Int64, in duration: Duration, for upstream: String?, now: Timestamp) {
        guard let upstream else { return }
        table.withLock { table in
            guard table.machines[upstream] != nil else { return }
            table.bandwidths[upstream, default: Bandwidth()].record(bytes, in: duration, now: now)
        }
    }

    /// What the way to `upstream` is good for; nil while that is not known.
    package func bandwidth(of upstream: String, now: Timestamp) -> Bandwidth.Tier? {
        table.withLock { table in
            if let machine = table.machines[upstream], !machine.isReachable { return Bandwidth.Tier.none }
            return table.bandwidths[upstream]?.tier(at: now)
        }
    }

    /// Keeps the machines of upstreams that stay, starts those of new ones.
    package func reconfigure(_ upstreams: [Upstream], now: Timestamp) {
        table.withLock { table in
            let known = table.machines
            table.machines = [:]
            table.bandwidths = table.bandwidths.filter { name, _ in upstreams.contains { $0.name == name } }
            for upstream in upstreams {
                var machine = known[upstream.name] ?? Reachability(probeInterval: upstream.probe?.interval, now: now)
                if known[upstream.name] == nil { _ = machine.record(.mode(table.mode), now: now) }
                table.machines[upstream.name] = machine
            }
        }
    }
}

extension Engine {
    /// Tells changes of reachability as events, and to the log: the one place where they are said.
    package func connectReachability(logger: Logger) {
        reachability.onChange { [events] change in
            logger.notice("\(change.upstream) is \(change.to.rawValue) (was \(change.from.rawValue))")
            events.tell(.reachability(change))
        }
    }
}
