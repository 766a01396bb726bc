// Errors said once, at the edge where they are handled (docs/architecture.md#rules).
import Logging

extension Logger {
    /// Says that `what` failed. A task that was cancelled, because its client left or the server stops, has not failed.
    func failed(_ what: String, _ error: any Error) {
        if error is CancellationError { return }
        self.error("\(what): \(error)")
    }
}
