// The clients that follow the requests (docs/reference/admin-api.md#requests).
import ServiceLifecycle
import Synchronization

/// Bounds the number of followers.
final class FollowerCount: Sendable {
    /// How often a follower gets news.
    static let pace = Duration.milliseconds(100)
    /// After this time without a record an empty line is sent, so that a client that has left is noticed.
    static let silence = Duration.seconds(10)

    let limit: Int
    private let count = Mutex(0)
    private let closed = Atomic<Bool>(false)

    init(limit: Int) { self.limit = limit }

    /// Adds a follower; false if there are too many.
    func join() -> Bool {
        count.withLock { count in
            guard count < limit else { return false }
            count += 1
            return true
        }
    }

    /// True once the server stops.
    var isClosed: Bool { closed.load(ordering: .acquiring) }

    /// Waits until the server stops, then lets the followers end.
    func run() async {
        try? await gracefulShutdown()
        closed.store(true, ordering: .releasing)
    }

    func leave() { count.withLock { $0 -= 1 } }
}
