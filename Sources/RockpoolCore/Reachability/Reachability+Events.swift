// The events, actions and permissions of the reachability state machine (docs/outbox.md#reachability).

extension Reachability {
    /// The kind of failure of an exchange. The names equal those of the transfer failures on the connection.
    package enum FailureKind: String, CaseIterable, Sendable {
        case refused, dns, connectTimeout, tls, reset, firstByteTimeout

        /// True if detecting the failure takes seconds of a client's time.
        var isSlow: Bool { self == .connectTimeout || self == .firstByteTimeout }
    }

    /// An observed event.
    package enum Event: Hashable, Sendable {
        /// An ordinary exchange received a final response, whatever its status.
        case answered
        /// An ordinary exchange received no response. `detail` is a readable message.
        case failed(FailureKind, detail: String? = nil)
        case probeAnswered(ProbeVerdict)
        case probeFailed(FailureKind, detail: String? = nil)
        /// An ordinary exchange received a response that is not from the upstream.
        case portalSeen(detail: String)
        /// An ordinary exchange received a response that may not be from the upstream; a probe must decide.
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
