// What a write makes out of date, and its form in the feed of a fleet (docs/fleet.md#copies).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct StalePlaceTests {
    private func places(
        _ method: HTTPRequest.Method, _ status: Int, _ answer: HTTPFields = [:], request: HTTPFields = [:]
    ) throws -> [StalePlace] {
        var head = try RequestHead(url: "https://api.example.com/notes/1?a=b")
        (head.method, head.fields) = (method, request)
        return StalePlace.after(ResponseHead(status: status, fields: answer), to: head)
    }

    @Test func aWriteNamesItsPlaces() throws {
        let url = StalePlace.url("https://api.example.com/notes/1?a=b")
        #expect(try places(.put, 204) == [url])
        #expect(try places(.post, 201, [.location: "/notes/2"]) == [url, .url("https://api.example.com/notes/2")])
        let groups = HTTPFields([HTTPField(name: try #require(.init("Cache-Group-Invalidation")), value: #""a b", "c""#)])
        #expect(
            try places(.post, 200, groups) == [
                url, .group("a b", origin: "https://api.example.com"), .group("c", origin: "https://api.example.com"),
            ])
        #expect(try places(.get, 200).isEmpty)
        #expect(try places(.put, 500).isEmpty)
    }

    @Test(arguments: [
        StalePlace.url("https://a/b c"), .tree("https://a/b/"), .group("a b", origin: "https://a:8443"), .purge(#"{"urls": []}"#),
        .near("https://a/b c", partition: ""), .near("https://a/b", partition: "p"),
    ])
    func itIsReadAsItWasWritten(_ place: StalePlace) {
        #expect(StalePlace(kind: place.kind, place: place.place) == place)
        #expect(StalePlace(kind: "of a newer version", place: place.place) == nil)
    }
}
