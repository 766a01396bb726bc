// docs/caching.md#partitions: the key of a signature, and the time until which it is accepted.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct SignedRequestTests {
    private func signed(_ fields: HTTPFields) -> SignedRequest? {
        SignedRequest(RequestHead(method: .get, origin: OriginAddress(scheme: .https, host: "s3.example"), target: "/b/k", fields: fields))
    }

    @Test func sigV4NamesItsKeyAndIsValidForFifteenMinutes() throws {
        let date = try #require(HTTPField.Name("X-Amz-Date"))
        let authorization =
            "AWS4-HMAC-SHA256 Credential=AKIA1/20130524/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature=f0e8"
        let request = try #require(signed([.authorization: authorization, date: "20130524T000000Z"]))
        #expect(request.scheme == .sigV4 && request.keyID == "AKIA1" && request.isOfOneRequest)
        #expect(request.expiresAt == RFC3339.parse("2013-05-24T00:15:00Z"))
        #expect(signed([.authorization: "AWS4-HMAC-SHA256 SignedHeaders=host"]) == nil)
    }

    @Test func messageSignaturesNameKeyAndExpiry() throws {
        let input = try #require(HTTPField.Name("Signature-Input"))
        let value = #"sig1=("@method" "@authority" "a,b");created=1618884473;expires=1618884773;keyid="test-key-ed25519""#
        let request = try #require(signed([input: value]))
        #expect(request.scheme == .messageSignature && request.keyID == "test-key-ed25519")
        #expect(request.expiresAt == Timestamp(seconds: 1_618_884_773))
    }

    @Test(arguments: [
        (#"Hawk id="dh37fgj492je", ts="1353832234", mac="6R4="#, SignedRequest.Scheme.hawk, "dh37fgj492je"),
        (#"Digest username="Mufasa", realm="a, b", uri="/x""#, .digest, "Mufasa"),
        ("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", .basic, "Aladdin"), (#"Signature keyId="k1",algorithm="x""#, .messageSignature, "k1"),
    ])
    func otherSchemes(authorization: String, scheme: SignedRequest.Scheme, key: String) throws {
        let request = try #require(signed([.authorization: authorization]))
        #expect(request.scheme == scheme && request.keyID == key && request.expiresAt == nil)
    }

    @Test(arguments: ["Bearer abc", "Basic !!!", "Basic Ojpw", ""])
    func noSignature(authorization: String) { #expect(signed([.authorization: authorization]) == nil) }
}

@Suite struct QueuedReplyTests {
    private func form(_ method: HTTPRequest.Method, _ fields: HTTPFields, kind: Route.Kind = .standard) -> QueuedReply {
        let head = RequestHead(method: method, origin: OriginAddress(scheme: .http, host: "a"), target: "/", fields: fields)
        return QueuedReply(to: head, route: Route(match: "/**", kind: kind))
    }

    @Test(arguments: ["*/*", "text/html, application/json;q=0.5", "application/vnd.api+json", "application/*"])
    func clientsThatReadJSONGetADocument(accept: String) { #expect(form(.put, [.accept: accept]) == .document) }

    @Test func othersGetNoBody() {
        #expect(form(.put, [:]) == .document)
        #expect(form(.put, [.accept: "text/xml"]) == .empty && form(.post, [.accept: "text/html"]) == .empty)
        #expect(form(.put, [.authorization: "AWS4-HMAC-SHA256 Credential=A/x, Signature=y"]) == .empty)
    }

    @Test func kindsHaveFormsOfTheirOwn() {
        #expect(form(.post, [.accept: "text/xml"], kind: .graphql) == .graphQL(isOptimistic: false))
        #expect(form(.put, [:], kind: .s3) == .s3(status: 200) && form(.delete, [:], kind: .s3) == .s3(status: 204))
        #expect(form(.post, [:], kind: .s3) == .document)
    }
}
