// JSON without loss (RFC 8259), pointers (RFC 6901), merge patches (RFC 7396).
import RockpoolCore
import Testing

private func json(_ text: String) throws -> JSONValue { try JSONValue.parse(Array(text.utf8)) }
private func text(_ value: JSONValue) -> String { String(decoding: value.serialized(), as: UTF8.self) }

@Suite struct JSONTests {
    @Test(arguments: [
        "null", "true", "false", "0", "-0", "12345678901234567890123456789", "1.10", "1E400", "-1e-7", #""""#, #""aé😀""#,
        "[]", "{}", #"{"b":1,"a":[1,2,{"c":null}],"":0}"#, #""\"\\\n\r\t\u0001""#,
    ])
    func comesBackAsItWas(_ source: String) throws { #expect(text(try json(source)) == source) }

    @Test(arguments: [(" [ 1 , 2 ]\r\n\t", "[1,2]"), (#""\u00e9\ud83d\ude00\/\b\f""#, #""é😀/\u0008\u000c""#)])
    func sameValueOtherSpelling(_ source: String, _ written: String) throws { #expect(text(try json(source)) == written) }

    @Test(arguments: [
        ("", JSONError.Problem.unexpectedEnd, 0), ("[1", .unexpectedEnd, 2), ("nul", .unexpectedEnd, 3), ("\"a", .unexpectedEnd, 2),
        ("[1,]", .unexpectedByte, 3), ("{,}", .unexpectedByte, 1), ("{\"a\"}", .unexpectedByte, 4), ("'a'", .unexpectedByte, 0),
        ("1 2", .trailingBytes, 2), ("01", .malformedNumber, 0), ("1.", .malformedNumber, 2), (".5", .unexpectedByte, 0),
        ("-", .malformedNumber, 1), ("1e", .malformedNumber, 2), ("+1", .unexpectedByte, 0), ("NaN", .unexpectedByte, 0),
        (#""\x""#, .malformedEscape, 1), (#""\u12g4""#, .malformedEscape, 5), (#""\ud800""#, .loneSurrogate, 1),
        (#""\ude00""#, .loneSurrogate, 1), (#""\ud800\u0041""#, .loneSurrogate, 1), ("\"\n\"", .controlInString, 1),
        (#"{"a":1,"a":2}"#, .duplicateName, 7), (#"{"a":1,"\u0061":2}"#, .duplicateName, 7), ("\u{FEFF}1", .unexpectedByte, 0),
        ("// c\n1", .unexpectedByte, 0),
    ])
    func refused(_ source: String, _ problem: JSONError.Problem, _ offset: Int) {
        #expect(throws: JSONError(problem, offset: offset)) { try json(source) }
    }

    @Test func malformedUTF8() {
        #expect(throws: JSONError(.malformedUTF8, offset: 0)) { try JSONValue.parse([0x22, 0xC0, 0x80, 0x22]) }
        #expect(throws: JSONError(.malformedUTF8, offset: 0)) { try JSONValue.parse([0x22, 0xED, 0xA0, 0x80, 0x22]) }
    }

    @Test func limits() throws {
        let nested = { (depth: Int) in String(repeating: "[", count: depth) + String(repeating: "]", count: depth) }
        _ = try json(nested(128))
        #expect(throws: JSONError(.tooDeep, offset: 128)) { try json(nested(129)) }
        _ = try JSONValue.parse(Array("[1]".utf8), sizeLimit: 3)
        #expect(throws: JSONError(.tooLarge, offset: 2)) { try JSONValue.parse(Array("[1]".utf8), sizeLimit: 2) }
    }

    @Test(arguments: [
        ("1", "1.0", true), ("10", "1e1", true), ("0.5", "5E-1", true), ("0", "-0.0", true), ("100e-2", "1", true), ("1", "-1", false),
        ("12345678901234567890", "12345678901234567891", false), ("1e99999999999999999999", "1e99999999999999999999", true),
        ("{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", true), ("[1,2]", "[2,1]", false), ("\"e\u{301}\"", "\"\u{e9}\"", false),
        ("{\"e\u{301}\":1}", "{\"\u{e9}\":1}", false), ("null", "false", false), ("0", "false", false), ("\"1\"", "1", false),
    ])
    func equality(_ a: String, _ b: String, _ isEqual: Bool) throws {
        let (a, b) = (try json(a), try json(b))
        #expect((a == b) == isEqual)
        #expect(!isEqual || a.hashValue == b.hashValue)
    }

    @Test func namesThatOnlyLookAlikeAreTwo() throws {
        #expect(try json("{\"e\u{301}\":1,\"\u{e9}\":2}").object?.count == 2)
    }

    @Test func membersKeepTheirPlace() throws {
        var value = try json(#"{"a":1,"b":2}"#)
        value["a"] = "x"
        value["c"] = [true]
        value["b"] = nil
        #expect(text(value) == #"{"a":"x","c":[true]}"#)
        #expect(value["a"]?.string == "x" && value["zz"] == nil && value.integer == nil)
        #expect(try json("9007199254740993").integer == 9_007_199_254_740_993)
    }
}

@Suite struct JSONPointerTests {
    static let sample = #"{"foo":["bar","baz"],"":0,"a/b":1,"m~n":8,"deep":{"x":[{"y":1}]}}"#

    @Test(
        arguments: [
            ("/foo", "[\"bar\",\"baz\"]"), ("/foo/0", "\"bar\""), ("/", "0"), ("/a~1b", "1"), ("/m~0n", "8"), ("/deep/x/0/y", "1"),
            ("/foo/2", nil), ("/foo/00", nil), ("/foo/-", nil), ("/foo/-1", nil), ("/none", nil), ("/foo/0/x", nil),
            ("/foo/99999999999999999999", nil),
        ] as [(String, String?)])
    func get(_ pointer: String, _ value: String?) throws {
        let found = try #require(JSONPointer(pointer)).get(in: try json(Self.sample))
        #expect(found.map(text) == value)
    }

    @Test(arguments: ["foo", "/a~", "/a~2", "~0"]) func noPointer(_ text: String) { #expect(JSONPointer(text) == nil) }

    @Test(arguments: ["", "/", "/a~1b/m~0n", "/0//x", "/\u{301}a/~0\u{301}/~1\u{301}"]) func asItIsWritten(_ text: String) throws {
        #expect(try #require(JSONPointer(text)).text == text)
    }

    @Test(
        arguments: [
            ("", "9"), ("/a", #"{"a":9,"b":[1,2]}"#), ("/c", #"{"a":{"x":1},"b":[1,2],"c":9}"#), ("/b/0", #"{"a":{"x":1},"b":[9,2]}"#),
            ("/b/-", #"{"a":{"x":1},"b":[1,2,9]}"#), ("/b/2", #"{"a":{"x":1},"b":[1,2,9]}"#), ("/a/x", #"{"a":{"x":9},"b":[1,2]}"#),
            ("/b/3", nil), ("/z/y", nil), ("/b/0/q", nil),
        ] as [(String, String?)])
    func set(_ pointer: String, _ result: String?) throws {
        let before = try json(#"{"a":{"x":1},"b":[1,2]}"#)
        var value = before
        #expect(try #require(JSONPointer(pointer)).set(9, in: &value) == (result != nil))
        #expect(value == (try result.map(json) ?? before))
    }

    @Test(
        arguments: [
            ("/a", #"{"b":[1,2]}"#), ("/b/0", #"{"a":{"x":1},"b":[2]}"#), ("/a/x", #"{"a":{},"b":[1,2]}"#), ("/b/2", nil), ("/b/-", nil),
            ("", nil), ("/q", nil),
        ] as [(String, String?)])
    func remove(_ pointer: String, _ result: String?) throws {
        let before = try json(#"{"a":{"x":1},"b":[1,2]}"#)
        var value = before
        #expect(try #require(JSONPointer(pointer)).remove(from: &value) == (result != nil))
        #expect(value == (try result.map(json) ?? before))
    }
}

@Suite struct MergePatchTests {
    /// RFC 7396, Appendix A.
    @Test(arguments: [
        (#"{"a":"b"}"#, #"{"a":"c"}"#, #"{"a":"c"}"#), (#"{"a":"b"}"#, #"{"b":"c"}"#, #"{"a":"b","b":"c"}"#),
        (#"{"a":"b"}"#, #"{"a":null}"#, "{}"), (#"{"a":"b","b":"c"}"#, #"{"a":null}"#, #"{"b":"c"}"#),
        (#"{"a":["b"]}"#, #"{"a":"c"}"#, #"{"a":"c"}"#), (#"{"a":"c"}"#, #"{"a":["b"]}"#, #"{"a":["b"]}"#),
        (#"{"a":{"b":"c"}}"#, #"{"a":{"b":"d","c":null}}"#, #"{"a":{"b":"d"}}"#), (#"{"a":[{"b":"c"}]}"#, #"{"a":[1]}"#, #"{"a":[1]}"#),
        (#"["a","b"]"#, #"["c","d"]"#, #"["c","d"]"#), (#"{"a":"b"}"#, #"["c"]"#, #"["c"]"#), (#"{"a":"foo"}"#, "null", "null"),
        (#"{"a":"foo"}"#, #""bar""#, #""bar""#), (#"{"e":null}"#, #"{"a":1}"#, #"{"e":null,"a":1}"#),
        ("[1,2]", #"{"a":"b","c":null}"#, #"{"a":"b"}"#), ("{}", #"{"a":{"bb":{"ccc":null}}}"#, #"{"a":{"bb":{}}}"#),
    ])
    func appendixA(_ original: String, _ patch: String, _ result: String) throws {
        #expect(try json(original).merging(try json(patch)) == (try json(result)))
    }
}
