// A response body that is stored while it is read, by one or by many (docs/caching.md#coalesced-fetches; RFC 9111 §3.3).
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

/// Passes an upstream's body to its readers and to the cache. Nobody drives it but its readers; when the last has left, the rule of
/// `Departure` says whether it is fetched to the end.
final class SharedBody: Sendable {
    /// What becomes of the copy. One of the first two is called, then `ended`.
    struct Keeping: Sendable {
        /// All of it is in the writer. Throws `UnprovenBody` when it is not what it should be: then nobody gets its last bytes.
        let whole: @Sendable (CacheWriter) async throws -> Void
        /// It broke off after what is in the writer, which alone knows how much that is.
        let interrupted: @Sendable (CacheWriter) async throws -> Void
        /// The copy could not be kept while the body came, for want of room.
        let givenUp: @Sendable (CacheWriter) -> Void
        /// Nothing more happens to the store on its account.
        let ended: @Sendable () -> Void
    }

    private struct State {
        var window: BodyWindow
        var waiting: [CheckedContinuation<Void, Never>] = []
        var isKept = true

        /// Whether the copy was still being kept.
        mutating func giveUp() -> Bool {
            defer { isKept = false }
            return isKept
        }
    }

    private let source: BodyPipe
    /// Bytes of the whole; nil when it was not announced.
    private let length: Int64?
    private let writer: CacheWriter
    private let keeping: Keeping
    private let logger: Logger
    private let state: Mutex<State>

    /// - Parameter prefix: bytes the writer already holds, which are read before those that come.
    init(_ source: BodyPipe, length: Int64?, prefix: Int64 = 0, writer: CacheWriter, keeping: Keeping, logger: Logger) {
        self.source = source
        self.length = length
        self.writer = writer
        self.keeping = keeping
        self.logger = logger
        state = Mutex(State(window: BodyWindow(prefix: prefix)))
    }

    /// One who reads from `offset` on; nil when the bytes there are gone for good.
    /// - Parameter offset: Of bytes that have come, or are still to come.
    func reader(from offset: Int64 = 0) -> Reader? {
        state.withLock { $0.window.join(at: offset) }.map { Reader(self, number: $0) }
    }

    /// Bytes that have come.
    var received: Int64 { state.withLock(\.window.end) }

    // MARK: reading

    /// One of those who read. Leaves when it is let go of.
    final class Reader: BodySource {
        private let body: SharedBody
        private let number: Int

        fileprivate init(_ body: SharedBody, number: Int) {
            self.body = body
            self.number = number
        }

        func next() async throws(TransferFailure) -> ByteBuffer? {
            let result = await withTaskCancellationHandler {
                await body.next(number)
            } onCancel: {
                abandon()
            }
            return try result.get()
        }

        func abandon() { body.leave(number) }

        deinit { body.leave(number) }
    }

    private func next(_ reader: Int) async -> Result<ByteBuffer?, TransferFailure> {
        while true {
            switch change({ $0.next(reader) }) {
            case .chunk(let chunk): return .success(chunk)
            case .end: return .success(nil)
            case .failed(let failure): return .failure(failure)
            case .pull: await pull()
            case .wait(let version): await wait(for: version)
            case .reread(let offset):
                guard let chunk = try? await writer.read(at: offset, upTo: 65_536) else { return .failure(.copyLost) }
                change { $0.advance(reader, by: chunk.readableBytes) }
                return .success(chunk)
            }
        }
    }

    /// Changes the window, and wakes who waited for that.
    @discardableResult
    private func change<T>(_ body: (inout BodyWindow) -> T) -> T {
        let (result, waiting) = state.withLock { state in
            let before = state.window.version
            let result = body(&state.window)
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

    private func leave(_ reader: Int) {
        let isKept = state.withLock(\.isKept)
        let parting = change { window in
            window.leave(reader) { received in
                Departure.decide(
                    received: ByteCount(received), announced: length.map { ByteCount($0) }, isStored: isKept, hasOtherReaders: false)
            }
        }
        switch parting {
        case nil: break
        case .finish: Task { await finish() }
        case .abort(let isPulling):
            source.abandon()
            if !isPulling { Task { await end(.failed(.cancelled)) } }
        }
    }

    /// Reads on for nobody, as long as it is being kept.
    private func finish() async {
        guard let reader = reader(from: state.withLock(\.window.end)) else { return await end(.failed(.cancelled)) }
        while state.withLock(\.isKept), let chunk = try? await reader.next(), chunk.readableBytes > 0 {}
    }

    // MARK: fetching

    /// Fetches one chunk for everybody. Never cut short by the leaving of the reader it happened to fall to.
    private func pull() async {
        do throws(TransferFailure) {
            guard let chunk = try await source.nextWhateverHappens() else { return await end(.whole) }
            let isCopied = await copy(chunk)
            // Whoever has the last byte may ask again at once, and `stored` was promised: the copy is finished first.
            let isLast = length.map { state.withLock(\.window.end) + Int64(chunk.readableBytes) >= $0 } ?? false
            if isLast, try await source.nextWhateverHappens() == nil {
                let ending = await keep(change { $0.close(.whole) })
                change {
                    if ending == .whole { _ = $0.append(chunk, isCopied: isCopied) }
                    $0.finish(ending)
                }
            } else if let ending = change({ $0.append(chunk, isCopied: isCopied) }) {
                await end(ending)
            }
        } catch {
            await end(.failed(error))
        }
    }

    private func end(_ ending: BodyWindow.Ending) async {
        let settled = await keep(change { $0.close(ending) })
        change { $0.finish(settled) }
    }

    /// Whether the copy has it. A copy that fails is given up, the response goes on.
    private func copy(_ chunk: ByteBuffer) async -> Bool {
        guard state.withLock(\.isKept) else { return false }
        do {
            if try await writer.append(chunk) { return true }
        } catch {
            logger.failed("cache write failed, the response goes on uncached", error)
        }
        if state.withLock({ $0.giveUp() }) {
            keeping.givenUp(writer)
            keeping.ended()
        }
        return false
    }

    /// Decides the fate of the copy, once.
    /// - Returns: how the body ends for its readers.
    private func keep(_ ending: BodyWindow.Ending) async -> BodyWindow.Ending {
        guard state.withLock({ $0.giveUp() }) else { return ending }
        defer { keeping.ended() }
        do {
            switch ending {
            case .whole: try await keeping.whole(writer)
            case .failed: try await keeping.interrupted(writer)
            }
        } catch is WholeIsStored {
            // Another transfer was faster.
        } catch is IncompleteBody where ending != .whole {
            // Nothing has come.
        } catch is UnprovenBody {
            logger.warning("a body was not what its origin says it is, and is not stored")
            return .failed(.unproven)
        } catch {
            logger.failed("a response could not be kept", error)
        }
        return ending
    }
}

extension TransferFailure {
    /// What was put together is not what the origin says it is.
    static let unproven = TransferFailure(
        kind: .protocolError, sent: .yes, detail: "the parts of the body do not make the whole its origin names")
}
