// The error of an operation that cannot be sent.
import RockpoolCore
import RockpoolStore

/// The reason why an operation cannot be sent in its current form; no byte of it was sent.
struct DispatchBlocked: Error {
    var disposition: Disposition

    init(disposition: Disposition) { self.disposition = disposition }

    /// The body cannot be read: for good if it is damaged, else for now.
    init(unreadable error: any Error, now: Timestamp) {
        disposition =
            error is DamagedBody
            ? Disposition(state: .dead, reason: .damaged, countsAsAnswered: false, detail: "\(error)")
            : Disposition(state: .pending, nextAttemptAt: now + .seconds(5), countsAsAnswered: false, detail: "its body: \(error)")
    }
}
