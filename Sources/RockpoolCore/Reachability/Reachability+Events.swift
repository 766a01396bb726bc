// The events, actions and permissions of the reachability state machine (docs/outbox.md#reachability).

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
