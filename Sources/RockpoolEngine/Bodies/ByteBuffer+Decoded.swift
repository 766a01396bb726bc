// Content without its coding, for what reads it whole (RFC 9110 §8.4).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

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
