// Bodies in each coding, decoded in pieces of any size (RFC 9110 §8.4.1, RFC 7932, RFC 8878).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore
import Testing

@Suite struct ContentDecoderTests {
    private static let text = String(repeating: "The tide goes out, and the rock pool keeps its life.\n", count: 4)
    /// `text` as written by libbrotlienc (quality 5) and by the program zstd (level 3).
    private static let coded: [String: [UInt8]] = [
        "br": [
            0x1B, 0xD3, 0x00, 0x00, 0x04, 0x6A, 0x72, 0x9E, 0xD0, 0x01, 0x65, 0x14, 0x60, 0x6D, 0x45, 0x41, 0x1F, 0x6C, 0xC0, 0x91, 0x0E,
            0xC4,
            0x61, 0x88, 0x1B, 0x2D, 0xC8, 0xC3, 0xC6, 0xD8, 0x99, 0x82, 0x85, 0x1D, 0x5D, 0x68, 0xB2, 0x78, 0x65, 0xD8, 0x57, 0x28, 0xC8,
            0x49,
            0x4A, 0x32, 0x28, 0xC7, 0x08, 0xEA, 0x99, 0x1B, 0x08,
        ],
        "zstd": [
            0x28, 0xB5, 0x2F, 0xFD, 0x04, 0x58, 0xF5, 0x01, 0x00, 0x54, 0x03, 0x54, 0x68, 0x65, 0x20, 0x74, 0x69, 0x64, 0x65, 0x20, 0x67,
            0x6F,
            0x65, 0x73, 0x20, 0x6F, 0x75, 0x74, 0x2C, 0x20, 0x61, 0x6E, 0x64, 0x20, 0x74, 0x68, 0x65, 0x20, 0x72, 0x6F, 0x63, 0x6B, 0x20,
            0x70,
            0x6F, 0x6F, 0x6C, 0x20, 0x6B, 0x65, 0x65, 0x70, 0x73, 0x20, 0x69, 0x74, 0x73, 0x20, 0x6C, 0x69, 0x66, 0x65, 0x2E, 0x0A, 0x01,
            0x00,
            0xC5, 0xC1, 0x94, 0x82, 0x02, 0x46, 0x71, 0xF7, 0x6C,
        ],
    ]

    /// Decodes bytes that arrive in pieces of `step` bytes, into pieces of at most `limit` bytes; nil if they are not a whole body.
    private func decoded(_ bytes: [UInt8], _ coding: String, step: Int, limit: Int) throws -> String? {
        let decoder = try #require(ContentDecoders.decoder(of: [.contentEncoding: coding]))
        var (content, rest) = (ByteBuffer(), bytes[...])
        while !rest.isEmpty {
            var input = ByteBuffer(bytes: rest.prefix(step))
            rest = rest.dropFirst(step)
            while true {
                var piece = try decoder.expand(&input, upTo: limit)
                #expect(piece.readableBytes <= limit)
                let isFull = piece.readableBytes == limit
                content.writeBuffer(&piece)
                if !isFull, input.readableBytes == 0 { break }
            }
        }
        return decoder.isWhole ? String(buffer: content) : nil
    }

    @Test(arguments: ["br", "zstd"], [(1, 7), (3, 1000), (1000, 1), (1000, 212), (1000, 1000)])
    func aBodyIsDecodedInPieces(_ coding: String, _ sizes: (step: Int, limit: Int)) throws {
        guard ContentCoding.decodable.contains(coding) else { return }
        let bytes = try #require(Self.coded[coding])
        #expect(try decoded(bytes, coding, step: sizes.step, limit: sizes.limit) == Self.text)
        #expect(try decoded(Array(bytes.dropLast()), coding, step: sizes.step, limit: sizes.limit) == nil)
    }

    @Test(arguments: ["br", "zstd"]) func whatIsNoneOfItIsRefused(_ coding: String) throws {
        guard ContentCoding.decodable.contains(coding) else { return }
        #expect(throws: UndecodableBody.self) {
            _ = try decoded(Array(repeating: 0xFF, count: 100), coding, step: 100, limit: 1000)
        }
    }

    @Test func severalCodingsAndUnknownOnesHaveNoDecoder() {
        for coding in ["gzip, br", "compress", "identity", ""] {
            #expect(ContentDecoders.decoder(of: [.contentEncoding: coding]) == nil, "\(coding)")
        }
        for coding in ["gzip", "X-GZIP", "deflate"] { #expect(ContentDecoders.decoder(of: [.contentEncoding: coding]) != nil, "\(coding)") }
    }
}
