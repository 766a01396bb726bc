// Edits: parsed and applied (docs/reference/admin-api.md#steering `PATCH /v1/operations/{id}`).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct OperationEditTests {
    private let request = RequestHead(
        method: .patch, origin: OriginAddress(scheme: .https, host: "api.example.com"), target: "/v1/notes/1",
        fields: [.contentType: "application/json", .ifMatch: "\"1\""])

    private func applied(_ json: String) throws -> (request: RequestHead, body: [UInt8]?) {
        let document = try #require(try JSONValue.parse(Array(json.utf8)).object)
        return try OperationEdit(document).applied(to: request)
    }

    @Test func whatIsAbsentStays() throws {
        let (same, body) = try applied("{}")
        #expect(same == request && body == nil)
        #expect(try OperationEdit(JSONObject()).isEmpty)
    }

    @Test func eachMemberChangesItsPart() throws {
        let (edited, body) = try applied(
            #"{"method": "PUT", "url": "/v1/notes/2?a=1", "headers": {"If-Match": null, "X-A": ["1", "2"]}, "body": {"n": 1.50}}"#)
        #expect(edited.method == .put && edited.url == "https://api.example.com/v1/notes/2?a=1")
        #expect(edited.fields[.ifMatch] == nil && edited.fields[.contentType] == "application/json")
        #expect(edited.fields[values: try #require(HTTPField.Name("X-A"))] == ["1", "2"])
        #expect(body == Array(#"{"n":1.50}"#.utf8))
    }

    /// A secret that an editor was shown as `REDACTED` stays, in a field as in the URL.
    @Test func whatIsHiddenInAFieldStays() throws {
        let name = try #require(HTTPField.Name("Destination"))
        var original = request
        original.fields[name] = "https://api.example.com/b?token=s1&q=1"
        let text = #"{"headers": {"Destination": "https://api.example.com/c?token=REDACTED&q=2", "X-A": "/?key=REDACTED"}}"#
        let edit = try OperationEdit(try #require(JSONValue.parse(Array(text.utf8)).object))
        let edited = try edit.applied(to: original).request
        #expect(edited.fields[name] == "https://api.example.com/c?token=s1&q=2")
        #expect(edited.fields[try #require(HTTPField.Name("X-A"))] == "/?key=REDACTED", "nothing was hidden there")
    }

    @Test(arguments: [
        (#"{"body": "a"}"#, "\"a\""), (#"{"headers": {"Content-Type": "text/plain"}, "body": "a"}"#, "a"), (#"{"body": null}"#, ""),
        (#"{"bodyBase64": "AAE="}"#, "\u{0}\u{1}"), (#"{"headers": {"content-type": null}, "body": {"a": 1}}"#, "{\"a\":1}"),
    ])
    func aBodyIsWhatItsTypeMakesOfIt(_ json: String, _ body: String) throws {
        #expect(try applied(json).body == Array(body.utf8))
    }

    @Test(arguments: [
        (#"{"methd": "PUT"}"#, "unknown member"), (#"{"method": "GET"}"#, "method is"), (#"{"method": "P T"}"#, "method is"),
        (#"{"method": "QUERY"}"#, "method is"),
        (#"{"method": 1}"#, "method is"), (#"{"url": ""}"#, "url is"), (#"{"url": "ftp://a/"}"#, "url: "), (#"{"url": "notes"}"#, "url: "),
        (#"{"headers": []}"#, "headers is"), (#"{"headers": {"A b": "c"}}"#, "no field name"),
        (#"{"headers": {"A": "b\nc"}}"#, "value of A"),
        (#"{"headers": {"A": ["b", 1]}}"#, "value of A"), (#"{"headers": {"Authorization": "Bearer x"}}"#, "credential"),
        (#"{"headers": {"cookie": "a=b"}}"#, "credential"), (#"{"headers": {"Content-Length": "1"}}"#, "when the request is sent"),
        (#"{"headers": {"Rockpool-Policy": "queue"}}"#, "when the request is sent"), (#"{"bodyBase64": "x"}"#, "not base64"),
        (#"{"body": 1, "bodyBase64": "AAE="}"#, "not both"),
    ])
    func isRefusedWithWords(_ json: String, _ words: String) throws {
        let refusal = try #require(throws: Refusal.self) { try applied(json) }
        #expect(refusal.status == 422 && refusal.detail.contains(words), "\(refusal.detail)")
    }

    @Test(
        arguments: [
            ([], nil, "body"), (Array("{\"a\":1.0}".utf8), "application/json", "body"), (Array("{".utf8), "application/json", "bodyBase64"),
            (Array("null".utf8), "application/merge-patch+json", "bodyBase64"), (Array("{}".utf8), nil, "body"),
            ([0xFF, 0], "text/plain", "bodyBase64"),
            (Array("é\n".utf8), "text/plain", "body"),
        ] as [([UInt8], String?, String)])
    func aShownBodyCanBeSentBack(_ bytes: [UInt8], _ type: String?, _ name: String) throws {
        let (shown, value) = try #require(OperationBodyJSON.members(of: bytes, contentType: type).first)
        #expect(shown == name)
        let back = name == "body" ? OperationBodyJSON.bytes(of: value, contentType: type) : value.string.flatMap(Base64.decode)
        #expect(back == bytes)
    }
}
