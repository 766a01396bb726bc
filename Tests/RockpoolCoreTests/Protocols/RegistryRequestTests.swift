// Requests of container clients, and the tokens of registries.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct RegistryRequestTests {
    private static let digest = "sha256:" + String(repeating: "0a", count: 32)

    private func request(
        _ target: String, _ method: HTTPRequest.Method = .get, _ fields: HTTPFields = [:]
    ) -> RequestHead {
        RequestHead(method: method, origin: OriginAddress(scheme: .https, host: "registry.example"), target: target, fields: fields)
    }

    @Test func requestsByWhatTheyAskFor() {
        let expected: [(String, RegistryRequest)] = [
            ("/v2/", .base), ("/v2", .base), ("/v2/pool/app/manifests/latest", .tag(repository: "pool/app")),
            ("/v2/app/manifests/v1.2-rc_1?ns=docker.io", .tag(repository: "app")),
            ("/v2/app/manifests/" + Self.digest, .content(repository: "app")),
            ("/v2/a/b/c/blobs/" + Self.digest, .content(repository: "a/b/c")),
            ("/v2/uploads/blobs/" + Self.digest, .content(repository: "uploads")),
            ("/v2/app/tags/list?n=5", .listing(repository: "app")), ("/v2/app/referrers/" + Self.digest, .listing(repository: "app")),
            ("/v2/app/blobs/uploads/17", .upload), ("/v2/_catalog", .other), ("/token?service=r&scope=repository:app:pull", .token),
            ("/v2/auth?service=r", .token), ("/other", .other),
            // Another spelling may be another thing for the registry.
            ("/v2/app/blobs/sha256:abc", .other), ("/v2/a/../b/manifests/latest", .other), ("/v2/app/manifests/%6Catest", .other),
            ("/v2/app/blobs/" + Self.digest.uppercased(), .other), ("/v2/app/tags/all", .other), ("/v2//manifests/latest", .other),
        ]
        for (target, kind) in expected { #expect(RegistryRequest(request(target)) == kind, "\(target)") }
        let form: HTTPFields = [.contentType: "application/x-www-form-urlencoded"]
        #expect(RegistryRequest(request("/token", .post, form)) == .token)
        #expect(RegistryRequest(request("/v2/app/blobs/uploads/", .post)) == .upload)
    }

    @Test func onlyContentHasADigest() {
        let key = { (target: String, partition: StoragePartition) in CacheKey(self.request(target), identity: partition.name).contentDigest
        }
        #expect(key("/v2/app/blobs/" + Self.digest, .registry)?.bytes.count == 32)
        #expect(key("/v2/app/manifests/" + Self.digest, .registry)?.algorithm == .sha256)
        #expect(key("/v2/app/blobs/" + Self.digest, .shared) == nil)
        #expect(key("/v2/app/referrers/" + Self.digest, .registry) == nil)
        #expect(key("/v2/app/manifests/latest", .registry) == nil)
    }

    @Test func whoAsksForATokenAndForWhat() {
        let basic = TokenQuestion(
            request(
                "/token?service=r&scope=repository:pool/app:pull,push&scope=repository:b:push&account=ada", .get,
                [.authorization: "Basic YWRhOng="]))
        let form = TokenQuestion(
            request("/token", .post),
            form: Array("grant_type=password&username=ada&password=x&scope=repository%3Apool%2Fapp%3Apull+repository:host:5000/c:*".utf8))
        #expect(basic.asker == form.asker && !basic.asker.isEmpty)
        #expect(basic.repositories == ["pool/app"] && form.repositories == ["pool/app", "host:5000/c"])
        #expect(TokenQuestion(request("/token?scope=repository:a:pull")).asker.isEmpty)
        let other = TokenQuestion(request("/token", .post), form: Array("grant_type=refresh_token&refresh_token=x".utf8))
        #expect(other.asker != basic.asker && !other.asker.isEmpty)
    }

    @Test func theShapeOfAnAnswerIsKeptWithoutItsToken() throws {
        let given = try #require(
            TokenAnswer(Array(#"{"token":"secret","access_token":"secret","expires_in":300,"refresh_token":"r"}"#.utf8)))
        #expect(given.tokens == ["secret"] && given.lifetime == .seconds(300))
        #expect(!String(decoding: given.kept, as: UTF8.self).contains("secret"))
        let made = try #require(TokenAnswer.answer(of: given.kept, with: { "made \($0.seconds)" }, at: Timestamp(seconds: 0)))
        let answer = try JSONValue.parse(made)
        #expect(answer["token"]?.string == "made 300" && answer["access_token"]?.string == "made 300")
        #expect(answer["expires_in"]?.integer == 300 && answer["refresh_token"] == nil)
        #expect(TokenAnswer(Array(#"{"token":"t"}"#.utf8))?.lifetime == .seconds(60))
        #expect(TokenAnswer(Array(#"{"errors":[]}"#.utf8)) == nil && TokenAnswer([]) == nil)
    }

    @Test func aTokenIsWhatItsSealSays() throws {
        let seal = { (bytes: [UInt8]) in String(bytes.reduce(UInt64(7)) { $0 &* 31 &+ UInt64($1) }, radix: 16) }
        let token = RegistryToken(holder: "ada", repositories: ["pool/app", "b"], expiresAt: Timestamp(seconds: 60))
        let text = token.text(sealedBy: seal)
        #expect(RegistryToken(authorization: "Bearer " + text, sealedBy: seal) == token)
        #expect(RegistryToken.isOne("bearer " + text) && !RegistryToken.isOne("Basic " + text) && !RegistryToken.isOne("Bearer abc"))
        let parts = text.split(separator: ".").map { String($0) }
        let other = RegistryToken(holder: "eve", repositories: ["pool/app"], expiresAt: Timestamp(seconds: 60)).text(sealedBy: seal)
        let mixed = "rockpool." + other.split(separator: ".")[1] + "." + parts[2]
        for forged in [mixed, text + "0", String(text.dropLast()), "rockpool..", "rockpool.!." + parts[2]] {
            #expect(RegistryToken(authorization: "Bearer " + forged, sealedBy: seal) == nil, "\(forged)")
        }
    }

    @Test func aYesIsAskedForAgainInTime() {
        var admissions = RegistryAdmissions()
        let start = Timestamp(seconds: 1000)
        admissions.note(token: "t", of: "ada", until: start + .seconds(60), now: start)
        admissions.note(true, "ada's token", to: "r", token: "t", now: start)
        admissions.note(true, "nobody", to: "r", token: nil, now: start)
        #expect(admissions.holder(ofToken: "t") == "ada" && admissions.holder(ofToken: "u") == nil)
        #expect(admissions.isAdmitted("ada's token", to: "r", now: start) && !admissions.isAdmitted("ada's token", to: "s", now: start))
        let later = start + .seconds(61)
        #expect(!admissions.isAdmitted("ada's token", to: "r", now: later) && admissions.isAdmitted("nobody", to: "r", now: later))
        #expect(admissions.wasAdmitted("ada's token", to: "r"))
        #expect(!admissions.isAdmitted("nobody", to: "r", now: start + RegistryAdmissions.askedAgainAfter))
        admissions.note(false, "nobody", to: "r", token: nil, now: later)
        #expect(!admissions.wasAdmitted("nobody", to: "r"))
    }
}
