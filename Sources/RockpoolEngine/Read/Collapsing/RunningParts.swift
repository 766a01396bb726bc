// The transfers under way, as bytes of a representation: requests for other bytes of it read along, or request the bytes that no transfer
// brings (docs/caching.md#ranges).
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

/// The bytes that are being received, by key.
final class RunningParts: Sendable {
    /// One transfer.
    struct Part: Sendable {
        enum State: Sendable {
            /// The head has not arrived.
            case requested(CoalescedFetch)
            /// The response as stored, and its body.
            case arriving(StoredResponse, SharedBody)
        }

        let number: Int
        let key: CacheKey
        let representation: Representation
        /// Positions in the whole.
        var range: Range<Int64>
        var state: State
    }

    /// The way to get the bytes at a position.
    enum Way {
        /// Read along with a transfer that brings them, up to a position.
        case read(SharedBody.Reader, upTo: Int64)
        /// Wait for the head of a transfer.
        case wait(CoalescedFetch)
        /// No transfer brings them, nor any byte before this position.
        case none(before: Int64)
    }

    private struct State {
        var numbers = 0
        var parts: [CacheKey: [Part]] = [:]
        var keys: [Int: CacheKey] = [:]
    }

    private let state = Mutex(State())

    /// Reserves the number of a part, by which it is removed.
    func number() -> Int {
        state.withLock { state in
            state.numbers += 1
            return state.numbers
        }
    }

    func add(_ part: Part) {
        state.withLock { state in
            state.keys[part.number] = part.key
            state.parts[part.key, default: []].append(part)
        }
    }

    /// Removes a part that has been stored, or has failed; does nothing if there is none of this number.
    func remove(_ number: Int) {
        state.withLock { state in
            guard let key = state.keys.removeValue(forKey: number) else { return }
            state.parts[key]?.removeAll { $0.number == number }
            if state.parts[key]?.isEmpty == true { state.parts[key] = nil }
        }
    }

    /// True if no transfer is under way that others may read along with.
    var isEmpty: Bool { state.withLock(\.parts.isEmpty) }

    /// Returns the parts under a key.
    func parts(of key: CacheKey) -> [Part] { state.withLock { $0.parts[key] ?? [] } }

    /// Registers a request for bytes from `range.lowerBound`, at most up to the next part.
    /// - Returns: The part to request; nil if a transfer brings the first byte by now.
    func claim(_ range: Range<Int64>, of representation: Representation, key: CacheKey, by fetch: CoalescedFetch) -> Part? {
        state.withLock { state in
            let parts = (state.parts[key] ?? []).filter { $0.representation == representation }
            guard !parts.contains(where: { $0.range.contains(range.lowerBound) }) else { return nil }
            let next = parts.map(\.range.lowerBound).filter { $0 > range.lowerBound }.min() ?? range.upperBound
            state.numbers += 1
            let part = Part(
                number: state.numbers, key: key, representation: representation,
                range: range.lowerBound..<min(range.upperBound, next), state: .requested(fetch))
            state.keys[part.number] = key
            state.parts[key, default: []].append(part)
            return part
        }
    }

    /// Returns the way to get the bytes of `range` from its first on. A transfer that would bring them much later ends before them, so that
    /// they can be requested now and no byte is fetched twice.
    func way(to range: Range<Int64>, of representation: Representation, key: CacheKey, now: Timestamp) -> Way {
        state.withLock { state in
            var parts = state.parts[key] ?? []
            let position = range.lowerBound
            for index in parts.indices where parts[index].representation == representation && parts[index].range.contains(position) {
                switch parts[index].state {
                case .requested(let fetch): return .wait(fetch)
                case .arriving(let response, let body):
                    let start = parts[index].range.lowerBound
                    let isLate = RequestCollapsing.isWorthCutting(
                        before: position - start, received: body.received, in: now - response.responseTime)
                    if isLate, response.supportsRanges, body.cut(at: position - start) {
                        parts[index].range = start..<position
                        state.parts[key] = parts
                        break
                    }
                    if let reader = body.reader(from: position - start) { return .read(reader, upTo: parts[index].range.upperBound) }
                    // The transfer is ending and brings nothing to further readers: the bytes may be requested again.
                    parts[index].range = start..<position
                    state.parts[key] = parts
                }
            }
            let next = parts.filter { $0.representation == representation }.map(\.range.lowerBound).filter { $0 > position }.min()
            return .none(before: next ?? .max)
        }
    }
}

