// The two limits of chunked bodies that the parser does not have, at the limit and one past it (docs/security-model.md#chunked-bodies, row
// 2).
import RockpoolCore
import Testing

@Suite struct ChunkMeterTests {
    /// Reads in pieces of `step`. Returns the number of bytes of the body; nil when the body is refused.
    private func read(_ text: String, step: Int = .max) -> (count: Int, isEnded: Bool)? {
        var meter = ChunkMeter()
        var rest = Array(text.utf8)[...]
        var count = 0
        while !rest.isEmpty, !meter.isEnded {
            let piece = Array(rest.prefix(step))
            guard let taken = try? meter.read(piece.span) else { return nil }
            count += taken
            rest = rest.dropFirst(piece.count)
        }
        return (count, meter.isEnded)
    }

    @Test(
        arguments: [
            "0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n", "A;name=value;q=\"x y\"\r\n0123456789\r\n0;last\r\n\r\n",
            "000a\r\n0123456789\r\n000\r\n\r\n",
            "4\r\n\r\n\r\n\r\n0\r\n\r\n", "5\r\nhello\r\n0\r\nX-A: 1\r\nX-B: 2\r\n\r\n", "1\r\nx\r\n1\r\ny\r\n0\r\n\r\n",
        ], [1, 2, 3, 7, Int.max])
    func theEndIsFoundHoweverItArrives(_ body: String, _ step: Int) {
        let found = read(body + "GET / HTTP/1.1\r\n", step: step)
        #expect(found?.count == body.utf8.count && found?.isEnded == true)
    }

    @Test(arguments: [("20000000000000", true), ("20000000000001", false), ("ffffffffffffffff", false), ("10000000000000005", false)])
    func aChunkHasALimit(_ size: String, _ isTaken: Bool) { #expect((read(size + "\r\nhello") != nil) == isTaken) }

    @Test func manySmallChunksCostNothing() {
        #expect(read(String(repeating: "1\r\nx\r\n", count: 100_000) + "0\r\n\r\n")?.isEnded == true)
        #expect(read(String(repeating: "1;a=b\r\nx\r\n", count: 100_000) + "0\r\n\r\n")?.isEnded == true)
    }

    /// One long extension, or a shorter one in each of many chunks.
    @Test(arguments: [(ChunkMeter.overheadLimit - 4, true), (ChunkMeter.overheadLimit + 40, false)])
    func extensionsHaveALimit(_ length: Int, _ isTaken: Bool) {
        #expect((read("5;" + String(repeating: "a", count: length) + "\r\nhello\r\n0\r\n\r\n") != nil) == isTaken)
        let each = String(repeating: "a", count: 116)
        // 122 bytes of overhead for one byte of data, 18 of them free.
        #expect((read(String(repeating: "1;\(each)\r\nx\r\n", count: isTaken ? 150 : 160)) != nil) == isTaken)
    }

    @Test(arguments: [(2000, true), (4000, false)])
    func trailersHaveALimit(_ count: Int, _ isTaken: Bool) {
        #expect((read("0\r\n" + String(repeating: "X: y\r\n", count: count) + "\r\n") != nil) == isTaken)
    }
}
