// What an upstream permits to pages of other origins: learned from its answers, never wider (Fetch, *CORS protocol*).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct CrossOriginGrantTests {
    private let page = "https://app.test"

    private func asked(_ method: HTTPRequest.Method = .get, _ fields: HTTPFields = [:]) throws -> CrossOriginRequest {
        var fields = fields
        if !fields.contains(.origin) { fields[.origin] = page }
        let origin = OriginAddress(scheme: .https, host: "api.test")
        return try #require(CrossOriginRequest(RequestHead(method: method, origin: origin, target: "/notes", fields: fields)))
    }

    private func preflight(_ method: String, _ names: String = "") throws -> CrossOriginRequest {
        try asked(.options, [.accessControlRequestMethod: method, .accessControlRequestHeaders: names])
    }

    private func allows(_ grant: CrossOriginGrant, _ method: String, _ names: String = "") throws -> Bool {
        grant.allows(try #require(preflight(method, names).preflight))
    }

    private func learned(
        _ fields: HTTPFields, _ request: CrossOriginRequest, status: Int = 204, before: CrossOriginGrant? = nil
    ) -> CrossOriginGrant? {
        .learned(from: ResponseHead(status: status, fields: fields), to: request, before: before)
    }

    @Test func aPreflightIsReadWithItsFieldsInLowerCase() throws {
        let request = try asked(
            .options,
            [
                .accessControlRequestMethod: "PUT", .accessControlRequestHeaders: "Content-Type, X-A",
                .accessControlRequestPrivateNetwork: "true",
            ])
        #expect(request.preflight?.method == "PUT" && request.preflight?.fields == ["content-type", "x-a"])
        #expect(request.preflight?.namesPrivateNetwork == true)
        #expect(try asked(.options).preflight == nil)
        #expect(try asked(.put, [.accessControlRequestMethod: "PUT"]).preflight == nil)
    }

    @Test func aRequestWithoutOneUsableOriginIsOrdinary() {
        let api = OriginAddress(scheme: .https, host: "api.test")
        var two = HTTPFields()
        for value in ["https://a.test", "https://b.test"] { two.append(HTTPField(name: .origin, value: value)) }
        for fields: HTTPFields in [[:], two, [.origin: "a b"], [.origin: String(repeating: "a", count: 301)]] {
            #expect(CrossOriginRequest(RequestHead(method: .get, origin: api, target: "/", fields: fields)) == nil)
        }
    }

    @Test func aListOfMethodsAndFieldsReplacesWhatWasKnown() throws {
        var fields: HTTPFields = [
            .accessControlAllowOrigin: page, .accessControlAllowMethods: "GET, PUT, DELETE",
            .accessControlAllowHeaders: "Content-Type, X-A",
            .accessControlAllowCredentials: "true",
        ]
        let first = try #require(learned(fields, try preflight("PUT", "content-type")))
        #expect(first.allowsCredentials && first.methods == ["GET", "PUT", "DELETE"] && first.fields == ["content-type", "x-a"])
        #expect(try allows(first, "DELETE", "x-a"))
        #expect(try !allows(first, "PATCH") && !allows(first, "PUT", "x-b"))
        fields[.accessControlAllowMethods] = "GET, PATCH"
        let next = try #require(learned(fields, try preflight("PUT"), before: first))
        #expect(!next.allows(method: "PUT") && !next.allows(method: "DELETE") && next.allows(method: "PATCH"))
    }

    @Test func anApiThatNamesOnlyWhatIsAskedIsLearnedStepByStep() throws {
        let answer = { (method: String) -> HTTPFields in [.accessControlAllowOrigin: self.page, .accessControlAllowMethods: method] }
        let put = learned(answer("PUT"), try preflight("PUT"))
        let both = try #require(learned(answer("DELETE"), try preflight("DELETE"), before: put))
        #expect(both.allows(method: "PUT") && both.allows(method: "DELETE"))
        let less = try #require(learned([.accessControlAllowOrigin: page], try preflight("PUT"), before: both))
        #expect(!less.allows(method: "PUT") && less.allows(method: "DELETE"))
    }

    @Test func anAnswerWithoutPermissionRefusesAndAnErrorInFrontDoesNot() throws {
        for status in [200, 204, 403, 404, 405] { #expect(learned([:], try preflight("PUT"), status: status)?.isAllowed == false) }
        for status in [401, 429, 500, 502, 503] { #expect(learned([:], try preflight("PUT"), status: status) == nil) }
        #expect(learned([:], try asked(), status: 200)?.isAllowed == false)
        for status in [304, 403, 404, 500] { #expect(learned([:], try asked(), status: status) == nil) }
        #expect(learned([.accessControlAllowOrigin: "https://other.test"], try preflight("PUT"))?.isAllowed == false)
    }

    @Test func theStarAllowsEveryOriginWithoutCredentials() throws {
        let grant = try #require(
            learned(
                [.accessControlAllowOrigin: "*", .accessControlAllowHeaders: "*", .accessControlAllowCredentials: "true"],
                try preflight("POST", "x-a")))
        #expect(grant.standing == .any && !grant.allowsCredentials)
        #expect(try allows(grant, "POST", "x-z") && !allows(grant, "POST", "authorization"))
    }

    @Test func itsTextIsReadAgain() throws {
        var grant = CrossOriginGrant(.named)
        grant.allowsCredentials = true
        (grant.methods, grant.fields, grant.exposed) = (["PUT", "GET"], ["x-a"], ["X-Total", "ETag"])
        #expect(CrossOriginGrant(text: grant.text) == grant)
        #expect(CrossOriginGrant(text: CrossOriginGrant(.refused).text) == CrossOriginGrant(.refused))
        for text in ["", "named", "odd\n\n\n\n"] { #expect(CrossOriginGrant(text: text) == nil) }
    }

    // MARK: replies

    @Test func aMadeReplyCarriesThePermissionAndOurFields() throws {
        var grant = CrossOriginGrant(.named)
        (grant.allowsCredentials, grant.exposed) = (true, ["X-Total", "etag"])
        var fields: HTTPFields = [.accessControlAllowOrigin: "https://before.test", .vary: "Accept"]
        CrossOriginReply.permit(page, by: grant, in: &fields)
        #expect(fields[.accessControlAllowOrigin] == page && fields[.accessControlAllowCredentials] == "true")
        #expect(fields[values: .vary] == ["Accept", "Origin"])
        let exposed = fields[.accessControlExposeHeaders] ?? ""
        #expect(exposed.hasPrefix("X-Total, etag, Location") && exposed.contains("Rockpool-Operation") && !exposed.contains("ETag"))
    }

    @Test func withoutPermissionNothingIsAddedAndARefusalRemoves() {
        var fields: HTTPFields = [:]
        CrossOriginReply.permit(page, by: nil, in: &fields)
        #expect(fields == [.vary: "Origin"])
        fields = [.accessControlAllowOrigin: page, .accessControlExposeHeaders: "X"]
        CrossOriginReply.permit(page, by: CrossOriginGrant(.refused), in: &fields)
        #expect(fields == [.vary: "Origin"])
        fields = [.accessControlAllowOrigin: "https://other.test"]
        CrossOriginReply.permit(page, by: nil, in: &fields)
        #expect(fields[.accessControlExposeHeaders] == nil)
    }

    @Test func aPreflightIsAnsweredOnlyWithinThePermission() throws {
        var grant = CrossOriginGrant(.named)
        (grant.methods, grant.fields) = (["PUT"], ["content-type"])
        let head = try #require(CrossOriginReply.preflight(try preflight("PUT", "content-type"), by: grant))
        #expect(head.status == 204 && head.fields[.accessControlAllowMethods] == "PUT")
        #expect(head.fields[.accessControlAllowHeaders] == "content-type" && head.fields[.accessControlAllowPrivateNetwork] == nil)
        #expect(CrossOriginReply.preflight(try preflight("DELETE"), by: grant) == nil)
        #expect(CrossOriginReply.preflight(try preflight("GET"), by: nil) == nil)
        let near = try asked(.options, [.accessControlRequestMethod: "PUT", .accessControlRequestPrivateNetwork: "true"])
        #expect(CrossOriginReply.preflight(near, by: grant)?.fields[.accessControlAllowPrivateNetwork] == "true")
        var live: HTTPFields = [.accessControlAllowOrigin: "https://other.test"]
        CrossOriginReply.addPrivateNetwork(to: &live, for: near)
        #expect(live[.accessControlAllowPrivateNetwork] == nil)
    }
}
