// The body of an answer for whoever asked first. Nobody else drives it: so somebody has to take it, or it is let go of.
import RockpoolCore
import Synchronization

/// One reader's body, to be taken once. Dropped untaken it is abandoned, so that no fetch stands still for a client that has left.
final class Claim: Sendable {
    private let source: Mutex<(any BodySource)?>

    init(_ source: any BodySource) { self.source = Mutex(source) }

    func take() -> (any BodySource)? {
        source.withLock { source in
            defer { source = nil }
            return source
        }
    }

    deinit { take()?.abandon() }
}
