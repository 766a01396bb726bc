// `/v1/cache` over a real store (docs/reference/admin-api.md#cache).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

@testable import RockpoolAdmin

@Suite(.timeLimit(.minutes(1)))
struct CacheRoutesTests {
    /// Returns a pool with stored entries: two documents, an image and a private response.
    private func filled(configure: (inout Configuration) -> Void = { _ in }) async throws -> AdminDoor {
        let pool = try ScriptedEngine(
            rule: { sent in
                switch sent.head.target {
                case "/pic": .ok(String(repeating: "x", count: 5000), [.contentType: "image/png", .cacheControl: "max-age=60"])
                case "/mine": .ok("mine", [.contentType: "text/plain", .cacheControl: "private, max-age=60"])
                default:
                    .ok(
                        "pearl",
                        [
                            .contentType: "text/plain", .cacheControl: "max-age=60",
                            .cacheGroups: #""\#(sent.head.target.dropFirst())", "all""#,
                        ])
                }
            }, configure: configure)
        for target in ["/a", "/b", "/pic", "/mine"] { await pool.ask(.get, target, [.authorization: "Bearer s3cret"]) }
        for target in ["/a", "/b", "/pic"] { await pool.ask(.get, target) }
        return AdminDoor(pool)
    }

    private let url = "http%3A%2F%2Fapi.test"

