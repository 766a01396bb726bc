// The condition for a precheck before a write, and its result (docs/outbox.md#detection).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct ConflictPrecheckTests {
    private static let byETag = Resource(collection: "/notes", item: "/notes/{id}", updatedAt: "/at")
    private static let byVersion = Resource(collection: "/notes", item: "/notes/{id}", version: "/rev")

    private static func side(_ body: String, _ etag: String? = nil) -> Conflict.Side {
        Conflict.Side(body: Array(body.utf8), contentType: "application/json", etag: etag)
    }

    private static func request(_ method: HTTPRequest.Method, _ fields: HTTPFields = [:]) throws -> RequestHead {
        try RequestHead(method: method, url: "https://api.example/notes/1", fields: fields)
    }

    @Test(
        arguments: [
            ("no tag to send", HTTPRequest.Method.put, "{}", [:], #"{"a":1}"#, nil, byETag, true),
            ("only a weak one", .patch, "{}", [:], #"{"a":1}"#, #"W/"1""#, byETag, true),
            ("a strong one goes as If-Match", .put, "{}", [:], #"{"a":1}"#, #""1""#, byETag, false),
            ("its client's own condition", .put, "{}", [.ifMatch: #""0""#], #"{"a":1}"#, nil, byETag, false),
            ("a creation has no base of its own", .post, "{}", [:], #"{"a":1}"#, nil, byETag, false),
            ("a version in the body is checked", .put, #"{"rev":3}"#, [:], #"{"a":1,"rev":3}"#, nil, byVersion, false),
            ("a body without its version", .put, #"{"a":2}"#, [:], #"{"a":1,"rev":3}"#, nil, byVersion, true),
            ("a deletion carries none", .delete, "", [:], #"{"a":1,"rev":3}"#, nil, byVersion, true),
        ] as [(String, HTTPRequest.Method, String, HTTPFields, String, String?, Resource, Bool)])
    func isNeeded(
        _ what: String, _ method: HTTPRequest.Method, _ body: String, _ fields: HTTPFields, _ base: String, _ etag: String?,
        _ resource: Resource, _ isNeeded: Bool
    ) throws {
        let request = try Self.request(method, fields)
        #expect(ConflictPrecheck.isNeeded(request, body: Array(body.utf8), base: Self.side(base, etag), resource: resource) == isNeeded)
        #expect(
            !ConflictPrecheck.isNeeded(request, body: Array(body.utf8), base: nil, resource: resource), "no base is known for a comparison")
    }

    @Test(
        arguments: [
            ("the same", #"{"a":1}"#, #"{"a":1}"#, false, false, byETag),
            ("another value", #"{"a":1}"#, #"{"a":2}"#, true, true, byETag),
            ("a member more", #"{"a":1}"#, #"{"a":1,"b":2}"#, true, false, byETag),
            ("a member less", #"{"a":1,"b":2}"#, #"{"a":1}"#, true, true, byETag),
            ("only the upstream's own stamps", #"{"id":"1","a":1,"at":1}"#, #"{"id":1,"a":1,"at":2}"#, false, false, byETag),
            ("the same version, whatever it shows", #"{"a":1,"rev":3}"#, #"{"a":2,"rev":3}"#, false, false, byVersion),
            ("another version of the same", #"{"a":1,"rev":3}"#, #"{"a":1,"rev":4}"#, false, false, byVersion),
        ] as [(String, String, String, Bool, Bool, Resource)])
    func hasMoved(_ what: String, _ base: String, _ theirs: String, _ whole: Bool, _ answer: Bool, _ resource: Resource) {
        #expect(ConflictPrecheck.hasMoved(from: Self.side(base), to: Self.side(theirs), resource: resource) == whole)
        #expect(ConflictPrecheck.hasMoved(from: Self.side(base), to: Self.side(theirs), resource: resource, isAnswer: true) == answer)
    }

    @Test func anAnswerWithNothingInItIsNotCompared() throws {
        let (request, stamps) = (try Self.request(.put), Self.side(#"{"id":"1","at":7}"#))
        #expect(!ConflictPrecheck.isNeeded(request, body: [], base: stamps, resource: Self.byETag, isAnswer: true))
        #expect(
            ConflictPrecheck.isNeeded(request, body: [], base: stamps, resource: Self.byETag), "the copy shows that there was nothing else")
    }

    @Test func anEqualStrongTagSettlesIt() {
        let (base, theirs) = (Self.side(#"{"a":1}"#, #""1""#), Self.side(#"{"a":2}"#, #""1""#))
        #expect(!ConflictPrecheck.hasMoved(from: base, to: theirs, resource: Self.byETag))
        let (weak, other) = (Self.side(#"{"a":1}"#, #"W/"1""#), Self.side(#"{"a":2}"#, #"W/"1""#))
        #expect(ConflictPrecheck.hasMoved(from: weak, to: other, resource: Self.byETag))
    }
}
