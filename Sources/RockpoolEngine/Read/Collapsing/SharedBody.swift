// A response body that is stored while one or more clients read it (docs/caching.md#coalesced-fetches; RFC 9111 §3.3).
import DequeModule
import HTTPTypes
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
    /// True if no byte of the body was there before.
    private let isOfWhole: Bool
    /// Length of the whole body; nil if not announced.
    private let length: Int64?
    private let writer: CacheWriter
    private let storing: Storing
    private let logger: Logger
    private let state: Mutex<State>

    /// - Parameter prefix: Number of bytes that the writer already contains; they are read before the received ones.
    init(_ source: BodyPipe, length: Int64?, prefix: Int64 = 0, writer: CacheWriter, storing: Storing, logger: Logger) {
        self.source = source
        isOfWhole = prefix == 0
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

    // MARK: - Reading

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

        /// Those of a transfer of the whole: those of another one are of a part.
        var trailers: HTTPFields { body.isOfWhole && rest.withLock({ $0 == nil }) ? body.source.trailers : [:] }

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

    // MARK: - Fetching

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

// MARK: - The bytes in memory

/// The received bytes still held in memory, and the position of each reader. A reader that has read all received bytes fetches more, so the
/// fastest reader sets the pace; slower ones read released bytes from the copy in the cache
/// (docs/architecture.md#rules).
struct SharedBodyWindow {
    /// The next action of a reader.
    enum Step: Equatable {
        case chunk(ByteBuffer)
        /// Fetch the next chunk, for all readers.
        case pull
        /// Wait until the version changes.
        case wait(version: Int)
        /// Read from the copy in the cache.
        case reread(offset: Int64)
        case end
        /// The transfer has ended before this byte, on request.
        case cut(at: Int64)
        case failed(TransferFailure)
    }

    /// The end of the body.
    enum Ending: Equatable {
        case whole
        /// The transfer was ended because others bring what follows.
        case cut
        case failed(TransferFailure)
    }

    /// The decision about a body after its last reader has left.
    enum Parting: Equatable {
        /// Continue to fetch, for the copy.
        case finish
        /// Stop fetching and end the body: a running pull does so when it returns; without one, the caller does.
        case abort(isPulling: Bool)
    }

    /// Number of bytes held for slower readers. Beyond it they read from the copy; if the copy is incomplete, the faster readers wait.
    var limit: Int
    /// Number of bytes in memory.
    var held: Int { Int(clamping: end - start) }
    /// Number of bytes received, including a prefix.
    private(set) var end: Int64
    private(set) var ending: Ending?
    /// The position at which the transfer ends although the body goes on; nil for its end.
    private(set) var cutPosition: Int64?
    /// True if every byte received is also in the cache's copy.
    private(set) var isCopied = true
    /// Incremented by every change that may end a wait.
    private(set) var version = 0
    private var chunks = Deque<ByteBuffer>()
    private var start: Int64
    /// Number of readers that still need the first chunk.
    private var laggards = 0
    private var isPulling = false
    /// The ending that is being settled; once set to a failure, no reader may join.
    private var closing: Ending?
    private var readers: [Int: Int64] = [:]
    private var arrivals = 0

    /// - Parameter prefix: Number of bytes that the copy contains from the beginning.
    init(limit: Int = .mib(1), prefix: Int64 = 0) {
        self.limit = limit
        start = prefix
        end = prefix
    }

    /// Adds a reader that starts at `offset`; nil if those bytes are no longer available or the body has failed.
    mutating func join(at offset: Int64 = 0) -> Int? {
        if case .failed? = ending ?? closing { return nil }
        guard isCopied || start <= offset else { return nil }
        arrivals += 1
        readers[arrivals] = offset
        if offset < firstEnd { laggards += 1 }
        return arrivals
    }

    /// Removes a reader. If it was the last reader of an unfinished body, `decide` chooses between finishing and aborting; after `.abort`
    /// no reader can join.
    /// - Parameter decide: Receives the number of bytes received.
    /// - Returns: The decision; nil if none was needed.
    mutating func leave(_ reader: Int, decide: (Int64) -> ClientAbortPolicy) -> Parting? {
        guard let offset = readers.removeValue(forKey: reader) else { return nil }
        if offset < firstEnd { laggards -= 1 }
        forget()
        guard readers.isEmpty, ending == nil, closing == nil else { return nil }
        guard case .abort = decide(end) else { return .finish }
        closing = .failed(.cancelled)
        return .abort(isPulling: isPulling)
    }

    /// Settles the ending. Called by the running pull, or while no pull is running. After a failure no reader can join.
    /// - Returns: The settled ending: `.whole` if all bytes have arrived, even after an `.abort`; otherwise the first failure.
    mutating func close(_ ending: Ending) -> Ending {
        let settled = ending == .whole ? ending : closing ?? ending
        closing = settled
        return settled
    }

    mutating func next(for reader: Int) -> Step {
        guard let offset = readers[reader] else { return .failed(.cancelled) }
        if offset < start { return .reread(offset: offset) }
        if offset < end { return .chunk(take(for: reader, from: offset)) }
        switch ending {
        case .whole: return .end
        case .cut: return .cut(at: offset)
        case .failed(let failure): return .failed(failure)
        case nil: break
        }
        guard !isPulling, isCopied || end - start < Int64(limit) else { return .wait(version: version) }
        isPulling = true
        return .pull
    }

    /// Ends the transfer before `position`. Returns false if its bytes have been received, or the body has ended.
    mutating func cut(at position: Int64) -> Bool {
        guard ending == nil, closing == nil, isCopied, position > end, position < cutPosition ?? .max else { return false }
        cutPosition = position
        return true
    }

    /// Number of bytes until the cut; nil without one.
    var untilCut: Int64? { cutPosition.map { max(0, $0 - end) } }

    /// Records that a reader has read `count` bytes from the copy.
    mutating func advance(_ reader: Int, by count: Int) {
        guard let offset = readers[reader] else { return }
        move(reader: reader, from: offset, to: offset + Int64(count))
    }

    private mutating func move(reader: Int, from offset: Int64, to next: Int64) {
        readers[reader] = next
        if offset < firstEnd, next >= firstEnd { laggards -= 1 }
        forget()
    }

    /// Appends the chunk that a pull has fetched.
    /// - Parameter isCopied: True if the cache has stored the chunk.
    /// - Returns: The ending that is due now because the last reader has left meanwhile; nil if none.
    mutating func append(_ chunk: ByteBuffer, isCopied: Bool) -> Ending? {
        isPulling = false
        self.isCopied = self.isCopied && isCopied
        chunks.append(chunk)
        end += Int64(chunk.readableBytes)
        if chunks.count == 1 { countLaggards() }
        forget()
        version += 1
        return closing
    }

    mutating func finish(_ ending: Ending) {
        isPulling = false
        if self.ending == nil { self.ending = ending }
        version += 1
    }

    private mutating func take(for reader: Int, from offset: Int64) -> ByteBuffer {
        var position = start
        for chunk in chunks {
            let next = position + Int64(chunk.readableBytes)
            guard offset < next else {
                position = next
                continue
            }
            let skipped = Int(offset - position)
            let bytes = chunk.getSlice(at: chunk.readerIndex + skipped, length: chunk.readableBytes - skipped) ?? chunk
            move(reader: reader, from: offset, to: next)
            return bytes
        }
        return ByteBuffer()
    }

    /// Releases the chunks that every reader has passed, and those in the copy that exceed the limit.
    private mutating func forget() {
        while !chunks.isEmpty {
            guard laggards == 0 || (isCopied && end - start > Int64(limit)) else { return }
            start = firstEnd
            chunks.removeFirst()
            countLaggards()
            version += 1
        }
    }

    /// The end of the first chunk; the end of all bytes if there is no chunk.
    private var firstEnd: Int64 { chunks.first.map { start + Int64($0.readableBytes) } ?? end }

    /// Runs once per chunk, not once per reader.
    private mutating func countLaggards() { laggards = chunks.isEmpty ? 0 : readers.values.count { $0 < firstEnd } }
}

extension TransferFailure {
    /// The joined parts do not match the origin's digests.
    static let unproven = TransferFailure(
        kind: .protocolError, sent: .yes, detail: "the parts of the body do not make the whole its origin names")

    /// The bytes that a slow reader still needed are no longer available.
    static let copyLost = TransferFailure(kind: .cancelled, sent: .yes, detail: "too slow: the copy of this response had to be let go")
}
