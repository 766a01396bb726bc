// The network switch: ends current transfers, sends nothing new, and persists over restarts (docs/reference/behaviour.md#network-switch
// `/v1/network`).
import Logging
package import RockpoolCore
import RockpoolStore
import Synchronization

extension UpstreamClient {
    /// Sets the switch for one upstream (nil: for all upstreams and undeclared hosts) and stores it for the next start. Switching off ends
    /// current transfers.
    ///
    /// - Returns: False if there is no such upstream.
    /// - Throws: `FileError` if the setting could not be stored; the switch takes effect nevertheless.
    package func switchNetwork(_ mode: Reachability.Mode, upstream: String?) throws -> Bool {
        guard reachability.setMode(mode, upstream: upstream, now: now()) else { return false }
        if mode == .offline { endTraffic(to: upstream) }
        events.wake()
        try data.keep(reachability.network)
        return true
    }

    /// Restores the switch from the last run, otherwise from the configuration; `startsOffline` overrides both. Called before anything is
    /// sent.
    package func restoreSwitch(startsOffline: Bool = false) {
        let known = data.networkSwitch() ?? NetworkSwitch(mode: active.configuration.network)
        reachability.restore(startsOffline ? NetworkSwitch(mode: .offline) : known, now: now())
        if reachability.network.mode == .offline { logger.notice("the network is switched off: nothing is sent to any upstream") }
    }

    /// Adds a listener that ends tunnels and upgraded connections to the given origin, or to all origins if it is nil.
    package func onSwitchedOff(_ listener: @escaping @Sendable (OriginAddress?) -> Void) {
        switchListeners.withLock { $0.append(listener) }
    }

    /// Adds a listener that closes the kept connections to an origin after one was silent.
    package func onSilence(_ listener: @escaping @Sendable (OriginAddress) -> Void) {
        silenceListeners.withLock { $0.append(listener) }
    }

    /// Voids the kept connections to an origin if one was silent, or none can be opened: after a change of network all are dead, while new ones
    /// work.
    func noteKept(after failure: TransferFailure, to place: OriginAddress) {
        switch failure.kind {
        case .firstByteTimeout where failure.wire?.isFreshConnection != true: break
        case .connectTimeout, .refused: break
        default: return
        }
        origin.distrustKept(to: place)
        for listener in silenceListeners.withLock(\.self) { listener(place) }
    }

    private func endTraffic(to upstream: String?) {
        let place = upstream.flatMap { name in active.routes.upstreams.first { $0.name == name }?.origin }
        origin.endTransfers(to: place)
        for listener in switchListeners.withLock(\.self) { listener(place) }
    }
}
