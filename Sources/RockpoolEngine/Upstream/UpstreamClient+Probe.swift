// Probes an upstream's reachability and authenticity: by the configured probe, otherwise by a HEAD of `/`
// (docs/reference/behaviour.md#reachability).
import HTTPTypes
import NIOCore
import RockpoolCore
import ServiceLifecycle
import Synchronization

extension UpstreamClient {
    /// Sends one probe, or waits for the running one.
    func probe(_ upstream: Upstream) async {
        let task = probes.withLock { probes in
            if let known = probes[upstream.name] { return known }
            let task = Task {
                await self.sendProbe(upstream)
                self.probes.withLock { $0[upstream.name] = nil }
            }
            probes[upstream.name] = task
            return task
        }
        await task.value
    }

    private func sendProbe(_ upstream: Upstream) async {
        if reachability.isSwitchedOff(upstream.name) { return }
        let head = RequestHead(
            method: upstream.probe == nil ? .head : .get, origin: upstream.origin, target: upstream.probe?.path ?? "/")
        let ways = proxies.ways(to: upstream.origin, of: upstream)
        var request = OutboundRequest(
            head: head, timeouts: upstream.timeouts, tls: upstream.tls, via: ways.first?.url, allowsLoopback: upstream.allowsLoopback)
        request.isDeclared = true
        // No other probe follows a single one at an interval: its connection would only keep others from a server that serves one at a time.
        request.keepsConnection = upstream.probe != nil
        // What is kept from before may be dead, and each would cost a probe its time limit.
        request.needsFreshConnection = !request.keepsConnection || !isReachable(upstream)
        request.parentCredential = ways.first?.credential
        request.spent = counting(upstream, forClient: false)
        do {
            let answer = try await send(request, through: ways)
            // The body is read so that the connection can be reused; a long page, which is no health check, is abandoned.
            _ = try? await answer.body.collect(upTo: .kib(64))
            let verdict = ProbeVerdict.judge(
                answer.head, to: upstream.probe, origin: upstream.origin, hasBody: answer.hasBody(to: head))
            reachability.record(.probeAnswered(heeding(verdict, from: upstream)), for: upstream.name, now: now())
        } catch {
            noteKept(after: error, to: upstream.origin)
            let event = error.reachabilityKind.map { Reachability.Event.probeFailed($0, detail: error.proxyErrorName) }
            reachability.record(event ?? .probeUndecided, for: upstream.name, now: now())
        }
    }

    /// The root of many an API redirects to another host, with its documentation: that is no portal's sign while the upstream itself is heard.
    private func heeding(_ verdict: ProbeVerdict, from upstream: Upstream) -> ProbeVerdict {
        guard case .captive = verdict, upstream.probe == nil else { return verdict }
        return reachability.wasHeard(upstream.name, since: now() - Doubts.hearing) ? .expected : verdict
    }

    /// The time before a read within which a met expectation suffices to store its response without another probe.
    static let confirmedForCopies = TimeSpan.milliseconds(250)

    /// True if a response is confirmed to come from the upstream. If the upstream's probe has an expectation, it must have been met at
    /// `moment` or later; otherwise the probe is sent now, and must meet it. Called after the response has arrived, with its time of arrival;
    /// an earlier `moment` leaves that much time in which a portal can appear unnoticed.
    func confirm(_ upstream: Upstream, since moment: Timestamp) async -> Bool {
        guard upstream.hasExpectation, reachability.machine(of: upstream.name)?.mode == .auto else { return true }
        let isMet = { [reachability] in
            reachability.isTrusted(upstream.name) && reachability.lastMet(upstream.name).map { $0 >= moment } ?? false
        }
        // The first probe may have been sent before the response arrived.
        for _ in 0..<2 where !isMet() {
            await probe(upstream)
            guard reachability.isUsable(upstream.name) else { return false }
        }
        // A probe that failed without a statement about the upstream confirms nothing.
        return isMet()
    }

