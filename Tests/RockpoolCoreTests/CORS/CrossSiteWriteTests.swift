// Which writes of pages may wait in the outbox, and the paths that share permissions.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct CrossSiteWriteTests {
    private let api = OriginAddress(scheme: .https, host: "api.test")

    private func obstacle(
        _ fields: [String: String], _ grant: CrossOriginGrant? = nil, method: HTTPRequest.Method = .post
    ) -> String? {
        var head = RequestHead(method: method, origin: api, target: "/notes")
        for (name, value) in fields { if let name = HTTPField.Name(name) { head.fields.append(HTTPField(name: name, value: value)) } }
        return CrossSiteWrite.obstacle(to: head, grant: grant) { $0 == "https://api.test" }
    }

    @Test func programsAndTheUpstreamsOwnPagesMayWait() {
        #expect(obstacle([:]) == nil)
        #expect(obstacle(["Sec-Fetch-Site": "same-origin", "Origin": "http://localhost:7630"]) == nil)
        #expect(obstacle(["Sec-Fetch-Site": "none"]) == nil)
        #expect(obstacle(["Origin": "https://api.test"]) == nil)
    }

    @Test func aPageThatTheApiNeverAllowedMayNot() {
        #expect(obstacle(["Origin": "https://evil.test"])?.contains("https://evil.test") == true)
        #expect(obstacle(["Origin": "null", "Sec-Fetch-Site": "cross-site"]) != nil)
        #expect(obstacle(["Sec-Fetch-Site": "cross-site"]) != nil)
        #expect(obstacle(["Origin": "https://a.test"], CrossOriginGrant(.refused)) != nil)
    }

    @Test func aPermissionIsNotWidened() {
        var grant = CrossOriginGrant(.named)
        let page = ["Origin": "https://a.test", "Sec-Fetch-Site": "cross-site"]
        #expect(obstacle(page, grant) == nil && obstacle(page, CrossOriginGrant(.any)) == nil)
        #expect(obstacle(page, grant, method: .delete)?.contains("DELETE") == true)
        let withCookie = page.merging(["Cookie": "a=b"]) { $1 }
        #expect(obstacle(withCookie, grant) != nil && obstacle(withCookie, CrossOriginGrant(.any)) != nil)
        grant.allowsCredentials = true
        #expect(obstacle(withCookie, grant) == nil)
    }

    @Test func pathsOfOneKindShareTheirPermissions() {
        let name = { (target: String) in
            CrossOriginScope.name(of: RequestHead(method: .get, origin: api, target: target), entity: nil)
        }
        #expect(name("/v1/notes/17?x=1") == "/v1/notes/*")
        #expect(name("/v1/notes/loc_0193a5b0-0000-7000-8000-000000000000/tags") == "/v1/notes/*/tags")
        #expect(name("/v1/notes/0193a5b0-0000-7000-8000-000000000000") == "/v1/notes/*")
        #expect(name("/v1/notes/first") == "/v1/notes/first" && name("/v2/a1") == "/v2/a1")
        #expect(name("/" + String(repeating: "a", count: 2000)) == nil)
        let match = EntityMatch(resource: Resource(collection: "/v1/notes"), path: "/v1/notes/17", isItem: true)
        #expect(CrossOriginScope.name(of: RequestHead(method: .get, origin: api, target: "/v1/notes/17"), entity: match) == "/v1/notes")
    }
}
