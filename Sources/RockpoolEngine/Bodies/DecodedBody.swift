// A stored body, decoded for a client that does not accept its coding (RFC 9110 §8.4).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

/// Decodes a stored body while it is read.
final class DecodedBody: BodySource {
    /// Number of bytes read, and number of bytes produced, at once.
    private static let step: Int64 = .kib(64)
    private static let chunk = Int.kib(128)

    private struct State {
        var input = ByteBuffer()
        var offset: Int64 = 0
        /// The first chunk, already decoded by `begin`.
        var first: ByteBuffer?
        /// True if the last chunk had the maximum length; then the same input may yield more.
        var wasFull = false
    }

    private let body: CachedBody
    private let cache: CacheStore
    private let decoder: any ContentDecoder
    private let state = Mutex(State())

    init(_ body: CachedBody, by decoder: any ContentDecoder, in cache: CacheStore) {
        (self.body, self.decoder, self.cache) = (body, decoder, cache)
    }

    /// Decodes the first chunk. Returns false if that fails. Called once, before anything is
    /// read.
    func begin() async -> Bool {
        guard let first = try? await next() else { return body.length == 0 || decoder.isWhole }
        state.withLock { $0.first = first }
        return true
    }

    func next() async throws(TransferFailure) -> ByteBuffer? {
        if let first = state.withLock({ $0.first.take() }) { return first }
        while true {
            let (isEmpty, offset) = state.withLock { ($0.input.readableBytes == 0 && !$0.wasFull, $0.offset) }
            if isEmpty {
                if offset >= body.length {
                    guard decoder.isWhole || body.length == 0 else { throw .undecodable }
                    return nil
                }
                let range = offset..<min(offset + Self.step, body.length)
                guard let bytes = try? await cache.read(range, of: body), bytes.readableBytes == range.count else { throw .copyLost }
                state.withLock { ($0.input, $0.offset) = (bytes, range.upperBound) }
            }
            let piece = try expand()
            if piece.readableBytes > 0 { return piece }
        }
    }

    private func expand() throws(TransferFailure) -> ByteBuffer {
        do throws(UndecodableBody) {
            var input = state.withLock(\.input)
            let piece = try decoder.expand(&input, upTo: Self.chunk)
            state.withLock { ($0.input, $0.wasFull) = (input, piece.readableBytes == Self.chunk) }
            return piece
        } catch {
            throw .undecodable
        }
    }

    func abandon() {}
}

extension TransferFailure {
    static let undecodable = TransferFailure(
        kind: .protocolError, sent: .yes, detail: "the stored body is not of the coding it is said to be")
}

/// Content without its coding, for what reads it whole (RFC 9110 §8.4).
extension ByteBuffer {
    /// Returns the content without the coding that the head of its response names.
    /// - Returns: nil if the coding cannot be decoded, or the content is longer than `limit` bytes.
    func decoded(of head: ResponseHead, upTo limit: Int) -> ByteBuffer? {
        guard head.fields.contains(.contentEncoding) else { return self }
        guard let decoder = ContentDecoders.decoder(of: head.fields) else { return nil }
        var (input, content) = (self, ByteBuffer())
        while true {
            let before = input.readableBytes
            guard var piece = try? decoder.expand(&input, upTo: .kib(128)) else { return nil }
            if piece.readableBytes == 0, input.readableBytes == before { return decoder.isWhole ? content : nil }
            content.writeBuffer(&piece)
            guard content.readableBytes <= limit else { return nil }
        }
    }
}

extension ResponseHead {
    /// The head of the same response for its decoded content. Its tag stays, because it names the version for the next write.
    var uncoded: ResponseHead {
        var head = self
        for name in [HTTPField.Name.contentEncoding, .contentLength] + HTTPField.Name.digests { head.fields[name] = nil }
        return head
    }

    /// Returns the head and the content of this response as they are read: without the content's coding, if it can be decoded.
    func readable(_ content: ByteBuffer, upTo limit: Int) -> (head: ResponseHead, content: ByteBuffer) {
        guard fields.contains(.contentEncoding), let plain = content.decoded(of: self, upTo: limit) else { return (self, content) }
        return (uncoded, plain)
    }
}
