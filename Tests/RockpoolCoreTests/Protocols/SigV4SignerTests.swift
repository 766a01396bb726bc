// docs/reference/configuration.md#upstreams, `sign`: signatures of AWS Signature Version 4.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct SigV4SignerTests {
    /// Signs by the texts themselves, so that different texts have different signatures.
    private let signer = SigV4Signer(
        SigV4Rule(keyID: "AK", secretFile: "/k"), secret: "SK", digest: { $0 }, code: { message, key in message + key })

    private let moment = Timestamp(seconds: 1_500_000_000)

    private func request(_ target: String = "/b/k?b=2&a") throws -> RequestHead {
        var head = RequestHead(method: .put, origin: OriginAddress(scheme: .http, host: "s3"), target: target)
        head.fields[try #require(HTTPField.Name("X-Amz-Meta-A"))] = "two  words "
        head.fields[try #require(HTTPField.Name("X-Amz-Content-Sha256"))] = "UNSIGNED-PAYLOAD"
        head.fields[.contentType] = "text/plain"
        return head
    }

    @Test func whatItSignsItVerifies() throws {
        let signed = signer.signed(try request(), authority: "gateway:1", at: moment)
        let authorization = try #require(signed.fields[.authorization])
        #expect(authorization.hasPrefix("AWS4-HMAC-SHA256 Credential=AK/20170714/us-east-1/s3/aws4_request, SignedHeaders="))
        #expect(authorization.contains("SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-meta-a, Signature="))
        #expect(signed.fields[try #require(HTTPField.Name("X-Amz-Date"))] == "20170714T024000Z")
        #expect(signer.doubt(of: signed, authorities: ["else", "gateway:1"], at: moment) == nil)
        #expect(signer.doubt(of: signed, authorities: ["other:1"], at: moment) == .wrong)
        var changed = signed
        changed.fields[.contentType] = "text/html"
        #expect(signer.doubt(of: changed, authorities: ["gateway:1"], at: moment) == .wrong)
        #expect(signer.doubt(of: try request(), authorities: ["gateway:1"], at: moment) == .wrong)
    }

    @Test func signsAnewOnlyWhatTheKeyHasSignedNow() throws {
        let signed = signer.signed(try request(), authority: "gateway:1", at: moment)
        let cases: [(Int64, SigV4Signer.Doubt?)] = [
            (900, nil), (-900, nil), (901, .outOfTime), (-901, .outOfTime), (400_000_000, .outOfTime),
        ]
        for (seconds, doubt) in cases {
            let other = Timestamp(seconds: moment.seconds + seconds)
            #expect(signer.doubt(of: signed, authorities: ["gateway:1"], at: other) == doubt, "\(seconds)")
        }
        for rule in [
            SigV4Rule(keyID: "AK", secretFile: "/k", region: "eu-west-1"), SigV4Rule(keyID: "AK", secretFile: "/k", service: "iam"),
        ] {
            let other = SigV4Signer(rule, secret: "SK", digest: { $0 }, code: { message, key in message + key })
            #expect(other.doubt(of: signed, authorities: ["gateway:1"], at: moment) == .scope)
        }
        for name in ["X-Amz-Acl", "X-Amz-Copy-Source", "x-amz-tagging", "X-Amz-Security-Token"] {
            var added = signed
            added.fields.append(HTTPField(name: try #require(HTTPField.Name(name)), value: "public-read"))
            #expect(signer.doubt(of: added, authorities: ["gateway:1"], at: moment) == .unsignedField, "\(name)")
        }
        var hostless = signed
        hostless.fields[.authorization] = signed.fields[.authorization]?.replacing(";host;", with: ";")
        #expect(signer.doubt(of: hostless, authorities: ["gateway:1"], at: moment) == .unsignedField)
    }

    @Test func aFieldThatTheClientHasNotSignedStaysUnsigned() throws {
        var request = try request()
        request.fields[.authorization] = "AWS4-HMAC-SHA256 Credential=AK/x, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=1"
        let signed = signer.signed(request, authority: "s3", at: moment)
        #expect(signed.fields[.authorization]?.contains("SignedHeaders=host;x-amz-content-sha256;x-amz-date, ") == true)
        #expect(signed.fields[.contentType] == "text/plain")
    }

    @Test func theOrderOfTheQueryDoesNotCount() throws {
        let (one, other) = (try request("/b/k?b=2&a"), try request("/b/k?a=&b=2"))
        let fields = [one, other].map { signer.signed($0, authority: "s3", at: moment).fields[.authorization] }
        #expect(fields[0] == fields[1])
    }

    @Test func aQueryIsSortedByItsNames() throws {
        let hex = { (text: String) in text.utf8.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
        let signed = signer.signed(try request("/b?a-b=1&a=2&a=1"), authority: "s3", at: Timestamp(seconds: 1_500_000_000))
        #expect(signed.fields[.authorization]?.contains(hex(hex("\na=1&a=2&a-b=1\n"))) == true)
    }
}
