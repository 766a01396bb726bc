// The fast recogniser compared with the real decoder and the request gate: they accept every request it accepts, and read the same values
// (docs/security-model.md#head-rules).
import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTP1
import RockpoolCore
import RockpoolEngine
import Testing

@testable import RockpoolNetwork

struct PlainRequestDecoderTests {
    private static let seeds = [
        "GET /a?b=c HTTP/1.1\r\nHost: localhost:1\r\nUser-Agent: t/1\r\nAccept: */*\r\nAccept-Encoding: gzip, br\r\nConnection: keep-alive\r\n\r\n",
        "GET http://h.test/x/y HTTP/1.1\r\nHost: h.test\r\nProxy-Connection: Keep-Alive\r\nX-Request-Tag: 0123456789abcdef\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nX: y\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n",
        "HEAD /a HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer x\r\nIf-None-Match: \"a\"\r\nRange: bytes=0-4\r\nCookie: a=b\r\n\r\n",
    ]
    /// Byte sequences used in request smuggling, inserted at or written over a random position.
    private static let splices: [[UInt8]] = [
        "\r\n", "\n", "\r", "\r\n\r\n", " ", "\t", ":", "\0", "\u{7F}", "\u{80}", "HTTP/1.0", "POST", "\r\n ", "Host: x\r\n",
        "Transfer-Encoding: chunked\r\n", "Content-Length: 3\r\n", "Connection: close\r\n", "Cookie: a\r\n", "Host", "#", ";", ",", "*",
        "%00",
    ].map { Array($0.utf8) }

    private struct Decoded {
        var incoming: IncomingHead
        var uri: String
        var headers: HTTPHeaders
    }

    /// Returns the first request as read on the full path; nil when it is refused, has a body or is incomplete.
    private func decoded(_ bytes: ArraySlice<UInt8>) -> Decoded? {
        let channel = EmbeddedChannel()
        defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
        do {
            try channel.pipeline.syncOperations.addHandler(ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes)))
            try channel.writeInbound(ByteBuffer(bytes: bytes))
            guard case .head(let head) = try channel.readInbound(as: HTTPServerRequestPart.self),
                case .end(nil) = try channel.readInbound(as: HTTPServerRequestPart.self)
            else { return nil }
            return Decoded(incoming: try IncomingHead(head, limits: ClientLimits()), uri: head.uri, headers: head.headers)
        } catch { return nil }
    }

    @Test(arguments: 0..<8)
    func whatIsRecognisedIsReadTheSame(seed: UInt64) {
        var random = SplitMix(state: seed)
        var recognised = 0
        for round in 0..<400 {
            var bytes = Array((Self.seeds.randomElement(using: &random) ?? "").utf8)
            for _ in 0..<Int.random(in: round == 0 ? 0...0 : 1...2, using: &random) { mutate(&bytes, &random) }
            guard let plain = FastPathRequest(bytes.span, limits: ClientLimits()) else { continue }
            recognised += 1
            // Decode only the recognised bytes: they must form a complete request.
            let text = String(decoding: bytes, as: UTF8.self)
            guard let full = decoded(bytes[..<plain.length]) else {
                // A request that the full path refuses is never stored and so never hot, but its syntax must still be valid for the
                // decoder.
                #expect(isRefusedByMeaning(bytes[..<plain.length]), "\(text.debugDescription)")
                continue
            }
            #expect(String(decoding: bytes[plain.target], as: UTF8.self) == full.uri, "\(text.debugDescription)")
            #expect([String(decoding: bytes[plain.host], as: UTF8.self)] == full.headers["host"], "\(text.debugDescription)")
            #expect(full.incoming.method == (plain.isHead ? .head : .get))
            #expect(full.incoming.framing == .none && full.incoming.keepsAlive && !full.incoming.isOldClient)
            let isPersonal = full.incoming.fields.contains {
                [.identifies, .selects].contains(UnkeyedField($0.name)) && $0.name.canonicalName != "host"
            }
            #expect(isPersonal == plain.hasCredential, "\(text.debugDescription)")
            for (name, _) in full.headers where !["host", "connection", "proxy-connection"].contains(name.lowercased()) {
                let value = plain.value(of: Array(name.lowercased().utf8), in: bytes.span).map {
                    String(decoding: bytes[$0], as: UTF8.self)
                }
                let values = full.headers[name]
                #expect(value == (values.count == 1 ? values[0] : ""), "\(name) in \(text.debugDescription)")
            }
        }
        #expect(recognised > 20, "enough mutated requests are recognised for a comparison")
    }

    /// True if the decoder reads one complete request without a body and the gate refuses its content (its Host, its target).
    private func isRefusedByMeaning(_ bytes: ArraySlice<UInt8>) -> Bool {
        let channel = EmbeddedChannel()
        defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
        try? channel.pipeline.syncOperations.addHandler(ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes)))
        guard (try? channel.writeInbound(ByteBuffer(bytes: bytes))) != nil,
            case .head(let head) = try? channel.readInbound(as: HTTPServerRequestPart.self),
            case .end(nil) = try? channel.readInbound(as: HTTPServerRequestPart.self)
        else { return false }
        return (try? IncomingHead(head, limits: ClientLimits())) == nil
    }

    private func mutate(_ bytes: inout [UInt8], _ random: inout SplitMix) {
        let place = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: bytes[place] = UInt8.random(in: .min ... .max, using: &random)
        case 1: bytes.remove(at: place)
        case 2: bytes.insert(contentsOf: Self.splices.randomElement(using: &random) ?? [], at: place)
        default:
            let splice = Self.splices.randomElement(using: &random) ?? []
            bytes.replaceSubrange(place..<min(bytes.count, place + splice.count), with: splice)
        }
    }

    @Test(arguments: SecretFields.identifying)
    func aFieldThatNamesAnIdentityIsACredential(name: HTTPField.Name) {
        let head = Array("GET / HTTP/1.1\r\nHost: h\r\n\(name.rawName): x\r\n\r\n".utf8)
        #expect(FastPathRequest(head.span, limits: ClientLimits())?.hasCredential == true)
    }
}

/// A generator that yields the same numbers for the same seed, so that a failure can be reproduced.
private struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}
