// The network switch: what is under way ends, nothing new is sent, and a restart changes nothing
// (docs/reference/behaviour.md#network-switch `/v1/network`).
import Logging
package import RockpoolCore
import RockpoolStore
import Synchronization

extension Engine {
    /// Turns the switch, for one upstream or for all and undeclared hosts when nil, and keeps it for the next start. What is under way
    /// there ends when it is turned off.
    ///
    /// - Returns: false when there is no such upstream.
    /// - Throws: `FileError` when it could not be kept; it is turned all the same.
    package func switchNetwork(_ mode: Reachability.Mode, upstream: String?) throws -> Bool {
        guard reachability.setMode(mode, upstream: upstream, now: now()) else { return false }
        if mode == .offline { endTraffic(to: upstream) }
        events.wake()
        try data.keep(reachability.network)
        return true
    }

    /// Sets the switch as it was left, else as the configuration says. Called before anything is sent.
    package func restoreSwitch(startsOffline: Bool = false) {
        let known = data.networkSwitch() ?? NetworkSwitch(mode: configuration.network)
        reachability.restore(startsOffline ? NetworkSwitch(mode: .offline) : known, now: now())
        if reachability.network.mode == .offline { logger.notice("the network is switched off: nothing is sent to any upstream") }
    }

    /// Names what ends tunnels and upgraded connections: to the origin it is given, to all of them when nil.
    package func onSwitchedOff(_ listener: @escaping @Sendable (OriginAddress?) -> Void) {
        switchListeners.withLock { $0.append(listener) }
    }

    private func endTraffic(to upstream: String?) {
        let place = upstream.flatMap { name in routes.upstreams.first { $0.name == name }?.origin }
        origin.endTransfers(to: place)
        for listener in switchListeners.withLock(\.self) { listener(place) }
    }
}
