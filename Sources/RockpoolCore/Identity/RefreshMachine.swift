// When an identity's access token is renewed: once for all who wait, and not over and over (outbox.md §1.10, RFC 6749 §5.2).

/// The refreshes of one identity.
package struct RefreshMachine: Hashable, Sendable {
    /// What whoever needs a live credential does.
    package enum Action: Hashable, Sendable {
        /// Another credential has been shown or made since: that one is sent.
        case useLive
        /// Refresh; `ended` must follow.
        case refresh
        /// Wait for the refresh under way.
        case join
        /// Park until the client shows another.
        case park(Reason)
    }

    package enum Reason: String, Hashable, Sendable {
        /// Nobody has shown a refresh token.
        case noToken = "no-token"
        /// The refresh token, or what it brought, was refused.
        case refused
        /// The last refresh failed a short while ago.
        case justFailed = "just-failed"
    }

    /// How a refresh ended.
    package enum Ending: Hashable, Sendable {
        case renewed
        /// The upstream refused the refresh token, or the new one is not this identity's.
        case refused
        /// Nothing was learnt about the token: no answer, 5xx, 429.
        case failed
    }

    /// From a failed refresh to the next.
    package static let pause = TimeSpan.seconds(30)

    private var isRunning = false
    private var isRefused = false
    /// Whether the upstream has yet to accept what the last refresh brought.
    private var isUntried = false
    private var notBefore = Timestamp.distantPast

    package init() {}

    /// An operation has none to be sent with, or its credential was refused.
    /// - Parameters:
    ///   - isLive: whether the identity's credential is still the one refused; nil when it has none.
    ///   - hasToken: whether a refresh token is at hand.
    package mutating func needed(isLive: Bool?, hasToken: Bool, now: Timestamp) -> Action {
        if isRunning { return .join }
        if isLive == false { return .useLive }
        // What the last refresh made was refused as well: another would fare no better.
        if isUntried { isRefused = true }
        if let reason = obstacle(hasToken: hasToken, now: now) { return .park(reason) }
        isRunning = true
        return .refresh
    }

    /// Why no refresh would be tried now; nil when one would.
    package func obstacle(hasToken: Bool, now: Timestamp) -> Reason? {
        if !hasToken { return .noToken }
        if isRefused { return .refused }
        return now < notBefore ? .justFailed : nil
    }

    /// The refresh under way has ended.
    package mutating func ended(_ ending: Ending, now: Timestamp) {
        isRunning = false
        switch ending {
        case .renewed: isUntried = true
        case .refused: isRefused = true
        case .failed: notBefore = now + Self.pause
        }
    }

    /// The upstream has accepted the identity's credential.
    package mutating func accepted() {
        isUntried = false
        isRefused = false
    }

    /// The client was given another refresh token.
    package mutating func learnt() {
        isUntried = false
        isRefused = false
        notBefore = .distantPast
    }
}
