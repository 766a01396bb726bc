// Writes that follow each other: relays send them as the write pipeline does (docs/architecture.md#relays).
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(3)), .serialized) struct WriteRelayTests {
    private static let usual = created("{n}")

    private static func created(_ id: String, status: String = "201 Created", fields: String = "") -> String {
        let body = "{\"id\":\"\(id)\"}"
        let length = id == "{n}" ? "" : "Content-Length: \(body.utf8.count)\r\n"
        let coding = id == "{n}" ? "Transfer-Encoding: chunked\r\n" : ""
        let content = id == "{n}" ? "2\r\n{}\r\n0\r\n\r\n" : body
        return "HTTP/1.1 \(status)\r\nContent-Type: application/json\r\nX-Request-Id: {n}\r\n\(fields)\(length)\(coding)\r\n\(content)"
    }

    /// Sends writes until a relay answers one.
    private func warm(_ site: RelaySite, fields: String = "", method: String = "POST") async throws {
        let before = try await site.relays()
        try await eventually("a relay") {
            _ = try await site.write("{}", method: method, fields: fields)
            return try await site.relays() > before
        }
    }

    private static func plain(_ head: MessageHead) -> [String] {
        head.fields.filter { !["x-request-id", "date", "location", "via", "etag"].contains($0.name) }.map { "\($0.name): \($0.value)" }
            .sorted()
    }

    @Test func aRelayedWriteIsTheSameAsAnyOther() async throws {
        try await RelaySite.with(Self.created("7", fields: "Location: /notes/{n}\r\nETag: \"{n}\"\r\n")) { site in
            let fields = "Authorization: Bearer mine\r\nX-Mine: yes\r\nAccept-Encoding: gzip, br\r\n"
            let full = try await site.write(#"{"a":1}"#, fields: fields)
            try await warm(site, fields: fields)
            let relayed = try await site.relays()
            for size in [1, 7, 100, 1000] {
                let body = String(repeating: "x", count: size)
                let reply = try await site.write(body, fields: fields)
                let requests = site.script.requests
                #expect(reply.head.status == 201 && reply.body == #"{"id":"7"}"#, "\(reply)")
                #expect(reply.head["location"] == "/notes/\(requests.count)" && reply.head["etag"] == "\"\(requests.count)\"")
                #expect(Self.plain(reply.head) == Self.plain(full.head))
                #expect(requests.last?.hasSuffix("\r\n\r\n" + body) == true)
            }
            #expect(try await site.relays() == relayed + 4)
            let large = String(repeating: "y", count: 16_385)
            #expect(try await site.write(large, fields: fields).head.status == 201)
            #expect(site.script.requests.last?.hasSuffix("\r\n\r\n" + large) == true)
            #expect(try await site.relays() == relayed + 4)
            // The origin gets the same lines, and a key for each write.
            let writes = site.script.requests("POST /notes")
            let lines = { (text: String, isKey: Bool) in
                Set(
                    text.prefix(upTo: text.firstRange(of: "\r\n\r\n")?.lowerBound ?? text.endIndex).split(separator: "\r\n")
                        .map { $0.lowercased() }.filter { $0.hasPrefix("idempotency-key") == isKey && !$0.hasPrefix("content-length") })
            }
            #expect(Set(writes.map { lines($0, false) }).count == 1, "\(writes.prefix(3))")
            let keys = writes.flatMap { lines($0, true) }
            #expect(keys.count == writes.count && Set(keys).count == keys.count, "\(keys)")
            #expect(try await site.server.operations().isEmpty)
        }
    }

    /// Each write with ids of its own is relayed, and sent and recorded with them.
    @Test func writesWithIdsOfTheirOwnAreRelayed() async throws {
        try await RelaySite.with(Self.created("7")) { site in
            let ids = { (number: Int) in "traceparent: 00-\(number)-1-01\r\nX-Request-Id: id-\(number)\r\n" }
            for number in 0..<10 { _ = try await site.write("{}", fields: ids(number)) }
            let relayed = try await site.relays()
            for number in 10..<30 {
                let reply = try await site.write("{\"round\":\(number)}", fields: ids(number) + "X-Csrf-Token: t\r\n")
                #expect(reply.head.status == 201, "\(reply)")
                let last = try #require(site.script.requests.last)
                for line in ids(number).split(separator: "\r\n") { #expect(last.contains("\r\n\(line)\r\n"), "\(last)") }
                #expect(
                    last.contains("X-Csrf-Token: t") && last.ranges(of: "X-Request-Id").count == 1
                        && last.hasSuffix("{\"round\":\(number)}"))
            }
            #expect(try await site.relays() >= relayed + 17)
            #expect(try await site.server.operations().isEmpty)
            // One that gets no answer is queued with its own ids, and without the secret.
            site.script.answer = "silence"
            try await site.client.send(
                "POST /notes HTTP/1.1\r\nHost: \(site.server.gateway)\r\nContent-Type: application/json\r\n\(ids(77))Content-Length: 2\r\n\r\n{}"
            )
            try await eventually("the request") { site.script.requests.last?.contains("id-77") == true }
            #expect(try await site.server.command("network", "offline").status == 0)
            #expect(MessageHead(try await site.client.read(through: "\r\n\r\n")).status == 202)
            let queued = try await site.server.operations()
            #expect(queued.count == 1, "\(queued)")
        }
    }

    /// Many clients send head and body by themselves.
    @Test(arguments: [0, 3]) func theBodyMayFollowItsHead(_ beginning: Int) async throws {
        try await RelaySite.with(Self.usual) { site in
            let head =
                "POST /notes HTTP/1.1\r\nHost: \(site.server.gateway)\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n"
            func send(_ body: String) async throws {
                try await site.client.send(head + body.prefix(beginning))
                try await Task.sleep(for: .milliseconds(10))
                try await site.client.send(String(body.dropFirst(beginning)))
                let reply = MessageHead(try await site.client.read(through: "\r\n\r\n"))
                #expect(reply.status == 201, "\(reply)")
                _ = try await site.client.read(through: "0\r\n\r\n")
                #expect(site.script.requests.last?.hasSuffix(body) == true)
            }
            for number in 10..<30 { try await send("{\"round\":\(number)}") }
            #expect(try await site.relays() > 10)
            // A slow one takes the full path.
            try await site.client.send(head + "{")
            try await Task.sleep(for: .milliseconds(400))
            try await site.client.send("\"round\":77}")
            #expect(MessageHead(try await site.client.read(through: "\r\n\r\n")).status == 201)
            _ = try await site.client.read(through: "0\r\n\r\n")
            // One that never gets its body is refused, and not sent.
            let count = site.script.requests.count
            try await site.client.send(head + "{")
            try await Task.sleep(for: .milliseconds(50))
            try await site.client.finish()
            _ = try await site.client.readToEnd()
            #expect(site.script.requests.count == count)
            #expect(try await site.server.operations().isEmpty)
        }
    }

    /// Whatever the origin answers, the reply, what reads get afterwards, and the number of requests are those of the full path.
    @Test(arguments: 1...4) func everyAnswerIsTreatedAsOnTheFullPath(_ seed: UInt64) async throws {
        let upstream: JSONValue = ["idempotency": ["max_processing": "300ms"]]
        try await RelaySite.with(Self.usual, upstream: upstream) { relayed in
            try await RelaySite.with(Self.usual, upstream: upstream) { full in
                var chance = Chance(seed, 99)
                for site in [relayed, full] {
                    site.script.answers["/notes"] = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\nlist"
                    site.script.answers["/other"] = site.script.answers["/notes"]
                }
                for round in 0..<40 {
                    if round % 3 == 0 {
                        relayed.script.answer = Self.usual
                        try await warm(relayed)
                    }
                    let (answer, method) = (Self.answer(by: &chance), ["POST", "POST", "PUT", "PATCH"].randomElement(using: &chance) ?? "")
                    let body = "{\"round\":\(round)}"
                    for site in [relayed, full] {
                        for target in ["/notes", "/other"] { _ = try await site.get(target) }
                        site.script.answer = answer
                    }
                    let counts = [relayed, full].map { $0.script.requests("\(method) /notes").count }
                    let one = try await relayed.write(body, method: method)
                    let other = try await full.write(body, method: method, isPlain: false)
                    let name = "seed \(seed), round \(round), \(method): \(answer)"
                    #expect(one.head.status == other.head.status && one.body == other.body, "\(name)\n\(one)\n\(other)")
                    #expect(Self.plain(one.head) == Self.plain(other.head), "\(name)")
                    let sent = [relayed, full].enumerated().map { $1.script.requests("\(method) /notes").count - counts[$0] }
                    #expect(sent == [1, 1], "\(name)")
                    for target in ["/notes", "/other"] {
                        let (first, second) = (try await relayed.get(target), try await full.get(target))
                        let hits = [first, second].map { $0.head["cache-status"]?.contains("hit") ?? false }
                        #expect(first.body == second.body && hits[0] == hits[1], "\(name): \(target)\n\(first)\n\(second)")
                    }
                }
                #expect(try await relayed.server.operations().isEmpty)
            }
        }
    }

    private static func answer(by chance: inout Chance) -> String {
        func one(_ values: String...) -> String { values.randomElement(using: &chance) ?? "" }
        let status = one(
            "201 Created", "201 Created", "201 Created", "200 OK", "204 No Content", "202 Later", "207 Parts", "303 See", "400 Bad",
            "404 No",
            "409 Conflict", "500 Broken")
        let body = status.hasPrefix("204") ? "" : one("{}", "{}", "[1,2]", "text", "")
        var head = "HTTP/1.1 \(status)\r\nContent-Type: \(one("application/json", "application/json", "text/plain"))\r\n"
        head += one(
            "", "", "X-Request-Id: {n}\r\n", "Location: /other\r\n", "Location: http://elsewhere.test/\r\n", "Content-Location: /notes\r\n",
            "Set-Cookie: a=b\r\n", "Cache-Control: no-store\r\n", "ETag: \"{n}\"\r\n", "Retry-After: 1\r\n", "Content-Encoding: gzip\r\n")
        if status.hasPrefix("204") { return head + "\r\n" }
        return RelaySite.framed(head, body, one("length", "length", "later", "split", "chunked"))
    }

    // MARK: connections

    /// A write on a kept connection that ends without an answer may have taken effect: it is sent again only where that is harmless.
    @Test(arguments: ["reset", "close"], [("POST", "unknown"), ("POST", "yes"), ("PUT", "unknown")])
    func aLostAnswer(_ how: String, _ kind: (method: String, honoured: String)) async throws {
        let upstream: JSONValue = ["idempotency": ["honoured": .string(kind.honoured), "max_processing": "300ms"]]
        let usual = kind.method == "PUT" ? "HTTP/1.1 204 No Content\r\n\r\n" : Self.usual
        try await RelaySite.with(usual, upstream: upstream) { site in
            try await warm(site, method: kind.method)
            let sent = site.script.requests("\(kind.method) /notes").count
            site.script.answer = how
            async let lost = site.write(#"{"lost":true}"#, method: kind.method)
            try await eventually("the write") { site.script.requests("\(kind.method) /notes").count > sent }
            site.script.answer = usual
            let reply = try await lost
            let attempts = site.script.requests("\(kind.method) /notes").dropFirst(sent)
            if kind == ("POST", "unknown") {
                #expect(reply.head.status == 202 && reply.head["rockpool-state"] == "uncertain", "\(reply)")
                #expect(attempts.count == 1)
                let operation = try #require(try await site.server.operations().first)
                #expect(operation["state"]?.string == "uncertain")
                #expect(attempts.first?.contains(operation["idempotencyKey"]?.string ?? "-") == true)
            } else {
                #expect([201, 202, 204].contains(reply.head.status), "\(reply)")
                try await site.server.outboxIsEmpty()
                let all = site.script.requests("\(kind.method) /notes").dropFirst(sent)
                let keys = Set(all.compactMap { MessageHead($0)["idempotency-key"] })
                #expect(all.count >= 2 && keys.count <= 1, "\(all)")
            }
        }
    }

    /// A write that was sent and lost, and cannot be sent again now, is kept with the fact that it was sent.
    @Test(arguments: [("POST", "yes"), ("PUT", "unknown")])
    func whatWasSentIsKeptAsSent(_ kind: (method: String, honoured: String)) async throws {
        let upstream: JSONValue = ["idempotency": ["honoured": .string(kind.honoured)]]
        let usual = kind.method == "PUT" ? "HTTP/1.1 204 No Content\r\n\r\n" : Self.usual
        try await RelaySite.with(usual, upstream: upstream) { site in
            try await warm(site, method: kind.method)
            let sent = site.script.requests("\(kind.method) /notes").count
            site.script.answer = "silence"
            async let lost = site.write(#"{"lost":true}"#, method: kind.method)
            try await eventually("the write") { site.script.requests("\(kind.method) /notes").count > sent }
            try await #expect(site.server.change("PUT", "/v1/network", ["mode": "offline"]).status < 300)
            let reply = try await lost
            // The API's own reply to such a write, where it carried nothing.
            #expect(reply.head.status == (kind.method == "PUT" ? 204 : 202), "\(reply)")
            let operation = try #require(try await site.server.operations().first)
            #expect(reply.head["rockpool-operation"] == operation["id"]?.string)
            #expect(operation["lastError"]?.string == "connection_terminated", "\(operation)")
            #expect(site.script.requests("\(kind.method) /notes").count == sent + 1)
        }
    }

    /// A connection that the origin has closed while it was idle costs no write its answer.
    @Test func aConnectionThatWasClosedIsNotUsed() async throws {
        try await RelaySite.with(Self.created("1", fields: "X-Ends: yes\r\n")) { site in
            for number in 0..<30 {
                let reply = try await site.write("{\"n\":\(number)}")
                #expect(reply.head.status == 201, "\(reply)")
                try await Task.sleep(for: .milliseconds(2))
            }
            #expect(site.script.requests("POST /notes").count == 30)
            #expect(try await site.server.operations().isEmpty)
        }
    }

    /// Writes that no relay takes use the connections of relays all the same; a lost one is sent again only where that is harmless.
    @Test(arguments: ["reset", "close"], [("POST", "unknown"), ("POST", "yes"), ("PUT", "unknown")])
    func writesOfThePipelineKeepTheirConnections(_ how: String, _ kind: (method: String, honoured: String)) async throws {
        let upstream: JSONValue = ["idempotency": ["honoured": .string(kind.honoured), "max_processing": "300ms"]]
        let usual = kind.method == "PUT" ? "HTTP/1.1 204 No Content\r\n\r\n" : Self.usual
        try await RelaySite.with(usual, upstream: upstream) { site in
            var number = 0
            func write() async throws -> MessageHead {
                number += 1
                return try await site.write(
                    "{}", method: kind.method, fields: "Prefer: respond-never\r\nIdempotency-Key: \"k-\(number)\"\r\n"
                ).head
            }
            for _ in 0..<20 { try await #expect((200...204).contains(write().status)) }
            #expect(site.script.connections <= 4, "\(site.script.connections) connections")
            try await #expect(site.relays() == 0)
            let sent = site.script.requests("\(kind.method) /notes").count
            site.script.answer = how
            async let lost = write()
            try await eventually("the write") { site.script.requests("\(kind.method) /notes").count > sent }
            site.script.answer = usual
            let reply = try await lost
            let attempts = site.script.requests("\(kind.method) /notes").dropFirst(sent)
            if kind == ("POST", "unknown") {
                #expect(reply.status == 202 && reply["rockpool-state"] == "uncertain" && attempts.count == 1, "\(reply) \(attempts)")
            } else {
                #expect((200...204).contains(reply.status), "\(reply)")
                try await site.server.outboxIsEmpty()
                let all = site.script.requests("\(kind.method) /notes").dropFirst(sent)
                #expect(all.count >= 2 && Set(all.map { MessageHead($0)["idempotency-key"] }).count == 1, "\(all)")
            }
        }
    }

    /// A client's own key is passed on as it is, and no write with a key that is kept, or under way, is sent by a relay.
    @Test(arguments: ["Idempotency-Key", "X-Write-Id"]) func aClientsKeyIsRelayedOnce(_ name: String) async throws {
        try await RelaySite.with(Self.created("7"), upstream: ["idempotency": ["header": .string(name)]]) { site in
            var client = site
            func write(_ key: String, _ body: String = "{}") async throws -> MessageHead {
                try await client.write(body, fields: "\(name): \(key)\r\nAuthorization: Bearer one\r\n").head
            }
            func another() async throws -> RelaySite {
                let connection = try await RawConnection.open(site.server.gateway)
                return RelaySite(script: site.script, server: site.server, port: site.port, client: connection)
            }
            func sent(_ key: String) -> Int {
                site.script.requests("POST /notes").count { MessageHead($0)[name.lowercased()] == key }
            }
            for number in 0..<10 { try await #expect(write("early-\(number)").status == 201) }
            let relays = try await site.relays()
            for number in 0..<20 {
                let key = number % 2 == 0 ? "\"quoted-\(number)\"" : "bare-\(number)"
                try await #expect(write(key).status == 201)
                #expect(sent(key) == 1)
            }
            #expect(try await site.relays() >= relays + 18)
            // One that has none gets its own; one that is too long, or empty, is refused or sent as the pipeline says.
            try await #expect(site.write("{}", fields: "Authorization: Bearer one\r\n").head.status == 201)
            try await #expect(write(String(repeating: "k", count: 256)).status == 400)
            try await #expect(another().write("{}", fields: "\(name): one\r\n\(name): two\r\n").head.status == 400)
            for key in ["\"k7\";v=1", "\"k8\", \"k9\"", "\"open"] {
                try await #expect(write(key).status == 201)
                #expect(sent(key) == 1)
            }
            // One that was queued is answered from the outbox, also after a restart.
            try await #expect(site.server.change("PUT", "/v1/network", ["mode": "offline"]).status < 300)
            try await #expect(write("kept").status == 202)
            try await #expect(site.server.change("PUT", "/v1/network", ["mode": "auto"]).status < 300)
            try await site.server.outboxIsEmpty()
            for number in 0..<10 { try await #expect(write("late-\(number)").status == 201) }
            let again = try await write("kept")
            #expect(again["rockpool-operation"] != nil && sent("kept") == 1, "\(again)")
            try await #expect(write("kept", "{\"other\":1}").status == 422)
            try await #expect(site.server.stop() == .exit(0))
            try await site.server.start()
            client = try await another()
            for number in 0..<10 { try await #expect(write("later-\(number)").status == 201) }
            try await #expect(write("kept")["rockpool-operation"] != nil)
            #expect(sent("kept") == 1)
            // One that is under way is not sent a second time.
            site.script.answer = "silence"
            async let first = write("slow")
            try await eventually("it is sent") { sent("slow") == 1 }
            let second = try await another().write("{}", fields: "\(name): slow\r\nAuthorization: Bearer one\r\n").head
            #expect(second.status == 409 && sent("slow") == 1, "\(second)")
            try await #expect(site.server.change("PUT", "/v1/network", ["mode": "offline"]).status < 300)
            try await #expect(first.status == 202)
        }
    }

    /// A write under the version that its client's last write has made is sent again under it: else its effect would come twice, or over
    /// another client's.
    @Test(arguments: ["PUT", "PATCH"], ["", "Idempotency-Key: \"k\"\r\n"])
    func aLostWriteKeepsItsCondition(_ method: String, _ key: String) async throws {
        let made = "HTTP/1.1 200 OK\r\nETag: \"e2\"\r\nContent-Length: 2\r\n\r\n{}"
        try await RelaySite.with(made, upstream: ["idempotency": ["max_processing": "300ms"]]) { site in
            try await #expect(site.write("{}", to: "/doc", method: method).head.status == 200)
            site.script.answer = "close"
            async let lost = site.write(#"{"a":1}"#, to: "/doc", method: method, fields: key)
            try await eventually("it is sent") { site.script.requests("\(method) /doc").count >= 2 }
            site.script.answer = "HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n\r\n"
            site.script.answers["/doc"] = made.replacing("e2", with: "e3")
            _ = try await lost
            try await eventually("it is sent again, or waits for a person") {
                let waits = try await site.server.operations().contains { $0["state"]?.string == "conflicted" }
                return waits || site.script.requests("\(method) /doc").count >= 3
            }
            for attempt in site.script.requests("\(method) /doc").dropFirst() {
                #expect(attempt.contains("\r\nIf-Match: \"e2\"\r\n"), "\(attempt)")
            }
        }
    }

    /// A queued write to one path leaves the relays of all others.
    @Test func aDeliveredFileStopsOnlyItsOwnRelays() async throws {
        try await RelaySite.with(Self.usual) { site in
            try await #expect(site.server.change("PUT", "/v1/network", ["mode": "offline"]).status < 300)
            try await #expect(site.write("kept", to: "/files/1", method: "PUT").head.status == 202)
            try await #expect(site.server.change("PUT", "/v1/network", ["mode": "auto"]).status < 300)
            try await site.server.outboxIsEmpty()
            try await warm(site)
            let relays = try await site.relays()
            for _ in 0..<6 { try await #expect(site.write("{}", to: "/files/1/below", method: "POST").head.status == 201) }
            try await #expect(site.relays() == relays)
        }
    }

    /// The record of a relayed write names no other write's key.
    @Test func theRecordHasNoKeyOfAnother() async throws {
        try await RelaySite.with(Self.usual) { site in
            try await warm(site)
            for _ in 0..<3 { _ = try await site.write("{}") }
            let keys = site.script.requests("POST /notes").compactMap { MessageHead($0)["idempotency-key"]?.filter { $0 != "\"" } }
            let records = try await site.server.get("/v1/requests?limit=100")
            let list = try #require(records.json?["items"]?.array)
            for record in list {
                let whole = try await site.server.get("/v1/requests/\(record["id"]?.string ?? "\(try #require(record["id"]))")").text
                #expect(whole.contains("user-agent") || whole.contains("Content-Type"), "\(whole)")
                #expect(!keys.contains { whole.contains($0) }, "\(whole)")
            }
            #expect(!list.isEmpty && !keys.isEmpty)
        }
    }

    @Test func silenceEndsWithTheTimeout() async throws {
        try await RelaySite.with(Self.usual, upstream: ["timeouts": ["first_byte": "500ms"]]) { site in
            try await warm(site)
            site.script.answer = "silence"
            let reply = try await site.write("{}")
            #expect(reply.head.status == 202 && reply.head["rockpool-state"] == "uncertain", "\(reply)")
        }
    }

    // MARK: the outbox

    /// The effect of a write whose client has left is not known, so that no copy of its target is used without a question.
    @Test(arguments: [true, false]) func aClientThatLeavesMakesTheCopyStale(isRelayed: Bool) async throws {
        try await RelaySite.with(Self.usual) { site in
            site.script.answers["/notes"] = "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 3\r\n\r\nold"
            if isRelayed { try await warm(site) }
            _ = try await site.get("/notes")
            let asked = site.script.count(of: "/notes")
            try await #expect(site.get("/notes").body == "old")
            #expect(site.script.count(of: "/notes") == asked)
            let sent = site.script.requests("POST /notes").count
            site.script.answer = "silence"
            let other = try await RawConnection.open(site.server.gateway)
            let head = "POST /notes HTTP/1.1\r\nHost: \(site.server.gateway)\r\nContent-Type: application/json\r\n"
            try await other.send(head + "Content-Length: 2\r\n\r\n{}")
            try await eventually("the write") { site.script.requests("POST /notes").count > sent }
            try await other.reset()
            try await eventually("a question") {
                _ = try await site.get("/notes")
                return site.script.count(of: "/notes") > asked
            }
        }
    }

    /// After a kept connection has broken under a write, others that must not be sent twice use none for a while.
    @Test func anOriginThatClosesSilentlyCostsOneWrite() async throws {
        try await RelaySite.with(Self.usual, upstream: ["idempotency": ["max_processing": "300ms"]]) { site in
            try await warm(site)
            site.script.answer = "close"
            try await #expect(site.write("{}").head["rockpool-state"] == "uncertain")
            let operation = try #require(try await site.server.operations().first?["id"]?.string)
            site.script.answer = Self.usual
            try await #expect(site.server.change("POST", "/v1/operations/\(operation)/retry?now=true").status < 300)
            try await site.server.outboxIsEmpty()
            try await Task.sleep(for: .milliseconds(400))
            let relays = try await site.relays()
            for _ in 0..<8 { try await #expect(site.write("{}").head.status == 201) }
            try await #expect(site.relays() == relays)
        }
    }

    @Test func aClientThatLeavesQueuesNothing() async throws {
        try await RelaySite.with(Self.usual) { site in
            try await warm(site)
            let sent = site.script.requests("POST /notes").count
            site.script.answer = "silence"
            let host = site.server.gateway
            try await site.client.send(
                "POST /notes HTTP/1.1\r\nHost: \(host)\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
            try await eventually("the write") { site.script.requests("POST /notes").count > sent }
            try await site.client.reset()
            try await Task.sleep(for: .milliseconds(300))
            try await site.server.kill()
            try await site.server.start()
            // Its record had ended, as for any write that its client gives up.
            #expect(try await site.server.operations().isEmpty)
        }
    }

    @Test func aWriteUnderWayAtACrashIsUncertain() async throws {
        try await RelaySite.with(Self.usual) { site in
            try await warm(site, fields: "Authorization: Bearer mine\r\n")
            let sent = site.script.requests("POST /notes").count
            site.script.answer = "silence"
            let host = site.server.gateway
            try await site.client.send(
                "POST /notes HTTP/1.1\r\nHost: \(host)\r\nContent-Type: application/json\r\nAuthorization: Bearer mine\r\n"
                    + "Content-Length: 11\r\n\r\n{\"tide\":42}")
            try await eventually("the write") { site.script.requests("POST /notes").count > sent }
            try await site.server.kill()
            try await site.server.start()
            let operations = try await site.server.operations()
            let operation = try #require(operations.first)
            #expect(operations.count == 1 && operation["state"]?.string == "uncertain", "\(operations)")
            #expect(site.script.requests.last?.contains(operation["idempotencyKey"]?.string ?? "-") == true)
            let id = try #require(operation["id"]?.string)
            site.script.answer = Self.usual
            #expect(try await site.server.command("outbox", "discard", id).status == 0)
        }
    }

    /// A queued write is not overtaken by those after it.
    @Test func writesStayInOrder() async throws {
        try await RelaySite.with(Self.usual) { site in
            var expected: [String] = []
            for round in 0..<3 {
                for number in 0..<10 {
                    let body = "{\"n\":\"\(round)-\(number)\"}"
                    if number == 6 { #expect(try await site.server.command("network", "offline").status == 0) }
                    let reply = try await site.write(body)
                    #expect(reply.head.status == (number < 6 ? 201 : 202), "\(round)-\(number): \(reply)")
                    expected.append(body)
                }
                #expect(try await site.server.command("network", "auto").status == 0)
                let last = "{\"n\":\"\(round)-last\"}"
                _ = try await site.write(last)
                expected.append(last)
                try await site.server.outboxIsEmpty()
            }
            let bodies = site.script.requests("POST /notes").map { String($0.drop { $0 != "{" }) }
            #expect(bodies == expected)
        }
    }
}
