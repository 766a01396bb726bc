// The reachability of an upstream, derived from exchanges and probes (docs/architecture.md#vocabulary,
// docs/reference/behaviour.md#reachability, docs/outbox.md#reachability).

/// The state machine of one origin, a value. Every event is recorded with its time; the returned action lists what the caller must publish.
package struct Reachability: Hashable, Sendable {
    /// The assumed state of the upstream.
    package enum State: String, CaseIterable, Sendable, Codable {
        /// Nothing was sent to it yet; counts as reachable.
        case untried
        /// Responds.
        case online
        /// Responds incorrectly or intermittently; requests are still sent.
        case suspect
        /// Does not respond.
        case offline
        /// Something else responds in its place.
        case captive

        /// The state in the words of the commands, the log and the dashboard.
        package var words: String {
            switch self {
            case .untried: "not tried yet"
            case .captive: "captive portal"
            case .online, .suspect, .offline: rawValue
            }
        }
    }

    /// The manually set mode.
    package enum Mode: String, CaseIterable, Sendable, Codable { case auto, offline, online }

    /// The assumed state; initially `online`.
    package private(set) var state = State.online
    /// The manual mode, `auto` by default.
    package private(set) var mode = Mode.auto
    /// The time at which `shownState` was entered.
    package private(set) var since: Timestamp
    /// The last error, in words; nil after a good response.
    package private(set) var lastError: String?

    /// Interval of the declared probe; nil without one.
    private let probeInterval: TimeSpan?
    /// True after the first exchange or probe that said anything.
    private var isTried = false
    /// Consecutive failures of a kind that counts only when repeated, each with another witness.
    private var strikes = 0
    /// Those with the witness of an earlier one.
    private var repeats = 0
    /// Of what those were.
    private var witnesses: Set<Witness> = []
    /// True if a failure takes so long to detect that requests are not used as trials.
    private var failsSlowly = false
    /// True while the probe's responses are not the expected ones, so that ordinary responses do not hide the fault.
    private var isUnwell = false
    /// True from responses that are apparently not from the upstream until the next probe.
    private var isDoubted = false
    /// True if a probe is asked for, whatever else the upstream answers meanwhile.
    private var isProbeWanted = false
    /// When the last probe ended.
    private var probedAt = Timestamp.distantPast
    /// True if the declared probe lists expected statuses; then only the probe can show that the upstream is healthy.
    private let expects: Bool
    private var nextTrialAt = Timestamp.distantPast
    private var backoff: ProbeBackoff

    /// - Parameters:
    ///   - probeInterval: Interval of the declared probe; nil without one.
    ///   - expects: True if that probe lists expected statuses.
    package init(probeInterval: TimeSpan? = nil, expects: Bool = false, now: Timestamp) {
        self.probeInterval = probeInterval
        self.expects = expects
        since = now
        backoff = ProbeBackoff(now: now)
    }

    /// The published state: an upstream switched off manually is offline, whatever the assumed state.
    package var shownState: State { mode == .offline ? .offline : assumedState }

    /// The published state as long as no mode is set.
    package var assumedState: State { isTried ? state : .untried }

    /// True if the responses from its address are assumed to come from the upstream. While false, no stored response is replaced, stored
    /// copies are served, and writes wait.
    package var isTrusted: Bool { mode == .online || (!isUnwell && !isDoubted && state != .captive) }

    /// True if the upstream counts as reachable for reuse decisions (`ReuseContext.isReachable`).
    package var isReachable: Bool {
        switch mode {
        case .online: true
        case .offline: false
        case .auto: isConnected
        }
    }

    /// Records an event. `random` in 0..<1 spreads the next probe by ± 20 %; 0.5 means no spread.
    package mutating func record(_ event: Event, now: Timestamp, random: Double = 0.5) -> Action {
        let isFirst = !isTried
        note(event, now: now)
        // Nobody has waited for it yet: the first client may try, whatever the probe at the start has met.
        defer { if isFirst, case .probeFailed = event { failsSlowly = false } }
        switch event {
        case .answered: return answered(now: now, random: random)
        case .failed(let kind, let detail, let witness): return failed(kind, detail: detail, witness: witness, now: now, random: random)
        case .probeAnswered(let verdict): return probeAnswered(verdict, now: now, random: random)
        case .probeFailed(let kind, let detail): return probeFailed(kind, detail: detail, now: now, random: random)
        case .probeUndecided: return probeUndecided(now: now)
        case .signSeen: return signSeen()
        case .doubted(let detail): return doubted(detail, now: now)
        case .portalSeen(let detail): return captured(detail, now: now, random: random)
        case .mode(let mode): return changeMode(mode, now: now)
        }
    }

    /// The time after which an upstream without any request is probed.
    private static let patience = TimeSpan.seconds(2)

    private mutating func note(_ event: Event, now: Timestamp) {
        switch event {
        case .answered, .failed, .probeAnswered, .probeFailed, .portalSeen, .doubted:
            if !isTried { since = now }
            isTried = true
        case .probeUndecided, .signSeen, .mode: break
        }
    }

    /// The permission to send a request now. After a quick failure one request per second may be sent as a trial; calling this function
    /// uses up the trial.
    package mutating func permits(now: Timestamp) -> Permission {
        switch mode {
        case .online: return .go
        case .offline: return .no(.switchedOff)
        case .auto: break
        }
        switch state {
        case .untried, .online, .suspect: return .go
        case .captive: return .no(.captive)
        case .offline:
            guard !failsSlowly else { return .no(.offline) }
            guard now >= nextTrialAt || nextTrialAt > now + .seconds(1) else { return .no(.offline) }  // or the clock was set back
            nextTrialAt = now + .seconds(1)
            return .trial
        }
    }

    /// The time of the next probe; nil if none is due. A declared probe runs at its interval, and sooner while something waits for an
    /// upstream that is not online; without a declared probe, probes run only in the latter case. A probe that is asked for is due half a
    /// second after the last one, and no ordinary response postpones it.
    package func nextProbeAt(somethingWaits: Bool) -> Timestamp? {
        guard mode != .offline else { return nil }
        let regular = probeInterval.map { backoff.last + $0.jittered(backoff.jitter) }
        let soon = state != .online && somethingWaits ? backoff.last + backoff.delay : nil
        let wanted = isProbeWanted ? probedAt + .milliseconds(500) : nil
        // Whoever begins with the API asks it first; else a probe does.
        let first = isTried ? nil : max(since + Self.patience, probedAt + .seconds(30))
        return [regular, soon, wanted, first].compactMap(\.self).min()
    }

    /// True if a probe is due now, or if the last probe lies in the future because the clock was set back.
    package func probeDue(now: Timestamp, somethingWaits: Bool) -> Bool {
        nextProbeAt(somethingWaits: somethingWaits).map { $0 <= now || max(backoff.last, probedAt) > now } ?? false
    }
}

