// RFC 9110 §14: the meaning of a Range field, the resulting byte ranges, and both forms of Content-Range.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct ByteRangeTests {
    @Test(
        arguments: [
            ("bytes=0-499", [.from(0, through: 499)]), ("bytes=9500-", [.from(9500, through: nil)]), ("bytes=-500", [.suffix(500)]),
            ("BYTES=0-0,-1", [.from(0, through: 0), .suffix(1)]), ("bytes= 0-0 ,\t5-7 ", [.from(0, through: 0), .from(5, through: 7)]),
            ("bytes=,0-0,,", [.from(0, through: 0)]), ("bytes=-0", [.suffix(0)]), ("bytes=007-008", [.from(7, through: 8)]),
            ("bytes=99999999999999999999-", [.from(.max, through: nil)]), ("bytes=1-99999999999999999999", [.from(1, through: .max)]),
            ("bytes=-99999999999999999999", [.suffix(.max)]), ("bytes=5-5", [.from(5, through: 5)]),
        ] as [(String, [ByteRange])])
    func reads(_ value: String, ranges: [ByteRange]) {
        #expect(ByteRangeSet(value)?.ranges == ranges)
    }

    @Test(arguments: [
        "", "bytes", "bytes=", "bytes=,", "bytes 0-1", "bytes =0-1", "lines=0-1", "bytes=1", "bytes=-", "bytes=5-4", "bytes=0-1,5-4",
        "bytes=a-b",
        "bytes=0-1;2-3", "bytes=0--1", "bytes=--1", "bytes=0-1-2", "bytes=+0-1", "bytes=0 - 1", "bytes=0x0-1", "bytes=1.5-2", "bytes=0-1,x",
        "bytes=0-1,bytes=2-3", "0-1", "bytes=٣-٤", " bytes=0-1",
    ])
    func ignores(_ value: String) {
        #expect(ByteRangeSet(value) == nil)
    }

    @Test func aFloodIsIgnored() {
        let ranges = { (count: Int) in "bytes=" + (0..<count).map { "\($0 * 2)-\($0 * 2)" }.joined(separator: ",") }
        #expect(ByteRangeSet(ranges(ByteRangeSet.limit))?.ranges.count == 200)
        #expect(ByteRangeSet(ranges(ByteRangeSet.limit + 1)) == nil)
        #expect(ByteRangeSet("bytes=" + String(repeating: ",", count: 100_000) + "0-0")?.ranges.count == 1)
    }

    @Test func oneFieldOnly() {
        #expect(ByteRangeSet(CachingFixture.fields("Range: bytes=0-1")) == ByteRangeSet("bytes=0-1"))
        #expect(ByteRangeSet(CachingFixture.fields("Range: bytes=0-1 | Range: bytes=2-3")) == nil)
        #expect(ByteRangeSet(HTTPFields()) == nil)
    }

    @Test(
        arguments: [
            ("0-499", 1000, [0..<500]), ("500-", 1000, [500..<1000]), ("-500", 1000, [500..<1000]), ("-5000", 1000, [0..<1000]),
            ("999-", 1000, [999..<1000]), ("1000-", 1000, []), ("1000-2000", 1000, []), ("990-5000", 1000, [990..<1000]), ("-0", 1000, []),
            ("0-0", 0, []), ("-1", 0, []), ("0-0,-1", 10, [0..<1, 9..<10]), ("5-9,0-3", 10, [5..<10, 0..<4]), ("5-9,0-4", 10, [0..<10]),
            ("0-3,4-5", 10, [0..<6]), ("0-1,5-6,1-5", 10, [0..<7]), ("8-9,0-1,4-5,1-4", 10, [8..<10, 0..<6]), ("0-1,90-91", 10, [0..<2]),
            ("0-9,0-9,0-9", 10, [0..<10]), ("99999999999999999999-", .max, []), ("0-99999999999999999999", .max, [0..<Int64.max]),
            ("-99999999999999999999", .max, [0..<Int64.max]),
        ] as [(String, Int64, [Range<Int64>])])
    func resolves(_ ranges: String, length: Int64, expected: [Range<Int64>]) {
        #expect(ByteRangeSet("bytes=" + ranges)?.resolved(length: length) == expected)
    }

    /// For any input, the resulting ranges lie within the body, and no byte occurs twice.
    @Test(arguments: 0..<64)
    func rubbishStaysInBounds(_ seed: UInt64) {
        var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
        func next(_ bound: UInt64) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int((state >> 33) % bound)
        }
        let alphabet = Array("0123456789--,,= \tbytes/*9")
        for _ in 0..<200 {
            let text = String((0..<next(40)).map { _ in alphabet[next(UInt64(alphabet.count))] })
            let length = [0, 1, 10, 1000, Int64.max][next(5)]
            let resolved = ByteRangeSet("bytes=" + text)?.resolved(length: length) ?? []
            #expect(resolved.allSatisfy { !$0.isEmpty && $0.lowerBound >= 0 && $0.upperBound <= length })
            let sorted = resolved.sorted { $0.lowerBound < $1.lowerBound }
            #expect(zip(sorted, sorted.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound })
            if let parsed = ContentRange("bytes " + text) { #expect(ContentRange(parsed.fieldValue) == parsed) }
        }
    }

    @Test(
        arguments: [
            ("bytes 0-499/1000", .part(0..<500, of: 1000)), ("bytes 999-999/1000", .part(999..<1000, of: 1000)),
            ("Bytes 0-0/*", .part(0..<1, of: nil)), ("bytes */47", .unsatisfied(length: 47)), ("bytes */0", .unsatisfied(length: 0)),
            ("bytes 0-9223372036854775805/9223372036854775807", .part(0..<Int64.max - 1, of: .max)),
        ] as [(String, ContentRange)])
    func contentRange(_ value: String, expected: ContentRange) {
        let parsed = ContentRange(value)
        #expect(parsed == expected)
        #expect(parsed.map(\.fieldValue).flatMap(ContentRange.init) == expected)
        #expect(expected.fieldValue == "bytes" + value.dropFirst(5))
    }

    @Test(arguments: [
        "", "bytes", "bytes 0-1", "bytes=0-1/2", "bytes 0-1/1", "bytes 1-0/5", "bytes */*", "bytes 0-/5", "bytes -1/5", "bytes 0-1/-5",
        "bytes 0-1/5/6", "bytes  0-1/5", "bytes 0-1 /5", "lines 0-1/5", "bytes 0-1/99999999999999999999", "bytes 0-9223372036854775807/*",
        "bytes a-b/c", "bytes 0-1/5, 2-3/5", "bytes 5-5/5", "bytes 0-1/+5",
    ])
    func noContentRange(_ value: String) {
        #expect(ContentRange(value) == nil)
    }
}
