// ETags of local states, and conditions on them (docs/outbox.md#local-etags, docs/outbox.md#reads).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct LocalETagTests {
    @Test(arguments: [
        (nil, #""loc-17""#), (#""abc""#, #""loc-17-abc""#), (#"W/"abc""#, #""loc-17w-abc""#), (#""a-b,c\-1""#, #""loc-17-a-b,c\-1""#),
        (#""""#, #""loc-17-""#), (#"W/"""#, #""loc-17w-""#), (#""W/abc""#, #""loc-17-W/abc""#), (#""w-abc""#, #""loc-17-w-abc""#),
        ("abc", #""loc-17x-616263""#), ("W/abc", #""loc-17x-572f616263""#), ("\"a\"b\"", #""loc-17x-2261226222""#),
        ("\"\u{301}\"", #""loc-17x-22cc8122""#), ("\"", #""loc-17x-22""#), (#""loc-9-abc""#, #""loc-17-loc-9-abc""#),
    ])
    func everyBaseComesBack(_ base: String?, _ field: String) {
        let tag = LocalETag(sequence: 17, base: base.flatMap { EntityTag($0) })
        #expect(tag.fieldValue == field)
        #expect(LocalETag(field) == tag)
        #expect(LocalETag("W/" + field) == tag)
        #expect(LocalETag(field.dropFirst().dropLast()) == tag)
        #expect(EntityTag(field)?.isStrong == true)
    }

    @Test(arguments: [
        "", "\"\"", "\"abc\"", "\"loc-\"", "\"loc-x\"", "\"loc-0\"", "\"loc-017\"", "\"loc--1\"", "\"loc-17q-a\"", "\"loc-17w\"",
        "\"loc-17x-6\"",
        "\"loc-17x-zz\"", "\"loc-17x-\"", "\"loc-9223372036854775808\"", "\"loc-17 \"", "\"LOC-17\"", "\"loc_17\"", "*",
    ])
    func otherTagsAreTheServers(_ text: String) { #expect(LocalETag(text) == nil) }

    @Test func theHighestSequence() {
        #expect(LocalETag("\"loc-9223372036854775807\"")?.sequence == .max)
    }

    @Test func conditionsNameTheirOperations() {
        let fields: HTTPFields = [.ifMatch: #""x", "loc-17-a,b""#, .ifNoneMatch: #"W/"loc-18""#, .ifRange: #""loc-19""#]
        #expect(fields.localETags.map(\.sequence) == [17, 18])
        #expect(HTTPFields([HTTPField(name: .ifMatch, value: "*")]).localETags.isEmpty)
    }

    @Test(
        arguments: [
            (#""loc-17""#, #""real""#, #""real""#), (#""x", "loc-17-a,b" , W/"y""#, #""x", "real", W/"y""#, #""x", "real", W/"y""#),
            (#""loc-18""#, nil, nil), (#""x", "loc-18""#, nil, #""x""#), (#""loc-17","loc-18""#, nil, #""real""#),
            ("*", "*", "*"), (#""x" ,"y""#, #""x" ,"y""#, #""x" ,"y""#),
        ] as [(String, String?, String?)])
    func localTagsBecomeReal(_ value: String, _ match: String?, _ noneMatch: String?) {
        let fields: HTTPFields = [.ifMatch: value, .ifNoneMatch: value, .accept: "*/*"]
        let new = fields.replacingLocalETags { $0.sequence == 17 ? EntityTag("\"real\"") : nil }
        #expect(new[.ifMatch] == match)
        #expect(new[.ifNoneMatch] == noneMatch)
        #expect(new[.accept] == "*/*")
    }

    /// RFC 9110 §13.1.1, §13.1.2: a weak tag is a condition in `If-None-Match` only.
    @Test func aWeakTagIsNoIfMatch() {
        let fields: HTTPFields = [.ifMatch: #""loc-17""#, .ifNoneMatch: #""loc-17""#]
        let new = fields.replacingLocalETags { _ in EntityTag(#"W/"a""#) }
        #expect(new[.ifMatch] == nil && new[.ifNoneMatch] == #"W/"a""#)
    }
}
