// Whether an upstream can be reached, from what happens to exchanges and probes (design §1, contract §6, outbox.md §2.5).

/// The value machine of one origin. Every event is recorded with its time; the action says what the shell has to tell others.
package struct Reachability: Hashable, Sendable {
    /// What is believed of the upstream.
    package enum State: String, CaseIterable, Sendable, Codable {
        /// Answers.
        case online
        /// Answers badly or not always: requests still go there.
        case suspect
        /// Does not answer.
        case offline
        /// Something else answers in its place.
        case captive
    }

    /// What a person has decided.
    package enum Mode: String, CaseIterable, Sendable, Codable { case auto, offline, online }

    /// What is believed now; a new machine believes the best.
    package private(set) var state = State.online
    /// Whether a person has overruled it.
    package private(set) var mode = Mode.auto
    /// When `shownState` was entered.
    package private(set) var since: Timestamp
    /// What last went wrong, in words; nil once it has answered well.
    package private(set) var lastError: String?

    /// Interval of the declared probe; nil without one.
    private let probeInterval: TimeSpan?
    /// Failures of a kind that only counts when repeated, in a row.
    private var strikes = 0
    /// Whether failing takes so long that requests may not be spent on trying.
    private var failsSlowly = false
    /// Set while the probe's answers are not what they should be, so that ordinary answers do not hide it.
    private var isUnwell = false
    /// Set from an answer that is not the upstream's own by all appearance until a probe has told.
    private var isDoubted = false
    /// Whether the declared probe names what it expects: then nothing but that tells that the upstream is well.
    private let expects: Bool
    private var nextTrialAt = Timestamp.distantPast
    private var backoff: ProbeBackoff

    /// - Parameters:
    ///   - probeInterval: That of the declared probe; nil without one.
    ///   - expects: Whether that probe names the statuses that it expects.
    package init(probeInterval: TimeSpan? = nil, expects: Bool = false, now: Timestamp) {
        self.probeInterval = probeInterval
        self.expects = expects
        since = now
        backoff = ProbeBackoff(now: now)
    }

    /// What people are told: one that a person has switched off is offline, whatever is believed.
    package var shownState: State { mode == .offline ? .offline : state }

    /// Whether what answers at its address is taken for the upstream itself. While it is not, nothing stored is replaced, copies are
    /// served, and writes wait.
    package var isTrusted: Bool { mode == .online || (!isUnwell && !isDoubted && state != .captive) }

    /// Whether answers from reachability alone should treat it as there: what reuse decisions ask (`ReuseContext.isReachable`).
    package var isReachable: Bool {
        switch mode {
        case .online: true
        case .offline: false
        case .auto: state == .online || state == .suspect
        }
    }
}

extension Reachability {
    /// Takes in what happened. `random` of 0..<1 spreads the next probe by ± 20 %; 0.5 is none.
    package mutating func record(_ event: Event, now: Timestamp, random: Double = 0.5) -> Action {
        switch event {
        case .answered: answered(now: now, random: random)
        case .failed(let kind, let detail): failed(kind, detail: detail, now: now, random: random)
        case .probeAnswered(let verdict): probeAnswered(verdict, now: now, random: random)
        case .probeFailed(let kind, let detail): probeFailed(kind, detail: detail, now: now, random: random)
        case .doubted(let detail): doubted(detail, now: now)
        case .portalSeen(let detail): captured(detail, now: now, random: random)
        case .mode(let mode): changeMode(mode, now: now)
        }
    }

    /// Whether a request may be sent now. While it is offline after a quick failure one request a second may try, and asking uses
    /// that second up.
    package mutating func permits(now: Timestamp) -> Permission {
        switch mode {
        case .online: return .go
        case .offline: return .no(.switchedOff)
        case .auto: break
        }
        switch state {
        case .online, .suspect: return .go
        case .captive: return .no(.captive)
        case .offline:
            guard !failsSlowly else { return .no(.offline) }
            guard now >= nextTrialAt || nextTrialAt > now + .seconds(1) else { return .no(.offline) }  // or the clock went back
            nextTrialAt = now + .seconds(1)
            return .trial
        }
    }

