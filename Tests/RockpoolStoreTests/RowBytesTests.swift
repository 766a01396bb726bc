// The form in which nodes exchange rows.
import FoundationEssentials
import GRDB
import Testing

@testable import RockpoolStore

@Suite struct RowBytesTests {
    private let row = RowBytes([
        ("none", .null), ("least", Int64.min.databaseValue), ("real", 1.5.databaseValue), ("text", "ä\u{0}b".databaseValue),
        ("empty", "".databaseValue), ("bytes", Data([0, 255]).databaseValue), ("no bytes", Data().databaseValue),
    ])

    @Test func everyTypeComesBackAsItWas() throws {
        let back = try #require(RowBytes(row.encoded))
        #expect(back.values.map(\.name) == row.values.map(\.name))
        #expect(back.values.map(\.value) == row.values.map(\.value))
        #expect(back["missing"].isNull)
    }

    @Test func bytesThatBreakOffAreNoRow() {
        let bytes = row.encoded
        let whole = (0...bytes.count).filter { RowBytes(Array(bytes.prefix($0))) != nil }
        // A row may end after any of its values.
        #expect(whole.count == row.values.count + 1)
        #expect(RowBytes([1, 0x61, 9]) == nil)
    }
}
