import DequeModule
// A bounded pipe between whoever receives body bytes and whoever sends them on: back-pressure end to end (docs/architecture.md#parts).
package import NIOCore
package import RockpoolCore
import Synchronization

/// Body bytes on their way from one side of the proxy to the other. The producer never waits: it is told to pause
/// and told when to go on; the consumer either awaits the next chunk or polls for it from a thread of its own.
///
/// All pipes of a process share a budget: while they hold more, each is content with less. A crowd of clients that do not read costs less
/// memory then, and a few that do are as fast as ever.
package final class BodyPipe: BodySource {
    /// What a polling consumer finds.
    package enum Taken: Equatable, Sendable { case bytes(Int), empty, end, failed }
    /// What the producer is told, on whatever thread caused it.
    package enum Signal: Equatable, Sendable {
        /// The consumer wants its first bytes; a client waiting for `100 Continue` may be told to send.
        case wanted
        /// There is room again after `offer` said to pause.
        case drained
        /// The consumer has left; nothing more is needed.
        case abandoned
    }

    private struct State {
        var chunks = Deque<ByteBuffer>()
        var buffered = 0
        var isEnded = false
        var failure: TransferFailure?
        var isAbandoned = false
        var isWanted = false
        var isPaused = false
        var waiter: CheckedContinuation<Void, Never>?
        var onSignal: (@Sendable (Signal) -> Void)?
        var onReadable: (@Sendable () -> Void)?

        func isDrained(below mark: Int) -> Bool { buffered < mark }
    }

    private let state = Mutex(State())
    private let highWater: Int
    private let budget: Budget

    /// - Parameters:
    ///   - highWater: bytes held before the producer is asked to pause.
    ///   - budget: shared with other pipes.
    package init(highWater: Int = 256 * 1024, budget: Budget = .process) {
        self.highWater = highWater
        self.budget = budget
    }

    deinit { budget.change(by: -state.withLock(\.buffered)) }

    /// Bytes from which on the producer is to pause; it goes on below half of them.
    private var mark: Int { budget.isExceeded ? min(highWater, Budget.share) : highWater }

    /// A pipe that already holds the whole body.
    package convenience init(whole bytes: ByteBuffer) {
        self.init()
        offer(bytes)
        finish()
    }

    /// A body that has broken off before its first byte.
    convenience init(broken failure: TransferFailure) {
        self.init()
        fail(failure)
    }

    // MARK: producer

    /// Names what hears the consumer's signals. One that came before is told at once.
    package func onSignal(_ listener: @escaping @Sendable (Signal) -> Void) {
        let missed: Signal? = state.withLock {
            $0.onSignal = listener
            return $0.isAbandoned ? .abandoned : $0.isWanted ? .wanted : nil
        }
        if let missed { listener(missed) }
    }

    /// Whether the pipe holds as much as it should.
    package var isFull: Bool { state.withLock { $0.buffered >= mark && !$0.isAbandoned } }

    /// Adds a chunk. False asks to pause until `.drained`; the chunk is taken all the same.
    @discardableResult
    package func offer(_ chunk: ByteBuffer) -> Bool {
        guard chunk.readableBytes > 0 else { return true }
        return wake {
            guard !$0.isAbandoned, !$0.isEnded else { return true }
            $0.chunks.append(chunk)
            $0.buffered += chunk.readableBytes
            budget.change(by: chunk.readableBytes)
            $0.isPaused = $0.buffered >= mark
            return !$0.isPaused
        }
    }

    /// The producer pauses without having offered anything (it keeps what it has).
    package func pause() {
        // The consumer may have made room since it was full: then nothing later would say so.
        let isDrained = state.withLock {
            $0.isPaused = !$0.isDrained(below: max(1, mark / 2))
            return !$0.isPaused
        }
        if isDrained { state.withLock(\.onSignal)?(.drained) }
    }

    /// The body is complete.
    package func finish() { wake { $0.isEnded = true } }

    /// The body broke off: the consumer must not take what it has for the whole.
    package func fail(_ failure: TransferFailure) {
        wake {
            guard !$0.isEnded else { return }
            $0.failure = failure
            $0.isEnded = true
        }
    }

    private func wake<T>(_ change: (inout State) -> T) -> T {
        let (result, waiter, readable) = state.withLock {
            let result = change(&$0)
            let waiter = $0.waiter
            $0.waiter = nil
            return (result, waiter, $0.onReadable)
        }
        waiter?.resume()
        readable?()
        return result
    }

    // MARK: consumer

    /// The next chunk, nil at the end. Throws what broke the body off. The task's cancellation abandons the body.
    package func next() async throws(TransferFailure) -> ByteBuffer? {
        while true {
            if let step = poll() { return try step.get() }
            await withTaskCancellationHandler {
                await change()
            } onCancel: {
                abandon()
            }
        }
    }

    /// The same for a body that others read too: not cut short by the cancellation of the task that happens to fetch for them.
    func nextWhateverHappens() async throws(TransferFailure) -> ByteBuffer? {
        while true {
            if let step = poll() { return try step.get() }
            await change()
        }
    }

    /// Gives back the rest of a chunk, which is the next again. For the one consumer that took it.
    func putBack(_ rest: ByteBuffer) {
        guard rest.readableBytes > 0 else { return }
        state.withLock {
            guard !$0.isAbandoned else { return }
            $0.chunks.prepend(rest)
            $0.buffered += rest.readableBytes
            budget.change(by: rest.readableBytes)
        }
    }

    private func change() async {
        await withCheckedContinuation { waiter in
            let ready = state.withLock {
                if !$0.chunks.isEmpty || $0.isEnded || $0.isAbandoned { return true }
                $0.waiter = waiter
                return false
            }
            if ready { waiter.resume() }
        }
    }

    private func poll() -> Result<ByteBuffer?, TransferFailure>? {
        consume { state in
            if let chunk = state.chunks.popFirst() {
                state.buffered -= chunk.readableBytes
                budget.change(by: -chunk.readableBytes)
                return .success(chunk)
            }
            if let failure = state.failure { return .failure(failure) }
            if state.isAbandoned { return .failure(.cancelled) }
            return state.isEnded ? .success(nil) : nil
        }
    }

    /// Copies waiting bytes without waiting: for a consumer that is a callback on its own thread.
    package func take(into target: UnsafeMutableRawBufferPointer) -> Taken {
        consume { state in
            guard var chunk = state.chunks.popFirst() else {
                return state.failure != nil || state.isAbandoned ? .failed : state.isEnded ? .end : .empty
            }
            let count = min(chunk.readableBytes, target.count)
            unsafe chunk.readWithUnsafeReadableBytes { bytes in
                unsafe target.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
                return count
            }
            if chunk.readableBytes > 0 { state.chunks.prepend(chunk) }
            state.buffered -= count
            budget.change(by: -count)
            return .bytes(count)
        }
    }

    /// Names what is called whenever a polling consumer has something to find.
    package func onReadable(_ listener: @escaping @Sendable () -> Void) { state.withLock { $0.onReadable = listener } }

    /// The consumer leaves; the producer is told to stop.
    package func abandon() {
        let (waiter, listener) = state.withLock {
            let wasLive = !$0.isAbandoned && !$0.isEnded
            $0.isAbandoned = true
            $0.chunks.removeAll()
            budget.change(by: -$0.buffered)
            $0.buffered = 0
            let waiter = $0.waiter
            $0.waiter = nil
            return (waiter, wasLive ? $0.onSignal : nil)
        }
        waiter?.resume()
        listener?(.abandoned)
    }

    private func consume<T>(_ change: (inout State) -> T) -> T {
        let (result, signals, listener) = state.withLock {
            let result = change(&$0)
            var signals: [Signal] = []
            if !$0.isWanted {
                $0.isWanted = true
                signals.append(.wanted)
            }
            if $0.isPaused, $0.isDrained(below: max(1, mark / 2)) {
                $0.isPaused = false
                signals.append(.drained)
            }
            return (result, signals, $0.onSignal)
        }
        if let listener { signals.forEach(listener) }
        return result
    }
}

extension BodyPipe {
    /// What pipes hold together.
    package final class Budget: Sendable {
        /// That of everything that passes through this process.
        package static let process = Budget(bytes: 8 * 1024 * 1024)
        /// What a pipe may hold while the budget is exceeded: two of libcurl's buffers.
        package static let share = 32 * 1024

        private let limit: Int
        private let held = Atomic(0)

        package init(bytes limit: Int) { self.limit = limit }

        /// Whether more is held than the limit: then each is to be content with less.
        package var isExceeded: Bool { held.load(ordering: .relaxed) > limit }

        /// Adds to what is held, or takes away from it.
        package func change(by bytes: Int) { held.add(bytes, ordering: .relaxed) }
    }
}
