// The notes API as a value without a socket: routes, validators, preconditions.
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite struct NotesStoreTests {
    let now = Timestamp(seconds: 1_800_000_000)
    var store: NotesStore

    init() {
        store = NotesStore(seed: [["title": "first", "tags": ["a"]], ["title": "second", "status": "done"]], now: now)
    }

    mutating func ask(
        _ method: HTTPRequest.Method, _ target: String, _ fields: HTTPFields = [:], body: String = "", later: TimeSpan = .zero
    ) -> NotesReply {
        store.respond(to: NotesRequest(method: method, target: target, fields: fields, body: Array(body.utf8)), now: now + later)
    }

    static func value(_ reply: NotesReply) throws -> JSONValue { try JSONValue.parse(reply.body) }

    @Test mutating func aNoteIsCreatedWithWhatTheServerOwns() throws {
        let reply = ask(.post, "/v1/notes", body: #"{"title":"x","id":"mine","version":9,"extra":{"n":1.50}}"#)
        #expect(reply.status == 201 && reply.hasEffect)
        #expect(reply.fields[.location] == "/v1/notes/3")
        #expect(reply.fields[.eTag] == "\"3-1\"")
        let note = try Self.value(reply)
        #expect(note["id"] == "3" && note["version"] == 1 && note["status"] == "open" && note["tags"] == [])
        #expect(note["extra"].map { String(decoding: $0.serialized(), as: UTF8.self) } == #"{"n":1.50}"#)
        #expect(note["createdAt"] == note["updatedAt"])
    }

    @Test(arguments: [
        ("/v1/notes", 2), ("/v1/notes?status=done", 1), ("/v1/notes?tag=a", 1), ("/v1/notes?tag=a&status=done", 0),
        ("/v1/notes?updatedAfter=1800000000000", 1), ("/v1/notes?updatedAfter=1800000000001", 0), ("/v1/notes?updatedAfter=0", 2),
        ("/v1/notes?updatedAfter=2027-01-15T08%3A00%3A00.000Z", 1),
    ])
    mutating func filters(_ target: String, _ count: Int) throws {
        let reply = ask(.get, target)
        #expect(reply.status == 200 && reply.fields[.cacheControl] == "no-cache")
        #expect(try Self.value(reply).array?.count == count)
    }

    @Test mutating func tombstonesComeOnlyToThoseWhoAskForChanges() throws {
        #expect(ask(.delete, "/v1/notes/1", later: .seconds(5)).status == 204)
        #expect(try Self.value(ask(.get, "/v1/notes")).array?.count == 1)
        let changes = try #require(try Self.value(ask(.get, "/v1/notes?updatedAfter=1800000001000")).array)
        #expect(changes == [["id": "1", "deletedAt": "2027-01-15T08:00:05.000Z"]])
        #expect(ask(.get, "/v1/notes?updatedAfter=yesterday").status == 400)
    }

    @Test mutating func conditionalReads() throws {
        let etag = try #require(ask(.get, "/v1/notes/1").fields[.eTag])
        for tags in [etag, "W/\(etag)", "\"x\", \(etag)", "*"] {
            let reply = ask(.get, "/v1/notes/1", [.ifNoneMatch: tags])
            #expect(reply.status == 304 && reply.body.isEmpty && reply.fields[.eTag] == etag)
        }
        #expect(ask(.get, "/v1/notes/1", [.ifNoneMatch: "\"x\""]).status == 200)
        #expect(ask(.get, "/v1/notes/1", [.ifModifiedSince: "Fri, 15 Jan 2027 08:00:00 GMT"]).status == 304)
        #expect(ask(.get, "/v1/notes/1", [.ifModifiedSince: "Fri, 15 Jan 2027 07:59:59 GMT"]).status == 200)
        let list = try #require(ask(.get, "/v1/notes").fields[.eTag])
        #expect(ask(.get, "/v1/notes", [.ifNoneMatch: list]).status == 304)
        _ = ask(.patch, "/v1/notes/2", body: "{}")
        #expect(ask(.get, "/v1/notes", [.ifNoneMatch: list]).status == 200)
    }

    @Test(arguments: [
        ("\"1-1\"", 200), ("\"x\",\"1-1\"", 200), ("*", 200), ("W/\"1-1\"", 412), ("\"1-2\"", 412), ("", 412),
    ])
    mutating func ifMatchIsStrong(_ tags: String, _ status: Int) {
        #expect(ask(.put, "/v1/notes/1", [.ifMatch: tags], body: #"{"title":"y"}"#).status == status)
        #expect(store.note(id: "1")?.version == (status == 200 ? 2 : 1))
        let reply = ask(.delete, "/v1/notes/2", [.ifMatch: tags])
        #expect(reply.status == (tags == "*" ? 204 : 412))
    }

    @Test mutating func putReplacesAndPatchMerges() throws {
        _ = ask(.patch, "/v1/notes/1", body: #"{"body":"b","tags":null,"own":{"a":1}}"#)
        let patched = try Self.value(ask(.patch, "/v1/notes/1", body: #"{"own":{"b":2}}"#))
        #expect(patched["title"] == "first" && patched["tags"] == [] && patched["own"] == ["a": 1, "b": 2] && patched["version"] == 3)
        let put = try Self.value(ask(.put, "/v1/notes/1", body: #"{"title":"new"}"#))
        #expect(put["own"] == nil && put["body"] == "" && put["version"] == 4)
    }

    @Test mutating func putCreatesOnlyWhenToldTo() {
        #expect(ask(.put, "/v1/notes/99", body: "{}").status == 404)
        #expect(ask(.put, "/v1/notes/99", [.ifNoneMatch: "*"], body: "{}").status == 201)
        #expect(ask(.put, "/v1/notes/99", [.ifNoneMatch: "*"], body: "{}").status == 412)
        #expect(store.note(id: "99")?.version == 1)
    }

    @Test(arguments: [
        (HTTPRequest.Method.get, "/v1/notes/99", "", 404), (.delete, "/v1/notes/99", "", 404), (.patch, "/v1/notes/99", "{}", 404),
        (.get, "/nowhere", "", 404), (.put, "/v1/notes", "{}", 405), (.post, "/v1/notes", "{", 400), (.post, "/v1/notes", "[]", 422),
        (.post, "/v1/notes", #"{"title":1}"#, 422), (.post, "/v1/notes", #"{"tags":[1]}"#, 422),
        (.patch, "/v1/notes/1", #"{"count":"x"}"#, 422),
        (.post, "/v1/notes/99/comments", "{}", 404), (.get, "/v1/me", "", 401), (.post, "/v1/login", "{}", 422),
        (.get, "/v1/assets/x", "", 404), (.get, "/healthz", "", 204),
    ])
    mutating func refusals(_ method: HTTPRequest.Method, _ target: String, _ body: String, _ status: Int) {
        let reply = ask(method, target, body: body)
        #expect(reply.status == status && !reply.hasEffect)
        #expect(status < 400 || reply.fields[.contentType] == "application/problem+json")
    }

    @Test mutating func commentsLiveBelowTheirNote() throws {
        let reply = ask(.post, "/v1/notes/1/comments", body: #"{"body":"hm"}"#)
        #expect(reply.status == 201 && reply.fields[.location] == "/v1/notes/1/comments/3")
        let list = try #require(try Self.value(ask(.get, "/v1/notes/1/comments")).array)
        #expect(list.count == 1 && list[0]["noteId"] == "1" && list[0]["body"] == "hm")
        _ = ask(.delete, "/v1/notes/1")
        #expect(ask(.get, "/v1/notes/1/comments").status == 404)
    }

    @Test mutating func whatIsPrivateNeedsItsToken() throws {
        let login = try Self.value(ask(.post, "/v1/login", body: #"{"user":"anna"}"#))
        let token = try #require(login["token"]?.string)
        #expect(token.hasPrefix("eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.eyJ"))
        let reply = ask(.get, "/v1/me", [.authorization: "Bearer \(token)"])
        #expect(try Self.value(reply)["user"] == "anna")
        #expect(reply.fields[.cacheControl] == "private, no-cache")
        store.faults.requiresToken = true
        #expect(ask(.post, "/v1/notes", body: "{}").status == 401)
        #expect(ask(.post, "/v1/notes", [.authorization: "bearer \(token)"], body: "{}").status == 201)
    }

    @Test mutating func tokensAreRenewed() throws {
        let login = try Self.value(ask(.post, "/v1/login", body: #"{"user":"anna"}"#))
        let refresh = try #require(login["refresh_token"]?.string)
        #expect(login["access_token"] == login["token"] && login["token_type"] == "Bearer")
        let form: HTTPFields = [.contentType: "application/x-www-form-urlencoded"]
        for (fields, body) in [
            (form, "grant_type=refresh_token&refresh_token=\(refresh)"),
            ([:], #"{"grant_type":"refresh_token","refresh_token":"\#(refresh)"}"#),
        ] {
            let access = try #require(try Self.value(ask(.post, "/v1/token", fields, body: body))["access_token"]?.string)
            #expect(access != login["token"]?.string)
            #expect(try Self.value(ask(.get, "/v1/me", [.authorization: "Bearer \(access)"]))["user"] == "anna")
        }
        for body in ["", "grant_type=password&refresh_token=\(refresh)", "grant_type=refresh_token&refresh_token=x"] {
            #expect(ask(.post, "/v1/token", form, body: body).status == 400)
        }
    }

    @Test mutating func assetsAreTheSameEveryTime() {
        let asset = ask(.get, "/v1/assets/1000")
        #expect(asset.body.count == 1000 && asset.body.starts(with: [0x89, 0x50, 0x4E, 0x47]))
        #expect(asset.fields[.cacheControl] == "max-age=3600" && asset == ask(.get, "/v1/assets/1000"))
        #expect(ask(.get, "/v1/assets/0").body.isEmpty)
    }

    @Test mutating func searchAnswersInItsBody() throws {
        let found = try Self.value(ask(.post, "/v1/search", body: #"{"query":"sec"}"#)).array
        #expect(found?.count == 1)
    }

    @Test mutating func slowAnswersAreHeldBack() {
        #expect(ask(.get, "/v1/slow?ms=250").delay == .milliseconds(250))
        #expect(ask(.get, "/v1/slow?ms=-1").delay == .zero)
        #expect(ask(.get, "/v1/slow?ms=999999999999").delay == .minutes(5))
    }

    /// What follows a restart goes on behind it: no id, no version and no time is there twice.
    @Test mutating func theDataGoesOnWhereItEnded() throws {
        _ = ask(.put, "/v1/notes/1", body: #"{"title":"again","extra":{"n":1.50}}"#, later: .seconds(9))
        _ = ask(.delete, "/v1/notes/2")
        _ = ask(.post, "/v1/notes/1/comments", body: #"{"text":"good"}"#)
        let before = store
        store = try #require(NotesStore(kept: JSONValue.parse(before.kept.serialized())))
        #expect(store.kept == before.kept && store.note(id: "1") == before.note(id: "1"))
        for target in ["/v1/notes", "/v1/notes/1", "/v1/notes/1/comments", "/v1/notes?updatedAfter=0"] {
            var old = before
            let (reply, known) = (ask(.get, target), old.respond(to: NotesRequest(method: .get, target: target), now: now))
            #expect(reply == known, "\(target)")
        }
        let made = try Self.value(ask(.post, "/v1/notes", body: "{}"))
        #expect(made["id"] == "4" && made["createdAt"]?.string.map { $0 > "2027-01-15T08:00:09" } == true, "\(made)")
        #expect(NotesStore(kept: ["notes": []]) == nil && NotesStore(kept: .array([])) == nil)
    }
}
