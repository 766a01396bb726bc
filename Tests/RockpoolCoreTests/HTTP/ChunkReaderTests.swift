// RFC 9112 §7.1 in strict form: the chunks of an upstream's response, split at any byte.
import RockpoolCore
import Testing

@Suite struct ChunkReaderTests {
    /// Reads in pieces of `step`. Returns the data and the end flag; nil when the body is refused.
    private func read(_ text: String, step: Int = .max) -> (data: String, isEnded: Bool)? {
        var reader = ChunkReader()
        var data: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(step))
            do { try reader.read(piece.span) { data += piece[$0] } } catch { return nil }
            rest = rest.dropFirst(piece.count)
        }
        return (String(decoding: data, as: UTF8.self), reader.isEnded)
    }

    @Test(
        arguments: [
            ("0\r\n\r\n", ""), ("5\r\nhello\r\n0\r\n\r\n", "hello"),
            ("00A;name=value;q=\"x y\"\r\n0123456789\r\n0;last\r\n\r\n", "0123456789"),
            ("a  \r\n0123456789\r\n000\r\n\r\n", "0123456789"), ("4\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n"),
            ("5 ;a\r\nhello\r\n0\r\nX-A: 1\r\nX-B: 2\r\n\r\n", "hello"), ("1\r\nx\r\n1\r\ny\r\n0\r\n\r\n", "xy"),
            ("1\r\nx\r\n0\r\n\r\nHTTP/1.1 200 OK\n", "x"),
        ], [1, 2, 3, 7, Int.max])
    func wellFormedBodiesAreRead(_ body: (String, String), _ step: Int) {
        let found = read(body.0, step: step)
        #expect(found?.data == body.1 && found?.isEnded == true)
    }

    @Test(
        arguments: [
            "5\nhello\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "5\r\nhello\r\n0\n\r\n", "5\r\nhello\r\n0\r\n\n", "5;a\nhello\r\n0\r\n\r\n",
            "0;\n\r\n", "0\r\nX: y\n\r\n", "5\r\nhello!\r\n0\r\n\r\n", "\r\n\r\n", "-5\r\nhello\r\n", "+5\r\nhello\r\n", "0x5\r\nhello\r\n",
            " 5\r\nhello\r\n", "5 5\r\nhello\r\n", "5\rhello", "5;a=\u{0}\r\nhello\r\n", "20000000000001\r\nhello", ";\r\n",
        ], [1, 3, Int.max])
    func anyOtherFramingIsRefused(_ body: String, _ step: Int) { #expect(read(body, step: step) == nil) }

    @Test func whatBreaksOffHasNoEnd() {
        let whole = "5;a\r\nhello\r\n0\r\nX: y\r\n\r\n"
        for length in 1..<whole.utf8.count {
            #expect(read(String(decoding: Array(whole.utf8.prefix(length)), as: UTF8.self))?.isEnded != true)
        }
    }
}
