// The request and response of a token refresh, and its timing (RFC 6749 §5, §6; docs/outbox.md#credentials).
import HTTPTypes
import RockpoolCore
import Testing

struct RefreshTests {
    private let origin = OriginAddress(scheme: .http, host: "api.test")
    private let json: HTTPFields = [.contentType: "application/json; charset=utf-8"]

    // MARK: the recipe

    @Test(
        arguments: [
            ("/v1/token", "http://api.test/v1/token"), ("https://login.test/oauth?x=1", "https://login.test/oauth?x=1"),
            ("http://login.test/oauth", nil), ("token", nil), ("https://", nil),
        ] as [(String, String?)])
    func whereItGoes(path: String, url: String?) {
        let head = RefreshRecipe(path: path).head(origin: origin)
        #expect(head?.url == url)
        if url != nil { #expect(head?.method == .post && head?.fields[.authorization] == nil) }
    }

    @Test func theFormIsEncoded() {
        #expect(RefreshRecipe(path: "/t").form(refreshToken: "a b&c=+é") == "grant_type=refresh_token&refresh_token=a+b%26c%3D%2B%C3%A9")
        let form = RefreshRecipe(path: "/t", clientID: "app/1").form(refreshToken: "r")
        #expect(form == "grant_type=refresh_token&refresh_token=r&client_id=app%2F1")
    }

    @Test(arguments: [
        ("/v1/token", true), ("/v1/token?a=1", true), ("/v1/login", true), ("/v1/login/", true), ("/v1/%2E/token", true),
        ("/v1/x/%2e%2e%2Ftoken?a=1", true), ("/v1", false), ("/v1/tokens", false),
    ])
    func whichRequestsHoldTokens(target: String, concerns: Bool) {
        #expect(RefreshRecipe(path: "/v1/token", login: "/v1/login").concerns(target: target) == concerns)
        #expect(!RefreshRecipe(path: "https://login.test/v1/token").concerns(target: target))
    }

    @Test(
        arguments: [
            (#"{"access_token":"a","refresh_token":"r","token_type":"bearer"}"#, IssuedTokens(access: "a", refresh: "r")),
            (#"{"access_token":"a"}"#, IssuedTokens(access: "a")), (#"{"access_token":"a","refresh_token":""}"#, IssuedTokens(access: "a")),
            (#"{"access_token":"a","token_type":"mac"}"#, nil), (#"{"access_token":"a","token_type":7}"#, nil),
            (#"{"access_token":""}"#, nil), (#"{"access_token":"a\r\nX: y"}"#, nil), (#"{"access_token":"a b"}"#, nil),
            (#"{"access_token":7}"#, nil), (#"{"token":"a"}"#, nil), ("[]", nil), ("access_token=a", nil), ("", nil),
        ] as [(String, IssuedTokens?)])
    func theTokensOfAnAnswer(body: String, tokens: IssuedTokens?) {
        let recipe = RefreshRecipe(path: "/t")
        #expect(recipe.tokens(in: ResponseHead(status: 200, fields: json), body: Array(body.utf8)) == tokens)
        #expect(recipe.tokens(in: ResponseHead(status: 400, fields: json), body: Array(body.utf8)) == nil)
        #expect(recipe.tokens(in: ResponseHead(status: 200, fields: [.contentType: "text/html"]), body: Array(body.utf8)) == nil)
    }

    @Test func thePointersSayWhereTheTokensAre() {
        let recipe = RefreshRecipe(path: "/t", accessToken: "/data/0/jwt", refreshToken: "/data/1")
        let tokens = recipe.tokens(in: ResponseHead(status: 201, fields: json), body: Array(#"{"data":[{"jwt":"a"},"r"]}"#.utf8))
        #expect(tokens == IssuedTokens(access: "a", refresh: "r") && tokens?.authorization == "Bearer a")
    }

    @Test func aLongerAnswerIsNotRead() {
        func answer(_ length: Int) -> [UInt8] {
            Array(#"{"access_token":"a""#.utf8) + Array(repeating: UInt8(ascii: " "), count: length - 20) + Array("}".utf8)
        }
        let recipe = RefreshRecipe(path: "/t"), head = ResponseHead(status: 200, fields: json)
        #expect(recipe.tokens(in: head, body: answer(RefreshRecipe.answerLimit)) != nil)
        #expect(recipe.tokens(in: head, body: answer(RefreshRecipe.answerLimit + 1)) == nil)
    }

    // MARK: the machine

    /// One step in the life of an identity: an event and the expected action.
    private enum Step {
        case needed(Bool?, RefreshMachine.Action), ended(RefreshMachine.Ending), accepted, learnt, later(TimeSpan), tokenless
    }

    private static let lives: [(String, [Step])] = [
        ("ten that are refused cause one refresh", [.needed(true, .refresh)] + Array(repeating: .needed(true, .join), count: 9)),
        ("one that comes late takes what there is", [.needed(true, .refresh), .ended(.renewed), .needed(false, .useLive)]),
        ("after a restart there is none", [.needed(nil, .refresh)]),
        ("without a token nothing is tried", [.tokenless, .needed(true, .park(.noToken)), .needed(false, .useLive)]),
        (
            "a refused token is not tried again",
            [
                .needed(true, .refresh), .ended(.refused), .needed(true, .park(.refused)), .later(.days(1)), .needed(nil, .park(.refused)),
            ]
        ),
        ("until another is learnt", [.needed(true, .refresh), .ended(.refused), .learnt, .needed(true, .refresh)]),
        (
            "a failure waits a little",
            [
                .needed(true, .refresh), .ended(.failed), .needed(true, .park(.justFailed)), .later(.milliseconds(29_999)),
                .needed(nil, .park(.justFailed)), .later(.milliseconds(1)), .needed(nil, .refresh),
            ]
        ),
        (
            "what a refresh brought and is refused at once is no reason for another",
            [
                .needed(true, .refresh), .ended(.renewed), .needed(true, .park(.refused)), .needed(nil, .park(.refused)),
            ]
        ),
        ("nor when it has been forgotten meanwhile", [.needed(true, .refresh), .ended(.renewed), .needed(nil, .park(.refused))]),
        (
            "what was accepted may expire again",
            [
                .needed(true, .refresh), .ended(.renewed), .accepted, .needed(true, .refresh), .ended(.renewed), .accepted,
                .needed(true, .refresh),
            ]
        ),
    ]

    @Test(arguments: Self.lives.indices) func aLife(of index: Int) {
        var machine = RefreshMachine(), now = Timestamp(seconds: 1_800_000_000), hasToken = true
        for (number, step) in Self.lives[index].1.enumerated() {
            switch step {
            case .needed(let isLive, let expected):
                let action = machine.needed(isLive: isLive, hasToken: hasToken, now: now)
                #expect(action == expected, "\(Self.lives[index].0), step \(number)")
            case .ended(let ending): machine.ended(ending, now: now)
            case .accepted: machine.accepted()
            case .learnt: machine.learnt()
            case .later(let span): now = now + span
            case .tokenless: hasToken = false
            }
        }
    }
}
