// The machine of a body that many read while it comes: who reads where, who fetches more, what may be forgotten
// (docs/architecture.md#rules, docs/caching.md#coalesced-fetches).
import DequeModule
import NIOCore
import RockpoolCore

/// Bytes that have come and are still needed from memory, and how far each reader is. Whoever has read all there is fetches more, so
/// that the fastest reader sets the pace; slower ones read from the copy in the cache what the window has let go.
struct BodyWindow {
    /// What a reader does next.
    enum Step: Equatable {
        case chunk(ByteBuffer)
        /// Fetch the next chunk, for everybody.
        case pull
        /// Nothing can be done until the version changes.
        case wait(version: Int)
        /// Read from the copy in the cache.
        case reread(offset: Int64)
        case end
        case failed(TransferFailure)
    }

    /// How the body ended.
    enum Ending: Equatable {
        case whole
        case failed(TransferFailure)
    }

    /// What becomes of a body that its last reader has left.
    enum Parting: Equatable {
        /// Read on, for the copy.
        case finish
        /// Fetch no more, and end the body: a pull that is under way does that when it is done, else the one who is told this.
        case abort(isPulling: Bool)
    }

    /// Bytes held for slower readers; beyond, they read from the copy, or hold the others back when it takes no more.
    let limit: Int
    /// Bytes that have come, those of a prefix included.
    private(set) var end: Int64
    private(set) var ending: Ending?
    /// Whether every byte so far is in the cache's copy too.
    private(set) var isCopied = true
    /// Changes with everything that may end a wait.
    private(set) var version = 0
    private var chunks = Deque<ByteBuffer>()
    private var start: Int64
    /// Readers that still need the first chunk.
    private var laggards = 0
    private var isPulling = false
    /// How it is about to end: its fate is being settled, and is not to be decided again.
    private var closing: Ending?
    private var readers: [Int: Int64] = [:]
    private var arrivals = 0

    /// - Parameter prefix: bytes that are in the copy from the beginning.
    init(limit: Int = 1 << 20, prefix: Int64 = 0) {
        self.limit = limit
        start = prefix
        end = prefix
    }

    /// A reader from `offset` on; nil when that is gone for good.
    mutating func join(at offset: Int64 = 0) -> Int? {
        if case .failed? = ending ?? closing { return nil }
        guard isCopied || start <= offset else { return nil }
        arrivals += 1
        readers[arrivals] = offset
        if offset < firstEnd { laggards += 1 }
        return arrivals
    }

    /// A reader leaves. When it was the last of a body still coming, `decide` says what becomes of that, and after `.abort` the body
    /// takes no more readers.
    /// - Parameter decide: is given the bytes that have come.
    /// - Returns: the decision, nil when there was none to take.
    mutating func leave(_ reader: Int, _ decide: (Int64) -> Departure) -> Parting? {
        guard let offset = readers.removeValue(forKey: reader) else { return nil }
        if offset < firstEnd { laggards -= 1 }
        forget()
        guard readers.isEmpty, ending == nil, closing == nil else { return nil }
        guard case .abort = decide(end) else { return .finish }
        closing = .failed(.cancelled)
        return .abort(isPulling: isPulling)
    }

    /// The body is about to end, no pull is under way or the caller is it: one that has broken off takes no new readers.
    /// - Returns: how it ends: whole where all has come in spite of an `.abort`, else as was said first.
    mutating func close(_ ending: Ending) -> Ending {
        let settled = ending == .whole ? ending : closing ?? ending
        closing = settled
        return settled
    }

    mutating func next(_ reader: Int) -> Step {
        guard let offset = readers[reader] else { return .failed(.cancelled) }
        if offset < start { return .reread(offset: offset) }
        if offset < end { return .chunk(take(reader, from: offset)) }
        switch ending {
        case .whole: return .end
        case .failed(let failure): return .failed(failure)
        case nil: break
        }
        guard !isPulling, isCopied || end - start < Int64(limit) else { return .wait(version: version) }
        isPulling = true
        return .pull
    }

    /// A reader has read so much from the copy.
    mutating func advance(_ reader: Int, by count: Int) {
        guard let offset = readers[reader] else { return }
        move(reader, from: offset, to: offset + Int64(count))
    }

    private mutating func move(_ reader: Int, from offset: Int64, to next: Int64) {
        readers[reader] = next
        if offset < firstEnd, next >= firstEnd { laggards -= 1 }
        forget()
    }

    /// What a pull has brought.
    /// - Parameter isCopied: whether the cache has taken it.
    /// - Returns: the ending that is due now, because the last reader has left meanwhile.
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

    private mutating func take(_ reader: Int, from offset: Int64) -> ByteBuffer {
        var position = start
        for chunk in chunks {
            let next = position + Int64(chunk.readableBytes)
            guard offset < next else {
                position = next
                continue
            }
            let skipped = Int(offset - position)
            let bytes = chunk.getSlice(at: chunk.readerIndex + skipped, length: chunk.readableBytes - skipped) ?? chunk
            move(reader, from: offset, to: next)
            return bytes
        }
        return ByteBuffer()
    }

    /// Lets go of what every reader has passed, and of what the copy has when there is too much.
    private mutating func forget() {
        while !chunks.isEmpty {
            guard laggards == 0 || (isCopied && end - start > Int64(limit)) else { return }
            start = firstEnd
            chunks.removeFirst()
            countLaggards()
            version += 1
        }
    }

    /// Where the first chunk ends; the end of all when there is none.
    private var firstEnd: Int64 { chunks.first.map { start + Int64($0.readableBytes) } ?? end }

    /// Once for each chunk, not for each reader of it.
    private mutating func countLaggards() { laggards = chunks.isEmpty ? 0 : readers.values.count { $0 < firstEnd } }
}

extension TransferFailure {
    /// What a slow reader still needed is no longer anywhere.
    static let copyLost = TransferFailure(kind: .cancelled, sent: .yes, detail: "too slow: the copy of this response had to be let go")
}
