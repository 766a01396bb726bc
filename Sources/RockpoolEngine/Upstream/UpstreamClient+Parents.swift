// Reads through the gateway of the site that holds them, requests through one of several parent proxies, and the probes of both
// (docs/fleet.md#caches, docs/reference/configuration.md#several-parents).
import HTTPTypes
import Logging
package import RockpoolCore
import RockpoolStore
import Synchronization

extension UpstreamClient {
    /// The time to connect to a gateway of the same network.
    private static let connectLimit = TimeSpan.seconds(1)
    /// A gateway has this much longer than its origin: its answer may be that the origin is silent.
    private static let extraTime = TimeSpan.seconds(2)

    /// Asks the gateways of the site that hold a read.
    /// - Parameter direct: the request as it would be sent to the origin.
    /// - Returns: nil if the origin is to be asked.
    /// - Throws: `TransferFailure` for a request that was given up.
    func askParents(_ direct: OutboundRequest) async throws(TransferFailure) -> OriginReply? {
        let ways = parents.ways(to: direct.head)
        guard !ways.isEmpty else { return nil }
        let greatestAge = parents.greatestAge(of: direct.head.origin)
        var request = direct
        request.head.fields[.rockpoolPeer] = "1"
        (request.via, request.parentCredential, request.tls) = (nil, nil, TLSSettings())
        // The network of the site says nothing about the upstream's connection.
        (request.measured, request.spent) = ({ _, _ in }, { _, _ in })
        request.timeouts.connect = min(request.timeouts.connect, Self.connectLimit)
        request.timeouts.firstByte = request.timeouts.firstByte + Self.extraTime
        // A fetch that the owner has begun before this gateway's last write may lack it: then the request joins none.
        if .seconds(greatestAge) < direct.timeouts.connect + direct.timeouts.firstByte { request.head.limit(age: greatestAge) }
        for node in ways {
            request.peer = node
            do {
                var reply = try await origin.send(request)
                if reply.head.age > greatestAge, request.head.accepts(age: reply.head.age) {
                    // The owner's copy is fresh, but older than the write: it has to look at the origin.
                    reply.body.abandon()
                    request.head.limit(age: greatestAge)
                    reply = try await origin.send(request)
                }
                switch ParentAnswer.judge(reply.head, greatestAge: greatestAge) {
                case .usable:
                    parents.noteTaken()
                    reply.head.fields = HopByHop.stripped(answer: reply.head.fields)
                    return reply
                case .unusable:
                    reply.body.abandon()
                    return nil
                case .foreign:
                    reply.body.abandon()
                    parents.fail(node, because: "it answers, but not as a gateway")
                }
            } catch  where error.kind == .cancelled || error.kind == .unavailable {
                throw error
            } catch {
                parents.fail(node, because: error.proxyErrorName)
            }
        }
        return nil
    }

    /// Probes a gateway: it is the last recipient of the request, and answers by itself (RFC 9110 §7.6.2).
    func probe(parent node: String) async {
        var head = RequestHead(method: .options, origin: OriginAddress(scheme: .http, host: "gateway.invalid"), target: "/")
        head.fields[.maxForwards] = "0"
        head.fields[.rockpoolPeer] = "1"
        var request = OutboundRequest(
            head: head, timeouts: UpstreamTimeouts(connect: Self.connectLimit, firstByte: Self.extraTime, idle: Self.extraTime))
        request.peer = node
        guard let reply = try? await origin.send(request) else { return parents.probed(node, isAnswered: false) }
        let isAlive = ParentAnswer.isAlive(reply.head)
        // A gateway that hangs within its answer is not alive.
        let isWhole = (try? await reply.body.collect(upTo: .kib(64))) != nil
        parents.probed(node, isAnswered: isAlive && isWhole)
    }

    // MARK: - Requests through parent proxies

    private static let probeLimits = UpstreamTimeouts(connect: .seconds(2), firstByte: .seconds(2), idle: .seconds(2))