    @Test func aListHasWhatTheContractNames() async throws {
        let door = try await filled()
        let items = try #require(try await door.ask(.get, "/v1/cache").json["items"]?.array)
        #expect(
            items.first?.object?.names == [
                "url", "method", "category", "status", "bytes", "storedAt", "freshUntil", "lastUsedAt", "pinned", "identity", "principal",
                "variants", "hits", "offline", "offlineUntil",
            ])
        let mine = items.first { $0["url"]?.string == "http://api.test/mine" }
        #expect(mine?["identity"] == "private" && mine?["variants"] == 1 && mine?["method"] == "GET")
        #expect(items.contains { $0["category"] == "assets" && $0["url"] == "http://api.test/pic" && $0["identity"] == "shared" })
        let identity = try await door.ask(.get, "/v1/identities").json["items"]?.array?.first?["id"]
        #expect(identity != nil && mine?["principal"] == identity)
        #expect(items.allSatisfy { $0["offline"] == true })
    }

    @Test func aListIsFilteredAndSorted() async throws {
        let door = try await filled()
        let all = try await door.listed()
        for query in ["?sort=size", "?sort=age", "?sort=hits", "?status=200", "?status=2xx,404", "?pinned=false"] {
            try await #expect(door.listed(query).sorted() == all.sorted(), "\(query)")
        }
        for query in ["?status=5xx", "?pinned=true", "?olderThanSeconds=10"] {
            try await #expect(door.listed(query).isEmpty, "\(query)")
        }
        try await #expect((door.listed("?stale=true") + door.listed("?stale=false")).sorted() == all.sorted())
        for query in ["sort=name", "status=2", "status=\([String](repeating: "200", count: 21).joined(separator: ","))", "pinned=x"] {
            try await #expect(door.ask(.get, "/v1/cache?\(query)").status == 400, "\(query)")
        }
    }

    @Test func aListJumpsCountsAndFindsText() async throws {
        let door = try await filled()
        let all = try await door.listed()
        let page = try await door.ask(.get, "/v1/cache?limit=2&offset=3&count=true").json
        #expect(
            page["total"] == 7
                && page["items"]?.array?.compactMap { $0["url"]?.string?.replacing("http://api.test", with: "") } == Array(all[3..<5]))
        try await #expect(Set(door.listed("?path=/pi")) == ["/pic"])
        let found = try await door.listed("?path=/pi")
        try await #expect(door.ask(.get, "/v1/cache?path=/pi&count=true&limit=1").json["total"]?.integer == Int64(found.count))
        for (query, status) in [("category=asets", 404), ("offset=-1", 400), ("offset=1&cursor=x", 400)] {
            try await #expect(door.ask(.get, "/v1/cache?\(query)").status == status, "\(query)")
        }
    }

    @Test func aListIsCutIntoPages() async throws {
        let door = try await filled()
        let all = try await door.listed()
        var (paged, cursor): ([String], String?) = ([], "")
        while let at = cursor {
            let page = try await door.ask(.get, "/v1/cache?limit=2\(at.isEmpty ? "" : "&cursor=\(at)")").json
            paged += page["items"]?.array?.compactMap { $0["url"]?.string?.replacing("http://api.test", with: "") } ?? []
            cursor = page["next"]?.string
        }
        #expect(paged == all && all.count == 7)
        #expect(try await Set(door.listed("?prefix=\(url)%2Fp")) == ["/pic"])
        #expect(try await Set(door.listed("?category=assets")) == ["/pic"])
        #expect(try await door.listed("?prefix=\(url)%2F%F0%9F%90%9A").isEmpty)
    }

    static let mistakes: [(HTTPRequest.Method, String, Int, String)] = [
        (.get, "/v1/cache?limit=0", 400, "limit is a number"), (.get, "/v1/cache?limit=1001", 400, "limit is a number"),
        (.get, "/v1/cache?limit=x", 400, "limit is a number"), (.get, "/v1/cache?cursor=x", 400, "cursor must be the `next` of a page"),
        (
            .get, "/v1/cache?prefx=x", 400,
            "no parameter prefx; there are category, count, cursor, limit, offset, olderThanSeconds, path, pinned, prefix, sort, stale, status"
        ),
        (.get, "/v1/cache?prefix=%zz", 400, "percent-encoding is broken"), (.get, "/v1/cache?prefix=%2", 400, "percent-encoding is broken"),
        (.get, "/v1/cache?prefix=%FF", 400, "percent-encoding is broken"),
        (.get, "/v1/cache/entry", 400, "url is missing"), (.get, "/v1/cache/entry?url=", 400, "url is missing"),
        (.get, "/v1/cache/entry?url=%2Fa", 400, "not an absolute http or https URL"),
        (.get, "/v1/cache/entry?url=http%3A%2F%2Fapi.test%2Fnone", 404, "nothing is stored for http://api.test/none"),
        (
            .get, "/v1/cache/entry?url=http://api.test/a?x=1&y=2", 400,
            "no parameter y; there are url; a URL in the query must be percent-encoded"
        ),
        (.get, "/v1/cache/explain?url=x&url=y", 400, "url is there more than once"),
        (.get, "/v1/cache/explain?url=http://a.test/&method=%20", 400, "method is not a valid method name"),
        (.get, "/v1/cache/explain?url=http://a.test/&method=CONNECT", 400, "not an absolute http or https URL"),
        (.get, "/v1/cache/explain?url=http://a.test/&header=x", 400, "a header is written Name: value"),
        (.get, "/v1/cache/explain?url=http://a.test/&header=A:b%0Ac", 400, "the value of A has characters not allowed in a field"),
        (.delete, "/v1/cache", 400, "name at least one of url, prefix, glob, group, category, upstream, olderThanSeconds; none is given"),
        (.delete, "/v1/cache?glob=*.png", 400, "glob begins as a URL"),
        (.delete, "/v1/cache?dryRun=true", 400, "none is given"),
        (.delete, "/v1/cache?prefix=", 400, "prefix is missing"),
        (.delete, "/v1/cache?prefix=api", 400, "prefix begins as a URL"),
        (.delete, "/v1/cache?group=x&dryRun=maybe", 400, "dryRun is true or false"),
        (.delete, "/v1/cache?group=x&dryrun=true", 400, "no parameter dryrun"),
        (.delete, "/v1/cache?category=asets", 404, "no category asets; there are assets, critical, ephemeral, important"),
        (.delete, "/v1/cache?upstream=nots", 404, "no upstream nots; declared are notes"),
        (.delete, "/v1/cache?upstream=http://api.test/a", 400, "use prefix for a part of one"),
        (.put, "/v1/cache/pins?url=http://api.test/none", 404, "nothing is stored"),
        (.delete, "/v1/cache/pins?url=http://api.test/none", 404, "nothing is stored"),
        (.get, "/v1/cache/export?group=x", 400, "no parameter group; there are category, prefix"),
    ]

    @Test(arguments: mistakes) func aMistakeIsSaidClearlyAndDoesNothing(
        method: HTTPRequest.Method, target: String, status: Int, detail: String
    ) async throws {
        let door = try await filled()
        let answer = try await door.ask(method, target)
        #expect(answer.status == status && answer.detail.contains(detail), "\(answer.text)")
        #expect(try await door.listed().count == 7)
    }

    static let selectors: [(String, Set<String>, Int)] = [
        ("url=http://API.test:80/a", ["/b", "/pic", "/mine"], 2), ("url=http://api.test/a&url=http://api.test/b", ["/pic", "/mine"], 4),
        ("prefix=http://api.test/p", ["/a", "/b", "/mine"], 2), ("group=a", ["/b", "/pic", "/mine"], 2),
        ("group=all", ["/pic", "/mine"], 4),
        ("group=al", ["/a", "/b", "/pic", "/mine"], 0), ("category=assets", ["/a", "/b", "/mine"], 2), ("upstream=notes", [], 7),
        ("upstream=http://api.test", [], 7), ("upstream=https://api.test", ["/a", "/b", "/pic", "/mine"], 0),
    ]

    @Test(arguments: selectors) func aPurgeTakesWhatItsDryRunCounted(selector: String, left: Set<String>, count: Int) async throws {
        let door = try await filled()
        let dry = try await door.ask(.delete, "/v1/cache?\(selector)&dryRun=true").json
        #expect(dry["dryRun"] == true && dry["entries"]?.integer == Int64(count) && (dry["bytes"]?.integer ?? 0) >= Int64(count))
        #expect(try await door.listed().count == 7)
        let real = try await door.ask(.delete, "/v1/cache?\(selector)").json
        #expect(real["dryRun"] == false && real["entries"] == dry["entries"] && real["bytes"] == dry["bytes"])
        #expect(try await Set(door.listed()) == left)
        if !left.contains("/a") {
            await door.pool.ask(.get, "/a")
            #expect(door.pool.origin.lines.count { $0 == "GET /a" } == 3)
        }
    }

    @Test func anEntryShowsHeadsAndNoSecrets() async throws {
        let door = try await filled()
        let mine = try await door.ask(.get, "/v1/cache/entry?url=\(url)%2Fmine")
        let variant = try #require(mine.json["variants"]?.array?.first)
        #expect(variant["identity"] == "private" && variant["status"] == 200 && variant["arithmetic"]?["freshnessLifetime"] == 60)
        #expect(variant["fields"]?.array?.contains(["name": "Content-Type", "value": "text/plain"]) == true)
        #expect(!mine.text.contains("s3cret") && !mine.text.contains("\"mine\""))
    }

    @Test func anExplanationTakesTheRequestsFields() async throws {
        let door = try await filled()
        let stranger = try await door.ask(.get, "/v1/cache/explain?url=\(url)%2Fmine").json
        #expect(stranger["decision"] == "forward" && stranger["reason"] == "uri-miss")
        let owner = try await door.ask(.get, "/v1/cache/explain?url=\(url)%2Fmine&header=Authorization:%20Bearer%20s3cret")
        #expect(owner.json["decision"] == "fresh" && !owner.text.contains("s3cret"))
        let post = try await door.ask(.get, "/v1/cache/explain?url=\(url)%2Fa&method=POST").json
        #expect(post["decision"] == "forward" && post["reason"] == "method")
    }

    /// Clients of a gateway know a resource by another URL.
    @Test func aURLAtAGatewayStandsForThatOfItsOrigin() async throws {
        let door = try await filled(configure: { $0.upstreams[0].gateway = "127.0.0.1:7630" })
        for gateway in ["http%3A%2F%2F127.0.0.1%3A7630", "http%3A%2F%2Flocalhost%3A7630"] {
            try await #expect(door.ask(.get, "/v1/cache/explain?url=\(gateway)%2Fa").json["decision"] == "fresh")
            try await #expect(door.ask(.get, "/v1/cache/entry?url=\(gateway)%2Fa").json["url"] == "http://api.test/a")
        }
        try await #expect(door.ask(.get, "/v1/cache/entry?url=http%3A%2F%2F127.0.0.1%3A7631%2Fa").status == 404)
        try await #expect(door.ask(.delete, "/v1/cache?url=http%3A%2F%2Flocalhost%3A7630%2Fa").json["entries"] == 2)
    }

    @Test func pinsHoldUpToTheirCap() async throws {
        let door = try await filled(configure: { $0.storage.pinCapPercent = 25 })
        for _ in 0..<2 {
            let pinned = try await door.ask(.put, "/v1/cache/pins?url=\(url)%2Fa")
            #expect(pinned.status == 200 && pinned.json["pinned"] == true && pinned.json["entries"] == 2)
        }
        #expect(try await door.ask(.get, "/v1/cache").json["items"]?.array?.count { $0["pinned"] == true } == 2)
        #expect(try await door.ask(.delete, "/v1/cache/pins?url=\(url)%2Fa").status == 204)
        #expect(try await door.ask(.get, "/v1/cache").json["items"]?.array?.count { $0["pinned"] == true } == 0)
    }

    @Test func changesNeedTheTokenAndReadingDoesNot() async throws {
        let door = try await filled()
        let changes: [(HTTPRequest.Method, String)] = [
            (.delete, "/v1/cache?url=\(url)%2Fa"), (.put, "/v1/cache/pins?url=\(url)%2Fa"), (.delete, "/v1/cache/pins?url=\(url)%2Fa"),
            (.post, "/v1/cache/prefetch"), (.post, "/v1/cache/import"),
        ]
        for (method, target) in changes {
            for token in [nil, "", "tokem"] { #expect(try await door.ask(method, target, token: token).status == 401) }
        }
        for target in ["", "/entry?url=\(url)%2Fa", "/explain?url=\(url)%2Fa", "/export"] {
            #expect(try await door.ask(.get, "/v1/cache\(target)", token: nil).status == 200)
        }
        #expect(try await door.listed().count == 7)
    }
}

extension HTTPField.Name {
    /// RFC 9875.
    static let cacheGroups = HTTPField.Name("Cache-Groups") ?? .via
}
