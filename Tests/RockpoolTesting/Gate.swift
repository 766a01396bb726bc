// Something that waits until a test lets it go on.
import Synchronization

/// Closed until it is opened; then open for good.
package final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    package init() {}

    package func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    package func opened() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiting.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }
}

extension Gate {
    /// Whether something has happened yet, for those who do not wait for it.
    package final class Flag: Sendable {
        private let state = Mutex(false)

        package init() {}

        package var isRaised: Bool { state.withLock { $0 } }
        package func raise() { state.withLock { $0 = true } }
    }
}
