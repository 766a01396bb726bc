// Who a request is from, and what is kept of a credential: in memory only, the newest proved one (design §5, outbox.md §1.10).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

struct CredentialsTests {
    private let store: TemporaryStore
    private let credentials: Credentials

    init() throws {
        store = try TemporaryStore(clock: ManualClock())
        credentials = Credentials(store: store.data)
    }

    private func identity(_ fields: HTTPFields, _ rule: IdentityRule = .auto, _ origin: OriginAddress = .notes) -> Identity {
        credentials.identity(of: RequestHead(method: .get, origin: origin, target: "/", fields: fields), rule: rule)
    }

    @Test(arguments: [[:], [.accept: "text/html"], [.userAgent: "curl"]] as [HTTPFields])
    func withoutACredentialThereIsNobody(fields: HTTPFields) {
        #expect(identity(fields).partition == nil && identity(fields).principal == nil)
    }

    @Test(arguments: ["Authorization", "Cookie", "X-Api-Key", "Api-Key", "X-Auth-Token"])
    func everyCredentialFieldMakesAnIdentityThatDoesNotShowIt(name: String) throws {
        let field = try #require(HTTPField.Name(name))
        let someone = try #require(identity([field: "s3cret"]).partition)
        #expect(!someone.isEmpty && !someone.contains("s3cret"))
        #expect(someone == identity([field: "s3cret"]).principal, "the same each time, for both uses")
        #expect(someone != identity([field: "0ther"]).partition)
    }

    @Test func cookiesBesideABearerTokenDoNotSplitIt() {
        #expect(identity([.authorization: "Bearer t"]) == identity([.authorization: "Bearer t", .cookie: "a=1"]))
        #expect(identity([.cookie: "a=1"]) != identity([.cookie: "a=2"]))
    }

    @Test func oneCredentialIsTwoIdentitiesAtTwoOrigins() {
        let fields: HTTPFields = [.authorization: "Bearer t"]
        #expect(identity(fields) != identity(fields, .auto, OriginAddress(scheme: .https, host: "api.test")))
    }

    @Test func singleHasOnePartitionForAll() {
        #expect(identity([.authorization: "a"], .single) == identity([.authorization: "b"], .single))
        #expect(identity([:], .single).partition == "")
    }

    @Test func theRuleNamesTheFieldOrCookie() throws {
        let tenant = try #require(HTTPField.Name("X-Tenant"))
        let byHeader = IdentityRule.header("X-Tenant")
        #expect(identity([tenant: "1", .authorization: "a"], byHeader) == identity([tenant: "1", .authorization: "b"], byHeader))
        #expect(identity([.authorization: "a"], byHeader).partition == nil)
        let byCookie = IdentityRule.cookie("sid")
        #expect(identity([.cookie: "x=1; sid=7"], byCookie) == identity([.cookie: "sid=7; y=2"], byCookie))
        #expect(identity([.cookie: "xsid=7"], byCookie).partition == nil)
        #expect(identity([.cookie: "sid=7"], byCookie) != identity([.cookie: "sid=8"], byCookie))
    }

    @Test func secretsAreTakenOutAndTheRestStays() {
        let fields: HTTPFields = [.authorization: "s", .cookie: "s", .accept: "a", .contentType: "t"]
        #expect(Credentials.removed(from: fields) == [.accept: "a", .contentType: "t"])
        #expect(Credentials.of(fields) == [.authorization: "s", .cookie: "s"])
    }

    @Test func anUntriedCredentialDoesNotReplaceAProvedOne() {
        #expect(credentials.remember([.authorization: "good"], of: "i", isProved: true))
        #expect(!credentials.remember([.authorization: "new"], of: "i", isProved: false))
        #expect(credentials.live(of: "i") == [.authorization: "good"])
        #expect(credentials.remember([.authorization: "new"], of: "i", isProved: true))
        #expect(credentials.live(of: "i") == [.authorization: "new"])
    }

    @Test func nothingIsRememberedOfARequestWithoutSecrets() {
        #expect(!credentials.remember([.accept: "a"], of: "i", isProved: true))
        #expect(credentials.live(of: "i") == nil)
    }

    @Test func aRefusedCredentialIsNotUsedAgain() {
        credentials.remember([.authorization: "a"], of: "i", isProved: true)
        credentials.remember([.authorization: "b"], of: "j", isProved: true)
        credentials.forget("i")
        #expect(credentials.live(of: "i") == nil)
        #expect(credentials.live(of: "j") == [.authorization: "b"], "another's stays")
    }

    /// `forget` says: not used again until the identity shows another. The same one untried is not another.
    @Test func aRefusedCredentialSeenAgainUnprovedStaysForgotten() {
        credentials.remember([.authorization: "a"], of: "i", isProved: true)
        credentials.forget("i")
        credentials.remember([.authorization: "a"], of: "i", isProved: false)
        #expect(credentials.live(of: "i") == nil)
        credentials.remember([.authorization: "a"], of: "i", isProved: true)
        #expect(credentials.live(of: "i") == [.authorization: "a"])
    }

    @Test func aThousandIdentitiesAreKeptAndNoMore() {
        for number in 0..<1200 { credentials.remember([.authorization: "\(number)"], of: "\(number)", isProved: true) }
        #expect((0..<1200).count { credentials.live(of: "\($0)") != nil } == 1000)
    }
}
