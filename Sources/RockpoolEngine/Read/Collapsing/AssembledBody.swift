// A body that is put together from several sources (RFC 9111 §3.4; docs/caching.md#ranges).
import NIOCore
import RockpoolCore
import Synchronization

/// The bytes of one representation in order: each from a transfer under way, from the store, or from a request for what is missing. The
/// source of the next bytes is determined when they are needed.
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
