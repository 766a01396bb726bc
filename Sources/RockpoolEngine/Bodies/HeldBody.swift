// A body that is passed on only once it is wanted: until then it can be taken back (docs/outbox.md#reachability).
import NIOCore
import RockpoolCore
import Synchronization

/// A body whose beginning was read. A connection that fails before it takes a byte leaves the whole body to be queued.
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
