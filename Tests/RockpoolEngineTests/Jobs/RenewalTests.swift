// An expired access token is renewed once for all waiting operations, with the identity's own refresh token; otherwise its lanes park
// (docs/outbox.md#credentials).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1)))
struct RenewalTests {
    private static let recipe = RefreshRecipe(path: "/v1/token", login: "/v1/login")

    /// An API with users: tokens are numbered, only the newest of each user is valid, `r3fresh-NAME` is NAME's refresh token.
    private final class Accounts: Sendable {
        private let numbers = Mutex<[String: Int]>([:])
        /// A replacement for the answer of `/v1/token`.
        let instead = Mutex<ScriptedAnswer?>(nil)

        func issue(_ user: String) -> String {
            Token.bearer(
                user,
                id: numbers.withLock { numbers in
                    numbers[user, default: 0] += 1
                    return numbers[user, default: 0]
                })
        }

        func expire() { numbers.withLock { for user in $0.keys { $0[user, default: 0] += 1 } } }

        func answer(_ request: SentRequest) -> ScriptedAnswer {
            switch request.head.target {
            case "/v1/login": return tokens(of: request.text)
            case "/v1/token":
                if let instead = instead.withLock({ $0 }) { return instead }
                guard let user = request.text.split(separator: "r3fresh-").last, request.text.hasPrefix("grant_type=refresh_token&")
                else { return .status(400) }
                return tokens(of: String(user))
            default:
                let good = numbers.withLock { numbers in numbers.map { Token.bearer($0.key, id: $0.value) } }
                return good.contains(request.head.fields[.authorization] ?? "") ? .status(200, [.cacheControl: "private"]) : .status(401)
            }
        }

        private func tokens(of user: String) -> ScriptedAnswer {
            let body = #"{"access_token":"\#(issue(user).dropFirst(7))","refresh_token":"r3fresh-\#(user)","token_type":"Bearer"}"#
            return .status(200, [.contentType: "application/json"], body)
        }
    }

    private let accounts = Accounts()

    /// Users log in through the engine and write while the upstream is offline; their tokens expire.
    private func expired(
        _ users: [String] = ["anna"], writes: Int = 1, _ change: (inout Upstream) -> Void = { _ in }
    ) async throws -> (ScriptedEngine, Replayer) {
        let upstream = Upstream.notes {
            $0.refresh = Self.recipe
            change(&$0)
        }
        let pool = try ScriptedEngine(upstreams: [upstream]) { [accounts] in accounts.answer($0) }
        var tokens: [String: String] = [:]
        for user in users {
            let login = await pool.ask(.post, "/v1/login", body: user)
            let access = try #require(login.json["access_token"]?.string)
            #expect(await pool.ask(.get, "/me", [.authorization: "Bearer \(access)"]).status == 200)
            tokens[user] = access
        }
        pool.goOffline()
        for number in 0..<writes {
            for user in users {
                let bearer = "Bearer \(tokens[user] ?? "")"
                #expect(await pool.ask(.put, "/notes/\(user)-\(number)", [.authorization: bearer], body: user).status == 202)
            }
        }
        accounts.expire()
        pool.comeOnline()
        return (pool, Replayer(engine: pool.engine))
    }

    private func refreshes(_ pool: ScriptedEngine) -> [SentRequest] { pool.origin.sent.filter { $0.head.target == "/v1/token" } }

    private func states(_ pool: ScriptedEngine) async throws -> Set<OperationState> {
        Set(try await pool.operations(Set(OperationState.allCases)).map(\.state))
    }

    @Test func tenThatAreRefusedCauseOneRefresh() async throws {
        let (pool, replayer) = try await expired(writes: 10)
        #expect(await replayer.runOnce().delivered == 10)
        #expect(refreshes(pool).map(\.text) == ["grant_type=refresh_token&refresh_token=r3fresh-anna"])
        let refresh = try #require(refreshes(pool).first)
        #expect(refresh.head.fields[.authorization] == nil && refresh.isFreshConnection)
        #expect(Set(try await pool.operations([.delivered]).map(\.answeredAttempts)) == [1], "a 401 does not count as an answered attempt")
    }

    @Test func eachIdentityHasItsOwn() async throws {
        let (pool, replayer) = try await expired(["anna", "bert"], writes: 3)
        #expect(await replayer.runOnce().delivered == 6)
        #expect(Set(refreshes(pool).map(\.text)).count == 2 && refreshes(pool).count == 2)
        for sent in pool.origin.sent where sent.head.method == .put {
            #expect(TokenSubject(authorization: sent.head.fields[.authorization] ?? "")?.subject == sent.text)
        }
    }

    @Test func nothingOfItIsWritten() async throws {
        let (pool, replayer) = try await expired()
        #expect(await replayer.runOnce().delivered == 1)
        #expect(pool.store.stateFiles(holding: "r3fresh").isEmpty)
    }

    @Test func withoutARecipeTheLanesParkUntilTheClientComesBack() async throws {
        let (pool, replayer) = try await expired(writes: 3) { $0.refresh = nil }
        #expect(await replayer.runOnce().delivered == 0)
        #expect(try await states(pool) == [.parked])
        await pool.ask(.get, "/me", [.authorization: accounts.issue("anna")])
        #expect(await replayer.runOnce().delivered == 3)
    }

