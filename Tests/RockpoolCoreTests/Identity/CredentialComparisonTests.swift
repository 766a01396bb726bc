// Which answers with and without a credential prove it (docs/security-model.md#proof).
import HTTPTypes
import Testing

@testable import RockpoolCore

struct CredentialComparisonTests {
    /// A status and a body.
    private typealias Said = (Int, String)

    private static func ending(_ said: [Said], fields: HTTPFields = [:]) -> (ending: CredentialComparison.Ending?, asked: [Bool]) {
        var (comparison, step, asked) = (CredentialComparison(), CredentialComparison.first, [Bool]())
        for (status, body) in said {
            guard case .ask(let withCredential) = step else { return (nil, asked) }
            asked.append(withCredential)
            let digest = body == "long" ? nil : body.hashValue
            step = comparison.take(.init(ResponseHead(status: status, fields: fields), digest: digest))
        }
        guard case .ended(let ending) = step else { return (nil, asked) }
        return (ending, asked)
    }

    @Test(arguments: [401, 403]) func aPlaceThatRefusesOthersProves(status: Int) {
        let (ending, asked) = Self.ending([(status, "who?"), (200, "anna's")])
        #expect(ending == .proved && asked == [false, true])
        #expect(Self.ending([(status, "who?"), (200, "long")]).ending == .proved)
    }

    @Test(arguments: [401, 403, 404, 429, 500, 302]) func aRefusalOfBothSaysNothing(status: Int) {
        #expect(Self.ending([(401, "who?"), (status, "who?")]).ending == .unclear)
    }

    @Test func aLimitIsNoRefusal() { #expect(Self.ending([(403, "slow")], fields: [.retryAfter: "1"]).ending == .unclear) }

    @Test(arguments: [302, 304, 404, 429, 500, 503]) func otherAnswersWithoutTheCredentialSayNothing(status: Int) {
        #expect(Self.ending([(status, "x")]).ending == .unclear)
    }

    @Test func aPlaceThatAnswersAllAlikeIsOpen() { #expect(Self.ending([(200, "news"), (200, "news")]).ending == .open) }

    @Test func aPlaceThatHasAnAnswerForEachProves() {
        let (ending, asked) = Self.ending([(200, "nobody"), (200, "anna"), (200, "nobody")])
        #expect(ending == .proved && asked == [false, true, false])
    }

    /// Of a clock, a counter or a random number.
    @Test func anAnswerThatAlwaysDiffersSaysNothing() {
        #expect(Self.ending([(200, "1"), (200, "2"), (200, "3")]).ending == .unclear)
        #expect(Self.ending([(200, "nobody"), (200, "anna"), (401, "who?")]).ending == .unclear)
        #expect(Self.ending([(200, "long")]).ending == .unclear)
        #expect(Self.ending([(200, "news"), (200, "long")]).ending == .unclear)
    }

    @Test func theQuestionHasAllButWhatIsOfOneRequest() {
        let request = RequestHead(
            method: .get, origin: OriginAddress(scheme: .https, host: "a.test"), target: "/me?x=1",
            fields: [
                .authorization: "Bearer t", .cookie: "sid=1", .ifNoneMatch: "\"a\"", .range: "bytes=0-", .cacheControl: "no-cache",
                .accept: "application/json",
            ])
        let bare = CredentialComparison.question(like: request, withCredential: false)
        #expect(bare.fields == [.cookie: "sid=1", .accept: "application/json"] && bare.target == request.target)
        let whole = CredentialComparison.question(like: request, withCredential: true)
        #expect(whole.fields == [.authorization: "Bearer t", .cookie: "sid=1", .accept: "application/json"])
        #expect(whole.method == .get)
    }

    @Test(arguments: ["PROPFIND", "REPORT"]) func aCollectionIsAskedForItself(method: String) throws {
        let request = RequestHead(
            method: try #require(HTTPRequest.Method(method)), origin: OriginAddress(scheme: .https, host: "a.test"), target: "/dav/",
            fields: [.authorization: "Basic YTpi", .depth: "1", .contentType: "application/xml"])
        let question = CredentialComparison.question(like: request, withCredential: true)
        #expect(question.method.rawValue == "PROPFIND" && question.fields == [.authorization: "Basic YTpi", .depth: "0"])
    }
}