    /// Sends a request by the first of these ways that takes it; directly where there is none.
    func send(_ request: OutboundRequest, through ways: [ParentSettings]) async throws(TransferFailure) -> OriginReply {
        guard ways.count > 1 else { return try await origin.send(request) }
        var request = request
        var last = TransferFailure(kind: .unavailable, sent: .no, detail: "no parent proxy")
        for way in ways {
            (request.via, request.parentCredential) = (way.url, way.credential)
            do throws(TransferFailure) {
                return try await origin.send(request)
            } catch {
                guard proxies.fail(way, after: error) else { throw error }
                last = error
            }
        }
        throw last
    }

    /// Probes a parent proxy: it is up once it takes a connection, whatever it makes of the request.
    func probe(proxy url: String) async {
        guard !reachability.isSwitchedOff(nil), let proxy = ParentProxy(url) else { return proxies.probed(url, isAnswered: false) }
        let place = OriginAddress(scheme: proxy.kind == .https ? .https : .http, host: proxy.address.host, port: proxy.address.port)
        var request = OutboundRequest(
            head: RequestHead(method: .head, origin: place, target: "/"), timeouts: Self.probeLimits, needsFreshConnection: true)
        // Whoever has configured it may have it at any address.
        request.isDeclared = true
        do throws(TransferFailure) {
            try await origin.send(request).body.abandon()
            proxies.probed(url, isAnswered: true)
        } catch {
            proxies.probed(url, isAnswered: ![.refused, .connectTimeout, .dns, .unavailable, .cancelled].contains(error.kind))
        }
    }
}

extension RequestHead {
    /// True if its directives accept a response of an age in seconds.
    fileprivate func accepts(age: Int64) -> Bool { CacheControl(request: fields).maxAge.map { age <= $0.seconds } ?? true }

    /// Accepts no response that is older, in seconds.
    fileprivate mutating func limit(age: Int64) {
        if accepts(age: age + 1) { fields.append(HTTPField(name: .cacheControl, value: "max-age=\(age)")) }
    }
}

extension ResponseHead {
    /// The age in seconds, as stated.
    fileprivate var age: Int64 { fields[.age].flatMap { Int64($0) } ?? 0 }
}

// MARK: - Gateways of the site

/// The state of the gateways of the site behind a lock.
package final class SiteParents: Sendable {
    private struct State {
        var health = ParentHealth()
        var writes: OwnWriteTimes
        var taken = 0
    }

    private let active: ActiveConfiguration
    private let logger: Logger
    private let now: @Sendable () -> Timestamp
    private let state: Mutex<State>

    init(active: ActiveConfiguration, logger: Logger, now: @escaping @Sendable () -> Timestamp) {
        (self.active, self.logger, self.now) = (active, logger, now)
        state = Mutex(State(writes: OwnWriteTimes(startedAt: now())))
    }

    /// Each other gateway, and true if it answers.
    package var states: [(node: String, isUp: Bool)] {
        let settings = active.configuration.fleet
        return state.withLock { state in settings.parents.filter { $0 != settings.own }.map { ($0, state.health.isUp($0)) } }
    }

    /// The number of answers that other gateways have given in place of origins.
    package var taken: Int { state.withLock { $0.taken } }

    /// Returns the gateways to ask for a read in order; none if this one is to ask the origin.
    func ways(to head: RequestHead) -> [String] {
        let settings = active.configuration.fleet
        guard settings.parents.count > 1 else { return [] }
        let order = ParentRing(nodes: settings.parents, own: settings.own).order(for: "\(head.origin.url)\n\(head.target)")
        return state.withLock { state in
            order.prefix { $0 != settings.own }.filter { Self.mayCarry($0, to: head.origin) && state.health.isUp($0) }
        }
    }

    /// The greatest age of an answer that has seen every write of this gateway, in seconds.
    func greatestAge(of origin: OriginAddress) -> Int64 { state.withLock { $0.writes.greatestAge(of: origin, now: now()) } }

    /// Records a write that this gateway, or another of its fleet, sends to an origin.
    func noteWrite(to origin: OriginAddress) { state.withLock { $0.writes.note(origin, at: now()) } }

    func noteTaken() { state.withLock { $0.taken += 1 } }

    /// Records that a gateway did not answer.
    func fail(_ node: String, because detail: String) {
        guard state.withLock({ $0.health.fail(node, now: now()) }) else { return }
        logger.warning("another gateway does not answer", metadata: ["gateway": "\(node)", "error": "\(detail)"])
    }

    /// Returns the gateways to be probed now.
    func takeDue() -> [String] { state.withLock { $0.health.takeDue(among: active.configuration.fleet.parents, now: now()) } }

    /// Records the outcome of a probe.
    func probed(_ node: String, isAnswered: Bool) {
        guard state.withLock({ $0.health.probed(node, isAnswered: isAnswered, now: now()) }) else { return }
        logger.notice("another gateway answers again", metadata: ["gateway": "\(node)"])
    }

    /// True if a gateway may be told a request: another machine has another loopback, and nothing for an encrypted origin crosses the
    /// network in plain text.
    private static func mayCarry(_ node: String, to origin: OriginAddress) -> Bool {
        guard let parent = ParentProxy(node) else { return false }
        if OriginAddress.isLoopback(parent.address.host) { return true }
        return !OriginAddress.isLoopback(origin.host) && (origin.scheme == .http || parent.kind == .https)
    }
}

