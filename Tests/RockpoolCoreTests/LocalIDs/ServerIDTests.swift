// The server id in a response, and the URL that belongs to it (docs/outbox.md#local-ids).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct ServerIDTests {
    private func inAnswer(
        _ location: String?, _ body: String, to target: String = "/v1/notes?draft=1", _ resource: Resource?
    ) -> [String]? {
        var head = ResponseHead(status: 201)
        if let location { head.fields[.location] = location }
        let found = ServerID.inAnswer(head, json: try? JSONValue.parse(Array(body.utf8)), to: post(target), resource: resource)
        return found.map { [$0.id.isNumber ? "#" + $0.id.text : $0.id.text, $0.url] }
    }

    private static let notes = Resource(collection: "/v1/notes", item: "/v1/notes/{id}")

    @Test(arguments: [
        ("/v1/notes/17", "17", "/v1/notes/17"), ("https://api.example.com/v1/notes/17?x=1#y", "17", "/v1/notes/17"),
        ("https://API.example.com:443/v1/notes/17", "17", "/v1/notes/17"), ("//api.example.com/v1/notes/17/", "17", "/v1/notes/17/"),
        ("notes/17", "17", "/v1/notes/17"), ("/v1/notes/a%2Fb%20c+d", "a/b c+d", "/v1/notes/a%2Fb%20c+d"),
        ("/v1/notes/\u{e9}", "\u{e9}", "/v1/notes/\u{e9}"),
    ])
    func byLocation(_ location: String, _ id: String, _ path: String) {
        #expect(inAnswer(location, "", Self.notes) == [id, "https://api.example.com" + path])
        #expect(inAnswer(location, "", nil) == [id, "https://api.example.com" + path])
    }

    @Test(arguments: [
        "https://other.example.com/v1/notes/9", "http://api.example.com/v1/notes/9", "https://api.example.com:444/v1/notes/9", "/v1/notes",
        "/v1/notes/9/status", "/v2/notes/9", "/v1/notes/..", "/v1/notes/%2E", "/v1/notes/a%0Ab", "/v1/notes/%FF", "/v1/notes/", "app:9", "",
    ])
    func elseByTheBody(_ location: String) {
        for resource in [Self.notes, nil] {
            #expect(inAnswer(location, #"{"id":"b 1"}"#, resource) == ["b 1", "https://api.example.com/v1/notes/b%201"])
            #expect(inAnswer(location, "{}", resource) == nil)
        }
    }

    @Test(
        arguments: [
            (#"{"id":17}"#, "#17"), (#"{"id":-17}"#, "#-17"), (#"{"id":"17"}"#, "17"),
            (#"{"id":12345678901234567890}"#, "#12345678901234567890"),
            (#"{"id":1.5}"#, nil), (#"{"id":1e3}"#, nil), (#"{"id":""}"#, nil), (#"{"id":null}"#, nil), (#"{"id":".."}"#, nil),
            (#"{"id":"a\nb"}"#, nil),
            (#"{"ID":1}"#, nil), ("[1]", nil), ("", nil), (#"{"id":1"#, nil),
        ] as [(String, String?)])
    func byTheBodyAlone(_ body: String, _ id: String?) {
        for resource in [Self.notes, nil] { #expect(inAnswer(nil, body, resource)?.first == id) }
    }

    @Test func lengthsAtTheLimit() {
        let longest = String(repeating: "x", count: ServerID.lengthLimit)
        #expect(inAnswer("/v1/notes/" + longest, "", nil)?.first == longest)
        #expect(inAnswer("/v1/notes/x" + longest, "", nil) == nil)
        #expect(inAnswer(nil, "{\"id\":\"x\(longest)\"}", nil) == nil)
    }

    @Test func theBodyTellsThatALocationsIDIsANumber() {
        #expect(inAnswer("/v1/notes/17", #"{"id":17}"#, Self.notes)?.first == "#17")
        #expect(inAnswer("/v1/notes/my-title", #"{"id":17}"#, Self.notes)?.first == "my-title")
    }

    @Test func withinAnEnvelopeByItsPointer() {
        let resource = Resource(collection: "/v1/notes", envelope: "/data/0", id: "/meta/key")
        #expect(inAnswer(nil, #"{"id":1,"data":[{"meta":{"key":7}}]}"#, resource) == ["#7", "https://api.example.com/v1/notes/7"])
        #expect(inAnswer(nil, #"{"id":1}"#, resource) == nil)
    }

    @Test func templatesWithFurtherParameters() {
        let resource = Resource(collection: "/users/{user}/notes", item: "/by/{user}/n/{id}/v")
        #expect(inAnswer("/by/5/n/17/v", "", to: "/users/5/notes", resource) == ["17", "https://api.example.com/by/5/n/17/v"])
        #expect(inAnswer(nil, #"{"id":17}"#, to: "/users/5/notes/", resource) == ["#17", "https://api.example.com/by/5/n/17/v"])
        #expect(inAnswer(nil, #"{"id":17}"#, to: "/import", resource) == ["#17", "https://api.example.com/import/17"])
    }

    @Test func twoLocationsAreNone() {
        var fields: HTTPFields = [.location: "/v1/notes/1"]
        fields.append(HTTPField(name: .location, value: "/v1/notes/2"))
        #expect(ServerID.inAnswer(ResponseHead(status: 201, fields: fields), json: nil, to: post(), resource: nil) == nil)
    }
}