    /// When the next probe is due; nil when none is. A declared probe runs at its interval, and sooner while something waits for an
    /// upstream that is not online; without one a probe runs only then.
    package func nextProbeAt(somethingWaits: Bool) -> Timestamp? {
        guard mode != .offline else { return nil }
        let regular = probeInterval.map { backoff.last + $0.jittered(backoff.jitter) }
        guard state != .online, somethingWaits else { return regular }
        let soon = backoff.last + backoff.delay
        return regular.map { min($0, soon) } ?? soon
    }

    /// Whether to probe now: also when the last one is yet to come, because the clock went back.
    package func probeDue(now: Timestamp, somethingWaits: Bool) -> Bool {
        nextProbeAt(somethingWaits: somethingWaits).map { $0 <= now || backoff.last > now } ?? false
    }
}

extension Reachability {
    /// Any answer tells that it is there, except while a portal may answer in its place, or where its own probe is to tell.
    private mutating func answered(byProbe: Bool = false, now: Timestamp, random: Double) -> Action {
        guard byProbe || state != .captive else { return .none }
        strikes = 0
        if expects, !byProbe {
            // The probe is to tell, and soon: something is there again.
            if state != .online, !isUnwell { backoff.expire() }
            return .none
        }
        backoff.reset(now: now, random: random)
        if isUnwell || isDoubted { return enter(.suspect, now: now) }
        lastError = nil
        return enter(.online, now: now)
    }

    private mutating func failed(
        _ kind: FailureKind, detail: String?, isProbe: Bool = false, now: Timestamp, random: Double
    ) -> Action {
        lastError = detail ?? kind.rawValue
        switch kind {
        case .refused, .dns, .connectTimeout: break
        case .tls:
            // Something answered, so nothing stale may be served for a certificate that does not verify (contract §6).
            return state == .captive ? .none : enter(.suspect, now: now)
        case .reset:
            // It accepted: other requests may fare better, and trying costs next to nothing.
            guard isProbe || !isConnected else { return enter(.suspect, now: now) }
        case .firstByteTimeout:
            strikes += 1
            guard strikes >= 3 || isProbe || !isConnected else { return enter(.suspect, now: now) }
        }
        failsSlowly = kind.isSlow
        if isConnected { backoff.reset(now: now, random: random) }
        return enter(.offline, now: now)
    }

    private mutating func probeAnswered(_ verdict: ProbeVerdict, now: Timestamp, random: Double) -> Action {
        isDoubted = false
        switch verdict {
        case .captive(let detail): return captured(detail, now: now, random: random)
        case .expected:
            isUnwell = false
            return answered(byProbe: true, now: now, random: random)
        case .unexpected(let status):
            isUnwell = true
            lastError = "the probe was answered with \(status)"
            backoff.advance(now: now, random: random)
            strikes = 0
            return enter(.suspect, now: now)
        }
    }

    private mutating func probeFailed(_ kind: FailureKind, detail: String?, now: Timestamp, random: Double) -> Action {
        isDoubted = false
        let action = failed(kind, detail: detail, isProbe: true, now: now, random: random)
        backoff.advance(now: now, random: random)
        return action
    }

    /// Requests go on; the probe that tells is due at once, and another doubt does not put it off.
    private mutating func doubted(_ detail: String, now: Timestamp) -> Action {
        guard state == .online || state == .suspect else { return .none }
        lastError = detail
        if !isDoubted { backoff.expire() }
        isDoubted = true
        return enter(.suspect, now: now)
    }

    private mutating func captured(_ detail: String, now: Timestamp, random: Double) -> Action {
        lastError = detail
        backoff.advance(now: now, random: random)
        return enter(.captive, now: now)
    }

    /// Back in automatic mode the old state holds, but is asked about at once.
    private mutating func changeMode(_ new: Mode, now: Timestamp) -> Action {
        guard new != mode else { return .none }
        let shown = shownState
        mode = new
        if shownState != shown { since = now }
        nextTrialAt = now
        backoff.expire()
        return .modeBecame(new)
    }

    private mutating func enter(_ new: State, now: Timestamp) -> Action {
        guard new != state else { return .none }
        let old = state
        state = new
        since = now
        nextTrialAt = now + .seconds(1)
        return .became(new, was: old)
    }

    private var isConnected: Bool { state == .online || state == .suspect }
}