extension Reachability {
    /// Any response shows that the upstream is reachable, except while a portal may respond in its place, or if only its probe may decide.
    private mutating func answered(byProbe: Bool = false, now: Timestamp, random: Double) -> Action {
        guard byProbe || state != .captive else { return .none }
        endStrikes()
        if expects, !byProbe {
            // The probe decides, and is due immediately, because something responds again.
            if state != .online, !isUnwell { backoff.expire() }
            return .none
        }
        backoff.reset(now: now, random: random)
        if isUnwell || isDoubted { return enter(.suspect, now: now) }
        lastError = nil
        return enter(.online, now: now)
    }

    private mutating func failed(
        _ kind: FailureKind, detail: String?, witness: Witness? = nil, isProbe: Bool = false, now: Timestamp, random: Double
    ) -> Action {
        lastError = detail ?? kind.rawValue
        switch kind {
        case .refused, .dns, .connectTimeout: break
        case .tls:
            // The server responded, so no stale response may be served for a certificate that does not verify
            // (docs/reference/behaviour.md#reachability).
            return state == .captive ? .none : enter(.suspect, now: now)
        case .reset:
            // The connection was accepted: other requests may succeed, and a trial is cheap.
            guard isProbe || !isConnected else { return enter(.suspect, now: now) }
        case .firstByteTimeout:
            strike(by: witness)
            guard strikes >= Self.enoughStrikes || isProbe || !isConnected else { return enter(.suspect, now: now) }
        }
        failsSlowly = kind.isSlow
        if isConnected { backoff.reset(now: now, random: random) }
        return enter(.offline, now: now)
    }

    /// The number of time-outs in a row, of different URLs or clients, after which the upstream counts as offline.
    private static let enoughStrikes = 3

    /// Counts a time-out, once for each witness. As many others ask for a probe, which decides: one client alone may use one URL alone.
    private mutating func strike(by witness: Witness?) {
        guard strikes < Self.enoughStrikes else { return }
        if let witness, !witnesses.insert(witness).inserted {
            repeats += 1
            if strikes + repeats >= Self.enoughStrikes { isProbeWanted = true }
        } else {
            strikes += 1
        }
    }

    private mutating func endStrikes() { (strikes, repeats, witnesses) = (0, 0, []) }

    private mutating func probeAnswered(_ verdict: ProbeVerdict, now: Timestamp, random: Double) -> Action {
        probeEnded(now: now)
        switch verdict {
        case .captive(let detail): return captured(detail, now: now, random: random)
        case .expected:
            isUnwell = false
            return answered(byProbe: true, now: now, random: random)
        case .unexpected(let status):
            isUnwell = true
            lastError = "the probe was answered with \(status)"
            backoff.advance(now: now, random: random)
            endStrikes()
            return enter(.suspect, now: now)
        }
    }