// MARK: - Parent proxies

/// The state of the parent proxies behind a lock. One that stands alone is always tried.
package final class ParentProxies: Sendable {
    private struct State {
        var health = ParentHealth()
        var turns = ParentTurns()
    }

    private let active: ActiveConfiguration
    private let logger: Logger
    private let now: @Sendable () -> Timestamp
    private let state = Mutex(State())

    init(active: ActiveConfiguration, logger: Logger, now: @escaping @Sendable () -> Timestamp) {
        (self.active, self.logger, self.now) = (active, logger, now)
    }

    /// Returns the parents through which an origin is reached, in the order in which this request tries them; none to reach it directly.
    package func ways(to origin: OriginAddress, of upstream: Upstream?) -> [ParentSettings] {
        guard let settings = active.configuration.parent(for: origin, of: upstream) else { return [] }
        if settings.others.isEmpty { return [settings] }
        return state.withLock { state in
            let health = state.health
            return state.turns.next(of: settings, isUp: health.isUp)
        }
    }

    /// Records a failure of the way through a parent.
    /// - Returns: True if another parent may be tried.
    package func fail(_ parent: ParentSettings, after failure: TransferFailure) -> Bool {
        if failure.isOfParent, nodes.contains(parent.url), state.withLock({ $0.health.fail(parent.url, now: now()) }) {
            logger.warning("a parent proxy does not answer", metadata: ["parent": "\(parent.url)", "error": "\(failure.proxyErrorName)"])
        }
        return failure.mayTakeAnotherParent
    }

    /// The parents of upstreams, by their names, and of rules, by their hosts.
    private var rules: [(of: String, settings: ParentSettings)] {
        let configuration = active.configuration
        let own = configuration.upstreams.compactMap { upstream in upstream.parent.map { (of: upstream.name, settings: $0) } }
        return own + configuration.via.filter { $0.parent.url != ParentRule.direct }.map { ($0.hosts.joined(separator: ", "), $0.parent) }
    }

    private var nodes: [String] { rules.flatMap(\.settings.all).map(\.url) }

    /// How each parent of the configuration stands.
    package var standings: [ParentStanding] {
        let health = state.withLock(\.health)
        return rules.flatMap { ParentStanding.all(of: $0.of, $0.settings, health: health) }
    }

    /// Returns the parents to be probed now.
    func takeDue() -> [String] {
        if state.withLock({ $0.health.isWell }) { return [] }
        let nodes = nodes
        return state.withLock { $0.health.takeDue(among: nodes, now: now()) }
    }

    /// Records the outcome of a probe.
    func probed(_ parent: String, isAnswered: Bool) {
        guard state.withLock({ $0.health.probed(parent, isAnswered: isAnswered, now: now()) }) else { return }
        logger.notice("a parent proxy answers again", metadata: ["parent": "\(parent)"])
    }
}

/// The credential for a parent proxy, read anew for each request: a changed file applies at once.
extension ParentSettings {
    /// Nil without one; without a password if its file cannot be read: the parent then answers 407.
    package var credential: ParentCredential? {
        guard auth != .none else { return nil }
        let password = passwordFile.flatMap { try? PrivateFile.text($0) } ?? ""
        return ParentCredential(auth: auth, user: user ?? "", password: String(password.prefix { !$0.isNewline }))
    }
}
