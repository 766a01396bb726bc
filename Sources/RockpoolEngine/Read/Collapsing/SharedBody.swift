// A response body that is stored while one or more clients read it (docs/caching.md#coalesced-fetches; RFC 9111 §3.3).
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

/// Passes an upstream's body to its readers and to the cache. Only its readers drive the transfer; when the last one has left,
/// `ClientAbortPolicy` decides whether the rest is fetched.
final class SharedBody: Sendable {
    /// Handlers for the copy. Exactly one of the first three is called, then `ended`.
    struct Storing: Sendable {
        /// The writer contains the whole body. Throws `UnprovenBody` if the body contradicts the origin's digests; then no reader receives
        /// the last chunk of a body of announced length.
        let whole: @Sendable (CacheWriter) async throws -> Void
        /// The body broke off after the bytes in the writer; only the writer knows their number.
        let interrupted: @Sendable (CacheWriter) async throws -> Void
        /// The copy was given up while the body arrived: there was no space, or writing failed.
        let givenUp: @Sendable (CacheWriter) -> Void
        /// The store is not changed any more for this body.
        let ended: @Sendable () -> Void
        /// Reads along, before the copy gets the bytes.
        var watch: EchoWatch?
        /// The rule for a fetch without a client; nil: the built-in bounds.
        var onAbort: AbortRule?
    }

    private struct State {
        var window: SharedBodyWindow
        var waiting: [CheckedContinuation<Void, Never>] = []
        var isStoring = true
        /// Returns the bytes from a position on, for readers of a transfer that was cut.
        var rest: (@Sendable (Int64) -> any BodySource)?

        /// Stops storing the copy. Returns true if it was being stored until now.
        mutating func giveUp() -> Bool {
            defer { isStoring = false }
            return isStoring
        }
    }

    /// Number of bytes held for slower readers, unless the client that has caused the fetch has more in memory than it may.
    private static let windowLimit = Int.mib(1)

    private let source: BodyPipe
    /// Length of the whole body; nil if not announced.
    private let length: Int64?
    private let writer: CacheWriter
    private let storing: Storing
    private let logger: Logger
    private let state: Mutex<State>

    /// - Parameter prefix: Number of bytes that the writer already contains; they are read before the received ones.
    init(_ source: BodyPipe, length: Int64?, prefix: Int64 = 0, writer: CacheWriter, storing: Storing, logger: Logger) {
        self.source = source
        self.length = length
        self.writer = writer
        self.storing = storing
        self.logger = logger
        state = Mutex(State(window: SharedBodyWindow(limit: Self.windowLimit, prefix: prefix)))
    }

    deinit { source.budget.change(by: -state.withLock(\.window.held)) }

    /// Returns a reader that starts at `offset`; nil if the bytes there are no longer available or the body has failed.
    /// - Parameter offset: Position of bytes received, or still expected.
    func reader(from offset: Int64 = 0) -> Reader? {
        state.withLock { $0.window.join(at: offset) }.map { Reader(self, number: $0) }
    }

    /// Number of bytes received, including a prefix.
    var received: Int64 { state.withLock(\.window.end) }

    /// Permits to cut the transfer. Called once, before a reader begins.
    /// - Parameter rest: Returns the bytes from a position on, from elsewhere.
    func mayBeCut(continuing rest: @escaping @Sendable (Int64) -> any BodySource) { state.withLock { $0.rest = rest } }

    /// Ends the transfer before `position`, which another one brings sooner; its readers continue there.
    /// - Returns: False if the transfer has come that far, or cannot be cut.
    func cut(at position: Int64) -> Bool { state.withLock { $0.rest != nil && $0.isStoring && $0.window.cut(at: position) } }

    // MARK: reading

    /// One reader of the body. Leaves when it is deallocated.
    final class Reader: BodySource {
        private let body: SharedBody
        private let number: Int
        /// What follows the end of a transfer that was cut.
        private let rest = Mutex<(any BodySource)?>(nil)

        fileprivate init(_ body: SharedBody, number: Int) {
            self.body = body
            self.number = number
        }

        func next() async throws(TransferFailure) -> ByteBuffer? {
            if let rest = rest.withLock(\.self) { return try await rest.next() }
            let result = await withTaskCancellationHandler {
                await body.next(for: number)
            } onCancel: {
                abandon()
            }
            switch try result.get() {
            case .chunk(let chunk): return chunk
            case .end: return nil
            case .cut(let position):
                guard let following = body.rest(from: position) else { throw .copyLost }
                rest.withLock { $0 = following }
                body.leave(reader: number)
                return try await following.next()
            }
        }

        func abandon() {
            body.leave(reader: number)
            rest.withLock(\.self)?.abandon()
        }

        deinit { body.leave(reader: number) }
    }

    fileprivate enum Received {
        case chunk(ByteBuffer)
        case end
        case cut(at: Int64)
    }

    private func rest(from position: Int64) -> (any BodySource)? { state.withLock(\.rest)?(position) }