    private mutating func probeFailed(_ kind: FailureKind, detail: String?, now: Timestamp, random: Double) -> Action {
        probeEnded(now: now)
        let action = failed(kind, detail: detail, isProbe: true, now: now, random: random)
        backoff.advance(now: now, random: random)
        return action
    }

    private mutating func probeEnded(now: Timestamp) {
        (isDoubted, isProbeWanted, probedAt) = (false, false, now)
    }

    /// What the probe was to decide stays open; the next one is not due at once.
    private mutating func probeUndecided(now: Timestamp) -> Action {
        probedAt = now
        return .none
    }

    private mutating func signSeen() -> Action {
        if isConnected { isProbeWanted = true }
        return .none
    }

    /// Requests continue; the deciding probe is due.
    private mutating func doubted(_ detail: String, now: Timestamp) -> Action {
        guard isConnected else { return .none }
        lastError = detail
        (isDoubted, isProbeWanted) = (true, true)
        return enter(.suspect, now: now)
    }

    private mutating func captured(_ detail: String, now: Timestamp, random: Double) -> Action {
        lastError = detail
        backoff.advance(now: now, random: random)
        return enter(.captive, now: now)
    }

    /// After returning to automatic mode the old state remains, and a probe is due immediately.
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

/// The events, actions and permissions of the reachability state machine (docs/outbox.md#reachability).
extension Reachability {
    /// The kind of failure of an exchange. The names equal those of the transfer failures on the connection.
    package enum FailureKind: String, CaseIterable, Sendable {
        case refused, dns, connectTimeout, tls, reset, firstByteTimeout

        /// True if detecting the failure takes seconds of a client's time.
        var isSlow: Bool { self == .connectTimeout || self == .firstByteTimeout }
    }

    /// What did not come in time, and for whom: one slow URL of one client says nothing about others.
    package struct Witness: Hashable, Sendable {
        /// Without its query, which a client may vary at will.
        let path: String
        let client: ClientID?

        /// - Parameters:
        ///   - target: of the request.
        ///   - client: nil for Rockpool itself.
        package init(target: String, client: ClientID?) {
            path = String(target.prefix { $0 != "?" })
            self.client = client
        }
    }

    /// An observed event.
    package enum Event: Hashable, Sendable {
        /// An ordinary exchange received a final response, whatever its status.
        case answered
        /// An ordinary exchange received no response. `detail` is a readable message, `witness` what it was.
        case failed(FailureKind, detail: String? = nil, witness: Witness? = nil)
        case probeAnswered(ProbeVerdict)
        case probeFailed(FailureKind, detail: String? = nil)
        /// A probe ended without a statement about the upstream.
        case probeUndecided
        /// An ordinary exchange received a response that is not from the upstream.
        case portalSeen(detail: String)
        /// An ordinary exchange received a response that may not be from the upstream. A probe is asked for; the state stays.
        case signSeen
        /// The same, with more evidence: until a probe has decided, nothing that the address answers is taken for the upstream's.
        case doubted(detail: String)
        /// The mode was set manually.
        case mode(Mode)
    }

    /// The action required of the caller.
    package enum Action: Hashable, Sendable {
        case none
        /// Notify subscribers; if the state became `online` or `suspect`, waiting writes may be sent.
        case became(State, was: State)
        case modeBecame(Mode)
    }

    /// Permission to send a request.
    package enum Permission: Hashable, Sendable {
        case go
        /// This single request may be sent as a trial (half open).
        case trial
        case no(Reason)
    }

    /// The reason why nothing may be sent.
    package enum Reason: String, Hashable, Sendable {
        case offline, captive
        case switchedOff = "switched off"
    }
}

/// The time of the last contact or probe, and the state of the backoff.
struct ProbeBackoff: Hashable, Sendable {
    private(set) var last: Timestamp
    /// −20…20.
    private(set) var jitter = 0
    private var attempts = 0

    init(now: Timestamp) { last = now }

    /// The time from the last contact, or the first failure, to the next probe while something waits.
    var delay: TimeSpan { TimeSpan.milliseconds(500 << Int64(min(attempts, 2))).jittered(jitter) }

    /// Called after a response, or at the first failure: restarts the backoff.
    mutating func reset(now: Timestamp, random: Double) {
        attempts = 0
        mark(now, random: random)
    }

    /// Called after an unsuccessful probe.
    mutating func advance(now: Timestamp, random: Double) {
        attempts = min(attempts + 1, 2)
        mark(now, random: random)
    }

    /// Makes the next probe due immediately.
    mutating func expire() {
        attempts = 0
        last = .distantPast
    }

    private mutating func mark(_ now: Timestamp, random: Double) {
        last = now
        jitter = Int((max(0, min(1, random)) * 40).rounded()) - 20
    }
}

extension TimeSpan {
    /// The span changed by `percent` hundredths, which may be negative.
    func jittered(_ percent: Int) -> TimeSpan {
        let share = TimeSpan(milliseconds: milliseconds.percent(abs(percent)))
        return percent < 0 ? self - share : self + share
    }
}
