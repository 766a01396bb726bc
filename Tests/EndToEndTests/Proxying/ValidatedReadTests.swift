// Reads of stored responses that their upstream validates each time: relays answer them as the read pipeline does
// (docs/architecture.md#relays).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(3)), .serialized) struct ValidatedReadTests {
    private static func stored(_ fields: String = "Cache-Control: no-cache\r\nETag: \"v1\"\r\n", _ body: String = "hello") -> String {
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    private static let notModified = "HTTP/1.1 304 Not Modified\r\nCache-Control: no-cache\r\nETag: \"v1\"\r\n\r\n"

    private static func named(_ head: MessageHead) -> [String] {
        head.fields.filter { $0.name != "date" && $0.name != "via" }.map { "\($0.name): \($0.value)" }.sorted()
    }

    /// Reads a target until a relay answers it.
    private func warm(_ site: RelaySite, _ target: String) async throws {
        site.script.answers[target] = Self.stored()
        _ = try await site.get(target)
        site.script.answers[target] = Self.notModified
        try await site.warm(target)
    }

    @Test func aValidatedCopyIsRelayed() async throws {
        try await RelaySite.with(Self.stored()) { site in
            try await warm(site, "/doc")
            let full = try await site.get("/doc", isPlain: false)
            let before = try await site.relays()
            for number in 0..<5 {
                let relayed = try await site.get("/doc", fields: "X-Request-Id: \(number)\r\n")
                #expect(relayed.body == "hello" && Self.named(relayed.head) == Self.named(full.head), "\(relayed)\n\(full)")
            }
            try await #expect(site.relays() == before + 5)
            #expect(site.script.requests.last?.contains("If-None-Match: \"v1\"") == true)
            // Another representation takes the place of the stored one.
            site.script.answers["/doc"] = Self.stored("Cache-Control: no-cache\r\nETag: \"v2\"\r\n", "world")
            try await #expect(site.get("/doc").body == "world")
            site.script.answers["/doc"] = Self.notModified.replacing("v1", with: "v2")
            for _ in 0..<3 { try await #expect(site.get("/doc").body == "world") }
            // What a 304 says of freshness counts at once.
            site.script.answers["/doc"] = Self.notModified.replacing("v1", with: "v2").replacing("no-cache", with: "max-age=600")
            _ = try await site.get("/doc")
            let asked = site.script.count(of: "/doc")
            for _ in 0..<3 { try await #expect(site.get("/doc").head["cache-status"]?.contains("; hit") == true) }
            #expect(site.script.count(of: "/doc") == asked)
        }
    }

    /// The fields of a 304 that names the copy of another variant are for its own client.
    @Test func anotherVariantKeepsItsFields() async throws {
        func tenant(_ name: String, _ caching: String, tag: String = "v1") -> String {
            "Cache-Control: \(caching)\r\nETag: \"\(tag)\"\r\nVary: X-Tenant\r\nX-Tenant-Name: \(name)\r\n"
        }
        try await RelaySite.with(Self.stored()) { site in
            site.script.answers["/doc"] = Self.stored(tenant("one", "no-cache"))
            try await #expect(site.get("/doc", fields: "X-Tenant: one\r\n").head["x-tenant-name"] == "one")
            site.script.answers["/doc"] = Self.stored(tenant("two", "no-cache", tag: "v2"), "world")
            try await #expect(site.get("/doc", fields: "X-Tenant: two\r\n").body == "world")
            // Both have the same representation from now on.
            site.script.validations["/doc"] = "HTTP/1.1 304 Not Modified\r\n\(tenant("two", "max-age=600"))\r\n"
            for _ in 0..<3 {
                let other = try await site.get("/doc", fields: "X-Tenant: two\r\n")
                #expect(other.head["x-tenant-name"] == "two" && other.body == "hello", "\(other)")
            }
            site.script.validations["/doc"] = "HTTP/1.1 304 Not Modified\r\n\(tenant("one", "max-age=600"))\r\n"
            for _ in 0..<3 {
                let own = try await site.get("/doc", fields: "X-Tenant: one\r\n")
                #expect(own.head["x-tenant-name"] == "one" && own.body == "hello", "\(own)")
            }
        }
    }

    /// What was found out about a stored body stays in its Vary, whatever Vary a 304 names.
    @Test(arguments: ["Accept-Encoding", "User-Agent", ""]) func aValidationForgetsNoImpliedVariance(_ vary: String) async throws {
        try await RelaySite.with(Self.stored()) { site in
            site.script.answers["/doc"] = Self.stored("Cache-Control: no-cache\r\nETag: \"v1\"\r\n", "for flavour-aa")
            _ = try await site.get("/doc", fields: "X-Flavour: flavour-aa\r\n")
            let line = vary.isEmpty ? "" : "Vary: \(vary)\r\n"
            site.script.validations["/doc"] = "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=600\r\nETag: \"v1\"\r\n\(line)\r\n"
            try await #expect(site.get("/doc", fields: "X-Flavour: flavour-aa\r\n").body == "for flavour-aa")
            site.script.validations["/doc"] = nil
            site.script.answers["/doc"] = Self.stored("Cache-Control: no-cache\r\nETag: \"v2\"\r\n", "for flavour-bb")
            try await #expect(site.get("/doc", fields: "X-Flavour: flavour-bb\r\n").body == "for flavour-bb")
        }
    }

    /// Many readers at once of a copy that each of them validates do not fetch it anew for each other, again and again.
    @Test func manyReadersOfOneCopySettle() async throws {
        try await RelaySite.with(Self.stored()) { site in
            site.script.validations["/hot"] = Self.notModified
            let request = "GET /hot HTTP/1.1\r\nHost: \(site.server.gateway)\r\nUser-Agent: test\r\n\r\n"
            try await withThrowingTaskGroup { group in
                for _ in 0..<24 {
                    group.addTask {
                        let client = try await RawConnection.open(site.server.gateway)
                        for _ in 0..<20 {
                            try await client.send(request)
                            let (head, body) = try await client.response()
                            #expect(head.status == 200 && body == "hello", "\(head)")
                        }
                        await client.close()
                    }
                }
                try await group.waitForAll()
            }
            let whole = site.script.requests("GET /hot").count { !$0.contains("If-None-Match: ") }
            #expect(whole <= 24 * 4, "\(whole) of 480 were fetched whole")
        }
    }

    /// Each of many users has a copy of its own, and each is asked about.
    @Test func everyUsersCopyIsValidated() async throws {
        let mine = "Cache-Control: private, no-cache\r\nETag: \"v1\"\r\n"
        try await RelaySite.with(Self.stored(mine)) { site in
            let users = ["one", "two", "three"].map { "Authorization: Bearer \($0)\r\n" }
            for (number, user) in users.enumerated() {
                site.script.answers["/mine"] = Self.stored(mine, "\(number)")
                try await #expect(site.get("/mine", fields: user).body == "\(number)")
            }
            site.script.answers["/mine"] = Self.notModified.replacing("no-cache", with: "private, no-cache")
            let before = try await site.relays()
            for _ in 0..<10 {
                for (number, user) in users.enumerated() { try await #expect(site.get("/mine", fields: user).body == "\(number)") }
            }
            try await #expect(site.relays() > before + 10)
        }
    }

    /// What a relayed read has shown is what a later write builds on, whether the response is stored or not.
    @Test(arguments: ["no-store", "no-cache"]) func aWriteBuildsOnWhatARelayShowed(_ caching: String) async throws {
        try await RelaySite.with(Self.stored("Cache-Control: \(caching)\r\nETag: \"v1\"\r\n")) { site in
            if caching == "no-store" { try await site.warm("/doc") } else { try await warm(site, "/doc") }
            site.script.answers["/doc"] = Self.stored("Cache-Control: \(caching)\r\nETag: \"v2\"\r\n")
            let before = try await site.relays()
            for _ in 0..<5 { _ = try await site.get("/doc") }
            if caching == "no-cache" {
                site.script.answers["/doc"] = Self.notModified.replacing("v1", with: "v2")
                for _ in 0..<5 { _ = try await site.get("/doc") }
            }
            try await #expect(site.relays() > before)
            site.script.answer = "HTTP/1.1 204 No Content\r\n\r\n"
            _ = try await site.write("{}", to: "/doc", method: "PUT", fields: "User-Agent: test\r\n")
            #expect(site.script.requests("PUT /doc").last?.contains("If-Match: \"v2\"") == true, "\(site.script.requests("PUT /doc"))")
        }
    }

    /// Whatever the origin says about a stored response, the replies, what is stored then, and the number of requests are those of the full
    /// path.
    @Test(arguments: 1...4) func everyAnswerIsTreatedAsOnTheFullPath(_ seed: UInt64) async throws {
        try await RelaySite.with(Self.stored()) { relayed in
            try await RelaySite.with(Self.stored()) { full in
                var chance = Chance(seed, 45)
                for round in 0..<40 {
                    if round % 3 == 0 { try await warm(relayed, "/warm/\(round)") }
                    let target = "/new/\(round)?a=\(round)"
                    for answer in [Self.first(by: &chance)] + (0..<3).map({ _ in Self.later(by: &chance) }) {
                        for site in [relayed, full] { site.script.answers[target] = answer }
                        for reading in 1...2 {
                            let one = try await relayed.get(target)
                            let other = try await full.get(target, isPlain: false)
                            let name = "seed \(seed), round \(round), reading \(reading): \(answer)"
                            #expect(one.head.status == other.head.status && one.body == other.body, "\(name)\n\(one)\n\(other)")
                            #expect(Self.timeless(one.head) == Self.timeless(other.head), "\(name)")
                        }
                    }
                    #expect(relayed.script.count(of: target) == full.script.count(of: target), "seed \(seed), round \(round)")
                }
                #expect(try await full.relays() == 0)
            }
        }
    }

    private static func timeless(_ head: MessageHead) -> [String] {
        head.fields.filter { $0.name != "date" && $0.name != "via" }.map { field in
            let value = field.value.replacing(/ttl=-?\d+|127.0.0.1:\d+/, with: "any")
            return "\(field.name): \(field.name == "age" ? (Int(value) ?? 0) / 10 * 10 : -1) \(field.name == "age" ? "" : value)"
        }.sorted()
    }

    private static func one(_ chance: inout Chance, _ values: String...) -> String { values.randomElement(using: &chance) ?? "" }

    private static func first(by chance: inout Chance) -> String {
        let caching = one(&chance, "no-cache", "no-cache", "max-age=0", "private, no-cache", "no-cache=\"x-odd\"", "max-age=600")
        let validator = one(
            &chance, "ETag: \"v1\"\r\n", "ETag: \"v1\"\r\n", "ETag: W/\"v1\"\r\n", "Last-Modified: Tue, 01 Sep 2026 00:00:00 GMT\r\n", "")
        let more = one(&chance, "", "", "X-Odd: 1\r\n", "Vary: User-Agent\r\n", "Content-Language: en\r\n")
        return stored("Cache-Control: \(caching)\r\n\(validator)\(more)", one(&chance, "[]", "{}", "\"text\""))
    }

    private static func later(by chance: inout Chance) -> String {
        let caching = one(&chance, "no-cache", "no-cache", "no-cache", "max-age=600", "no-store", "private")
        let more = one(
            &chance, "", "", "X-Odd: 2\r\n", "Set-Cookie: a=b\r\n", "ETag: \"v1\"\r\n", "ETag: \"other\"\r\n",
            "Content-Type: text/html\r\n", "Age: 30\r\n", "Content-Length: 2\r\n", "Vary: Accept\r\n", "Connection: close\r\n")
        switch one(&chance, "304", "304", "304", "304", "200", "404", "500") {
        case "200": return stored("Cache-Control: \(caching)\r\nETag: \"v2\"\r\n", "[1]")
        case "404": return "HTTP/1.1 404 Not Found\r\nCache-Control: \(caching)\r\nContent-Length: 0\r\n\r\n"
        case "500": return "HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n"
        default: return "HTTP/1.1 304 Not Modified\r\nCache-Control: \(caching)\r\n\(more)\r\n"
        }
    }
}