extension RunningParts {
    /// Bytes that are requested, until their transfer is registered or has failed.
    final class Claim: Sendable {
        private let parts: RunningParts
        private let number: Int
        private let fetch: CoalescedFetch
        private let isReleased = Mutex(false)

        /// Nil if a transfer brings the first byte.
        init?(_ range: Range<Int64>, of representation: Representation, key: CacheKey, in parts: RunningParts) {
            let fetch = CoalescedFetch()
            guard let part = parts.claim(range, of: representation, key: key, by: fetch) else { return nil }
            (self.parts, self.fetch, number) = (parts, fetch, part.number)
        }

        /// Removes the claim; requests that wait for it examine what has become of it.
        func release() {
            let isFirst = isReleased.withLock { isReleased in
                defer { isReleased = true }
                return !isReleased
            }
            guard isFirst else { return }
            parts.remove(number)
            fetch.start { FetchReport(outcome: .failed(.cancelled), steps: []) }
        }

        deinit { release() }
    }
}

// MARK: - The body put together

/// The bytes of one representation in order: each from a transfer under way, from the store, or from a request for what is missing. The
/// source of the next bytes is determined when they are needed (RFC 9111 §3.4).
final class AssembledBody: BodySource {
    /// Bytes from one source, up to a position in the whole.
    struct Piece: Sendable {
        let source: any BodySource
        let end: Int64
    }

    private struct State {
        var position: Int64
        var piece: Piece?
        var isFruitless = false
        var isAbandoned = false
    }

    private let end: Int64
    private let state: Mutex<State>
    /// Returns the source of the first bytes of a range.
    private let next: @Sendable (Range<Int64>) async -> Result<Piece, TransferFailure>

    /// - Parameters:
    ///   - range: Positions in the whole.
    ///   - first: The source of the first bytes, if it is known.
    init(
        _ range: Range<Int64>, first: Piece? = nil, next: @escaping @Sendable (Range<Int64>) async -> Result<Piece, TransferFailure>
    ) {
        end = range.upperBound
        state = Mutex(State(position: range.lowerBound, piece: first))
        self.next = next
    }

    deinit { abandon() }

    func next() async throws(TransferFailure) -> ByteBuffer? {
        while true {
            let (position, piece) = state.withLock { ($0.position, $0.piece) }
            guard position < end else { return nil }
            guard let piece else {
                try begin(try await next(position..<end).get())
                continue
            }
            guard var chunk = try await bytes(of: piece), chunk.readableBytes > 0 else {
                // A transfer may end early, because another one has brought what follows.
                guard leavePiece() else { throw .copyLost }
                continue
            }
            let left = min(piece.end, end) - position
            let isLast = Int64(chunk.readableBytes) >= left
            if isLast { chunk = chunk.readSlice(length: Int(left)) ?? chunk }
            state.withLock { state in
                state.position += Int64(chunk.readableBytes)
                state.isFruitless = false
                if isLast { state.piece = nil }
            }
            if isLast { piece.source.abandon() }
            return chunk
        }
    }

    /// Returns the next bytes of a piece; nil if it has no more for this reader, who may have been too slow for a shared transfer.
    private func bytes(of piece: Piece) async throws(TransferFailure) -> ByteBuffer? {
        do throws(TransferFailure) {
            return try await piece.source.next()
        } catch {
            guard error == .copyLost else { throw error }
            return nil
        }
    }

    /// Ends a piece; false if it gave no byte, and neither did the one before.
    private func leavePiece() -> Bool {
        state.withLock { state in
            state.piece = nil
            defer { state.isFruitless = true }
            return !state.isFruitless
        }
    }

    private func begin(_ piece: Piece) throws(TransferFailure) {
        let isAbandoned = state.withLock { state in
            if !state.isAbandoned { state.piece = piece }
            return state.isAbandoned
        }
        guard isAbandoned else { return }
        piece.source.abandon()
        throw .copyLost
    }

    func abandon() {
        let piece = state.withLock { state in
            defer { state.piece = nil }
            state.isAbandoned = true
            return state.piece
        }
        piece?.source.abandon()
    }
}
