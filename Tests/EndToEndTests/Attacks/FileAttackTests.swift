// Documents and writes to files by which one client takes the processor, the memory or the outbox from others
// (docs/security-model.md#documents-of-others, RFC 4918 §9.8.5).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(3))) struct FileAttackTests {
    private static let routes: JSONValue = [
        "routes": [
            ["match": "PROPFIND /**", "cache": "body"], ["match": "REPORT /**", "cache": "body"], ["match": "/b", "kind": "s3"],
            ["match": "/b/**", "kind": "s3"],
        ]
    ]
    private static let listing =
        "<D:multistatus xmlns:D=\"DAV:\"><D:response><D:href>/dir/</D:href></D:response>"
        + "<D:response><D:href>/dir/a</D:href></D:response></D:multistatus>"

    private static func play(_ asked: PlayedSite.Asked) -> PlayedSite.Said {
        switch asked.method {
        case "PROPFIND", "REPORT": .text(listing, status: 207, "Content-Type: application/xml")
        case "GET": .text("bytes", "Cache-Control: max-age=60", "Content-Type: text/plain")
        default: PlayedSite.Said(status: 201)
        }
    }

    /// Returns the processor time that the server takes for `body`, in seconds.
    private func processorTime(of world: PlayedWorld, _ body: () async throws -> Void) async throws -> Double {
        let before = try world.server.processorSeconds()
        try await body()
        return try world.server.processorSeconds() - before
    }

    @Test(arguments: [
        "<a></a>", "<a b=\"c\"/>", "<href>/dir/a</href>", "<!---->", "<![CDATA[]]>", "&amp;", "<prop><a/></prop>", "</a>", "<a>", "<a b='",
    ])
    func aRequestOfPropertiesIsReadInLittleTime(_ piece: String) async throws {
        try await PlayedWorld.with(upstream: Self.routes, { Self.play($0) }) { world in
            let body = "<propfind>" + String(repeating: piece, count: (64 << 10) / piece.utf8.count - 4) + "</propfind>"
            let time = try await processorTime(of: world) {
                for method in ["PROPFIND", "REPORT"] {
                    let answer = try await world.send(method, "/dir/", fields: ["Depth: 1", "Content-Type: application/xml"], body: body)
                    #expect(answer.status == 207, "\(method) \(piece): \(answer.status)")
                }
            }
            #expect(time < 3, "\(piece): \(time) s")
        }
    }

    @Test(arguments: [
        String(repeating: "<a>", count: 100_000) + String(repeating: "</a>", count: 100_000),
        String(repeating: "<Contents><Key>k</Key></Contents>", count: 10_000), String(repeating: "<!DOCTYPE a>", count: 50_000),
        String(repeating: "<Contents a='", count: 50_000),
    ])
    func aListOfABucketIsReadInLittleTime(_ inner: String) async throws {
        let play: PlayedSite.Play = { asked in
            let list = "<ListBucketResult><Name>b</Name>\(inner)</ListBucketResult>"
            return asked.method == "GET" ? .text(list, "Content-Type: application/xml") : PlayedSite.Said(status: 200)
        }
        try await PlayedWorld.with(upstream: Self.routes, play) { world in
            let read = { try await world.get("/b?list-type=2&prefix=", options: ["--max-time", "60"]) }
            _ = try await read()
            try await world.stored("/b?list-type=2&prefix=")
            try await world.turn("offline")
            try await #expect(world.send("PUT", "/b/y", body: "1").status == 200)
            let time = try await processorTime(of: world) {
                let list = try await read()
                #expect(list.status == 200 && list.body.count > 100_000)
            }
            #expect(time < 5, "\(time) s")
        }
    }

    @Test func aTreeIsNotPutIntoItself() async throws {
        try await PlayedWorld.with(upstream: Self.routes, { Self.play($0) }) { world in
            try await world.turn("offline")
            let gateway = world.server.gateway
            for method in ["COPY", "MOVE"] {
                for destination in [
                    "/dir", "/dir/b", "/%64ir/b", "http://\(gateway)/dir/b/c", "/x/%2e%2e/dir/b", "/dir%2Fb",
                ] {
                    let answer = try await world.send(method, "/dir/", fields: ["Destination: \(destination)"])
                    #expect(answer.status == 403, "\(method) \(destination): \(answer.status)")
                }
            }
            for (destination, depth) in [("/dir2", "infinity"), ("/dir/b", "0")] {
                let answer = try await world.send("COPY", "/dir/", fields: ["Destination: \(destination)", "Depth: \(depth)"])
                #expect(answer.status == 202, "\(destination): \(answer.status)")
            }
            // The server decides where it can be asked.
            try await world.turn("auto")
            try await world.server.outboxIsEmpty()
            try await #expect(world.send("COPY", "/dir/", fields: ["Destination: /dir/b"]).status == 201)
        }
    }

    /// Two trees that are copied into each other, and objects below their own names: the next list takes neither time nor memory.
    @Test func whatIsCopiedAgainAndAgainIsListed() async throws {
        try await PlayedWorld.with(upstream: Self.routes, { Self.play($0) }) { world in
            for depth in ["1", "infinity"] { try await #expect(world.send("PROPFIND", "/dir/", fields: ["Depth: \(depth)"]).status == 207) }
            try await eventually("both listings are stored") {
                try await world.server.get("/v1/cache?prefix=\(world.url("/dir/"))").json?["items"]?.array?.count == 2
            }
            try await world.turn("offline")
            try await #expect(world.send("PUT", "/dir/a", fields: ["Content-Type: text/plain"], body: "1").status == 202)
            for number in 0..<34 {
                let (source, destination) = number % 2 == 0 ? ("/other", "/dir/\(number)") : ("/dir", "/other/\(number)")
                try await #expect(world.send("COPY", source, fields: ["Destination: \(destination)"]).status == 202)
                let copy = try await world.send("PUT", "/b/k/\(number)", fields: ["X-Amz-Copy-Source: b/k"])
                #expect(copy.status == 200)
            }
            let memory = try world.server.residentBytes()
            let time = try await processorTime(of: world) {
                let members = try await world.send("PROPFIND", "/dir/", fields: ["Depth: 1"])
                #expect(members.status == 207 && members["rockpool-dirty"] == nil, "\(members.text)")
                #expect(members.text.split(separator: "<D:href>").count == 20, "\(members.text)")
                let all = try await world.send("PROPFIND", "/dir/", fields: ["Depth: infinity"])
                #expect(all.status == 207 && all["rockpool-dirty"] == "1", "\(all.text.prefix(1_000))")
            }
            #expect(time < 10, "\(time) s")
            #expect(try world.server.residentBytes() < memory + 150 << 20)
        }
    }

    /// Each needs all those before it: one dependency is stored for each.
    @Test func copiesOfOneTreeFillNoOutbox() async throws {
        try await PlayedWorld.with(upstream: Self.routes, storage: ["data_limit": "16MB"], { Self.play($0) }) { world in
            try await world.turn("offline")
            let connection = try await RawConnection.open(world.server.gateway)
            var last = ""
            for number in 0..<300 {
                try await connection.send(
                    "COPY /src HTTP/1.1\r\nHost: \(world.server.gateway)\r\nDestination: /dst/\(number)\r\nContent-Length: 0\r\n\r\n")
                let reply = try await connection.response()
                #expect(reply.head.status == 202, "\(number): \(reply.body)")
                last = reply.body
            }
            await connection.close()
            #expect(try JSONValue.parse(Array(last.utf8))["dependsOn"]?.array?.count == 1, "\(last)")
            let other = try await world.send("PUT", "/other", fields: ["Authorization: Bearer other"], body: "x")
            #expect(other.status == 202)
            try await world.turn("auto")
            try await eventually("all are sent, in their order", within: .seconds(90)) {
                try await world.server.get("/v1/status").json?["pending"]?.integer == 0
            }
            let sent = world.site.asked.filter { $0.method == "COPY" }.compactMap {
                $0["destination"]?.split(separator: "/").last.map(String.init)
            }
            #expect(sent == (0..<300).map(String.init))
        }
    }
}
