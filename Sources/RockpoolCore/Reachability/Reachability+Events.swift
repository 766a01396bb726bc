// What can happen to an upstream, what follows from it, and what may be done (outbox.md §2.5).

extension Reachability {
    /// How an exchange failed. The words are those of the transfer failures that come from the wire.
    package enum FailureKind: String, CaseIterable, Sendable {
        case refused, dns, connectTimeout, tls, reset, firstByteTimeout

        /// Whether noticing it takes seconds of a client's time.
        var isSlow: Bool { self == .connectTimeout || self == .firstByteTimeout }
    }

    /// What happened.
    package enum Event: Hashable, Sendable {
        /// An ordinary exchange got a final response, whatever its status.
        case answered
        /// An ordinary exchange got none. `detail` is for people.
        case failed(FailureKind, detail: String? = nil)
        case probeAnswered(ProbeVerdict)
        case probeFailed(FailureKind, detail: String? = nil)
        /// An ordinary exchange got an answer that is not the upstream's own.
        case portalSeen(detail: String)
        /// One that may not be: a probe has to tell.
        case doubted(detail: String)
        /// A person switched.
        case mode(Mode)
    }

    /// What the shell has to do about it.
    package enum Action: Hashable, Sendable {
        case none
        /// To be told to subscribers; when it is `online` or `suspect` after another, whatever waits may go.
        case became(State, was: State)
        case modeBecame(Mode)
    }

    /// Whether a request may be sent.
    package enum Permission: Hashable, Sendable {
        case go
        /// This one request may try (half open).
        case trial
        case no(Reason)
    }

    /// Why nothing may be sent.
    package enum Reason: String, Hashable, Sendable {
        case offline, captive
        case switchedOff = "switched off"
    }
}
