// Logs an error once, where it is handled (docs/architecture.md#rules).
import Logging
import RockpoolStore

extension Logger {
    /// Logs that `what` failed. A cancelled task, because its client left or the server stops, is not a failure.
    func failed(_ what: String, error: any Error) {
        if error is CancellationError { return }
        self.error("\(what): \(error)")
    }

    /// Logs that a response was not stored, unless another copy has come before it: a whole one, or that of a write of its client.
    func notStored(_ error: any Error) {
        if error is WholeIsStored || error is OlderThanOwnWrite { return }
        failed("a response could not be stored", error: error)
    }
}
