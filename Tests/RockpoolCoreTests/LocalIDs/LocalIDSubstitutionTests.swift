// The substitution of local ids in a request; all other bytes stay the same (docs/outbox.md#local-ids, property P5).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct LocalIDSubstitutionTests {
    private func applied(
        _ head: RequestHead, _ body: String = "", _ a: ServerID = ServerID(text: "17"), _ b: ServerID = ServerID(text: "b-18")
    ) throws(UnmappedLocalIDs) -> (head: RequestHead, body: String) {
        let result = try LocalIDSubstitution.apply(head: head, body: Array(body.utf8), map: [firstID: a, secondID: b])
        return (result.head, String(decoding: result.body, as: UTF8.self))
    }

    @Test(arguments: [
        ("/v1/notes/α", "17", "/v1/notes/17"), ("/v1/notes/α/items/β?x=%2f+&y", "17", "/v1/notes/17/items/b-18?x=%2f+&y"),
        ("/v1/notes/α:archive", "a/b c", "/v1/notes/a%2Fb%20c:archive"), ("/α", "\u{e9}?#%+", "/%C3%A9%3F%23%25%2B"),
        ("/v1?ids=α,β", "a&b=c", "/v1?ids=a%26b%3Dc,b-18"), ("/v1?α=1", "x y", "/v1?x%20y=1"), ("/v1?n=%2Fα", "17", "/v1?n=%2F17"),
        ("/v1/notes/..α", "17", "/v1/notes/..17"), ("/v1/αβ/α", "17", "/v1/αβ/17"), ("/?x=α", "..", "/?x=.."),
    ])
    func inTargets(_ target: String, _ id: String, _ expected: String) throws {
        #expect(try applied(post(spelled(target)), "", ServerID(text: id)).head.target == spelled(expected))
    }

    @Test(arguments: [
        (#"{ "id" : "α" }"#, "17", true, #"{ "id" : 17 }"#), (#"{"id":"α"}"#, "17", false, #"{"id":"17"}"#), (#""α""#, "-1", true, "-1"),
        (#"["α","/n/α",1.50,1E+2,"\u00e9\/"]"#, "17", true, #"[17,"/n/17",1.50,1E+2,"\u00e9\/"]"#),
        (#"{"α":"β"}"#, "17", true, #"{"17":"b-18"}"#),
        (#"{"id":"α"}"#, "x\"\\\n\u{e9}", false, "{\"id\":\"x\\\"\\\\\\n\u{e9}\"}"),
        (#"{"s":"say \"α\""}"#, "q", false, #"{"s":"say \"q\""}"#),
        (#"{"id":"α"}"#, "17x", true, #"{"id":"17x"}"#), (#"{"u":"/x?n=%2Fα"}"#, "a b", false, #"{"u":"/x?n=%2Fa%20b"}"#),
        (#"{"u":"%3Dα"}"#, "17", true, #"{"u":"%3D17"}"#),
        (
            #"{"big":123456789012345678901234567890,"id":"α"}"#, "17", true,
            #"{"big":123456789012345678901234567890,"id":17}"#
        ),
    ])
    func inJSON(_ body: String, _ id: String, _ isNumber: Bool, _ expected: String) throws {
        let result = try applied(post(type: "application/json"), spelled(body), ServerID(text: id, isNumber: isNumber))
        #expect(result.body == expected)
    }

    /// `~` stands for the UUID of the first id.
    @Test(arguments: [
        (#"{"id":"\u006coc\u005f~"}"#, #"{"id":17}"#), (#"{"id":"\\\u006coc_~"}"#, #"{"id":"\\17"}"#),
        (#"{"id":"%6Coc_~"}"#, #"{"id":"17"}"#),
        (#"{"id":"\\u006coc_~"}"#, #"{"id":"17"}"#), (#"{"id":"\\\\\\u006coc_~\\"}"#, #"{"id":"\\\\17\\"}"#),
    ])
    func escapesOfJSONGoWithTheirID(_ body: String, _ expected: String) throws {
        let escaped = body.replacing("~", with: firstID.text.dropFirst(4))
        #expect(try applied(post(), escaped, ServerID(text: "17", isNumber: true)).body == expected)
    }

    @Test(arguments: [
        (#"{ "id" : ν }"#, "17", true, #"{ "id" : 17 }"#), (#"{"id":ν}"#, "x", false, #"{"id":"x"}"#), (#"[ν,"ν"]"#, "17", true, "[17,17]"),
        (#"{"ν":1,"see":"/n/ν"}"#, "17", true, #"{"17":1,"see":"/n/17"}"#), (#"{"a":-ν,"b":ν}"#, "17", true, #"{"a":-ν,"b":17}"#),
        ("ν", "17", true, "17"),
    ])
    func numbersInJSON(_ body: String, _ id: String, _ isNumber: Bool, _ expected: String) throws {
        let map = [firstNumber: ServerID(text: id, isNumber: isNumber)]
        let head = post(spelled("/v1/notes/ν?x=ν"), type: "application/json", fields: [.ifMatch: spelled("\"ν\"")])
        let result = try LocalIDSubstitution.apply(head: head, body: Array(spelled(body).utf8), map: map)
        #expect(String(decoding: result.body, as: UTF8.self) == spelled(expected))
        #expect(result.head.target == "/v1/notes/\(id)?x=\(id)" && result.head.fields[.ifMatch] == "\"\(id)\"")
    }

    @Test(arguments: [
        ("parent=α&x=1+2", "a b&c", "parent=a%20b%26c&x=1+2"), ("j=%7B%22id%22%3A%22α%22%7D", "17", "j=%7B%22id%22%3A%2217%22%7D"),
        ("α=β", "17", "17=b-18"),
    ])
    func inForms(_ body: String, _ id: String, _ expected: String) throws {
        let head = post(type: "application/x-www-form-urlencoded")
        #expect(try applied(head, spelled(body), ServerID(text: id, isNumber: true)).body == expected)
    }

    @Test func inOtherBodies() throws {
        let result = try applied(post(type: "multipart/form-data; boundary=b"), spelled("--b\r\n\r\nα\r\n--b\r\n\r\nβ, xα\r\n--b--"))
        #expect(result.body == spelled("--b\r\n\r\n17\r\n--b\r\n\r\nb-18, xα\r\n--b--"))
    }

    @Test func tooDeepJSONIsReplacedByBytes() throws {
        let (open, close) = (String(repeating: "[", count: 1000), String(repeating: "]", count: 1000))
        let escaped = "\\u006c" + firstID.text.dropFirst()
        #expect(try applied(post(), "\(open)\"\(escaped)\"\(close)").body == "\(open)\"17\"\(close)")
    }

    @Test func inHeaderFieldsLineByLine() throws {
        var fields: HTTPFields = [.named("Link"): "</n/\(firstID)>; rel=up", .accept: "*/*"]
        fields.append(HTTPField(name: .named("Link"), value: "<\(secondID)>"))
        let new = try applied(post(fields: fields)).head.fields
        #expect(new.map(\.value) == ["</n/17>; rel=up", "*/*", "<b-18>"])
        #expect(new.map(\.name) == [.named("Link"), .accept, .named("Link")])
    }

    @Test(arguments: ["a\r\nX: y", "a b", "\u{e9}", "a,b", "a;b", "a\"b", "a\\b", "", "a\u{7F}"])
    func whatAHeaderFieldCannotHoldIsNotSent(_ id: String) {
        let head = post(fields: [.referer: firstID.text])
        #expect(throws: UnmappedLocalIDs(ids: [firstID])) { try applied(head, "", ServerID(text: id)) }
    }

    @Test(arguments: [".", "..", ""]) func whatAPathCannotHoldIsNotSent(_ id: String) {
        #expect(throws: UnmappedLocalIDs(ids: [firstID])) { try applied(post("/v1/\(firstID)/x"), "", ServerID(text: id)) }
    }

    @Test(arguments: ["a\"b", "a\r\n--b", "<x>", "a&b"]) func whatUnknownSyntaxMightMisreadIsNotSent(_ id: String) {
        #expect(throws: UnmappedLocalIDs(ids: [firstID])) { try applied(post(type: "text/xml"), "<i>\(firstID)</i>", ServerID(text: id)) }
    }

    @Test func unmappedIDsAreNamedOnceEach() {
        let other = LocalID.make(now: noon, random: (9, 9))
        let head = post("/v1/\(other)?x=\(other)", fields: [.referer: firstID.text])
        #expect(throws: UnmappedLocalIDs(ids: [other, secondID])) {
            try LocalIDSubstitution.apply(
                head: head, body: Array("{\"a\":[\"\(secondID)\",\"\(other)\"]}".utf8), map: [firstID: ServerID(text: "1")])
        }
    }

    @Test func digestsGoOnlyWhenTheBodyChanged() throws {
        let digests = ["Content-Digest", "Repr-Digest", "Digest", "Content-MD5", "Content-Length"].map(HTTPField.Name.named)
        let fields = HTTPFields(digests.map { HTTPField(name: $0, value: "1") } + [HTTPField(name: .accept, value: "*/*")])
        #expect(try applied(post("/v1/\(firstID)", fields: fields), "{}").head.fields == fields)
        #expect(try applied(post(fields: fields), "[\"\(firstID)\"]").head.fields == [.accept: "*/*"])
    }

    @Test func withoutLocalIDsNothingChanges() throws {
        let head = post("/v1/%zz?loc_=1", type: "application/json", fields: [.cookie: "a=b; loc_"])
        let result = try applied(head, "{ \"a\" : 1.0 ")
        #expect(result.head == head && result.body == "{ \"a\" : 1.0 ")
    }
}
