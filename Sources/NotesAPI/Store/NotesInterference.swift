// The points at which a test interferes with requests (docs/outbox.md#faults). The server itself interferes nowhere.
package import RockpoolCore

/// Changes how requests are carried out and answered. Each point has a default: no change.
package protocol NotesInterference: Sendable {
    /// Keys are neither read nor stored.
    var ignoresKeys: Bool { get }
    /// The time after its first use at which a key is forgotten; nil: never.
    var forgetsKeysAfter: TimeSpan? { get }
    /// ETags are compared as weak ones, so that no `If-Match` matches.
    var weakensETags: Bool { get }
    /// A DELETE of a deleted resource is 404 despite its key; otherwise it is 204 again.
    var deleteAgainIsNotFound: Bool { get }
    /// Changes need a valid token.
    var requiresToken: Bool { get }
    /// The time from a write's arrival until it is applied; nil: at once.
    var commitDelay: TimeSpan? { get }
    /// The pause between the pieces of a body; nil: the body is sent whole.
    var trickle: TimeSpan? { get }

    /// Returns a response in place of the API's.
    mutating func interception(of request: NotesRequest) -> NotesReply?
    /// True if the connection of write number `sequence` is closed before the write is applied.
    mutating func dropsBeforeCommit(of sequence: Int) -> Bool
    /// True if the write is answered as if a request with the same key were still running.
    mutating func claimsRunning() -> Bool
    /// True if the connection of write number `sequence` is closed after the write was applied.
    mutating func dropsAfterCommit(of sequence: Int) -> Bool
    /// True if an applied write is answered 500.
    mutating func failsAfterCommit() -> Bool
    /// Changes a response before it is sent.
    func altered(_ reply: NotesReply) -> NotesReply
}

extension NotesInterference {
    package var ignoresKeys: Bool { false }
    package var forgetsKeysAfter: TimeSpan? { nil }
    package var weakensETags: Bool { false }
    package var deleteAgainIsNotFound: Bool { false }
    package var requiresToken: Bool { false }
    package var commitDelay: TimeSpan? { nil }
    package var trickle: TimeSpan? { nil }

    package mutating func interception(of request: NotesRequest) -> NotesReply? { nil }
    package mutating func dropsBeforeCommit(of sequence: Int) -> Bool { false }
    package mutating func claimsRunning() -> Bool { false }
    package mutating func dropsAfterCommit(of sequence: Int) -> Bool { false }
    package mutating func failsAfterCommit() -> Bool { false }
    package func altered(_ reply: NotesReply) -> NotesReply { reply }
}

/// No interference.
struct NoInterference: NotesInterference {}