    private func next(for reader: Int) async -> Result<Received, TransferFailure> {
        while true {
            switch change({ $0.next(for: reader) }) {
            case .chunk(let chunk): return .success(.chunk(chunk))
            case .end: return .success(.end)
            case .cut(let position): return .success(.cut(at: position))
            case .failed(let failure): return .failure(failure)
            case .pull: await pull()
            case .wait(let version): await wait(for: version)
            case .reread(let offset):
                guard let chunk = try? await writer.read(at: offset, upTo: .kib(64)) else { return .failure(.copyLost) }
                change { $0.advance(reader, by: chunk.readableBytes) }
                return .success(.chunk(chunk))
            }
        }
    }

    /// Changes the window, and resumes waiting readers if the version has changed.
    @discardableResult
    private func change<T>(_ body: (inout SharedBodyWindow) -> T) -> T {
        let (result, waiting) = state.withLock { state in
            let (before, held) = (state.window.version, state.window.held)
            state.window.limit = source.budget.isExceeded ? SharedBudget.Share.least : Self.windowLimit
            let result = body(&state.window)
            if state.window.held != held { source.budget.change(by: state.window.held - held) }
            guard state.window.version != before else { return (result, [CheckedContinuation<Void, Never>]()) }
            defer { state.waiting = [] }
            return (result, state.waiting)
        }
        for continuation in waiting { continuation.resume() }
        return result
    }

    private func wait(for version: Int) async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.window.version != version { return true }
                state.waiting.append(continuation)
                return false
            }
            if isOver { continuation.resume() }
        }
    }

    private func leave(reader: Int) {
        let isStoring = state.withLock(\.isStoring)
        let parting = change { window in
            window.leave(reader) { received in
                ClientAbortPolicy.decide(
                    received: ByteCount(received), announced: length.map { ByteCount($0) }, isStored: isStoring, hasOtherReaders: false,
                    rule: storing.onAbort)
            }
        }
        switch parting {
        case nil: break
        case .finish: Task { await finish() }
        case .abort(let isPulling):
            source.abandon()
            if !isPulling { Task { await end(with: .failed(.cancelled)) } }
        }
    }

    /// Fetches the rest without a client, as long as the copy is stored.
    private func finish() async {
        guard let reader = state.withLock({ $0.window.join(at: $0.window.end) }) else { return await end(with: .failed(.cancelled)) }
        // Not beyond a cut: no client wants what follows.
        while state.withLock(\.isStoring), case .success(.chunk(let chunk)) = await next(for: reader), chunk.readableBytes > 0 {}
        leave(reader: reader)
    }

    // MARK: fetching

    /// Fetches one chunk for all readers. Not cancelled when the reader that runs it leaves.
    private func pull() async {
        if state.withLock(\.window.untilCut) == 0 {
            source.abandon()
            return await end(with: .cut)
        }
        do throws(TransferFailure) {
            guard var chunk = try await source.nextWhateverHappens() else { return await end(with: .whole) }
            if let left = state.withLock(\.window.untilCut), left > 0, Int64(chunk.readableBytes) > left {
                chunk = chunk.readSlice(length: Int(left)) ?? chunk
            }
            let isCopied = await copy(chunk)
            // After the last byte a client may send the same request at once, and `Cache-Status` has promised `stored`: finish the copy
            // first.
            let isLast = length.map { state.withLock(\.window.end) + Int64(chunk.readableBytes) >= $0 } ?? false
            if isLast, try await source.nextWhateverHappens() == nil {
                let ending = await settle(with: change { $0.close(.whole) })
                change {
                    if ending == .whole { _ = $0.append(chunk, isCopied: isCopied) }
                    $0.finish(ending)
                }
            } else if let ending = change({ $0.append(chunk, isCopied: isCopied) }) {
                await end(with: ending)
            }
        } catch {
            await end(with: .failed(error))
        }
    }

    private func end(with ending: SharedBodyWindow.Ending) async {
        let settled = await settle(with: change { $0.close(ending) })
        change { $0.finish(settled) }
    }

    /// Appends the chunk to the copy and returns true on success. If writing fails, the copy is given up and the response continues.
    private func copy(_ chunk: ByteBuffer) async -> Bool {
        guard state.withLock(\.isStoring) else { return false }
        storing.watch?.read(chunk)
        do {
            if try await writer.append(chunk) { return true }
        } catch {
            logger.failed("cache write failed, the response goes on uncached", error: error)
        }
        if state.withLock({ $0.giveUp() }) {
            storing.givenUp(writer)
            storing.ended()
        }
        return false
    }

    /// Commits or drops the copy, once.
    /// - Returns: The ending that the readers receive.
    private func settle(with ending: SharedBodyWindow.Ending) async -> SharedBodyWindow.Ending {
        guard state.withLock({ $0.giveUp() }) else { return ending }
        defer { storing.ended() }
        do {
            switch ending {
            case .whole: try await storing.whole(writer)
            case .failed, .cut: try await storing.interrupted(writer)
            }
        } catch is IncompleteBody where ending != .whole {
            // No bytes were received.
        } catch is UnprovenBody {
            logger.warning("a body was not what its origin says it is, and is not stored")
            return .failed(.unproven)
        } catch {
            logger.notStored(error)
        }
        return ending
    }
}

extension TransferFailure {
    /// The joined parts do not match the origin's digests.
    static let unproven = TransferFailure(
        kind: .protocolError, sent: .yes, detail: "the parts of the body do not make the whole its origin names")
}
