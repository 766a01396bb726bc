// A table by sequence agrees with a dictionary, whatever is put in and taken out.
import Testing

@testable import RockpoolCore

@Suite struct SequenceTableTests {
    @Test func behavesLikeADictionary() {
        var (table, model): (SequenceTable<Int>, [Int64: Int]) = (SequenceTable(), [:])
        var random = SeededGenerator(seed: 7)
        for turn in 0..<20_000 {
            let sequence = Int64.random(in: -40...400, using: &random)
            switch Int.random(in: 0..<4, using: &random) {
            case 0: (table[sequence], model[sequence]) = (nil, nil)
            case 1:
                table[sequence]? += 1
                model[sequence]? += 1
            default: (table[sequence], model[sequence]) = (turn, turn)
            }
            #expect(table[sequence] == model[sequence] && table.count == model.count)
        }
        #expect(Dictionary(uniqueKeysWithValues: table.all.map { ($0.sequence, $0.value) }) == model)
        for sequence in model.keys { table[sequence] = nil }
        #expect(table.count == 0 && Array(table.all).isEmpty)
    }

    @Test func aCopyIsNotChanged() {
        var table = SequenceTable<String>()
        table[5] = "five"
        let copy = table
        table[5] = "changed"
        table[6] = "six"
        #expect(copy[5] == "five" && copy[6] == nil && copy.count == 1)
    }
}

@Suite struct UUIDTextTests {
    @Test(arguments: [
        "01890a5d-ac96-774b-bcce-b302099a8057", "ffffffff-ffff-ffff-ffff-ffffffffffff", "00000000-0000-0000-0000-000000000000",
        "loc_01890a5d-ac96-774b-bcce-b302099a8057", "01890A5D-ac96-774b-bcce-b302099a8057", "loc_01890a5d-ac96-174b-bcce-b302099a8057",
        "01890a5dac96-774b-bcce-b302099a80577", "", "7", "a/b%20ü", "01890a5d-ac96-774b-bcce-b302099a8057 ",
    ])
    func keepsEachText(text: String) {
        #expect(UUIDText(text).text == text)
        #expect(UUIDText(text) == UUIDText(String(Array(text))))
        #expect(UUIDText(text) != UUIDText(text + "x"))
    }

    @Test func takesNoMoreThanThreeWords() { #expect(MemoryLayout<UUIDText>.stride == 24 && MemoryLayout<LocalID>.size == 16) }
}
