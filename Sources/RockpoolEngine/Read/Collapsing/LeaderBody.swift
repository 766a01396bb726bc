// The leader's body; abandoned on deinit if it was never taken.
import RockpoolCore
import Synchronization

/// A body for one reader, taken at most once. If it is dropped untaken, it is abandoned, so that no fetch stalls after its client has left.
final class LeaderBody: Sendable {
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
