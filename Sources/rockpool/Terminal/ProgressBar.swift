// A progress bar as one line that is updated (docs/reference/cli.md#common-options).
import Synchronization

/// The line that `Waiting` shows.
final class ProgressBar: Sendable {
    private static let width = 20
    private let what: String
    private let state: Mutex<String>

    /// - Parameter what: the name of the task, shown alone until the first progress.
    init(_ what: String) {
        self.what = what
        state = Mutex(what)
    }

    var text: String { state.withLock(\.self) }

    /// - Parameter words: the current step.
    func show(_ done: Int, of count: Int, words: String) {
        let filled = count > 0 ? min(Self.width, max(0, done * Self.width / count)) : 0
        let bar = String(repeating: "#", count: filled) + String(repeating: "-", count: Self.width - filled)
        state.withLock { $0 = "\(what) [\(bar)] \(words)" }
    }
}
