// Decides when an identity's access token is refreshed: once for all waiting operations, and not repeatedly
// (docs/outbox.md#credentials, RFC 6749 §5.2).

/// The refreshes of one identity.
package struct RefreshMachine: Hashable, Sendable {
    /// The action of an operation that needs a valid credential.
    package enum Action: Hashable, Sendable {
        /// A newer credential is available: send that one.
        case useLive
        /// Refresh; a call of `ended` must follow.
        case refresh
        /// Wait for the running refresh.
        case join
        /// Park until the client supplies another credential.
        case park(Reason)
    }

    package enum Reason: String, Hashable, Sendable {
        /// No refresh token is known.
        case noToken = "no-token"
        /// The refresh token, or the access token it produced, was refused.
        case refused
        /// The last refresh failed a short time ago.
        case justFailed = "just-failed"
    }

    /// The outcome of a refresh.
    package enum Ending: Hashable, Sendable {
        case renewed
        /// The upstream refused the refresh token, or the new access token belongs to another identity.
        case refused
        /// The outcome does not show whether the token is valid: no response, 5xx, 429.
        case failed
    }

    /// The time from a failed refresh to the next.
    package static let pause = TimeSpan.seconds(30)

    private var isRunning = false
    private var isRefused = false
    /// True until the upstream has accepted the credential produced by the last refresh.
    private var isUntried = false
    private var notBefore = Timestamp.distantPast

    package init() {}

    /// Called when an operation has no credential, or its credential was refused.
    /// - Parameters:
    ///   - isLive: True if the identity's current credential is the refused one, false if it is a newer one; nil without one.
    ///   - hasToken: True if a refresh token is available.
    package mutating func needed(isLive: Bool?, hasToken: Bool, now: Timestamp) -> Action {
        if isRunning { return .join }
        if isLive == false { return .useLive }
        // The credential produced by the last refresh was refused too; another refresh would not help.
        if isUntried { isRefused = true }
        if let reason = obstacle(hasToken: hasToken, now: now) { return .park(reason) }
        isRunning = true
        return .refresh
    }

    /// The reason why no refresh is attempted now; nil if one may be attempted.
    package func obstacle(hasToken: Bool, now: Timestamp) -> Reason? {
        if !hasToken { return .noToken }
        if isRefused { return .refused }
        return now < notBefore ? .justFailed : nil
    }

    /// Called when the running refresh has ended.
    package mutating func ended(_ ending: Ending, now: Timestamp) {
        isRunning = false
        switch ending {
        case .renewed: isUntried = true
        case .refused: isRefused = true
        case .failed: notBefore = now + Self.pause
        }
    }

    /// Called when the upstream has accepted the identity's credential.
    package mutating func accepted() {
        isUntried = false
        isRefused = false
    }

    /// Called when the client has received another refresh token.
    package mutating func learnt() {
        isUntried = false
        isRefused = false
        notBefore = .distantPast
    }
}
