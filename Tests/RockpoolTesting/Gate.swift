// A gate that blocks a task until the test opens it.
import Synchronization

/// A gate that is closed at first and stays open once opened.
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
    /// A flag for an event that has happened, for callers that do not wait for it.
    package final class Flag: Sendable {
        private let state = Mutex(false)

        package init() {}

        package var isRaised: Bool { state.withLock { $0 } }
        package func raise() { state.withLock { $0 = true } }
    }
}
