// Bytes of one representation: which belong together, and which are missing (docs/caching.md#ranges).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct RepresentationTests {
    private func head(_ status: Int, _ fields: HTTPFields) -> ResponseHead { ResponseHead(status: status, fields: fields) }

    @Test func aPartAndTheWholeAreOfOneRepresentation() throws {
        let whole = try #require(Representation(of: head(200, [.eTag: "\"a\""]), length: 10))
        let part = try #require(Representation(of: head(206, [.eTag: "\"a\"", .contentRange: "bytes 2-4/10"]), length: 3))
        #expect(whole == part)
        #expect(Representation(of: head(206, [.eTag: "\"b\"", .contentRange: "bytes 2-4/10"]), length: 3) != whole)
        #expect(Representation(of: head(206, [.eTag: "\"a\"", .contentRange: "bytes 2-4/11"]), length: 3) != whole)
    }

    @Test(arguments: [
        (200, ["ETag": "W/\"a\""]), (200, [:]), (404, ["ETag": "\"a\""]), (206, ["ETag": "\"a\"", "Content-Range": "bytes 2-4/*"]),
    ])
    func withoutAStrongTagAndALengthThereIsNone(status: Int, fields: [String: String]) throws {
        var all = HTTPFields()
        for (name, value) in fields { all[try #require(HTTPField.Name(name))] = value }
        #expect(Representation(of: head(status, all), length: 10) == nil)
    }

    @Test func gapsAreWhatNoHeldRangeContains() {
        let wanted: Range<Int64> = 10..<50
        #expect(wanted.gaps(between: []) == [10..<50])
        #expect(wanted.gaps(between: [0..<10, 50..<60]) == [10..<50])
        #expect(wanted.gaps(between: [30..<40, 0..<20, 15..<25]) == [25..<30, 40..<50])
        #expect(wanted.gaps(between: [0..<60]) == [])
        #expect(wanted.gaps(between: [10..<50]) == [])
    }
}
