// JSON Patch (RFC 6902): the examples of its appendix, then its further rules.
import RockpoolCore
import Testing

private func json(_ text: String) throws -> JSONValue { try JSONValue.parse(Array(text.utf8)) }
private func text(_ value: JSONValue) -> String { String(decoding: value.serialized(), as: UTF8.self) }

private func patched(_ value: String, _ patch: String) throws -> String {
    text(try JSONPatch(document: try json(patch)).applied(to: try json(value)))
}

@Suite struct JSONPatchTests {
    /// Appendix A, by example number.
    @Test(arguments: [
        ("A.1", #"{"foo":"bar"}"#, #"[{"op":"add","path":"/baz","value":"qux"}]"#, #"{"foo":"bar","baz":"qux"}"#),
        ("A.2", #"{"foo":["bar","baz"]}"#, #"[{"op":"add","path":"/foo/1","value":"qux"}]"#, #"{"foo":["bar","qux","baz"]}"#),
        ("A.3", #"{"baz":"qux","foo":"bar"}"#, #"[{"op":"remove","path":"/baz"}]"#, #"{"foo":"bar"}"#),
        ("A.4", #"{"foo":["bar","qux","baz"]}"#, #"[{"op":"remove","path":"/foo/1"}]"#, #"{"foo":["bar","baz"]}"#),
        ("A.5", #"{"baz":"qux","foo":"bar"}"#, #"[{"op":"replace","path":"/baz","value":"boo"}]"#, #"{"baz":"boo","foo":"bar"}"#),
        (
            "A.6", #"{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}"#,
            #"[{"op":"move","from":"/foo/waldo","path":"/qux/thud"}]"#, #"{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}"#
        ),
        (
            "A.7", #"{"foo":["all","grass","cows","eat"]}"#, #"[{"op":"move","from":"/foo/1","path":"/foo/3"}]"#,
            #"{"foo":["all","cows","eat","grass"]}"#
        ),
        (
            "A.8", #"{"baz":"qux","foo":["a",2,"c"]}"#,
            #"[{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2}]"#, #"{"baz":"qux","foo":["a",2,"c"]}"#
        ),
        (
            "A.10", #"{"foo":"bar"}"#, #"[{"op":"add","path":"/child","value":{"grandchild":{}}}]"#,
            #"{"foo":"bar","child":{"grandchild":{}}}"#
        ),
        ("A.11", #"{"foo":"bar"}"#, #"[{"op":"add","path":"/baz","value":"qux","xyz":123}]"#, #"{"foo":"bar","baz":"qux"}"#),
        ("A.14", #"{"/":9,"~1":10}"#, #"[{"op":"test","path":"/~01","value":10}]"#, #"{"/":9,"~1":10}"#),
        ("A.16", #"{"foo":["bar"]}"#, #"[{"op":"add","path":"/foo/-","value":["abc","def"]}]"#, #"{"foo":["bar",["abc","def"]]}"#),
    ])
    func appendixA(_ number: String, _ value: String, _ patch: String, _ result: String) throws {
        #expect(try patched(value, patch) == result, "\(number)")
    }

    @Test(arguments: [
        ("{}", #"[{"op":"add","path":"","value":[1]}]"#, "[1]"), ("[1]", #"[{"op":"replace","path":"","value":{}}]"#, "{}"),
        (#"{"a":1}"#, #"[{"op":"add","path":"/a","value":null}]"#, #"{"a":null}"#),
        ("[]", #"[{"op":"add","path":"/0","value":1},{"op":"add","path":"/0","value":2}]"#, "[2,1]"),
        (#"{"a":{"b":1}}"#, #"[{"op":"copy","from":"/a","path":"/c"},{"op":"remove","path":"/a/b"}]"#, #"{"a":{},"c":{"b":1}}"#),
        (#"{"a":{"b":1}}"#, #"[{"op":"copy","from":"/a","path":"/a/b"}]"#, #"{"a":{"b":{"b":1}}}"#),
        (#"{"a":1}"#, #"[{"op":"move","from":"/a","path":"/a"}]"#, #"{"a":1}"#),
        (#"{"a":{"b":2}}"#, #"[{"op":"move","from":"/a/b","path":"/a"}]"#, #"{"a":2}"#),
        (#"{"a":[1.0,{"x":1,"y":2}]}"#, #"[{"op":"test","path":"/a","value":[1,{"y":2,"x":1}]}]"#, #"{"a":[1.0,{"x":1,"y":2}]}"#),
        (#"{"n":12345678901234567890.10,"z":1}"#, #"[{"op":"move","from":"/n","path":"/m"}]"#, #"{"z":1,"m":12345678901234567890.10}"#),
        ("{\"e\u{301}\":1}", "[{\"op\":\"move\",\"from\":\"/e\u{301}\",\"path\":\"/\u{e9}\"}]", "{\"\u{e9}\":1}"), ("{}", "[]", "{}"),
    ])
    func applies(_ value: String, _ patch: String, _ result: String) throws { #expect(try patched(value, patch) == result) }

    @Test(
        arguments: [
            (#"{"baz":"qux"}"#, #"[{"op":"test","path":"/baz","value":"bar"}]"#, .testFailed, 0),  // A.9
            (#"{"foo":"bar"}"#, #"[{"op":"add","path":"/baz/bat","value":"qux"}]"#, .noTarget, 0),  // A.12
            (#"{"/":9,"~1":10}"#, #"[{"op":"test","path":"/~01","value":"10"}]"#, .testFailed, 0),  // A.15
            ("[]", #"[{"op":"add","path":"/1","value":1}]"#, .noTarget, 0),
            ("[1]", #"[{"op":"add","path":"/01","value":1}]"#, .noTarget, 0),
            ("[1]", #"[{"op":"remove","path":"/-"}]"#, .noTarget, 0), ("{}", #"[{"op":"remove","path":""}]"#, .noTarget, 0),
            ("{}", #"[{"op":"replace","path":"/a","value":1}]"#, .noTarget, 0),
            ("{}", #"[{"op":"test","path":"/a","value":null}]"#, .noTarget, 0),
            (#"{"a":{}}"#, #"[{"op":"move","from":"/a","path":"/a/b"}]"#, .intoItself, 0),
            (#"{"a":1}"#, #"[{"op":"remove","path":"/a"},{"op":"copy","from":"/a","path":"/b"}]"#, .noTarget, 1),
            ("{}", #"{"op":"add"}"#, .notAPatch, nil), ("{}", "[[]]", .notAPatch, 0),
            ("{}", #"[{"op":"merge","path":""}]"#, .unknownOperation, 0),
            ("{}", #"[{"path":"","value":1}]"#, .unknownOperation, 0), ("{}", #"[{"op":"add","path":"a","value":1}]"#, .badPointer, 0),
            ("{}", #"[{"op":"add","path":""}]"#, .valueMissing, 0), ("{}", #"[{"op":"move","path":"/a"}]"#, .badPointer, 0),
        ] as [(String, String, JSONPatchError.Problem, Int?)])
    func refused(_ value: String, _ patch: String, _ problem: JSONPatchError.Problem, _ operation: Int?) {
        #expect(throws: JSONPatchError(problem, operation: operation)) { try patched(value, patch) }
    }

    /// A.13: parsers may keep either of two members with one name, so such a document is rejected.
    @Test func ambiguousDocument() {
        #expect(throws: JSONError.self) { try json(#"[{"op":"add","path":"/baz","value":"qux","op":"remove"}]"#) }
    }

    @Test func copiesOfCopiesEnd() throws {
        let doubling = (0..<40).map { JSONPatch.Operation.copy(JSONPointer(tokens: []), to: JSONPointer(tokens: ["\($0)"])) }
        #expect(throws: JSONPatchError.self) { try JSONPatch(doubling).applied(to: [:]) }
        #expect(try JSONPatch(Array(doubling.prefix(10))).applied(to: [:]).object?.count == 10)
    }

    @Test func limitsOfDepthAndLength() throws {
        let add = { (depth: Int) in JSONPatch([.add([], at: JSONPointer(tokens: Array(repeating: "a", count: depth)))]) }
        let nested = { (depth: Int) in (0..<depth).reduce(JSONValue.object(JSONObject())) { value, _ in ["a": value] } }
        _ = try add(127).applied(to: nested(126))
        #expect(throws: JSONPatchError(.tooLarge, operation: 0)) { try add(128).applied(to: nested(127)) }
        let test: JSONValue = ["op": "test", "path": "", "value": 1]
        _ = try JSONPatch(document: .array(Array(repeating: test, count: JSONPatch.operationLimit)))
        #expect(throws: JSONPatchError(.tooLarge, operation: 1000)) {
            try JSONPatch(document: .array(Array(repeating: test, count: JSONPatch.operationLimit + 1)))
        }
    }
}
