// The notes API on a socket: connections, faults, and the proof of exactly-once.
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite struct NotesServerTests {
    /// Parameters: method, target, fields, body. Returns nil when no response was received.
    typealias Send = @Sendable (String, String, [String], String?) async throws -> RawClient.Answer?

    static let key = "Idempotency-Key: \"k1\""

    func serving(
        seed: [JSONValue] = [["title": "first"]], settings: NotesSettings = NotesSettings(),
        _ body: (NotesServer, @escaping Send) async throws -> Void
    ) async throws {
        let server = try await NotesServer.start(seed: seed, settings: settings)
        let port = server.port
        do {
            try await body(server) { try await RawClient.send($0, $1, port: port, fields: $2, body: $3) }
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    @Test func answersOverASocket() async throws {
        try await serving { server, send in
            let read = try #require(try await send("GET", "/v1/notes/1", [], nil))
            #expect(read.status == 200 && read.field("etag") == "\"1-1\"" && read.field("date") != nil)
            #expect(read.field("content-length") == "\(read.body.utf8.count)")
            let head = try #require(try await send("HEAD", "/v1/notes/1", [], nil))
            #expect(head.body.isEmpty && head.field("content-length") == read.field("content-length"))
            let health = try #require(try await send("GET", "/healthz", [], nil))
            #expect(health.status == 204 && health.field("content-length") == nil && health.field("transfer-encoding") == nil)
            let unchanged = try #require(try await send("GET", "/v1/notes/1", ["If-None-Match: \"1-1\""], nil))
            #expect(unchanged.status == 304 && unchanged.body.isEmpty)
            #expect(server.log().map(\.method.rawValue) == ["GET", "HEAD", "GET", "GET"])
        }
    }

    @Test func keepsConnectionsAndOrderOfPipelinedRequests() async throws {
        try await serving { server, _ in
            let one = "GET /v1/slow?ms=20 HTTP/1.1\r\nHost: n\r\n\r\n"
            let two = "GET /healthz HTTP/1.1\r\nHost: n\r\nConnection: close\r\n\r\n"
            let text = try await RawClient.exchange(one + two, port: server.port)
            let first = try #require(text.firstRange(of: "200 OK")), second = try #require(text.firstRange(of: "204 No Content"))
            #expect(first.lowerBound < second.lowerBound)
        }
    }

    @Test func stopRefusesAndRestartBringsEverythingBack() async throws {
        // A port of the system's range could be given to another test while the server is stopped.
        let server = try await NotesServer.start(port: FreePort.next(), seed: [["title": "kept"]])
        let port = server.port
        let hanging = Task { try await RawClient.exchange("GET /v1/slow?ms=60000 HTTP/1.1\r\nHost: n\r\n\r\n", port: port) }
        while server.log().isEmpty { await Task.yield() }
        await server.stop()
        try await #expect(hanging.value == "")
        await #expect(throws: (any Error).self) { try await RawConnection.open("127.0.0.1:\(port)") }
        try await server.restart()
        let read = try await RawClient.send("GET", "/v1/notes/1", port: server.port)
        #expect(read?.status == 200)
        await server.stop()
    }

    @Test func aKeyIsAnsweredOnce() async throws {
        try await serving { server, send in
            let first = try #require(try await send("POST", "/v1/notes", [Self.key], #"{"title":"x"}"#))
            let again = try #require(try await send("POST", "/v1/notes", ["Idempotency-Key: k1"], #"{"title":"x"}"#))
            #expect((first.status, first.body) == (again.status, again.body))
            #expect(again.field("idempotent-replayed") == "true" && again.field("location") == first.field("location"))
            try await #expect(send("POST", "/v1/notes", [Self.key], #"{"title":"y"}"#)?.status == 422)
            #expect(server.effects(forKey: "k1") == 1 && server.effects() == 1 && server.notes.count == 2)
            #expect(server.log().map(\.hasEffect) == [true, false, false])
            server.forgetKeys()
            _ = try await send("POST", "/v1/notes", [Self.key], #"{"title":"x"}"#)
            #expect(server.effects(forKey: "k1") == 2)
        }
    }

    @Test(arguments: [true, false]) func aRefusalIsNotRemembered(_ honours: Bool) async throws {
        try await serving(settings: NotesSettings(honoursKeys: honours)) { server, send in
            try await #expect(send("PUT", "/v1/notes/1", [Self.key, "If-Match: \"old\""], "{}")?.status == 412)
            try await #expect(send("PUT", "/v1/notes/1", [Self.key], "{}")?.status == 200)
            try await #expect(send("PUT", "/v1/notes/1", [Self.key], "{}")?.status == 200)
            #expect(server.effects(forKey: "k1") == (honours ? 1 : 2))
        }
    }

    @Test func commitThenDropLosesOnlyTheAnswer() async throws {
        try await serving { server, send in
            server.faults.commitThenDrop = 1
            try await #expect(send("POST", "/v1/notes", [Self.key], "{}") == nil)
            #expect(server.notes.count == 2 && server.log().last?.outcome == .dropped)
            try await #expect(send("POST", "/v1/notes", [Self.key], "{}")?.status == 201)
            #expect(server.effects(forKey: "k1") == 1 && server.faults.commitThenDrop == 0)
        }
    }

    @Test func dropBeforeCommitLosesEverything() async throws {
        try await serving { server, send in
            server.faults.dropBeforeCommit = 1
            try await #expect(send("GET", "/v1/notes", [], nil)?.status == 200)
            try await #expect(send("POST", "/v1/notes", [Self.key], "{}") == nil)
            #expect(server.notes.count == 1)
            try await #expect(send("POST", "/v1/notes", [Self.key], "{}")?.status == 201)
        }
    }

    @Test func failAfterCommitRemembersTheRealAnswer() async throws {
        try await serving { server, send in
            server.faults.failAfterCommit = 1
            try await #expect(send("POST", "/v1/notes", [Self.key], "{}")?.status == 500)
            try await #expect(send("POST", "/v1/notes", [Self.key], "{}")?.status == 201)
            #expect(server.effects() == 1)
        }
    }

    @Test func aLateCommitHappensThoughItsClientHasGone() async throws {
        try await serving { server, send in
            server.faults.commitDelay = .milliseconds(20)
            let client = Task { try await send("POST", "/v1/notes", [Self.key], "{}") }
            while server.log().isEmpty { await Task.yield() }
            client.cancel()
            _ = await client.result
            while server.effects() == 0 { await Task.yield() }
            #expect(server.effects(forKey: "k1") == 1 && server.notes.count == 2)
        }
    }

    @Test func keysCanFail() async throws {
        try await serving { server, send in
            server.faults.claimRunning = 1
            try await #expect(send("POST", "/v1/notes", [Self.key], "{}")?.status == 409)
            server.faults.ignoresKeys = true
            _ = try await send("POST", "/v1/notes", [Self.key], "{}")
            _ = try await send("POST", "/v1/notes", [Self.key], "{}")
            #expect(server.effects(forKey: "k1") == 2)
            server.inject { ($0.ignoresKeys, $0.forgetsKeysAfter) = (false, .zero) }
            _ = try await send("POST", "/v1/notes", [Self.key], "{}")
            _ = try await send("POST", "/v1/notes", [Self.key], "{}")
            #expect(server.effects(forKey: "k1") == 4)
        }
    }

    @Test func fieldsCanFail() async throws {
        try await serving { server, send in
            server.inject { ($0.weakensETags, $0.omitsLocation) = (true, true) }
            let created = try #require(try await send("POST", "/v1/notes", [], "{}"))
            #expect(created.field("location") == nil && created.field("etag") == "W/\"2-1\"")
            try await #expect(send("PUT", "/v1/notes/2", ["If-Match: W/\"2-1\""], "{}")?.status == 412)
            try await #expect(send("GET", "/v1/notes/2", ["If-None-Match: W/\"2-1\""], nil)?.status == 304)
        }
    }

    @Test func deletingAgain() async throws {
        try await serving { server, send in
            try await #expect(send("DELETE", "/v1/notes/1", [Self.key], nil)?.status == 204)
            try await #expect(send("DELETE", "/v1/notes/1", [], nil)?.status == 204)
            server.faults.deleteAgainIsNotFound = true
            try await #expect(send("DELETE", "/v1/notes/1", [Self.key], nil)?.status == 404)
            try await #expect(send("DELETE", "/v1/notes/1", [], nil)?.status == 404)
            #expect(server.effects() == 1)
        }
    }

    @Test func whatAnswersInItsPlace() async throws {
        try await serving { server, send in
            server.faults.portal = .page
            let page = try #require(try await send("GET", "/healthz", [], nil))
            #expect(page.status == 200 && page.field("content-type") == "text/html; charset=utf-8")
            server.faults.portal = .redirect("http://portal.example/login")
            try await #expect(send("POST", "/v1/notes", [], "{}")?.field("location") == "http://portal.example/login")
            server.inject { ($0.portal, $0.maintenance) = (nil, .init(retryAfter: "7")) }
            let closed = try #require(try await send("POST", "/v1/notes", [], "{}"))
            #expect(closed.status == 503 && closed.field("retry-after") == "7")
            try await #expect(send("GET", "/healthz", [], nil)?.status == 204)
            server.inject {
                $0.maintenance = nil
                $0.canned = .init(status: 429, fields: [.retryAfter: "1"], methods: [.post], times: 1)
            }
            try await #expect(send("GET", "/v1/notes", [], nil)?.status == 200)
            try await #expect(send("POST", "/v1/notes", [], "{}")?.status == 429)
            try await #expect(send("POST", "/v1/notes", [], "{}")?.status == 201)
            #expect(server.effects() == 1)
        }
    }

    @Test func trickledBodiesArriveWhole() async throws {
        try await serving { server, send in
            let body = try #require(try await send("GET", "/v1/notes", [], nil)).body
            server.inject { ($0.trickle, $0.answerDelay) = (.milliseconds(1), .milliseconds(5)) }
            try await #expect(send("GET", "/v1/notes", [], nil)?.body == body)
        }
    }

    @Test func editsBehindTheClientsBacks() async throws {
        try await serving { server, _ in
            server.faults.requiresToken = true
            let note = try #require(server.edit(note: "1", with: ["title": "theirs"]))
            #expect(note.version == 2 && note.members["title"] == "theirs" && server.faults.requiresToken)
            #expect(server.edit(note: "none", with: [:]) == nil)
            #expect(server.log().isEmpty)
        }
    }

    @Test func bodiesAreLimited() async throws {
        try await serving(settings: NotesSettings(bodyLimit: ByteCount(20))) { server, send in
            try await #expect(send("POST", "/v1/notes", [], #"{"title":"12345678"}"#)?.status == 201)
            try await #expect(send("POST", "/v1/notes", [], #"{"title":"123456789"}"#)?.status == 413)
            #expect(server.log().count == 1)
        }
    }

    @Test func waitingBodiesAreAskedFor() async throws {
        try await serving { server, _ in
            let head = "POST /v1/notes HTTP/1.1\r\nHost: n\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
            let text = try await RawClient.exchange(head + "{}", port: server.port)
            #expect(text.hasPrefix("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\n"))
        }
    }

    @Test func eachEffectHasItsPlace() async throws {
        try await serving { server, send in
            for title in ["a", "b", "c"] { _ = try await send("PATCH", "/v1/notes/1", [], "{\"title\":\"\(title)\"}") }
            _ = try await send("PATCH", "/v1/notes/2", [], "{}")
            let effects = server.log().filter(\.hasEffect)
            #expect(effects.map(\.effectOrder) == [0, 1, 2] && server.log().count == 4)
            #expect(effects.map { String(decoding: $0.body, as: UTF8.self) } == ["a", "b", "c"].map { "{\"title\":\"\($0)\"}" })
            #expect(server.note(id: "1")?.members["title"] == "c" && server.comments(of: "1").isEmpty)
        }
    }

    @Test func tokensCanBeRevoked() async throws {
        try await serving { server, send in
            let bearer = "Authorization: Bearer \(server.issueToken(to: "anna"))"
            try await #expect(send("GET", "/v1/me", [bearer], nil)?.status == 200)
            server.revokeTokens()
            try await #expect(send("GET", "/v1/me", [bearer], nil)?.status == 401)
            let login = try await send("POST", "/v1/login", [], #"{"user":"anna"}"#)
            let refresh = try #require(try JSONValue.parse(Array((login?.body ?? "").utf8))["refresh_token"]?.string)
            let form = #"{"grant_type":"refresh_token","refresh_token":"\#(refresh)"}"#
            server.expireTokens()
            try await #expect(send("POST", "/v1/token", [], form)?.status == 200)
            server.revokeTokens()
            try await #expect(send("POST", "/v1/token", [], form)?.status == 400)
        }
    }
}
