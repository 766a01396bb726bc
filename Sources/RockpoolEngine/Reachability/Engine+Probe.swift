// Asking an upstream whether it is there and itself: by the configured probe, else by a HEAD of the root (contract §6).
import HTTPTypes
import RockpoolCore
import Synchronization

extension Engine {
    /// Sends one probe, or waits for the one under way.
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
        var request = OutboundRequest(
            head: head, timeouts: upstream.timeouts, tls: upstream.tls, via: upstream.via, allowsLoopback: upstream.allowsLoopback)
        request.isDeclared = true
        do {
            let answer = try await origin.send(request)
            // Read, so that the connection can be used again; a page that is no health check is not.
            _ = try? await answer.body.collect(upTo: 65_536)
            let verdict = ProbeVerdict.judge(answer.head, to: upstream.probe, origin: upstream.origin)
            reachability.record(.probeAnswered(verdict), for: upstream.name, now: now())
        } catch {
            guard let kind = error.reachabilityKind else { return }
            reachability.record(.probeFailed(kind, detail: error.proxyErrorName), for: upstream.name, now: now())
        }
    }

    /// How long before an answer to a write an expectation may have been met for it to be believed without asking again.
    static let confirmedForWrites = TimeSpan.milliseconds(100)
    /// The same for what is to be stored.
    static let confirmedForCopies = TimeSpan.seconds(1)

    /// Whether the answer to what was sent at `sentAt` came from the upstream itself: where its probe names what it expects, that is met
    /// about then, or the probe is sent now.
    /// - Parameters:
    ///   - margin: How long before it was sent counts too.
    ///   - isOdd: Whether it does not look like the upstream's own: then only a probe after it tells.
    func confirm(
        _ upstream: Upstream, since sentAt: Timestamp, within margin: TimeSpan = confirmedForWrites, isOdd: Bool = false
    ) async -> Bool {
        guard upstream.hasExpectation, reachability.machine(of: upstream.name)?.mode == .auto else { return true }
        if !isOdd, let met = reachability.lastMet(upstream.name), met >= sentAt - margin, reachability.isTrusted(upstream.name) {
            return true
        }
        await probe(upstream)
        return reachability.isUsable(upstream.name)
    }
}

extension Engine {
    /// Whether the answer to a write is its upstream's own, as far as the probe tells. A redirect is what portals give, whatever its
    /// place; an error says that nothing was done, and is believed.
    func isConfirmed(_ answer: ResponseHead, _ upstream: Upstream, since sentAt: Timestamp, isOdd: Bool = false) async -> Bool {
        let isRedirect = (300...399).contains(answer.status)
        guard isOdd || isRedirect || (200...299).contains(answer.status) else { return true }
        return await confirm(upstream, since: sentAt, isOdd: isOdd || isRedirect)
    }

    /// Holds the answer to a live write back unless it is the upstream's own.
    ///
    /// Throws `TransferFailure`: the write is taken into the outbox then. Without an expectation that a probe could meet, a page where JSON
    /// belongs is a portal's only where the upstream has answered such writes otherwise.
    func checkOwn(
        _ answer: OriginReply, to request: RequestHead, _ upstream: Upstream, since sentAt: Timestamp
    ) async throws(TransferFailure) {
        let oddity = PortalSuspicion.judge(answer.head, toWrite: request)
        guard await isConfirmed(answer.head, upstream, since: sentAt, isOdd: oddity != nil) else {
            answer.body.abandon()
            throw .unconfirmed
        }
        if upstream.hasExpectation { return }
        guard let oddity else {
            if (200...299).contains(answer.head.status) { writeAnswers.note(isOdd: false, upstream.name) }
            return
        }
        guard answer.head.status == 511 || ((200...299).contains(answer.head.status) && writeAnswers.isOdd(upstream.name)) else {
            return writeAnswers.note(isOdd: true, upstream.name)
        }
        answer.body.abandon()
        reachability.record(.portalSeen(detail: oddity), for: upstream.name, now: now())
        throw TransferFailure(kind: .unavailable, sent: .no, detail: oddity)
    }
}

/// Whether an upstream has ever answered a write with a page where JSON belongs: some do.
final class WriteAnswers: Sendable {
    private let seen = Mutex<[String: (own: Bool, odd: Bool)]>([:])

    func note(isOdd: Bool, _ upstream: String) {
        seen.withLock { seen in
            if isOdd { seen[upstream, default: (false, false)].odd = true } else { seen[upstream, default: (false, false)].own = true }
        }
    }

    /// Whether a page is a surprise.
    func isOdd(_ upstream: String) -> Bool { seen.withLock { $0[upstream].map { $0.own && !$0.odd } ?? false } }
}

extension TransferFailure {
    /// Something answered while the upstream's probe was not answered as it should be: the answer counts as lost.
    static let unconfirmed = TransferFailure(
        kind: .reset, sent: .maybe, detail: "answered while the probe of the upstream was not answered as expected")
}