    /// Returns normally if the answer to a write is taken for the upstream's own (docs/outbox.md#portals).
    ///
    /// Throws `TransferFailure` otherwise: with `sent: no` where a portal has answered, and `sent: maybe` where that stays unknown, as after
    /// a lost answer. A redirect to another host in answer to a live write is its client's to judge, unless a portal is shown.
    /// - Parameter isLive: True if the client waits for the answer, and sees it.
    func checkOwn(
        _ answer: inout OriginReply, to request: RequestHead, upstream: Upstream, isLive: Bool
    ) async throws(TransferFailure) {
        let suspicion = await answer.suspicion(toWrite: request)
        do throws(TransferFailure) {
            if suspicion?.sign == .login { throw portalSeen(detail: suspicion?.detail ?? "", at: upstream) }
            guard await isConfirmed(answer.head, upstream: upstream, isOdd: suspicion != nil) else { throw .unconfirmed }
            if upstream.hasExpectation { return }
            guard let suspicion else {
                if (200...299).contains(answer.head.status) { writeAnswers.note(upstream.name) }
                reachability.endDoubt(at: Doubts.Place(of: request, upstream: upstream))
                return
            }
            switch await source(of: suspicion, in: &answer, to: request, upstream: upstream, isLive: isLive) {
            case .upstream: return
            case .portal(let detail): throw portalSeen(detail: detail, at: upstream)
            case .unknown where isLive && !(200...299).contains(answer.head.status): return
            // The first answers of an upstream say how it answers writes.
            case .unknown where isLive && !writeAnswers.areKnown(upstream.name): return
            case .unknown(let detail): throw TransferFailure(kind: .reset, sent: .maybe, detail: detail)
            }
        } catch {
            answer.body.abandon()
            throw error
        }
    }

    private func portalSeen(detail: String, at upstream: Upstream) -> TransferFailure {
        reachability.record(.portalSeen(detail: detail), for: upstream.name, now: now())
        return TransferFailure(kind: .unavailable, sent: .no, detail: detail)
    }

    /// Decides about an answer with a portal's sign where no expectation can: by reads of the same URL and of one that does not exist, by the
    /// signs of other URLs, and by a probe.
    private func source(
        of suspicion: PortalSuspicion, in answer: inout OriginReply, to request: RequestHead, upstream: Upstream, isLive: Bool
    ) async -> AnswerSource {
        for target in [request.target, Self.absentTarget()] {
            guard let read = await read(target, of: request.origin, upstream: upstream) else { break }
            if read.isUpstreams { return .upstream }
            if target != request.target, await answer.isAlike(read.reply, start: read.start) { return .portal(detail: suspicion.detail) }
        }
        let place = Doubts.Place(of: request, upstream: upstream)
        let sighting = Doubts.Sighting(sign: "\(answer.head.status) \(suspicion.detail)")
        let verdict = reachability.note(sighting, at: place, hasExpectation: false, now: now())
        if verdict == .spread { return .portal(detail: suspicion.detail) }
        await probe(upstream)
        if let machine = reachability.machine(of: upstream.name), machine.state == .captive {
            return .portal(detail: machine.lastError ?? suspicion.detail)
        }
        return verdict == .believed && isLive ? .upstream : .unknown(detail: suspicion.detail)
    }

    /// A path that no upstream has. What answers it with the page or the redirect that a write got answers everything so.
    private static func absentTarget() -> String { "/rockpool-absent-\(UInt32.random(in: .min ... .max))" }

    /// Reads a URL without credentials; nil without an answer. `isUpstreams` is true for an answer that no portal gives, as it has just taken
    /// the write: data, or a refusal.
    private func read(
        _ target: String, of origin: OriginAddress, upstream: Upstream
    ) async -> (reply: OriginReply, start: ByteBuffer, isUpstreams: Bool)? {
        let head = RequestHead(method: .get, origin: origin, target: target, fields: [.accept: "application/json"])
        let isUpstreams = { (reply: OriginReply) -> Bool in
            (400...499).contains(reply.head.status) && reply.head.status != 407
                || PortalSuspicion.showsUpstream(reply.head, hasBody: reply.hasBody(to: head))
        }
        guard let reply = try? await send(head, body: .none, upstream: upstream, forClient: false, isOwn: isUpstreams) else { return nil }
        let start = try? await reply.body.collect(upTo: OriginReply.comparedLength).bytes
        return (reply, start ?? ByteBuffer(), isUpstreams(reply))
    }
}

extension Doubts.Place {
    /// The place of the answer to a write.
    fileprivate init(of write: RequestHead, upstream: Upstream) {
        self.init(upstream: upstream.name, url: write.url, manner: write.method.rawValue)
    }
}

extension OriginReply {
    /// The number of bytes by which two pages are compared.
    fileprivate static let comparedLength = Int.kib(64)

