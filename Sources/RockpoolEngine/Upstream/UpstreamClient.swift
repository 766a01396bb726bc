// Sends requests to upstreams and reports the outcome to the reachability table.
import HTTPTypes
import Logging
import NIOCore
package import RockpoolCore
import RockpoolStore
import Synchronization

/// The one way to an upstream: requests, probes, the network switch.
package final class UpstreamClient: Sendable {
    let origin: any Origin
    let reachability: ReachabilityTable
    let clock: ClockWatch
    let cache: CacheStore
    let data: DataStore
    let events: EngineEvents
    /// The configuration in force.
    let active: ActiveConfiguration
    let logger: Logger
    let now: @Sendable () -> Timestamp
    /// Probes in progress, by upstream.
    let probes = Mutex<[String: Task<Void, Never>]>([:])
    /// Listeners that end connections outside the engine when the network is switched off.
    let switchListeners = Mutex<[@Sendable (OriginAddress?) -> Void]>([])
    /// Listeners that close kept connections outside the engine after one was silent.
    let silenceListeners = Mutex<[@Sendable (OriginAddress) -> Void]>([])
    let writeAnswers = WriteAnswers()
    /// Budgets of requests and traffic.
    package let budgets = RequestBudgets()
    let traffic: Traffic
    /// The other gateways of the site.
    package let parents: SiteParents
    /// The parent proxies.
    package let proxies: ParentProxies
    private let viaName: String

    init(
        origin: any Origin, reachability: ReachabilityTable, clock: ClockWatch, cache: CacheStore, data: DataStore, events: EngineEvents,
        active: ActiveConfiguration, viaName: String, traffic: Traffic, logger: Logger, now: @escaping @Sendable () -> Timestamp
    ) {
        self.traffic = traffic
        parents = SiteParents(active: active, logger: logger, now: now)
        proxies = ParentProxies(active: active, logger: logger, now: now)
        self.viaName = viaName
        self.origin = origin
        self.reachability = reachability
        self.clock = clock
        self.cache = cache
        self.data = data
        self.events = events
        self.active = active
        self.logger = logger
        self.now = now
    }

    /// Sends `head` to its origin and records the outcome in the reachability table. Used by every part of the engine.
    /// - Parameters:
    ///   - mayShare: True for a read that another gateway of the site may answer.
    ///   - isPaid: True if the budget has counted the request already.
    ///   - early: The answer to the same request, if it was sent already.
    ///   - executor: runs the calling task, if that is an event loop's.
    ///   - forClient: False for requests that no client waits for.
    ///   - isOwn: Returns true if a response is assumed to come from the upstream itself. Only such a response counts as a sign of
    ///     reachability.
    func send(
        _ head: RequestHead, body: OutboundRequest.Body, upstream: Upstream?, allowsLoopback: Bool? = nil, freshConnection: Bool = false,
        mayShare: Bool = false, isPaid: Bool = false, route: Route? = nil, early: EarlyAnswer? = nil, account: ClientAccount? = nil,
        forClient: Bool = true, loop: (any TaskExecutor)? = nil,
        interim: @escaping @Sendable (ResponseHead) -> Void = { _ in },
        isOwn: (OriginReply) -> Bool = { _ in true }
    ) async throws(TransferFailure) -> OriginReply {
        let ways = proxies.ways(to: head.origin, of: upstream)
        var request = OutboundRequest(
            head: head, body: body, timeouts: StreamLimits.timeouts(upstream?.timeouts ?? UpstreamTimeouts(), for: head, route: route),
            tls: upstream?.tls ?? TLSSettings(),
            via: ways.first?.url, allowsLoopback: allowsLoopback ?? upstream?.allowsLoopback ?? true, needsFreshConnection: freshConnection,
            interim: { interim(ResponseHead(status: $0.status, fields: HopByHop.stripped(answer: $0.fields))) }
        ) { [reachability, now] bytes, duration in
            reachability.record(bytes, in: duration, for: upstream?.name, now: now())
        }
        // A queued write keeps these.
        for name in HTTPField.Name.keptWithWrites { request.head.fields[name] = nil }
        request.isDeclared = upstream != nil
        (request.account, request.loop) = (account, loop)
        request.isPermitted = { [reachability] in !reachability.isSwitchedOff(upstream?.name) }
        request.parentCredential = ways.first?.credential
        request.spent = counting(upstream, forClient: forClient)
        if early?.holdsWrite != true, reachability.isSwitchedOff(upstream?.name) { throw .notTried(.switchedOff, nil) }
        if mayShare, let reply = try await askParents(request) { return reply }
        if !head.method.isSafe { parents.noteWrite(to: head.origin) }
        let hasVia = traffic.via.prepare(
            &request.head, rule: upstream?.sendVia ?? .auto, name: viaName, now: now())
        if !isPaid { budgets.spend(upstream, on: head, now: now()) }
        do {
            var reply: OriginReply
            if let answer = try early?.take(for: request) { reply = answer } else { reply = try await send(request, through: ways) }
            if early?.lost != nil { reply.wire?.isRepeated = true }
            reply.request = reply.wire?.endsConnection == true ? nil : request
            // Once more at its end: an answer of a gateway from the time between may lack it.
            if !head.method.isSafe { parents.noteWrite(to: head.origin) }
            budgets.learn(from: reply.head, to: head, of: upstream, now: now())
            if isOwn(reply) {
                reachability.record(.answered, for: upstream?.name, now: now())
                if PortalSuspicion.showsUpstream(reply.head, hasBody: reply.hasBody(to: head)) {
                    reachability.hear(upstream?.name, now: now())
                }
            }
            if clock.confirm(by: reply.head, wall: now()) { cache.pausesExpiry = false }
            reply.head.fields = HopByHop.stripped(answer: reply.head.fields)
            traffic.via.learn(from: reply.head, length: reply.length, to: request.head, hadVia: hasVia, now: now())
            return reply
        } catch {
            noteKept(after: error, to: head.origin)
            if let kind = error.reachabilityKind {
                let witness = Reachability.Witness(target: head.target, client: account?.client)
                reachability.record(.failed(kind, detail: error.proxyErrorName, witness: witness), for: upstream?.name, now: now())
            }
            throw error
        }
    }

    /// Counts the bytes of one request at its end.
    func counting(_ upstream: Upstream?, forClient: Bool) -> @Sendable (Int64, Int64) -> Void {
        let name = upstream?.name
        return { [traffic] sent, received in traffic.count(name, sent: sent, received: received, forClient: forClient) }
    }

    /// True if the response to a write, just received, is confirmed to come from its upstream. Without `isOdd` an error response is
    /// accepted, because it states that nothing was done.
    func isConfirmed(_ answer: ResponseHead, upstream: Upstream, isOdd: Bool = false) async -> Bool {
        guard isOdd || (200...399).contains(answer.status) else { return true }
        return await confirm(upstream, since: now())
    }

    func lastFailure(_ upstream: Upstream?) -> String? { upstream.flatMap { reachability.machine(of: $0.name)?.lastError } }

    func isReachable(_ upstream: Upstream) -> Bool {
        reachability.machine(of: upstream.name)?.isReachable ?? true
    }

    /// True if responses from the upstream's address are assumed to come from the upstream. Otherwise no write is sent.
    func isTrusted(_ upstream: Upstream) -> Bool { reachability.isTrusted(upstream.name) }

    /// True if a large body from an upstream is not for transfers that no client waits for: its connection is too slow or metered, or the
    /// hour is not one for them.
    func isNarrow(_ upstream: Upstream?) -> Bool {
        guard let upstream else { return false }
        return reachability.bandwidth(of: upstream.name, now: now()) == .low || !budgets.permitsLargeTransfers(upstream, at: now())
    }
}

// MARK: - The network switch

/// The network switch: ends current transfers, sends nothing new, and persists over restarts (docs/reference/behaviour.md#network-switch
/// `/v1/network`).
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

// MARK: - Answers to writes

/// Records which upstreams have answered writes without a portal's sign (docs/outbox.md#portals).
final class WriteAnswers: Sendable {
    private let seen = Mutex<Set<String>>([])

    func note(_ upstream: String) { seen.withLock { _ = $0.insert(upstream) } }

    /// True if a page in answer to a write would be unusual for the upstream.
    func areKnown(_ upstream: String) -> Bool { seen.withLock { $0.contains(upstream) } }
}
