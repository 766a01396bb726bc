// The limits of the outbox: how long ended operations are kept (docs/outbox.md#retention), whose share a write counts against, and how
// often equal ones are acknowledged.

/// Retention times. An operation that may still be sent automatically is never purged, except a parked unproved one.
package struct Retention: Hashable, Sendable {
    /// Delivered operations: kept for the status document, and for repeated requests with a client's key.
    package var delivered: TimeSpan
    /// Operations that were refused, given up or replaced.
    package var failed: TimeSpan
    /// Unproved operations (`OutboxShare.unproved`) that were refused or wait for a credential: their client may never return.
    package var unproved: TimeSpan

    /// - Parameters:
    ///   - failed: `cleanup.failed_after`.
    ///   - unproved: `cleanup.unproved_after`.
    package init(delivered: TimeSpan = .days(7), failed: TimeSpan, unproved: TimeSpan = .forever) {
        self.delivered = delivered
        self.failed = failed
        self.unproved = unproved
    }

    /// Uses the times of the configuration.
    package init(_ settings: CleanupSettings) { self.init(failed: settings.failedAfter, unproved: settings.unprovedAfter) }

    /// States refused by the upstream that await a decision: their purge is announced, and they are exported first.
    package static let announced: Set<OperationState> = [.dead, .conflicted]

    /// Returns the purge time of an operation in `state` that ended at `endedAt`; nil for a state that does not end.
    package func purgeAt(_ state: OperationState, endedAt: Timestamp) -> Timestamp? {
        switch state {
        case .delivered: endedAt + delivered
        case .dead, .conflicted, .cancelled, .superseded: endedAt + failed
        case .pending, .inflight, .uncertain, .parked: nil
        }
    }

    /// The notice before a purge: the last sixth, 5 of 30 days.
    package var notice: TimeSpan { .milliseconds(failed.milliseconds / 6) }

    /// The notice for an unproved operation, 4 of 24 hours.
    package var unprovedNotice: TimeSpan { .milliseconds(unproved.milliseconds / 6) }

    /// Returns the purge time to announce at `now`; nil when there is nothing to announce (yet).
    package func announcedPurge(_ state: OperationState, endedAt: Timestamp?, now: Timestamp) -> Timestamp? {
        guard Self.announced.contains(state), let endedAt, let moment = purgeAt(state, endedAt: endedAt) else { return nil }
        return moment - notice <= now ? moment : nil
    }

    /// The same for an operation that may be unproved, with its shorter retention time.
    package func announcedPurge(of operation: QueuedWrite, now: Timestamp) -> Timestamp? {
        let announced = announcedPurge(operation.state, endedAt: operation.endedAt, now: now)
        guard let since = operation.expiresSince, since + unproved - unprovedNotice <= now else { return announced }
        return min(since + unproved, announced ?? .distantFuture)
    }
}

extension QueuedWrite {
    /// The time since when an unproved operation has waited for a client that may never return; nil for any other, and for one that may
    /// have taken effect.
    fileprivate var expiresSince: Timestamp? {
        guard isUnproved, lostAt == nil else { return nil }
        switch state {
        case .dead: return endedAt
        // The store keeps the time of the parking in this field.
        case .parked: return nextAttemptAt
        case .pending, .inflight, .uncertain, .conflicted, .delivered, .cancelled, .superseded: return nil
        }
    }
}

/// The part of the usable bytes of `storage.data_limit` that an operation counts against for as long as it is open
/// (docs/reference/behaviour.md#shares).
package enum OutboxShare: Hashable, Sendable, CaseIterable {
    /// The share of its own principal.
    case principal
    /// The common share of all clients without a credential, at declared upstreams that have never accepted one. An API without credentials
    /// has no other writers, so together they have as much as one principal.
    case nobody
    /// The common share of all other clients: no upstream has accepted their credential, or they send none where others do.
    case unproved

    /// Selects the share of an operation.
    ///
    /// - Parameters:
    ///   - principal: The write's principal; nil without a credential.
    ///   - isProved: True if an upstream has accepted a credential of this principal.
    ///   - takesCredentials: True if the operation's upstream has ever accepted a credential, or is not declared.
    package init(principal: String?, isProved: Bool, takesCredentials: Bool) {
        if principal == nil {
            self = takesCredentials ? .unproved : .nobody
        } else {
            self = isProved ? .principal : .unproved
        }
    }

    /// Returns its size in bytes where operations can take `usable` bytes.
    package func bytes(of usable: Int64, settings: StorageSettings) -> Int64 {
        switch self {
        case .principal, .nobody: usable.percent(settings.principalSharePercent)
        case .unproved: usable.percent(settings.unprovedSharePercent)
        }
    }

    /// The name of the share and its setting, for the refused client; continued as `… is used up`. The text does not reveal other clients'
    /// use.
    package var words: String {
        switch self {
        case .principal: "the share of the outbox that this client's identity has (storage.principal_share)"
        case .nobody: "the share of the outbox for clients without a credential (storage.principal_share)"
        case .unproved: "the share of the outbox for all clients whose credential no upstream has accepted (storage.unproved_share)"
        }
    }
}

/// Counts the acknowledgements of equal writes: a program that takes them for a failure repeats its write as fast as it can
/// (docs/outbox.md#floods).
///
/// Memory is limited: of more than `capacity` different writes within the window, the oldest may be forgotten.
package struct AcknowledgementLimit: Sendable {
    /// Acknowledgements of equal writes of one client within `window`.
    package static let count = 20
    package static let window = TimeSpan.seconds(10)
    /// Different writes that are counted at least.
    package static let capacity = 2048

    /// The times of the acknowledgements that still count, by client and write, of this generation and of the one before.
    private var newer: [Int: [Timestamp]] = [:]
    private var older: [Int: [Timestamp]] = [:]
    private var began = Timestamp.distantPast

    package init() {}

    /// Counts one acknowledgement. Returns the time to wait instead where the limit is reached; then nothing is counted.
    /// - Parameters:
    ///   - write: the digest of method, URL and body.
    ///   - client: the principal, or the address of a client without a credential.
    package mutating func admit(_ write: [UInt8], of client: String, now: Timestamp) -> TimeSpan? {
        if newer.count >= Self.capacity || !Self.counts(began, now) { (older, newer, began) = (newer, [:], now) }
        var hasher = Hasher()
        hasher.combine(write)
        hasher.combine(client)
        let key = hasher.finalize()
        var times = (newer[key] ?? older[key] ?? []).filter { Self.counts($0, now) }
        if times.count >= Self.count, let first = times.first { return first + Self.window - now }
        times.append(now)
        newer[key] = times
        return nil
    }

    /// False also after the clock was set back.
    private static func counts(_ time: Timestamp, _ now: Timestamp) -> Bool { now >= time && now - time < window }
}
