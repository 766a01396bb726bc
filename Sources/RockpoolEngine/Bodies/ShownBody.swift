// A small body that is noted as its client gets it (docs/outbox.md#sight).
import HTTPTypes
import NIOCore
import RockpoolCore
import Synchronization

/// Passes a body on, and tells its content before the client has the whole of it. Nothing is told of a body that breaks off, or that is larger
/// than what is kept.
final class ShownBody: BodySource {
    private struct State {
        var content = ByteBuffer()
        var tell: (@Sendable ([UInt8]) -> Void)?
    }

    private let source: any BodySource
    private let length: Int64?
    private let state: Mutex<State>

    /// - Parameters:
    ///   - length: of the whole body; nil if it is not known.
    ///   - tell: called once with the whole body.
    init(_ source: any BodySource, length: Int64?, tell: @escaping @Sendable ([UInt8]) -> Void) {
        (self.source, self.length) = (source, length)
        state = Mutex(State(tell: tell))
    }

    func next() async throws(TransferFailure) -> ByteBuffer? {
        let chunk: ByteBuffer?
        do throws(TransferFailure) { chunk = try await source.next() } catch {
            state.withLock { $0.tell = nil }
            throw error
        }
        let told = state.withLock { state -> (tell: @Sendable ([UInt8]) -> Void, content: ByteBuffer)? in
            guard let tell = state.tell else { return nil }
            if let chunk { state.content.writeImmutableBuffer(chunk) }
            if state.content.readableBytes > ShownState.contentLimit { state = State() }
            guard state.tell != nil, chunk == nil || length == Int64(state.content.readableBytes) else { return nil }
            defer { state = State() }
            return (tell, state.content)
        }
        if let told { told.tell(Array(told.content.readableBytesView)) }
        return chunk
    }

    func abandon() {
        state.withLock { $0 = State() }
        source.abandon()
    }

    var trailers: HTTPFields { source.trailers }
}
