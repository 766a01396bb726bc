// Where a test kills the process: the moments between two durable steps (outbox.md §3.2, K1–K17).
import Glibc
import Synchronization

/// A moment at which dying must lose nothing. K7–K9 lie on the wire: the other end of it kills there.
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

    /// `ROCKPOOL_KILL_AT=K5`, or `K5:3` for the third time it is reached. Unset outside tests.
    private static let words = unsafe getenv("ROCKPOOL_KILL_AT").map { unsafe String(cString: $0).split(separator: ":") } ?? []
    private static let armed = words.first.flatMap { FailPoint(rawValue: String($0)) }
    private static let countdown = Atomic(words.dropFirst().first.flatMap { Int($0) } ?? 1)

    /// Ends the process at once, as the kernel would, when it is armed for here.
    package func reached() {
        guard Self.armed == self, Self.countdown.subtract(1, ordering: .relaxed).newValue == 0 else { return }
        kill(getpid(), SIGKILL)
        // Not one statement more.
        while true { pause() }
    }
}
