// Reads of URLs of which nothing is stored: relays answer and store them as the read pipeline does (docs/architecture.md#relays).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(3)), .serialized) struct FirstReadTests {
    private static let usualHead = "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Type: application/json\r\n"

    private static func ok(_ body: String, _ fields: String = "ETag: \"{n}\"\r\n") -> String {
        usualHead + "\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    /// Sends reads of new URLs until a relay answers one.
    private func warm(_ site: RelaySite, fields: String = "") async throws {
        let before = try await site.relays()
        var count = 0
        try await eventually("a relay") {
            count += 1
            _ = try await site.get("/warm/\(before)/\(count)", fields: fields)
            return try await site.relays() > before
        }
    }

    /// The fields of a reply, without those that tell one response from another.
    private static func fields(of head: MessageHead) -> [String] {
        head.fields.filter { !["etag", "date", "age"].contains($0.name) }.map { "\($0.name): \($0.value)" }.sorted()
    }

    @Test func aRelayedReadIsStored() async throws {
        try await RelaySite.with(Self.ok("hello")) { site in
            let full = try await site.get("/full")
            try await warm(site)
            let relayed = try await site.relays()
            let first = try await site.get("/new")
            try await #expect(site.relays() == relayed + 1)
            #expect(first.body == "hello" && Self.fields(of: first.head) == Self.fields(of: full.head), "\(first)")
            #expect(first.head["cache-status"]?.contains("fwd=uri-miss; stored") == true)
            for _ in 0..<3 {
                let hit = try await site.get("/new")
                #expect(hit.body == "hello" && hit.head["cache-status"]?.contains("hit") == true, "\(hit)")
                #expect(hit.head["etag"] == first.head["etag"])
            }
            #expect(site.script.count(of: "/new") == 1)
        }
    }

    /// A response to one user is no other's, also where a field that is passed on unread tells the users of one credential apart.
    @Test(arguments: ["auto", "header:X-Odd"]) func aResponseIsItsUsers(_ identity: String) async throws {
        let answer = "HTTP/1.1 200 OK\r\nCache-Control: private, max-age=600\r\nX-Request-Id: {n}\r\nContent-Length: 4\r\n\r\nmine"
        try await RelaySite.with(answer, upstream: ["identity": .string(identity)]) { site in
            let users = [
                "Authorization: Bearer one\r\n", "Authorization: Bearer two\r\n", "", "X-Odd: a\r\nAuthorization: Bearer one\r\n",
                "X-Odd: b\r\n",
            ]
            for round in 0..<4 { for user in users { _ = try await site.get("/warm/\(round)", fields: user) } }
            for round in 0..<8 {
                // With `auto` the field names nobody.
                for user in identity == "auto" ? users.prefix(2) : users.filter({ !$0.isEmpty })[...] {
                    let before = site.script.requests.count
                    for _ in 0..<2 { try await #expect(site.get("/new/\(round)", fields: user).body == "mine") }
                    let sent = site.script.requests[before...].filter { $0.hasPrefix("GET /new/\(round) ") }
                    #expect(
                        sent.count == 1 && user.split(separator: "\r\n").allSatisfy { sent.first?.contains($0) == true }, "\(user): \(sent)"
                    )
                }
            }
        }
    }

    /// Whatever the origin answers, the reply, what is stored of it and the number of requests are those of the full path.
    @Test(arguments: 1...4) func everyResponseIsTreatedAsOnTheFullPath(_ seed: UInt64) async throws {
        try await RelaySite.with(Self.ok("usual")) { relayed in
            try await RelaySite.with(Self.ok("usual")) { full in
                var chance = Chance(seed, 99)
                for round in 0..<60 {
                    if round % 3 == 0 { try await warm(relayed) }
                    let (target, answer) = ("/new/\(round)?a=\(round)", Self.answer(by: &chance))
                    for site in [relayed, full] { site.script.answers[target] = answer }
                    for reading in 1...2 {
                        let one = try await relayed.get(target)
                        let other = try await full.get(target, isPlain: false)
                        let name = "seed \(seed), round \(round), reading \(reading): \(answer)"
                        #expect(one.head.status == other.head.status && one.body == other.body, "\(name)\n\(one)\n\(other)")
                        #expect(Self.named(one.head) == Self.named(other.head), "\(name)")
                    }
                    #expect(relayed.script.count(of: target) == full.script.count(of: target), "\(answer)")
                }
                #expect(try await full.relays() == 0)
            }
        }
    }

    /// The fields of a reply, with one name for both proxies.
    private static func named(_ head: MessageHead) -> [String] {
        head.fields.filter { $0.name != "date" && $0.name != "via" }.map { field in
            let value = field.name == "cache-status" ? field.value.replacing(/ttl=-?\d+/, with: "ttl") : field.value
            return "\(field.name): \(value)"
        }.sorted()
    }

    private static func answer(by chance: inout Chance) -> String {
        func one(_ values: String...) -> String { values.randomElement(using: &chance) ?? "" }
        let status = one("200 OK", "200 OK", "200 OK", "200 OK", "203 Changed", "404 No", "500 Broken", "301 Moved", "304 Same")
        let caching = one(
            "max-age=600", "max-age=600", "max-age=600", "max-age=0", "no-store", "no-cache", "private", "public, s-maxage=5",
            "max-age=600, stale-if-error=9")
        let body = String(repeating: one("a", "[]", "{}"), count: [0, 1, 5, 300, 20_000].randomElement(using: &chance) ?? 0)
        let type = one("application/json", "application/json", "text/html")
        var head = "HTTP/1.1 \(status)\r\nCache-Control: \(caching)\r\nContent-Type: \(type)\r\n"
        head += one(
            "ETag: \"x\"\r\n", "ETag: \"x\"\r\n", "", "ETag: W/\"y\"\r\n", "Last-Modified: Tue, 01 Sep 2026 00:00:00 GMT\r\n",
            "Age: 30\r\n", "Expires: Tue, 01 Sep 2026 00:00:00 GMT\r\n", "Vary: *\r\n", "Vary: User-Agent\r\n", "Set-Cookie: a=b\r\n",
            "No-Vary-Search: params=(\"a\")\r\n", "Content-Encoding: gzip\r\n", "Link: </x>; rel=next\r\n", "Warning: 110 - x\r\n")
        if status.hasPrefix("304") { return head + "\r\n" }
        return RelaySite.framed(head, body, one("length", "length", "length", "later", "split", "chunked"))
    }

    /// Responses of several kinds in turn do not keep each other from being relayed.
    @Test func severalKindsOfResponses() async throws {
        try await RelaySite.with(Self.ok("usual")) { site in
            let other = Self.ok("other").replacing("max-age=600", with: "max-age=60").replacing("application/json", with: "text/plain")
            for number in 0..<40 { site.script.answers["/odd/\(number)"] = other }
            for number in 0..<40 {
                try await #expect(site.get("/even/\(number)").body == "usual")
                try await #expect(site.get("/odd/\(number)").body == "other")
            }
            let relayed = try await site.relays()
            #expect(relayed > 50, "\(relayed)")
        }
    }

    /// A copy is selected by what clients send, not by what the proxy adds to it.
    @Test(arguments: ["User-Agent", "Via", "Accept-Language, User-Agent"]) func aCopyThatVariesIsFound(_ names: String) async throws {
        try await RelaySite.with(Self.ok("usual", "Vary: \(names)\r\n")) { site in
            try await warm(site)
            for number in 0..<4 {
                try await #expect(site.get("/varies/\(number)").body == "usual")
                let again = try await site.get("/varies/\(number)")
                #expect(again.head["cache-status"]?.contains("hit") == true, "\(again)")
            }
        }
    }

    @Test func requestsOfTheSameURLShareOneFetch() async throws {
        try await RelaySite.with(Self.ok("usual")) { site in
            try await warm(site)
            let relayed = try await site.relays()
            site.script.answers["/slow"] = "~~~~~~~~~~~~" + Self.ok("slow")
            var others: [RawConnection] = []
            for _ in 0..<6 { try await others.append(RawConnection.open(site.server.gateway)) }
            async let first = site.get("/slow")
            try await eventually("the first") { site.script.count(of: "/slow") == 1 }
            try await withThrowingTaskGroup(of: String.self) { group in
                for other in others {
                    group.addTask {
                        try await other.send("GET /slow HTTP/1.1\r\nHost: \(site.server.gateway)\r\nUser-Agent: test\r\n\r\n")
                        return try await other.response().body
                    }
                }
                for try await body in group { #expect(body == "slow") }
            }
            try await #expect(first.body == "slow")
            #expect(site.script.count(of: "/slow") == 1)
            try await #expect(site.relays() == relayed + 1)
            for other in others { await other.close() }
        }
    }

    /// Whatever has to go through the pipeline, the requests that wait for it share it.
    @Test(arguments: ["split", "long", "chunked", "other"]) func aHandedOverResponseIsShared(_ kind: String) async throws {
        try await RelaySite.with(Self.ok("usual")) { site in
            try await warm(site)
            let body = String(repeating: "x", count: kind == "long" ? 300_000 : 5)
            let answer =
                switch kind {
                case "split": String(Self.ok(body).prefix(40)) + "~" + Self.ok(body).dropFirst(40)
                case "chunked": Self.usualHead + "Transfer-Encoding: chunked\r\n\r\n5\r\n\(body)\r\n0\r\n\r\n"
                case "other": Self.ok(body).replacing("200 OK", with: "203 Changed")
                default: Self.ok(body)
                }
            site.script.answers["/shared"] = "~~~~~~~~~~" + answer
            async let first = site.get("/shared")
            try await eventually("the first") { site.script.count(of: "/shared") == 1 }
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<6 { group.addTask { try await Curl.send("GET", "http://\(site.server.gateway)/shared").text } }
                for try await text in group { #expect(text == body) }
            }
            try await #expect(first.body == body)
            #expect(site.script.count(of: "/shared") == 1)
        }
    }

    /// Readers on several event loops take a large body at their own pace: none waits for bytes that nobody asks the origin for.
    @Test func aLargeBodyReachesAllItsReaders() async throws {
        try await RelaySite.with(Self.ok("usual")) { site in
            let body = String(repeating: "0123456789abcdef", count: 1 << 19)
            for round in 0..<8 {
                try await warm(site)
                let url = "http://\(site.server.gateway)/large/\(round)"
                site.script.answers["/large/\(round)"] = Self.ok(body)
                try await withThrowingTaskGroup(of: String.self) { group in
                    for _ in 0..<4 {
                        group.addTask {
                            let options = [
                                "-s", "-A", "test", "-H", "Accept:", "-o", "/dev/null", "-w", "%{size_download}", "--max-time", "60",
                            ]
                            return try await Command.run("/usr/bin/curl", options + [url], within: .seconds(90)).output
                        }
                    }
                    for try await count in group { #expect(count == "\(body.utf8.count)", "round \(round)") }
                }
            }
        }
    }

    /// A body that ends with its connection is not whole if Rockpool itself has closed that.
    @Test func theSwitchEndsABodyWithoutLength() async throws {
        try await RelaySite.with(Self.ok("usual")) { site in
            try await warm(site)
            site.script.answers["/open"] = Self.usualHead + "X-Ends: yes\r\n\r\nbegun" + String(repeating: "~", count: 200) + "ended"
            try await site.client.send("GET /open HTTP/1.1\r\nHost: \(site.server.gateway)\r\nUser-Agent: test\r\n\r\n")
            _ = try await site.client.read(through: "begun")
            #expect(try await site.server.command("network", "offline").status == 0)
            #expect(try await !site.client.readToEnd().contains("0\r\n\r\n"))
            let again = try await Curl.send("GET", "http://\(site.server.gateway)/open")
            #expect(again.status == 504, "\(again)")
            #expect(try await site.server.command("network", "auto").status == 0)
        }
    }

    /// The end of a client's input is not the end of its exchange (RFC 9112 §9.6).
    @Test(arguments: ["usual", "split", "other"], [false, true]) func aClientThatHasSentAllGetsItsAnswers(
        _ kind: String, isFollowed: Bool
    ) async throws {
        try await RelaySite.with(Self.ok("usual")) { site in
            try await warm(site)
            let answer = kind == "other" ? Self.ok("there").replacing("200 OK", with: "404 No") : Self.ok("there")
            site.script.answers["/half"] = "~~" + (kind == "split" ? String(answer.prefix(30)) + "~" + answer.dropFirst(30) : answer)
            let request = { (target: String) in "GET \(target) HTTP/1.1\r\nHost: \(site.server.gateway)\r\nUser-Agent: test\r\n\r\n" }
            try await site.client.send(request("/half"))
            if isFollowed { try await site.client.send(request("/next")) }
            try await site.client.finish()
            try await #expect(site.client.response().body == "there")
            if isFollowed { try await #expect(site.client.response().body == "usual") }
            _ = try await site.client.readToEnd()
        }
    }

    /// A write that is answered while a read of its URL is under way makes the read's response out of date, also for a request that begins
    /// then (RFC 9111 §4.4).
    @Test(arguments: ["usual", "later", "split"], [true, false]) func aWriteInBetweenIsSeen(_ kind: String, isRelayed: Bool) async throws {
        try await RelaySite.with(Self.ok("usual")) { site in
            try await warm(site)
            let late = String(repeating: "~", count: 20)
            site.script.answers["/item"] = late + RelaySite.framed(Self.usualHead, "before", kind)
            async let reading = site.get("/item", isPlain: isRelayed)
            try await eventually("the read") { site.script.count(of: "/item") == 1 }
            site.script.answers["/item"] = Self.ok("after")
            let writer = RelaySite(
                script: site.script, server: site.server, port: site.port, client: try await RawConnection.open(site.server.gateway))
            try await #expect(writer.write("{}", to: "/item").head.status == 200)
            try await #expect(writer.get("/item").body == "after", "at once")
            try await #expect(["before", "after"].contains(reading.body))
            try await #expect(writer.get("/item").body == "after")
            await writer.client.close()
        }
    }

    @Test func aClientThatLeavesHoldsUpNobody() async throws {
        try await RelaySite.with(Self.ok("usual")) { site in
            try await warm(site)
            site.script.answers["/left"] = "silence"
            try await site.client.send("GET /left HTTP/1.1\r\nHost: \(site.server.gateway)\r\nUser-Agent: test\r\n\r\n")
            try await eventually("the request") { site.script.count(of: "/left") == 1 }
            let other = try await RawConnection.open(site.server.gateway)
            try await other.send("GET /left HTTP/1.1\r\nHost: \(site.server.gateway)\r\nUser-Agent: test\r\n\r\n")
            try await Task.sleep(for: .milliseconds(200))
            site.script.answers["/left"] = Self.ok("there")
            try await site.client.reset()
            try await #expect(other.response(within: .seconds(5)).body == "there")
            await other.close()
        }
    }

    @Test func aCopyIsItsOwners() async throws {
        let own = { (body: String) in Self.ok(body, "Vary: Authorization\r\n").replacing("max-age=600", with: "private, max-age=600") }
        try await RelaySite.with(own("usual")) { site in
            let (one, two) = ("Authorization: Bearer one\r\n", "Authorization: Bearer two\r\n")
            for token in [one, two] { try await warm(site, fields: token) }
            let relayed = try await site.relays()
            for round in 0..<8 {
                let target = "/mine/\(round)"
                site.script.answers[target] = own("of one")
                try await #expect(site.get(target, fields: one).body == "of one")
                site.script.answers[target] = own("of two")
                try await #expect(site.get(target, fields: two).body == "of two")
                try await #expect(site.get(target, fields: one).body == "of one")
                try await #expect(site.get(target, fields: two).body == "of two")
                #expect(site.script.count(of: target) == 2)
            }
            try await #expect(site.relays() > relayed)
        }
    }

    /// A write that is answered while the response to a read is on its way: the older response is no answer afterwards.
    @Test func aWriteMeanwhileMakesTheCopyStale() async throws {
        try await RelaySite.with(Self.ok("usual")) { site in
            try await warm(site)
            site.script.answers["/item"] = "~~~~~~~~~~~~~~~~~~~~" + Self.ok("old")
            async let first = site.get("/item")
            try await eventually("the read") { site.script.count(of: "/item") == 1 }
            site.script.answer = "HTTP/1.1 204 No Content\r\n\r\n"
            let write = try await Curl.send("DELETE", "http://\(site.server.gateway)/item")
            #expect(write.status == 204, "\(write)")
            try await #expect(first.body == "old")
            site.script.answers["/item"] = Self.ok("new")
            try await eventually("the new one", within: .seconds(5)) { try await site.get("/item").body == "new" }
        }
    }
}
