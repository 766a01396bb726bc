// The state machine of a body read by many clients while it arrives: reader positions, fetching, and release of memory
// (docs/architecture.md#rules, docs/caching.md#coalesced-fetches).
import DequeModule
import NIOCore
import RockpoolCore

/// The received bytes still held in memory, and the position of each reader. A reader that has read all received bytes fetches more, so the
/// fastest reader sets the pace; slower ones read released bytes from the copy in the cache.
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
    /// The bytes that a slow reader still needed are no longer available.
    static let copyLost = TransferFailure(kind: .cancelled, sent: .yes, detail: "too slow: the copy of this response had to be let go")
}
