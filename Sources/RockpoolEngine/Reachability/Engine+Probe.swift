// Asking an upstream whether it is there and itself: by the configured probe, else by a HEAD of the root
// (docs/reference/behaviour.md#reachability).
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

    /// How long before an ordinary read an expectation may have been met for its answer to be stored without asking again.
    static let confirmedForCopies = TimeSpan.milliseconds(250)

    /// Whether an answer came from the upstream itself: where its probe names what it expects, that is met from `moment` on, or when the
    /// probe is sent now. To be asked once the answer is there, with the moment it came; earlier moments leave a portal that much time to
    /// arrive unseen.
    func confirm(_ upstream: Upstream, since moment: Timestamp) async -> Bool {
        guard upstream.hasExpectation, reachability.machine(of: upstream.name)?.mode == .auto else { return true }
        let isMet = { [reachability] in
            reachability.isTrusted(upstream.name) && reachability.lastMet(upstream.name).map { $0 >= moment } ?? false
        }
        // The first may have been under way before the answer came.
        for _ in 0..<2 where !isMet() {
            await probe(upstream)
            guard reachability.isUsable(upstream.name) else { return false }
        }
        return reachability.isUsable(upstream.name)
    }
}

extension Engine {
    /// Whether the answer to a write, which has just come, is its upstream's own, as far as the probe tells. An error says that nothing
    /// was done, and is believed.
    func isConfirmed(_ answer: ResponseHead, _ upstream: Upstream, isOdd: Bool = false) async -> Bool {
        guard isOdd || (200...399).contains(answer.status) else { return true }
        return await confirm(upstream, since: now())
    }

    /// Holds the answer to a live write back unless it is the upstream's own.
    ///
    /// Throws `TransferFailure`: the write is taken into the outbox then. Without an expectation that a probe could meet, a page where JSON
    /// belongs is a portal's only where the upstream has answered such writes otherwise.
    func checkOwn(
        _ answer: OriginReply, to request: RequestHead, _ upstream: Upstream
    ) async throws(TransferFailure) {
        let oddity = PortalSuspicion.judge(answer.head, toWrite: request)
        guard await isConfirmed(answer.head, upstream, isOdd: oddity != nil) else {
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
