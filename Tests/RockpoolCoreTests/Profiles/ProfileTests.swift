// docs/reference/configuration.md#profiles: what the formats of APIs say about items, lists and changes.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct ProfileTests {
    private static func resource(_ profile: Profile, _ collection: String) -> Resource {
        var resource = Resource(collection: collection)
        profile.describe(&resource)
        return resource
    }

    private func write(
        _ method: HTTPRequest.Method, _ id: String, _ body: JSONValue = [:], type: String? = nil, sequence: Int64 = 1
    ) -> FoldedWrite {
        FoldedWrite(sequence: sequence, method: method, isItem: method != .post, id: id, contentType: type, body: body.serialized())
    }

    @Test(
        arguments: [
            (.jsonapi, "/articles", "/articles/{id}", "/data"), (.hal, "/api/orders", "/api/orders/{id}", "/_embedded/orders"),
            (.fhir, "/fhir/Patient", "/fhir/Patient/{id}", "/entry"), (.odata, "/v4/Products", "/v4/Products({id})", "/value"),
            (.postgrest, "/films", "/films?id=eq.{id}", ""), (.jsonapi, "/articles/", "/articles/{id}", "/data"),
        ] as [(Profile, String, String, String)])
    func aCollectionIsEnough(profile: Profile, collection: String, item: String, items: String) {
        let resource = Self.resource(profile, collection)
        #expect(resource.item == item && resource.items == items && resource.profile == profile)
    }

    // MARK: JSON:API

    private let article: JSONValue = [
        "data": [
            "type": "articles", "id": "1", "attributes": ["title": "a", "meta": ["x": 1, "y": 2]],
            "relationships": ["author": ["links": ["self": "/a"], "data": ["type": "people", "id": "1"]]],
        ], "links": ["self": "/articles/1"],
    ]

    /// JSON:API 1.1 "Updating Resources": attributes and relationships that are not named stay, those that are named are replaced.
    @Test func aPatchReplacesAttributesAndRelationships() throws {
        let patch: JSONValue = [
            "data": [
                "type": "articles", "id": "1", "attributes": ["meta": ["x": 3], "note": .null],
                "relationships": ["author": ["data": ["type": "people", "id": "2"]], "tags": ["data": []]],
            ]
        ]
        let write = write(.patch, "1", patch, type: "application/vnd.api+json")
        guard case .present(let shown, 1, 1) = ItemFold.fold(article, with: [write], resource: Self.resource(.jsonapi, "/articles")) else {
            Issue.record("no item")
            return
        }
        #expect(
            shown == [
                "data": [
                    "type": "articles", "id": "1", "attributes": ["title": "a", "meta": ["x": 3], "note": .null],
                    "relationships": [
                        "author": ["links": ["self": "/a"], "data": ["type": "people", "id": "2"]], "tags": ["data": []],
                    ],
                ], "links": ["self": "/articles/1"],
            ])
    }

    @Test func listsHoldCreatesAndChanges() {
        let resource = Self.resource(.jsonapi, "/articles")
        let base: JSONValue = ["data": [["type": "articles", "id": "1", "attributes": ["title": "a"]]], "meta": ["total": 1]]
        let type = "application/vnd.api+json"
        let create = write(.post, "loc_1", ["data": ["type": "articles", "attributes": ["title": "b"]]], type: type, sequence: 1)
        let change = write(.patch, "1", ["data": ["type": "articles", "id": "1", "attributes": ["title": "c"]]], type: type, sequence: 2)
        let fold = CollectionFold.fold(base, query: "page[number]=1&fields[articles]=title", with: [create, change], resource: resource)
        #expect(fold.value["data"]?.array?.map { $0["attributes"]?["title"] } == ["c", "b"])
        #expect(fold.value["data"]?.array?.last?["id"] == "loc_1" && fold.value["meta"]?["total"] == 2)
    }

    /// A merge with another client's change is a PATCH of JSON:API, too.
    @Test func aMergeIsSentAsItsFormatSays() throws {
        let resource = Self.resource(.jsonapi, "/articles")
        let request = RequestHead(
            method: .patch, origin: OriginAddress(scheme: .http, host: "a"), target: "/articles/1",
            fields: [.contentType: "application/vnd.api+json"])
        let mine: JSONValue = ["data": ["type": "articles", "id": "1", "attributes": ["title": "mine"]]]
        let theirs = article.merging(["data": ["attributes": ["body": "theirs"]]])
        let type = "application/vnd.api+json"
        let verdict = ConflictCase(
            request: request, body: mine.serialized(), resource: resource,
            base: Conflict.Side(body: article.serialized(), contentType: type),
            theirs: .present(
                Conflict.Side(body: theirs.serialized(), contentType: type, etag: "\"2\""),
                ResponseHead(status: 200, fields: [.eTag: "\"2\""])),
            cause: .refused(status: 412), acceptedAt: noon
        ).verdict()
        guard case .resend(let resend) = verdict.action else {
            Issue.record("\(verdict.action)")
            return
        }
        #expect(resend.request.method == .patch && resend.request.fields[.contentType] == type)
        let sent = try JSONValue.parse(resend.body)
        #expect(sent["data"]?["attributes"] == ["title": "mine"] && sent["data"]?["type"] == "articles" && sent["data"]?["id"] == "1")
    }

    // MARK: HAL, FHIR, OData

    @Test func anOwnLinkNamesAnItemOfHAL() {
        let resource = Self.resource(.hal, "/orders")
        let base: JSONValue = ["_embedded": ["orders": [["n": 1, "_links": ["self": ["href": "http://a/orders/7{?projection}"]]]]]]
        #expect(resource.ids(in: base) == ["7"])
        let fold = CollectionFold.fold(base, query: nil, with: [write(.patch, "7", ["n": 2])], resource: resource)
        #expect(fold.value["_embedded"]?["orders"]?.array?.first?["n"] == 2)
    }

    @Test func aBundleWrapsItsResources() {
        let resource = Self.resource(.fhir, "/Patient")
        let base: JSONValue = [
            "resourceType": "Bundle", "total": 1,
            "entry": [
                ["fullUrl": "/Patient/1", "resource": ["resourceType": "Patient", "id": "1", "meta": ["versionId": "4"], "active": true]]
            ],
        ]
        let type = "application/fhir+json"
        let create = write(.post, "loc_1", ["resourceType": "Patient", "active": true], type: type, sequence: 5)
        let change = write(.put, "1", ["resourceType": "Patient", "id": "1", "active": false], type: type, sequence: 6)
        let fold = CollectionFold.fold(base, query: "_count=10", with: [create, change], resource: resource)
        let entries = fold.value["entry"]?.array ?? []
        #expect(entries.count == 2 && fold.value["total"] == 2)
        #expect(entries.first?["fullUrl"] == "/Patient/1" && entries.first?["resource"]?["active"] == false)
        #expect(entries.first?["resource"]?["meta"]?["versionId"] == "loc-6-4", "the version of the local state")
        #expect(entries.last?["resource"]?["id"] == "loc_1")
        #expect(resource.element("1", in: base)?["meta"]?["versionId"] == "4")
        let shown = LocalVersions(resource).shown(["resourceType": "Patient"], after: 9, etag: nil)
        #expect(shown["meta"]?["versionId"] == "loc-9")
    }

    @Test func locationMayNameAVersion() {
        let request = RequestHead(method: .post, origin: OriginAddress(scheme: .http, host: "a"), target: "/Patient")
        let answer = ResponseHead(status: 201, fields: [.location: "http://a/Patient/7/_history/1"])
        let found = ServerID.inAnswer(answer, json: nil, to: request, resource: Self.resource(.fhir, "/Patient"))
        #expect(found == ServerMapping(id: ServerID(text: "7"), url: "http://a/Patient/7"))
    }

    /// Documents of operations set no members.
    @Test(
        arguments: [
            ("application/scim+json", ["schemas": ["x"], "Operations": [["op": "replace"]]]),
            ("application/fhir+json", ["resourceType": "Parameters", "parameter": []]),
            ("application/json-patch-query+json", ["patch": []]), ("text/plain", ["a": 1]),
        ] as [(String, JSONValue)])
    func operationsAreNotMembers(type: String, body: JSONValue) {
        let resource = Resource(collection: "/n", item: "/n/{id}")
        #expect(
            ItemFold.fold(["id": "1"], with: [write(.patch, "1", body, type: type)], resource: resource)
                == .dirty(["id": "1"], last: 1, count: 1))
    }

    @Test(arguments: ["application/vnd.acme.v2+json", "application/hal+json; charset=utf-8", "application/json"])
    func everyJSONTypeSetsMembers(type: String) {
        let resource = Resource(collection: "/n", item: "/n/{id}")
        let fold = ItemFold.fold(["id": "1", "a": 1, "b": 2], with: [write(.patch, "1", ["a": 3], type: type)], resource: resource)
        #expect(fold == .present(["id": "1", "a": 3, "b": 2], last: 1, count: 1))
    }
}