    @Test func aRefusedRefreshTokenIsTriedOnce() async throws {
        let (pool, replayer) = try await expired(writes: 3)
        accounts.instead.withLock { $0 = .status(400, [.contentType: "application/json"], #"{"error":"invalid_grant"}"#) }
        _ = await replayer.runOnce()
        pool.clock.advance(by: .days(1))
        _ = await replayer.runOnce()
        #expect(try await states(pool) == [.parked])
        #expect(refreshes(pool).count == 1)
        accounts.instead.withLock { $0 = nil }
        await pool.ask(.post, "/v1/login", body: "anna")
        #expect(await replayer.runOnce().delivered == 3)
    }

    @Test func aFailedRefreshIsTriedAgainLater() async throws {
        let (pool, replayer) = try await expired()
        accounts.instead.withLock { $0 = .status(500) }
        _ = await replayer.runOnce()
        accounts.instead.withLock { $0 = nil }
        _ = await replayer.runOnce()
        #expect(try await states(pool) == [.parked])
        #expect(refreshes(pool).count == 1)
        pool.clock.advance(by: RefreshMachine.pause)
        pool.comeOnline()
        #expect(await replayer.runOnce().delivered == 1)
        #expect(refreshes(pool).count == 2)
    }

    /// Whatever token the endpoint issues, a write is never sent with the token of another principal.
    @Test func anothersTokenIsNotTaken() async throws {
        let (pool, replayer) = try await expired()
        let berts = accounts.issue("bert")
        let body = #"{"access_token":"\#(berts.dropFirst(7))"}"#
        accounts.instead.withLock { $0 = .status(200, [.contentType: "application/json"], body) }
        _ = await replayer.runOnce()
        #expect(try await states(pool) == [.parked])
        #expect(!pool.origin.sent.contains { $0.head.fields[.authorization] == berts })
    }

    @Test func anOperationThatIsAlwaysRefusedIsNoReasonForMore() async throws {
        let (pool, replayer) = try await expired()
        pool.origin.answers { [accounts] in $0.head.method == .put ? .status(401) : accounts.answer($0) }
        for _ in 0..<3 {
            _ = await replayer.runOnce()
            pool.clock.advance(by: .hours(1))
            pool.comeOnline()
        }
        #expect(try await states(pool) == [.parked])
        #expect(refreshes(pool).count == 1 && pool.origin.sent.count { $0.head.method == .put } == 2)
    }

    @Test func whoeverLogsInWhileAwayIsToldAtOnce() async throws {
        let (pool, _) = try await expired(writes: 0)
        pool.goOffline()
        for target in ["/v1/login", "/v1/token"] {
            let reply = await pool.ask(.post, target, body: "secret-form")
            #expect(reply.status == 503)
        }
        #expect(try await pool.operations().isEmpty && pool.store.stateFiles(holding: "secret-form").isEmpty)
    }

    @Test(arguments: [100, RefreshRecipe.answerLimit, RefreshRecipe.answerLimit + 1, 1 << 20])
    func theClientGetsItsAnswerAsItWas(length: Int) async throws {
        let (pool, _) = try await expired(writes: 0)
        let body = #"{"access_token":"a"}"# + String(repeating: " ", count: length - 20)
        let json = ResponseHead(status: 200, fields: [.contentType: "application/json"])
        pool.origin.next(.answer(json, [String(body.prefix(50)), String(body.dropFirst(50))]))
        let reply = await pool.ask(.post, "/v1/token", body: "x")
        #expect(reply.body == body && reply.failure == nil)
        pool.origin.next(.broken(json, ["{"], TransferFailure(kind: .reset, sent: .yes, detail: "")))
        #expect(await pool.ask(.post, "/v1/token", body: "x").failure != nil)
    }

    // MARK: from a file

    /// After a restart only the file is left: its token determines its owner; an opaque token is accepted only where there is one identity.
    @Test(
        arguments: [
            ("r3fresh-anna", nil, IdentityRule.auto, true), ("r3fresh-bert", nil, .auto, false), ("r3fresh-anna", "opaque", .auto, false),
            ("r3fresh-anna", nil, .single, true), (nil, nil, .auto, false),
        ] as [(String?, String?, IdentityRule, Bool)])
    func aTokenFileServesItsOwnIdentity(token: String?, access: String?, rule: IdentityRule, isDelivered: Bool) async throws {
        let scratch = try Scratch(), path = scratch.path + "/refresh"
        if let token {
            try scratch.write(token + "\n", to: "refresh")
            try Files.setMode(0o600, of: path)
        }
        let (pool, _) = try await expired {
            $0.identity = rule
            $0.refresh?.tokenFile = path
        }
        if let access {
            accounts.instead.withLock {
                $0 = .status(200, [.contentType: "application/json"], #"{"access_token":"\#(access)"}"#)
            }
        }
        let later = Engine(
            configuration: pool.engine.configuration, cache: pool.store.cache, data: pool.store.data, origin: pool.origin, viaName: "later",
            logger: .silent, now: pool.clock.reading)
        #expect(await Replayer(engine: later).runOnce().delivered == (isDelivered ? 1 : 0))
        #expect(try await states(pool) == [isDelivered ? .delivered : .parked])
        #expect(!pool.origin.sent.contains { $0.head.fields[.authorization] == "Bearer opaque" })
    }
}
