// How far something is, as one line that changes (contract §1).
import Synchronization

/// The line that `Waiting` shows.
final class ProgressBar: Sendable {
    private static let width = 20
    private let what: String
    private let state: Mutex<String>

    /// - Parameter what: is going on; all that is shown until something is known.
    init(_ what: String) {
        self.what = what
        state = Mutex(what)
    }

    var text: String { state.withLock(\.self) }

    /// - Parameter words: what is done now.
    func show(_ done: Int, of count: Int, _ words: String) {
        let filled = count > 0 ? min(Self.width, max(0, done * Self.width / count)) : 0
        let bar = String(repeating: "#", count: filled) + String(repeating: "-", count: Self.width - filled)
        state.withLock { $0 = "\(what) [\(bar)] \(words)" }
    }
}
