// The framing of a chunked body: its end does not depend on how the bytes arrive, and is where a strict decoder finds it.
import RockpoolCore

extension FuzzTarget {
    /// One byte that determines the size of the pieces, then the body.
    static func chunks(_ bytes: [UInt8]) throws(BrokenProperty) {
        guard let first = bytes.first else { return }
        let body = Array(bytes.dropFirst())
        let whole = Reading(body, step: max(1, body.count))
        try hold(whole == Reading(body, step: Int(first) % 16 + 1), "the end is the same however it arrives")
        try hold(whole.count <= body.count, "a body is no longer than what came")
        if !whole.isRefused, let end = strictEnd(of: body) {
            try hold(whole.isEnded && whole.count == end, "a well-formed body ends at its end")
        }
    }

    private struct Reading: Equatable {
        var count = 0
        var isEnded = false
        var isRefused = false

        init(_ body: [UInt8], step: Int) {
            var meter = ChunkMeter()
            var start = 0
            while start < body.count, !meter.isEnded {
                let piece = body[start..<min(start + step, body.count)]
                guard let taken = try? meter.read(piece.span) else {
                    (count, isRefused) = (0, true)
                    return
                }
                count += taken
                start += piece.count
            }
            isEnded = meter.isEnded
        }
    }

    /// RFC 9112 §7.1 strictly, without the inner grammar of extensions; nil if the body is not well-formed.
    private static func strictEnd(of body: [UInt8]) -> Int? {
        var rest = body[...]
        func line() -> ArraySlice<UInt8>? {
            guard let feed = rest.firstIndex(of: 0x0A), feed > rest.startIndex, rest[feed - 1] == 0x0D else { return nil }
            defer { rest = rest[(feed + 1)...] }
            return rest[..<(feed - 1)]
        }
        while let head = line() {
            let digits = head.prefix { $0 != UInt8(ascii: ";") }
            guard digits.count <= 12, let size = Int(String(decoding: digits, as: UTF8.self), radix: 16), digits.first != UInt8(ascii: "+"),
                digits.first != UInt8(ascii: "-")
            else { return nil }
            if size == 0 {
                while let trailer = line() { if trailer.isEmpty { return rest.startIndex } }
                return nil
            }
            guard rest.count > size + 1 else { return nil }
            rest = rest.dropFirst(size)
            guard line()?.isEmpty == true else { return nil }
        }
        return nil
    }
}
