// Kill points for crash tests: the moments between two durable steps (docs/outbox.md#fault-points).
import Glibc
import Synchronization

/// A moment at which a crash must lose nothing. K7–K9 are on the wire: the test's peer kills the process there.
package enum FailPoint: String, CaseIterable, Sendable {
    case requestRead = "K1"
    case blobWritten = "K2"
    case blobSynchronized = "K3"
    case beforeAcceptCommit = "K4"
    case afterAcceptCommit = "K5"
    case leaseCommitted = "K6"
    case answerHeadRead = "K10"
    case beforeOutcomeCommit = "K11"
    case afterOutcomeCommit = "K12"
    case projected = "K13"
    case squashing = "K14"
    case merging = "K15"
    case purging = "K16"
    case migrating = "K17"
    case beforeSharedCommit = "F1"
    case betweenCommits = "F2"
    case afterEmptying = "F3"

    /// `ROCKPOOL_KILL_AT=K5`, or `K5:3` for the third time the point is reached. Unset outside tests.
    private static let words = unsafe getenv("ROCKPOOL_KILL_AT").map { unsafe String(cString: $0).split(separator: ":") } ?? []
    private static let armed = words.first.flatMap { FailPoint(rawValue: String($0)) }
    private static let countdown = Atomic(words.dropFirst().first.flatMap { Int($0) } ?? 1)

    /// Kills the process at once with SIGKILL if this point is armed and its countdown has ended.
    package func reached() {
        guard Self.armed == self, Self.countdown.subtract(1, ordering: .relaxed).newValue == 0 else { return }
        kill(getpid(), SIGKILL)
        // No further statement may run before the signal takes effect.
        while true { pause() }
    }
}
