// Logs an error once, where it is handled (docs/architecture.md#rules).
import Logging

extension Logger {
    /// Logs that `what` failed. A cancelled task, because its client left or the server stops, is not a failure.
    func failed(_ what: String, error: any Error) {
        if error is CancellationError { return }
        self.error("\(what): \(error)")
    }
}
