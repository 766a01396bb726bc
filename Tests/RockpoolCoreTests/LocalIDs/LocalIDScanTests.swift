// The places where local ids are found, and similar texts that are not ids (docs/outbox.md#local-ids).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct LocalIDScanTests {
    @Test(arguments: [
        ("/v1/notes/α", ["α path:2"]), ("/α", ["α path:0"]), ("/v1/lists/α/items/β?x=1", ["α path:2", "β path:4"]),
        ("/v1/notes/α:archive", ["α path:2"]), ("/v1/notes/id=α,β;v=2", ["α path:2", "β path:2"]), ("/v1/α/α", ["α path:1", "α path:2"]),
        ("/v1/a%2Fα", ["α path:1"]), ("/v1/notes?parent=α", ["α query:parent"]), ("/v1/notes?x&α&y", ["α query:α"]),
        ("/v1/notes?ids=α,β&ids=α", ["α query:ids", "β query:ids"]), ("/v1/notes?filter%5Bid%5D=α", ["α query:filter[id]"]),
        ("/v1/notes?a+b=%22α%22", ["α query:a b"]), ("/v1/notes?next=%2Fv1%2Fα%3Fx", ["α query:next"]),
        ("/v1/notes?next=%252Fv1%252Fα", ["α query:next"]), ("/v1/notes?x=/?y=α", ["α query:x"]),
        // Part of a longer word, or not similar enough.
        ("/v1/notes/xα", []), ("/v1/notes/αx", []), ("/v1/notes/α0", []), ("/v1/notes/%41α", []), ("/v1/notes/loc_", []),
        ("/v1/notes/my_α-2", ["α path:2"]), ("/v1/notes/αβ", []), ("*", []),
    ])
    func inTargets(_ target: String, _ expected: [String]) {
        #expect(places(post(spelled(target))) == expected)
    }

    @Test(arguments: [
        (#"{"parent":"α"}"#, ["α json:/parent"]), (#""α""#, ["α json:"]),
        (#"["x", "α", {"a/b": ["β"]}]"#, ["α json:/1", "β json:/2/a~1b/0"]),
        (#"{"list":{"id":"α"},"ids":["β","α","α"]}"#, ["α json:/list/id", "β json:/ids/0", "α json:/ids/1", "α json:/ids/2"]),
        (#"{"see":"/v1/notes/α and β"}"#, ["α json:/see", "β json:/see"]), (#"{"a":{},"b":[],"c":[[],"α"]}"#, ["α json:/c/1"]),
        (#"{"say \"x\"":"\\\"α\\\"","\u00e9":"β"}"#, [#"α json:/say "x""#, "β json:/\u{e9}"]), (#"{"a":"x\nα"}"#, ["α json:/a"]),
        (#"{"a":"x\u000aα\u000a"}"#, ["α json:/a"]), (#"{"a":"xα","b":"\u0041α","c":"n\\α"}"#, ["α json:/c"]),
    ])
    func inJSON(_ body: String, _ expected: [String]) {
        for type in ["application/json", "application/merge-patch+json", "text/plain", "application/x-www-form-urlencoded"] {
            #expect(places(post(type: type), spelled(body)) == expected)
        }
    }

    @Test(arguments: [
        ("/v1/notes/ν", ["ν path:2"]), ("/v1/ν/items/μ.json?x=1", ["ν path:1", "μ path:3"]), ("/Notes(ν)", ["ν path:0"]),
        ("/rows?id=eq.α,β&ids=ν,μ", ["α query:id", "β query:id", "ν query:ids", "μ query:ids"]), ("/v1?n=%2Fν", ["ν query:n"]),
        ("/v1/%38000000000000028", ["ν path:1"]),
        // Another number, or part of a word.
        ("/v1/notes/νx", []), ("/v1/notes/xν", []), ("/v1/notes/1ν", []), ("/v1/notes/ν0", []), ("/v1/-ν", []), ("/v1/0.ν", []),
        ("/v1/ν.5", []), ("/v1/8000000000000083", []), ("/v1/%2Dν", []),
    ])
    func numbersInTargets(_ target: String, _ expected: [String]) {
        let target = spelled(target)
        #expect(places(post(target)) == expected)
        #expect(LocalIDScan.mayOccur(head: post(target), body: []) == !expected.isEmpty)
    }

    @Test(arguments: [
        (#"{"parent":ν,"n":[1, μ ,-2.5e3]}"#, ["ν json:/parent", "μ json:/n/1"]), ("ν", ["ν json:"]),
        (#"{"parent":"ν"}"#, ["ν json:/parent"]),
        (#"{"a":{"b":[0,{"c":ν}]},"see":"/notes/μ"}"#, ["ν json:/a/b/1/c", "μ json:/see"]), (#"{"ν":1}"#, ["ν json:/ν"]),
        (#"{"a":-ν,"b":ν.5,"c":νe2,"d":0.ν,"e":1e-ν}"#, []), (#"{"a":8000000000000083}"#, []),
    ])
    func numbersInJSON(_ body: String, _ expected: [String]) {
        let body = spelled(body)
        #expect(places(post(type: "application/json"), body) == expected)
        #expect(LocalIDScan.mayOccur(head: post(), body: Array(body.utf8)) == !expected.isEmpty)
    }

    @Test func aMembersNameIsFoundAtTheMember() {
        let body = #"{"order":{"\#(firstID)":1}}"#
        #expect(places(post(), body) == ["α json:/order/α"])
    }

    @Test(arguments: [
        ("parent=α&x=1", ["α form:parent"]), ("x=1&list%5B%5D=α&list%5B%5D=β", ["α form:list[]", "β form:list[]"]),
        ("a+b=%7B%22id%22%3A%22α%22%7D", ["α form:a b"]), ("x=xα", []), ("x=%0Dα", ["α form:x"]), ("x=%5Cnα", ["α form:x"]),
    ])
    func inForms(_ body: String, _ expected: [String]) {
        #expect(places(post(type: "application/x-www-form-urlencoded; charset=utf-8"), spelled(body)) == expected)
    }

    @Test(arguments: [
        ("--b\r\nContent-Disposition: form-data; name=\"parent\"\r\n\r\nα\r\n--b--", "multipart/form-data; boundary=b"),
        ("{\"id\":\"α\"}\n{\"id\":\"α\"}\n", "application/x-ndjson"), ("<id>α</id>", "application/xml"),
        ("{\"id\":\"α\",}", "application/json"),
        (#"{"id":"α","id":"α"}"#, "application/json"), ("x=α", "text/plain"), (#"{"id":"x\nα""#, "application/json"),
    ])
    func inOtherBodiesByBytes(_ body: String, _ type: String) { #expect(places(post(type: type), spelled(body)) == ["α body"]) }

    @Test func inBytesThatAreNoText() {
        let bytes: [UInt8] = [0xFF, 0x00] + Array(firstID.text.utf8) + [0xC3]
        #expect(LocalIDScan.references(head: post(), body: bytes) == [LocalIDReference(id: firstID, place: .body)])
        #expect(LocalIDScan.references(head: post(), body: [0x78] + bytes[2...]).isEmpty)
    }

    @Test func inHeaderFields() {
        // A client's key goes out as it came.
        let fields: HTTPFields = [
            .ifMatch: "\"\(firstID)\"", .referer: "https://a/?n=%2F\(secondID.text)", .cookie: "x\(firstID)",
            .idempotencyKey: "edit-\(firstID)",
        ]
        #expect(places(post(fields: fields)) == ["α header:if-match", "β header:referer"])
    }

    @Test func aCompressedBodyIsBytes() {
        let body = #"{"parent":"\#(firstID)"}"#
        #expect(places(post(type: "application/json", fields: [.contentEncoding: "gzip"]), body) == ["α body"])
        #expect(places(post(type: "application/json", fields: [.contentEncoding: "identity"]), body) == ["α json:/parent"])
    }

    @Test func jsonAtTheLimitsOfDepth() {
        for (depth, place) in [(JSONValue.depthLimit, "json:" + String(repeating: "/0", count: JSONValue.depthLimit)), (200_000, "body")] {
            let body = String(repeating: "[", count: depth) + "\"\(firstID)\"" + String(repeating: "]", count: depth)
            #expect(places(post(type: "application/json"), body) == ["α \(place)"])
        }
    }

    /// A run of escapes is read once, not again from each escape: in quadratic time these would take minutes.
    @Test(arguments: ["\\", "%25", "%5C", "%", "l", "\\u006c", "loc_", "%2525", "8", "%38"])
    func longRunsOfEscapesAreReadOnce(_ escape: String) {
        let body = String(repeating: escape, count: 400_000)
        #expect(!LocalIDScan.mayOccur(head: post(), body: Array(body.utf8)))
        #expect(places(post(), body + "/" + firstID.text) == ["α body"])
    }

    @Test(arguments: [
        "loc%5F", "%6Coc_", "%6c%6F%63%5f", "loc%255F", #"loc\u005f"#, #"loc\u005F"#, #"\u006coc_"#, #"loc\\u005f"#, #"loc\\\\u005f"#,
        "loc%5Cu005f", "loc%5C%5Cu005f",
    ])
    func escapedIDsAreFoundEverywhere(_ prefix: String) {
        let escaped = prefix + firstID.text.dropFirst(4)
        for body in ["x=\(escaped)", "{\"a\":\"\(escaped)\"}", " \(escaped) "] {
            #expect(LocalIDScan.mayOccur(head: post(), body: Array(body.utf8)))
            #expect(places(post(), body).allSatisfy { $0.hasPrefix("α ") } && places(post(), body).count == 1)
        }
        #expect(places(post("/v1/notes/" + escaped)) == ["α path:2"])
    }

    @Test func nothingIsSeenWhereNothingIs() {
        #expect(!LocalIDScan.mayOccur(head: post("/v1/loc_/x", fields: [.cookie: "loc_1"]), body: Array("{\"loc_\":\"\\u00\"}".utf8)))
        #expect(!LocalIDScan.mayOccur(head: post("*"), body: []))
    }
}
