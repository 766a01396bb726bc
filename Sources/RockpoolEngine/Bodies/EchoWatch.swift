// Searches a body while it is stored (docs/security-model.md#unkeyed-inputs; `EchoSearch`).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

/// One body, searched for the values of its request's fields. Chunks come one after the other.
final class EchoWatch: Sendable {
    private struct State {
        var search: EchoSearch
        /// Nil for a body without a coding.
        var decoder: (any ContentDecoder)?
        /// Decoded bytes.
        var length = 0
        var isOver = false

        /// Searches no further: what follows cannot be known.
        mutating func giveUp() {
            isOver = true
            search.cannotRead()
        }
    }

    /// Bytes of a coded body that are decoded at most: a short one may be of any length.
    private static let decodedLimit = Int.mib(64)
    private static let step = Int.kib(64)

    let request: RequestHead
    private let state: Mutex<State>

    /// Nil if there is nothing to search for, or the body is of a kind that repeats no text.
    init?(_ request: RequestHead, answeredBy head: ResponseHead) {
        guard let search = EchoSearch(for: request) else { return nil }
        var state = State(search: search)
        switch EchoSearch.content(of: head) {
        case .media: return nil
        case .plain: break
        case .coded:
            state.decoder = ContentDecoders.decoder(of: head.fields)
            if state.decoder == nil { state.giveUp() }
        case .unreadable: state.giveUp()
        }
        self.request = request
        self.state = Mutex(state)
    }

    /// Searches the next bytes as they have arrived.
    func read(_ chunk: ByteBuffer) {
        state.withLock { state in
            guard !state.isOver else { return }
            guard let decoder = state.decoder else { return state.search.read(chunk.readableBytesUInt8Span) }
            var input = chunk
            while state.length <= Self.decodedLimit {
                let before = input.readableBytes
                guard let piece = try? decoder.expand(&input, upTo: Self.step) else { break }
                state.search.read(piece.readableBytesUInt8Span)
                state.length += piece.readableBytes
                // With less than was asked for, all of the input is used.
                if piece.readableBytes < Self.step, input.readableBytes == 0 { return }
                if piece.readableBytes == 0, input.readableBytes == before { break }
            }
            state.giveUp()
        }
    }

    /// The fields whose values the body repeats, or may repeat where it could not be read.
    func end() -> [HTTPField.Name] {
        state.withLock { state in
            if let decoder = state.decoder, !decoder.isWhole { state.giveUp() }
            state.search.end()
            return state.search.found
        }
    }
}
