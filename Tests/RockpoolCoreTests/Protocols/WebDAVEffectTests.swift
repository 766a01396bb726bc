// docs/caching.md#invalidation: MOVE, COPY, DELETE and MKCOL change more than their target (RFC 4918 §9).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct WebDAVEffectTests {
    private func request(_ method: String, _ target: String, destination: String? = nil) throws -> RequestHead {
        var head = RequestHead(
            method: try #require(HTTPRequest.Method(method)), origin: OriginAddress(scheme: .http, host: "dav"), target: target)
        if let destination { head.fields[try #require(HTTPField.Name("Destination"))] = destination }
        return head
    }

    private func effect(_ request: RequestHead, status: Int = 204) -> (urls: [String], trees: [String]) {
        let response = ResponseHead(status: status)
        return (Invalidation.targets(request: request, response: response), Invalidation.trees(request: request, response: response))
    }

    @Test func aMoveChangesSourceAndDestinationWithAllBelow() throws {
        let moved = effect(try request("MOVE", "/a/f1", destination: "http://dav/b/f2"), status: 201)
        #expect(moved.trees == ["http://dav/a/f1/", "http://dav/b/f2/"])
        for url in ["/a/f1", "/a/", "/b/f2", "/b/"] { #expect(moved.urls.contains("http://dav" + url)) }
    }

    @Test func aCopyChangesItsDestinationOnly() throws {
        let copied = effect(try request("COPY", "/a/f1", destination: "/b/f2"), status: 201)
        #expect(copied.trees == ["http://dav/b/f2/"] && copied.urls.contains("http://dav/b/f2"))
    }

    @Test func aCollectionIsDeletedWithAllBelow() throws {
        let deleted = effect(try request("DELETE", "/dir/?x=1"))
        #expect(deleted.trees == ["http://dav/dir/"] && deleted.urls.contains("http://dav/dir") && deleted.urls.contains("http://dav/"))
    }

    @Test func whatFailedOrIsOrdinaryChangesNoTree() throws {
        #expect(effect(try request("MOVE", "/a", destination: "/b"), status: 412).trees.isEmpty)
        #expect(effect(try request("MOVE", "/a", destination: "/b"), status: 412).urls.isEmpty)
        let put = effect(try request("PUT", "/a/b"))
        #expect(put.urls == ["http://dav/a/b"] && put.trees.isEmpty)
        #expect(effect(try request("MOVE", "/a", destination: "http://other/b"), status: 201).trees == ["http://dav/a/"])
    }
}
