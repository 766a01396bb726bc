// Requests whose client would misread a 202 are refused at once while their upstream is away (docs/outbox.md#never-queued).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(2))) struct NotQueuedTests {
    private static let cases: [(method: String, path: String, fields: [String], body: String)] = [
        ("POST", "/token/", ["Content-Type: application/x-www-form-urlencoded"], "grant_type=password&username=a&password=b"),
        ("POST", "/accounts", ["Content-Type: application/json"], #"{"user": {"name": "a", "password": "b"}}"#),
        ("POST", "/bucket/key?uploads", [], ""), ("PUT", "/bucket/key?partNumber=1&uploadId=x", [], "part"),
        ("POST", "/pool.git/git-upload-pack", ["Content-Type: application/x-git-upload-pack-request"], "0000"),
        ("POST", "/helloworld.Greeter/SayHello", ["Content-Type: application/grpc", "TE: trailers"], "x"),
        ("POST", "/rpc", ["Content-Type: application/json"], #"{"jsonrpc": "2.0", "method": "add", "id": 1}"#),
        ("POST", "/rpc", ["Content-Type: text/xml"], "<methodCall><methodName>x</methodName></methodCall>"),
        ("POST", "/soap", ["Content-Type: text/xml", "SOAPAction: x"], "<Envelope/>"),
        ("POST", "/graphql", ["Content-Type: application/json"], #"{"query": "{ me { name } }"}"#),
        ("LOCK", "/dav/file", ["Content-Type: application/xml"], "<lockinfo/>"),
        ("POST", "/form", ["Content-Type: application/x-www-form-urlencoded", "Sec-Fetch-Site: cross-site"], "a=b"),
    ]

    @Test func eachIsRefusedWithTheLineThatPermitsIt() async throws {
        try await PlayedWorld.with({ _ in .text("ok") }) { world in
            try await world.turn("offline")
            for (method, path, fields, body) in Self.cases {
                let reply = try await world.send(method, path, fields: fields, body: body)
                expectProblem(reply, "not-queueable", 503)
                let detail = reply.json?["detail"]?.string ?? ""
                #expect(method == "LOCK" || detail.contains("match: \"\(method) ") == true, "\(detail)")
            }
            try await #expect(world.server.operations().isEmpty)
        }
    }

    @Test func aRouteMayPermitThem() async throws {
        let routes: JSONValue = ["routes": [["match": "POST /token", "queue": "always"]]]
        try await PlayedWorld.with(upstream: routes, { _ in .text("ok") }) { world in
            try await world.turn("offline")
            let form = ["Content-Type: application/x-www-form-urlencoded"]
            try await #expect(world.send("POST", "/token", fields: form, body: "grant_type=password&password=b").status == 202)
        }
    }

    @Test func clientsThatExcludeJSONGetNoBody() async throws {
        try await PlayedWorld.with({ _ in .text("ok") }) { world in
            try await world.turn("offline")
            let xml = try await world.send("PUT", "/a", fields: ["Content-Type: text/xml", "Accept: text/xml"], body: "<a/>")
            #expect(xml.status == 202 && xml.body.isEmpty && xml["rockpool-operation"] != nil && xml["content-type"] == nil)
            let any = try await world.send("PUT", "/b", fields: ["Content-Type: text/xml"], body: "<a/>")
            #expect(any.status == 202 && any.json?["id"] != nil)
        }
    }

    /// The kind `s3` answers as S3 does.
    @Test func queuedObjectsAreAnsweredInTheFormOfS3() async throws {
        let routes: JSONValue = ["routes": [["match": "/bucket/**", "kind": "s3"]]]
        try await PlayedWorld.with(upstream: routes, { _ in .text("") }) { world in
            try await world.turn("offline")
            let put = try await world.send("PUT", "/bucket/key", fields: ["Content-Type: text/plain"], body: "bytes")
            #expect(put.status == 200 && put.body.isEmpty && put["etag"]?.isEmpty == false, "\(put.status) \(put.text)")
            let deleted = try await world.send("DELETE", "/bucket/other")
            #expect(deleted.status == 204)
            try await world.turn("auto")
            try await eventually("both at the bucket") { world.site.count("/bucket/key") == 1 && world.site.count("/bucket/other") == 1 }
            try await world.server.outboxIsEmpty()
        }
    }
}