    /// True if another reply redirects to the same page, or is a page that begins with the same bytes; `start` are its first ones. The query
    /// of a portal's page often names the URL that was asked for.
    fileprivate mutating func isAlike(_ other: OriginReply, start: ByteBuffer) async -> Bool {
        guard head.status == other.head.status else { return false }
        if (300...399).contains(head.status) {
            let pages = [head, other.head].map { $0.fields[.location].map { $0.prefix { $0 != "?" && $0 != "#" } } }
            return pages[0] == pages[1]
        }
        guard PortalSuspicion.isPage(other.head, hasBody: true) else { return false }
        let source = body
        var bytes = ByteBuffer()
        do throws(TransferFailure) {
            while bytes.readableBytes < Self.comparedLength, var chunk = try await source.next() { bytes.writeBuffer(&chunk) }
            body = BodyPipe(bytes, then: source)
            return bytes.readableBytesView.prefix(Self.comparedLength) == start.readableBytesView.prefix(Self.comparedLength)
        } catch {
            body = BodyPipe(broken: error)
            return false
        }
    }

    /// The sign of a portal in the answer to a write; nil without one. Where the type alone says that it is a page, the first bytes are
    /// awaited.
    fileprivate mutating func suspicion(toWrite request: RequestHead) async -> PortalSuspicion? {
        guard let suspicion = PortalSuspicion.judge(head, toWrite: request, bodyStart: nil) else { return nil }
        guard case .page = suspicion.sign else { return suspicion }
        if !hasBody(to: request) { return nil }
        if head.fields.contains(.contentEncoding) { return suspicion }
        let source = body
        do throws(TransferFailure) {
            let start = try await source.next()
            body = start.map { BodyPipe($0, then: source) } ?? BodyPipe(whole: ByteBuffer())
            return PortalSuspicion.judge(head, toWrite: request, bodyStart: start.map { Array($0.readableBytesView.prefix(256)) } ?? [])
        } catch {
            body = BodyPipe(broken: error)
            return suspicion
        }
    }
}

extension TransferFailure {
    /// A response arrived while the upstream's probe was not met: the response counts as lost.
    static let unconfirmed = TransferFailure(
        kind: .reset, sent: .maybe, detail: "answered while the probe of the upstream was not answered as expected")
}

// MARK: - The job

/// Probes upstreams when their reachability machine has a probe due. A probe is always safe, never a client's write.
package final class Prober: Service {
    private static let tick = Duration.milliseconds(200)

    private let upstreams: UpstreamClient
    private let reachability: ReachabilityTable
    private let active: ActiveConfiguration
    private let somethingWaits: @Sendable (_ upstream: String) -> Bool
    private let now: @Sendable () -> Timestamp
    private let underWay = Mutex<Set<String>>([])

    init(
        upstreams: UpstreamClient, reachability: ReachabilityTable, active: ActiveConfiguration,
        now: @escaping @Sendable () -> Timestamp,
        somethingWaits: @escaping @Sendable (_ upstream: String) -> Bool
    ) {
        self.upstreams = upstreams
        self.reachability = reachability
        self.active = active
        self.somethingWaits = somethingWaits
        self.now = now
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                while !Task.isCancelled {
                    // Probe each upstream in its own task, so that a silent one does not delay the others.
                    for upstream in self.due() { group.addTask { await self.probe(upstream) } }
                    for node in self.upstreams.parents.takeDue() { group.addTask { await self.upstreams.probe(parent: node) } }
                    for url in self.upstreams.proxies.takeDue() { group.addTask { await self.upstreams.probe(proxy: url) } }
                    try? await Task.sleep(for: Self.tick)
                }
            }
        }
    }

    /// Sends every due probe and waits for the results. Returns the names of the probed upstreams.
    @discardableResult
    package func runOnce() async -> [String] {
        let due = due()
        await withDiscardingTaskGroup { group in
            for upstream in due { group.addTask { await self.probe(upstream) } }
        }
        return due.map(\.name)
    }

    private func due() -> [Upstream] {
        let now = self.now()
        return self.active.routes.upstreams.filter { upstream in
            let somethingWaits = self.somethingWaits(upstream.name) || self.reachability.wasWantedLately(upstream.name, now: now)
            guard self.reachability.machine(of: upstream.name)?.probeDue(now: now, somethingWaits: somethingWaits) == true else {
                return false
            }
            return underWay.withLock { $0.insert(upstream.name).inserted }
        }
    }

    private func probe(_ upstream: Upstream) async {
        defer { underWay.withLock { _ = $0.remove(upstream.name) } }
        await self.upstreams.probe(upstream)
    }
}
