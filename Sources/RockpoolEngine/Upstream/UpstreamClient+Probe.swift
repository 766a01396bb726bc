// Probes an upstream's reachability and authenticity: by the configured probe, otherwise by a HEAD of `/`
// (docs/reference/behaviour.md#reachability).
import HTTPTypes
import RockpoolCore
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
        let parent = active.configuration.parent(for: upstream.origin, of: upstream)
        var request = OutboundRequest(
            head: head, timeouts: upstream.timeouts, tls: upstream.tls, via: parent?.url, allowsLoopback: upstream.allowsLoopback)
        request.isDeclared = true
        // What is kept from before may be dead, and each would cost a probe its time limit.
        request.needsFreshConnection = !isReachable(upstream)
        request.parentCredential = parent?.credential
        request.spent = counting(upstream, forClient: false)
        do {
            let answer = try await origin.send(request)
            // The body is read so that the connection can be reused; a long page, which is no health check, is abandoned.
            _ = try? await answer.body.collect(upTo: .kib(64))
            let verdict = ProbeVerdict.judge(answer.head, to: upstream.probe, origin: upstream.origin)
            reachability.record(.probeAnswered(verdict), for: upstream.name, now: now())
        } catch {
            noteKept(after: error, to: upstream.origin)
            guard let kind = error.reachabilityKind else { return }
            reachability.record(.probeFailed(kind, detail: error.proxyErrorName), for: upstream.name, now: now())
        }
    }

    /// The time before a read within which a met expectation suffices to store its response without another probe.
    static let confirmedForCopies = TimeSpan.milliseconds(250)

    /// True if a response is confirmed to come from the upstream. If the upstream's probe has an expectation, it must have been met at
    /// `moment` or later; otherwise the probe is sent now, and must meet it. Called after the response has arrived, with its time of arrival; an earlier `moment` leaves that much time in which a
    /// portal can appear unnoticed.
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
}

extension UpstreamClient {

    /// Returns normally if the response to a live write is the upstream's own.
    ///
    /// Throws `TransferFailure` otherwise; then the write is queued in the outbox. Without an expectation, a page in place of JSON counts
    /// as a portal's only if the upstream has answered writes without one before, and never with one; a 511 always counts.
    func checkOwn(
        _ answer: OriginReply, to request: RequestHead, upstream: Upstream
    ) async throws(TransferFailure) {
        let oddity = PortalSuspicion.judge(answer.head, toWrite: request)
        guard await isConfirmed(answer.head, upstream: upstream, isOdd: oddity != nil) else {
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

extension TransferFailure {
    /// A response arrived while the upstream's probe was not met: the response counts as lost.
    static let unconfirmed = TransferFailure(
        kind: .reset, sent: .maybe, detail: "answered while the probe of the upstream was not answered as expected")
}
