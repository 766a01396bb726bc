// The identity of a request, and the stored credential: in memory only, the newest proved one (docs/caching.md#partitions,
// docs/outbox.md#credentials).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

struct CredentialsTests {
    private let clock = ManualClock()
    private let store: TemporaryStore
    private let credentials: Credentials

    init() throws {
        store = try TemporaryStore(clock: clock)
        credentials = Credentials(store: store.data, logger: .silent, now: clock.reading)
    }

    private func identity(_ fields: HTTPFields, _ rule: IdentityRule = .auto, _ origin: OriginAddress = .notes) -> Identity {
        credentials.identity(of: RequestHead(method: .get, origin: origin, target: "/", fields: fields), rule: rule)
    }

    /// Returns partition and principal, without the secrets.
    private func names(_ fields: HTTPFields, _ rule: IdentityRule = .auto, _ origin: OriginAddress = .notes) -> [String?] {
        let identity = identity(fields, rule, origin)
        return [identity.partition, identity.principal]
    }

    private func someone(_ principal: String, _ secret: String) -> Identity {
        Identity(partition: principal, principal: principal, secrets: [.authorization: secret])
    }

    @Test(arguments: [[:], [.accept: "text/html"], [.userAgent: "curl"]] as [HTTPFields])
    func withoutACredentialThereIsNobody(fields: HTTPFields) {
        #expect(identity(fields).partition == nil && identity(fields).principal == nil)
    }

    @Test(arguments: SecretFields.identifying)
    func everyCredentialFieldMakesAnIdentityThatDoesNotShowIt(field: HTTPField.Name) throws {
        let someone = try #require(identity([field: "s3cret"]).partition)
        #expect(!someone.isEmpty && !someone.contains("s3cret"))
        #expect(someone == identity([field: "s3cret"]).principal, "the name is the same each time, for both uses")
        #expect(someone != identity([field: "0ther"]).partition)
    }

    @Test func cookiesBesideABearerTokenDoNotSplitIt() {
        #expect(names([.authorization: "Bearer t"]) == names([.authorization: "Bearer t", .cookie: "a=1"]))
        #expect(names([.cookie: "a=1"]) != names([.cookie: "a=2"]))
    }

    @Test func cookiesThatIdentifyNoUserDoNotSplitAnIdentity() {
        let session = names([.cookie: "sid=7"])
        #expect(names([.cookie: "_ga=GA1.1.2.3; sid=7; _ga_ABC=GS1.1.9"]) == session)
        #expect(names([.cookie: "sid=7;AWSALB=x/y+z==; __cf_bm=1"]) == session)
        #expect(names([.cookie: "sid=8; __cf_bm=1"]) != session && names([.cookie: "sid=7; _gander=1"]) != session)
        #expect(identity([.cookie: "sid=7; _ga=1"]).secrets == [.cookie: "sid=7; _ga=1"], "the upstream gets all of them")
        #expect(identity([.cookie: "_ga=1; _gid=2"]).principal == nil && identity([.cookie: "_ga=1"], .single).partition == "")
        #expect(names([.cookie: "_ga=1"], .cookie("_ga")) != names([.cookie: "_ga=2"], .cookie("_ga")), "unless the rule names it")
        #expect(identity([.cookie: "_ga=1"], .cookie("sid")).partition == nil)
        #expect(names([.authorization: "a", .cookie: "_ga=1"]) == names([.authorization: "a"]))
    }

    /// These fields differ in every request; they are resent together with the credential and never written to disk.
    @Test(arguments: ["X-CSRF-Token", "X-XSRF-Token", "DPoP"])
    func secretsOfOneRequestDoNotSplitAnIdentity(name: String) throws {
        let field = try #require(HTTPField.Name(name))
        let (one, other): (HTTPFields, HTTPFields) = ([.cookie: "a=1", field: "x"], [.cookie: "a=1", field: "y"])
        #expect(names(one) == names(other) && identity(one).secrets == one)
        #expect(identity([field: "x"]).partition == nil)
        #expect(identity([field: "x"]).withoutSecrets([field: "x", .accept: "a"]) == [.accept: "a"])
    }

    @Test func oneCredentialIsTwoIdentitiesAtTwoOrigins() {
        let fields: HTTPFields = [.authorization: "Bearer t"]
        #expect(names(fields) != names(fields, .auto, OriginAddress(scheme: .https, host: "api.test")))
    }

    @Test func singleHasOnePartitionForAll() {
        #expect(identity([.authorization: "a"], .single).partition == "")
        #expect(identity([:], .single).partition == "")
        #expect(identity([:], .single).principal == nil, "a request without a credential has no principal")
        #expect(identity([.authorization: "a"], .single).principal != nil)
    }

