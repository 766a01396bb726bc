// Local ids and the names of their places (docs/outbox.md#schema, docs/outbox.md#local-ids).
import RockpoolCore
import Testing

@Suite struct LocalIDTests {
    @Test func isPrefixAndUUIDv7() {
        let id = LocalID.make(now: Timestamp(milliseconds: 0x0123_4567_89AB), random: (.max, .max))
        #expect(id.text == "loc_01234567-89ab-7fff-bfff-ffffffffffff")
        #expect(id.text.utf8.count == 40 && "\(id)" == id.text)
        #expect(LocalID(id.text) == id)
    }

    @Test(arguments: [
        "", "loc_", "loc_01234567-89ab-7fff-bfff-fffffffffff", "loc_01234567-89ab-7fff-bfff-ffffffffffff0",
        "LOC_01234567-89ab-7fff-bfff-ffffffffffff", "loc_01234567-89AB-7fff-bfff-ffffffffffff", "loc-01234567-89ab-7fff-bfff-ffffffffffff",
        "loc_01234567-89ab-4fff-bfff-ffffffffffff", "loc_01234567-89ab-7fff-cfff-ffffffffffff", "loc_0123456789ab-7fff-bfff-fffffffffffff",
        "loc_01234567-89ab-7fff-bfff-fffffffffffg", "loc%5F01234567-89ab-7fff-bfff-ffffffffff", " loc_01234567-89ab-7fff-bfff-fffffffffff",
    ])
    func anythingElseIsNone(_ text: String) { #expect(LocalID(text) == nil) }

    @Test func aNumberIsOneThatEveryJSONReaderHas() {
        for random in [0, 5, 12_345, .max] as [UInt64] {
            let id = LocalID.makeNumber(random: random)
            #expect(id.isNumber && LocalID(id.text) == id && "\(id)" == id.text)
            #expect(Int64(id.text).map { $0 < 1 << 53 && $0 >= 8_000_000_000_000_000 } == true)
        }
        #expect(firstNumber.text == "8000000000000028" && LocalID.makeNumber(random: 1) != firstNumber && !firstID.isNumber)
    }

    @Test(arguments: ["800000000000002", "80000000000000280", "8000000000000083", "7999999999999931", "-8000000000000028", "8e15", "8"])
    func anotherNumberIsNone(_ text: String) { #expect(LocalID(text) == nil) }

    @Test(arguments: [
        ("path:0", LocalIDPlace.path(segment: 0)), ("path:12", .path(segment: 12)), ("query:parent", .query("parent")),
        ("query:", .query("")), ("query:a:b=c", .query("a:b=c")), ("json:", .json(JSONPointer(tokens: []))),
        ("json:/list/a~1b/0", .json(JSONPointer(tokens: ["list", "a/b", "0"]))), ("form:x y", .form("x y")),
        ("header:if-match", .header("if-match")), ("body", .body),
    ])
    func placesAreWrittenAndRead(_ text: String, _ place: LocalIDPlace) {
        #expect(place.text == text)
        #expect(LocalIDPlace(text) == place)
    }

    @Test(arguments: [
        "", "path", "path:", "path:-1", "path:+1", "path:x", "path:99999999999999999999", "json:x", "json:/~2", "header:", "body:x",
        "cookie:x",
    ])
    func otherTextIsNoPlace(_ text: String) { #expect(LocalIDPlace(text) == nil) }

    @Test func kindsAreTheWordsOfTheTable() {
        #expect(DependencyKind.allCases.map(\.rawValue) == ["id", "etag", "parent", "explicit", "group", "collection"])
    }
}
