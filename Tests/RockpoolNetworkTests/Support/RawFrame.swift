// HTTP/2 frames at the byte level, including frames that no client library would send (RFC 9113 §4, §6; RFC 7541 §6.2.2).
import RockpoolTesting

/// One frame.
struct RawFrame {
    enum Kind: UInt8 { case data, headers, priority, reset, settings, push, ping, goAway, windowUpdate, continuation }

    static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + RawFrame(.settings).bytes

    var kind: Kind
    var flags: UInt8
    var stream: Int
    var payload: [UInt8]

    init(_ kind: Kind, flags: UInt8 = 0, stream: Int = 0, payload: [UInt8] = []) {
        self.kind = kind
        self.flags = flags
        self.stream = stream
        self.payload = payload
    }

    /// Returns a HEADERS frame with all fields as literals, without the HPACK table.
    static func head(_ stream: Int, _ fields: [(String, String)], endsStream: Bool = true) -> RawFrame {
        let block = fields.flatMap { name, value in
            [UInt8(0), UInt8(name.utf8.count)] + Array(name.utf8) + [UInt8(value.utf8.count)] + Array(value.utf8)
        }
        return RawFrame(.headers, flags: endsStream ? 5 : 4, stream: stream, payload: block)
    }

    static func get(_ stream: Int, _ path: String = "/a", host: String = "api.test") -> RawFrame {
        head(stream, [(":method", "GET"), (":scheme", "https"), (":authority", host), (":path", path)])
    }

    /// Returns a frame that grants `count` bytes of window to one stream, or to the connection for stream 0.
    static func window(_ stream: Int, _ count: Int) -> RawFrame { RawFrame(.windowUpdate, stream: stream, payload: word(count)) }

    /// Returns a frame that sets the initial window of every stream (SETTINGS_INITIAL_WINDOW_SIZE).
    static func initialWindow(_ count: Int) -> RawFrame { RawFrame(.settings, payload: [0, 4] + word(count)) }

    private static func word(_ number: Int) -> [UInt8] { [24, 16, 8, 0].map { UInt8(number >> $0 & 255) } }

    static func reset(_ stream: Int) -> RawFrame { RawFrame(.reset, stream: stream, payload: [0, 0, 0, 8]) }

    var bytes: [UInt8] {
        let length = payload.count
        let head = [UInt8(length >> 16), UInt8(length >> 8 & 255), UInt8(length & 255), kind.rawValue, flags]
        return head + [UInt8(stream >> 24), UInt8(stream >> 16 & 255), UInt8(stream >> 8 & 255), UInt8(stream & 255)] + payload
    }

    /// The error code of RST_STREAM or GOAWAY.
    var code: Int? {
        switch kind {
        case .reset: number(at: 0)
        case .goAway: number(at: 4)
        default: nil
        }
    }

    private func number(at offset: Int) -> Int { payload[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) } }
}

extension RawConnection {
    func send(_ frames: RawFrame...) async throws { try await send(frames.flatMap(\.bytes)) }

    /// Returns the next frame of one of these kinds; skips the others, and acknowledges settings and pings. Throws `NeverCame`.
    func frame(_ kinds: RawFrame.Kind...) async throws -> RawFrame {
        while true {
            let head = try await read(bytes: 9)
            let payload = try await read(bytes: Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2]))
            let stream = head[5...].reduce(0) { $0 << 8 | Int($1) } & 0x7FFF_FFFF
            guard let kind = RawFrame.Kind(rawValue: head[3]) else { continue }
            let frame = RawFrame(kind, flags: head[4], stream: stream, payload: payload)
            if kinds.contains(kind) { return frame }
            if kind == .settings || kind == .ping, head[4] & 1 == 0 {
                // Ignore a failed send: the frames of the response have already been received.
                try? await send(RawFrame(kind, flags: 1, payload: kind == .ping ? payload : []))
            }
        }
    }

    /// Reads the body of a stream while granting `step` bytes of window at a time.
    func body(_ stream: Int, step: Int) async throws -> [UInt8] {
        var (body, granted) = ([UInt8](), 0)
        while true {
            if body.count == granted {
                try await send(RawFrame.window(stream, step))
                granted += step
            }
            let frame = try await frame(.data)
            guard frame.stream == stream else { continue }
            body += frame.payload
            if frame.flags & 1 == 1 { return body }
        }
    }
}
