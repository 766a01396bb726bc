// The choice of stored parts to join, and the byte ranges taken from each (RFC 9111 §3.4).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct PartJoiningTests {
    private func part(
        _ range: Range<Int64>, of length: Int64 = 1000, _ fields: String = "ETag: \"a\"", at second: Int64 = 0
    ) -> StoredResponse {
        var stored = CachingFixture.stored(fields, status: 206, bodyLength: Int64(range.count))
        stored.head.fields[.contentRange] = ContentRange.part(range, of: length).fieldValue
        stored.responseTime = CachingFixture.at(second)
        return stored
    }

    private func words(_ joint: PartialResponse.Joint?) -> String {
        guard let joint else { return "-" }
        let slices = joint.slices.map { "\($0.index):\($0.range.lowerBound)..<\($0.range.upperBound)" }.joined(separator: " ")
        return "\(joint.response.head.fields[.contentRange] ?? "\(joint.response.head.status)") \(slices)"
    }

    @Test(
        arguments: [
            ([0..<500, 500..<1000], 1, "200 0:0..<500 1:0..<500"), ([500..<1000, 0..<500], 0, "200 1:0..<500 0:0..<500"),
            ([0..<600, 500..<1000], 1, "200 0:0..<600 1:100..<500"),
            ([700..<1000, 0..<100, 90..<400, 400..<700], 2, "200 1:0..<100 2:10..<310 3:0..<300 0:0..<300"),
            ([0..<500, 501..<1000], 1, "-"), ([0..<300], 0, "-"), ([0..<300, 400..<500], 1, "-"),
            ([0..<300, 300..<500, 600..<700], 1, "bytes 0-499/1000 0:0..<300 1:0..<200"),
            ([100..<300, 300..<500, 500..<700], 1, "bytes 100-699/1000 0:0..<200 1:0..<200 2:0..<200"),
            ([0..<300, 300..<500], 5, "-"),
        ] as [([Range<Int64>], Int, String)])
    func joins(_ ranges: [Range<Int64>], after index: Int, expected: String) {
        #expect(words(PartialResponse.joint(ranges.map { part($0) }, after: index)) == expected)
    }

    @Test func otherRepresentationsAreLeftAlone() {
        #expect(PartialResponse.joint([part(0..<500), part(500..<1000, of: 1000, "ETag: \"b\"")], after: 1) == nil)
        #expect(PartialResponse.joint([part(0..<500), part(500..<1000, of: 1001)], after: 1) == nil)
        #expect(
            PartialResponse.joint([part(0..<500, of: 1000, "ETag: W/\"a\""), part(500..<1000, of: 1000, "ETag: W/\"a\"")], after: 1) == nil)
    }

    /// Each byte is copied a few times before the body is complete, not once for each received part.
    @Test func largePartsAreJoinedOnlyWhereThatIsWorthIt() {
        let mib: Int64 = 1 << 20
        let parts = [part(0..<30 * mib, of: 100 * mib), part(30 * mib..<31 * mib, of: 100 * mib)]
        #expect(PartialResponse.joint(parts, after: 1) == nil)
        let equal = [part(0..<8 * mib, of: 100 * mib), part(8 * mib..<16 * mib, of: 100 * mib)]
        #expect(PartialResponse.joint(equal, after: 1)?.response.bodyLength == 16 * mib)
        // A complete body justifies any amount of copying.
        let whole = [part(0..<99 * mib, of: 100 * mib), part(99 * mib..<100 * mib, of: 100 * mib)]
        #expect(PartialResponse.joint(whole, after: 1)?.response.head.status == 200)
    }

    @Test func theJointHasTheNewestFieldsAndTheHashesOfTheWhole() throws {
        let older = part(0..<500, of: 1000, "ETag: \"a\" | X: old | Content-MD5: abc | Repr-Digest: sha-256=:AA==:")
        let newer = part(500..<1000, of: 1000, "ETag: \"a\" | X: new", at: 5)
        let joint = try #require(PartialResponse.joint([older, newer], after: 0)).response
        #expect(joint.head.fields[.init("X")!] == "new" && joint.responseTime == CachingFixture.at(5))
        #expect(joint.head.fields[.init("Content-MD5")!] == "abc" && joint.head.fields[.init("Repr-Digest")!] == "sha-256=:AA==:")
        #expect(joint.head.fields[.contentLength] == "1000" && joint.head.fields[.contentRange] == nil && joint.part == nil)
    }

    @Test(
        arguments: [
            (0, 0, 0, true), (65_536, 0, 0, true), (65_537, 0, 0, false), (2_000_000, 1_000_000, 1000, true),
            (2_000_001, 1_000_000, 1000, false),
            (30_000_000, 1_000_000, 10, true), (5, 1_000_000, 100_000, true),
        ] as [(Int64, Int64, Int64, Bool)])
    func aRangeIsAwaitedWhereItComesSoon(_ start: Int64, received: Int64, milliseconds: Int64, expected: Bool) {
        #expect(RequestCollapsing.isWorthAwaiting(start, received: received, in: .milliseconds(milliseconds)) == expected)
    }

    /// The first bytes come at once, whatever the rate is.
    @Test(
        arguments: [
            (30_000_000, 1_000_000, 10, true), (2_000_000, 1_000_000, 10, false), (1_000_000, 0, 10, false), (1_000_000, 0, 1_000, true),
        ] as [(Int64, Int64, Int64, Bool)])
    func aTransferIsCutBeforeWhatComesLate(_ start: Int64, received: Int64, milliseconds: Int64, expected: Bool) {
        #expect(RequestCollapsing.isWorthCutting(before: start, received: received, in: .milliseconds(milliseconds)) == expected)
    }
}
