// A bounded pipe between the receiver and the sender of body bytes, with end-to-end back-pressure (docs/architecture.md#parts).
import DequeModule
package import HTTPTypes
package import NIOCore
package import RockpoolCore
import Synchronization

/// Body bytes in transit between the two sides of the proxy. The producer never blocks: signals pause and resume it. The consumer awaits
/// the next chunk, or polls for it from its own thread.
///
/// The pipes of a client share its part of the memory for bodies. While that is exceeded, each of them buffers less: many that are not read
/// then cost less memory, and a small number keeps full speed.
package final class BodyPipe: BodySource {
    /// The result of a poll.
    package enum Taken: Equatable, Sendable { case bytes(Int), empty, end, failed }
    /// A signal to the producer, delivered on the thread that caused it.
    package enum Signal: Equatable, Sendable {
        /// The consumer requests the first bytes; a client that waits for `100 Continue` can now receive it.
        case wanted
        /// Space is available again after `offer` returned false.
        case drained
        /// The consumer has left and needs no more bytes.
        case abandoned
    }

    private struct State {
        var chunks = Deque<ByteBuffer>()
        var buffered = 0
        var isEnded = false
        var failure: TransferFailure?
        var trailers = HTTPFields()
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
    let budget: SharedBudget.Share

    /// - Parameters:
    ///   - highWater: Number of buffered bytes at which the producer must pause.
    ///   - budget: Shared with other pipes of the client.
    package init(highWater: Int = .kib(256), budget: SharedBudget.Share = .own) {
        self.highWater = highWater
        self.budget = budget
    }

    deinit { budget.change(by: -state.withLock(\.buffered)) }

    /// Number of buffered bytes at which the producer must pause; the producer resumes below half of it.
    private var mark: Int { budget.isExceeded ? min(highWater, SharedBudget.Share.least) : highWater }

    /// A pipe that already contains the whole body.
    package convenience init(whole bytes: ByteBuffer, trailers: HTTPFields = [:]) {
        self.init()
        offer(bytes)
        finish(trailers)
    }

    /// A body that broke off before its first byte.
    convenience init(broken failure: TransferFailure) {
        self.init()
        fail(failure)
    }

    // MARK: producer

    /// Sets the listener for the consumer's signals. An earlier `wanted` or `abandoned` is delivered immediately.
    package func onSignal(_ listener: @escaping @Sendable (Signal) -> Void) {
        let missed: Signal? = state.withLock {
            $0.onSignal = listener
            return $0.isAbandoned ? .abandoned : $0.isWanted ? .wanted : nil
        }
        if let missed { listener(missed) }
    }

    /// True if the buffer has reached its mark.
    package var isFull: Bool { state.withLock { $0.buffered >= mark && !$0.isAbandoned } }

    /// Adds a chunk. Returns false if the producer must pause until `.drained`; the chunk is accepted in either case.
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

    /// Pauses the producer, which keeps its bytes and offers nothing.
    package func pause() {
        // The consumer may have drained the pipe since it was full; then no later signal would follow.
        let isDrained = state.withLock {
            $0.isPaused = !$0.isDrained(below: max(1, mark / 2))
            return !$0.isPaused
        }
        if isDrained { state.withLock(\.onSignal)?(.drained) }
    }

    /// Ends the body as complete, with the fields that followed it.
    package func finish(_ trailers: HTTPFields = [:]) {
        wake {
            $0.trailers = trailers
            $0.isEnded = true
        }
    }

    package var trailers: HTTPFields { state.withLock(\.trailers) }

    /// Ends the body as broken off: the consumer must not treat the received bytes as the whole.
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

    /// Returns the next chunk, nil at the end. Throws the failure that interrupted the body. Cancelling the task abandons the body.
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

    /// Returns the next chunk like `next()`, but ignores cancellation, because the calling task fetches for other readers too.
    func nextWhateverHappens() async throws(TransferFailure) -> ByteBuffer? {
        while true {
            if let step = poll() { return try step.get() }
            await change()
        }
    }

    /// Takes the whole body without waiting.
    /// - Returns: nil if it has not ended, has broken off, has trailers, or more than `limit` bytes.
    package func takeWhole(upTo limit: Int) -> ByteBuffer? {
        state.withLock { state in
            guard state.isEnded, state.failure == nil, !state.isAbandoned, state.trailers.isEmpty, state.buffered <= limit else {
                return nil
            }
            var whole = state.chunks.popFirst() ?? ByteBuffer()
            while var next = state.chunks.popFirst() { whole.writeBuffer(&next) }
            budget.change(by: -state.buffered)
            state.buffered = 0
            return whole
        }
    }

    /// Puts the rest of a chunk back at the front of the pipe. Called only by the consumer that took the chunk.
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

    /// Copies buffered bytes without waiting, for a consumer that runs as a callback on its own thread.
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

    /// Sets the listener that is called when a polling consumer may find bytes or the end.
    package func onReadable(_ listener: @escaping @Sendable () -> Void) { state.withLock { $0.onReadable = listener } }

    /// Abandons the body on behalf of the consumer; an unfinished producer receives `.abandoned`.
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

// MARK: - A body whose beginning was read

/// Makes a body readable from the start again after its beginning was read.
extension BodyPipe {
    /// The bytes already read, followed by the rest as it arrives.
    convenience init(_ start: ByteBuffer, then rest: any BodySource) {
        self.init()
        let (drains, feed) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        onSignal { signal in
            if signal == .abandoned { rest.abandon() }
            feed.yield()
        }
        Task {
            var room = drains.makeAsyncIterator()
            do throws(TransferFailure) {
                offer(start)
                while let chunk = try await rest.next() {
                    if !offer(chunk) { _ = await room.next() }
                }
                finish(rest.trailers)
            } catch {
                fail(error)
            }
        }
    }
}

// MARK: - Taking a body back

/// A body whose beginning was read. A connection that fails before it takes a byte leaves the whole body to be queued
/// (docs/outbox.md#reachability).
final class HeldBody: Sendable {
    private struct State {
        var isWanted = false
        var isTakenBack = false
        var isAbandoned = false
        var isSettled = false
    }

    /// The bytes that were read, and the rest as it arrives.
    let start: ByteBuffer
    let rest: BodyPipe
    private let state = Mutex(State())

    init(_ start: ByteBuffer, then rest: BodyPipe) {
        self.start = start
        self.rest = rest
    }

    /// Returns the body for its consumer. Called once.
    func passed() -> BodyPipe {
        let pipe = BodyPipe()
        let (drains, feed) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        pipe.onSignal { [weak pipe] signal in
            if signal == .wanted, self.begin(), let pipe { Task { await self.pass(to: pipe, drains) } }
            if signal == .abandoned { self.leave() }
            feed.yield()
        }
        return pipe
    }

    /// Takes the whole body back.
    /// - Returns: false if its consumer has had a part of it.
    func takeBack() -> Bool {
        state.withLock { state in
            guard !state.isWanted else { return false }
            state.isTakenBack = true
            return true
        }
    }

    /// Notes that the body is not taken back any more.
    func settle() {
        let isLeft = state.withLock { state in
            state.isSettled = true
            return state.isAbandoned && !state.isTakenBack
        }
        if isLeft { rest.abandon() }
    }

    private func begin() -> Bool {
        state.withLock { state in
            guard !state.isTakenBack else { return false }
            defer { state.isWanted = true }
            return !state.isWanted
        }
    }

    /// The consumer needs no more bytes.
    private func leave() {
        let isOver = state.withLock { state in
            state.isAbandoned = true
            return (state.isWanted || state.isSettled) && !state.isTakenBack
        }
        if isOver { rest.abandon() }
    }

    private func pass(to pipe: BodyPipe, _ drains: AsyncStream<Void>) async {
        var room = drains.makeAsyncIterator()
        do throws(TransferFailure) {
            pipe.offer(start)
            while let chunk = try await rest.next() {
                if !pipe.offer(chunk) { _ = await room.next() }
            }
            pipe.finish(rest.trailers)
        } catch {
            pipe.fail(error)
        }
    }
}