    @Test func theRuleNamesTheFieldOrCookie() throws {
        let tenant = try #require(HTTPField.Name("X-Tenant"))
        let byHeader = IdentityRule.header("X-Tenant")
        #expect(names([tenant: "1", .authorization: "a"], byHeader) == names([tenant: "1", .authorization: "b"], byHeader))
        #expect(names([.authorization: "a"], byHeader) != names([.authorization: "b"], byHeader), "else other secrets decide")
        let byCookie = IdentityRule.cookie("sid")
        #expect(names([.cookie: "x=1; sid=7"], byCookie) == names([.cookie: "sid=7; y=2"], byCookie))
        #expect(names([.cookie: "xsid=7"], byCookie) != names([.cookie: "sid=7"], byCookie))
        #expect(names([.cookie: "sid=7"], byCookie) != names([.cookie: "sid=8"], byCookie))
    }

    @Test func secretsAreTakenOutAndTheRestStays() {
        let fields: HTTPFields = [.authorization: "s", .cookie: "s", .accept: "a", .contentType: "t"]
        #expect(identity(fields).withoutSecrets(fields) == [.accept: "a", .contentType: "t"])
        #expect(identity(fields).secrets == [.authorization: "s", .cookie: "s"])
    }

    @Test func anUntriedCredentialDoesNotReplaceAProvedOne() {
        #expect(credentials.remember(someone("i", "good"), isProved: true))
        #expect(!credentials.remember(someone("i", "new"), isProved: false))
        #expect(credentials.live(of: "i") == [.authorization: "good"])
        #expect(credentials.remember(someone("i", "new"), isProved: true))
        #expect(credentials.live(of: "i") == [.authorization: "new"])
    }

    /// Where the principal is named by a cookie that both contain, the newest untried credential is the one to send; seeing it proves nothing.
    @Test func anUntriedCredentialReplacesAnUntriedOneOfTheSameCookie() {
        credentials.remember(someone("i", "sid=7; token=1"), isProved: false)
        credentials.remember(someone("i", "sid=7; token=2"), isProved: false)
        #expect(credentials.live(of: "i") == [.authorization: "sid=7; token=1"])
        credentials.remember(someone("i", "sid=7; token=2"), isProved: false, replacesUntried: true)
        credentials.remember(someone("i", "sid=7; token=2"), isProved: false, replacesUntried: true)
        #expect(credentials.live(of: "i") == [.authorization: "sid=7; token=2"] && !credentials.isProved("i"))
        credentials.remember(someone("i", "sid=7; token=3"), isProved: true)
        credentials.remember(someone("i", "sid=7; token=4"), isProved: false, replacesUntried: true)
        #expect(credentials.live(of: "i") == [.authorization: "sid=7; token=3"] && credentials.isProved("i"))
    }

    @Test func nothingIsRememberedOfARequestWithoutSecrets() {
        #expect(!credentials.remember(identity([.accept: "a"]), isProved: true))
    }

    @Test func aRefusedCredentialIsNotUsedAgain() async {
        credentials.remember(someone("i", "a"), isProved: true)
        credentials.remember(someone("j", "b"), isProved: true)
        await credentials.forget("i", refused: [.authorization: "a"])
        #expect(credentials.live(of: "i") == nil)
        #expect(credentials.live(of: "j") == [.authorization: "b"], "the credential of another identity stays")
    }

    @Test func whatWasShownSinceIsNotForgotten() async {
        credentials.remember(someone("i", "a"), isProved: true)
        credentials.remember(someone("i", "b"), isProved: true)
        await credentials.forget("i", refused: [.authorization: "a"])
        #expect(credentials.live(of: "i") == [.authorization: "b"])
    }

    /// After `forget`, the same credential is unusable until it is proved again; seeing it unproved is not enough.
    @Test func aRefusedCredentialSeenAgainUnprovedStaysForgotten() async {
        credentials.remember(someone("i", "a"), isProved: true)
        await credentials.forget("i", refused: [.authorization: "a"])
        credentials.remember(someone("i", "a"), isProved: false)
        #expect(credentials.live(of: "i") == nil)
        credentials.remember(someone("i", "a"), isProved: true)
        #expect(credentials.live(of: "i") == [.authorization: "a"])
    }

    @Test func aThousandIdentitiesAreKeptAndNoMore() {
        for number in 0..<1200 { credentials.remember(someone("\(number)", "\(number)"), isProved: true) }
        #expect((0..<1200).count { credentials.live(of: "\($0)") != nil } == 1000)
    }
}
