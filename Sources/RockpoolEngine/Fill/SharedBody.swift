// A response body that is stored while it is read, by one or by many (design §5; RFC 9111 §3.3).
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
        /// All of it is in the writer.
        let whole: @Sendable (CacheWriter) async throws -> Void
        /// It broke off after so many bytes.
        let interrupted: @Sendable (CacheWriter, Int64) async throws -> Void
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

    /// One who reads from the beginning on; nil when that is gone for good.
    /// - Parameter offset: of bytes that have come.
    func reader(from offset: Int64 = 0) -> Reader? {
        state.withLock { $0.window.join(at: offset) }.map { Reader(self, number: $0) }
    }

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
                guard let chunk = try? await writer.read(at: offset, upTo: 262_144) else { return .failure(.copyLost) }
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
        let departure = change { window in
            window.leave(reader) { received in
                Departure.decide(
                    received: ByteCount(received), announced: length.map { ByteCount($0) }, isStored: isKept, hasOtherReaders: false)
            }
        }
        switch departure {
        case nil: break
        case .finish: Task { await finish() }
        case .abort:
            source.abandon()
            // Nobody may be pulling: then nobody would notice.
            Task { await end(.failed(.cancelled)) }
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
                change { $0.close(.whole) }
                await keep(.whole)
                change {
                    $0.append(chunk, isCopied: isCopied)
                    $0.finish(.whole)
                }
            } else {
                change { $0.append(chunk, isCopied: isCopied) }
            }
        } catch {
            await end(.failed(error))
        }
    }

    private func end(_ ending: BodyWindow.Ending) async {
        change { $0.close(ending) }
        await keep(ending)
        change { $0.finish(ending) }
    }

    /// Whether the copy has it. A copy that fails is given up, the response goes on.
    private func copy(_ chunk: ByteBuffer) async -> Bool {
        guard state.withLock(\.isKept) else { return false }
        do {
            if try await writer.append(chunk) { return true }
        } catch {
            logger.failed("cache write failed, the response goes on uncached", error)
        }
        if state.withLock({ $0.giveUp() }) { keeping.ended() }
        return false
    }

    /// Decides the fate of the copy, once.
    private func keep(_ ending: BodyWindow.Ending) async {
        guard state.withLock({ $0.giveUp() }) else { return }
        do {
            switch ending {
            case .whole: try await keeping.whole(writer)
            case .failed: try await keeping.interrupted(writer, state.withLock(\.window.end))
            }
        } catch {
            logger.failed("a response could not be kept", error)
        }
        keeping.ended()
    }
}
