// Requests whose client would misread a 202 are refused at once while their upstream is away (docs/outbox.md#never-queued).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(2))) struct NotQueuedTests {
    private static let cases: [(method: String, path: String, fields: [String], body: String)] = [
        ("POST", "/token/", ["Content-Type: application/x-www-form-urlencoded"], "grant_type=password&username=a&password=b"),
        ("POST", "/accounts", ["Content-Type: application/json"], #"{"user": {"name": "a", "password": "b"}}"#),
        ("POST", "/bucket/key?uploads", [], ""), ("PUT", "/bucket/key?partNumber=1&uploadId=x", [], "part"),
        ("POST", "/printers/a", ["Content-Type: application/ipp"], "x"),
        ("POST", "/acme/new-order", ["Content-Type: application/jose+json"], #"{"payload": "x", "signature": "y"}"#),
        ("POST", "/Microsoft-Server-ActiveSync?Cmd=Sync", ["Content-Type: application/vnd.ms-sync.wbxml"], "x"),
        ("POST", "/mapi/emsmdb", ["Content-Type: application/mapi-http"], "x"),
        ("POST", "/scep?operation=PKIOperation", ["Content-Type: application/x-pki-message"], "x"),
        ("POST", "/.well-known/est/simpleenroll", ["Content-Type: application/pkcs10"], "x"),
        ("POST", "/api/v1/read", ["Content-Type: application/x-protobuf"], "x"),
        ("POST", "/ows", ["Content-Type: application/xml"], "<GetFeature/>"),
        ("POST", "/batch", ["Content-Type: multipart/mixed; boundary=b"], "--b--"),
        ("POST", "/api/v1/query_range", ["Content-Type: application/x-www-form-urlencoded"], "query=up"),
        ("POST", "/api.php", ["Content-Type: application/x-www-form-urlencoded"], "action=query&titles=A"),
        ("POST", "/transmission/rpc", ["Content-Type: application/json"], #"{"method": "session-get"}"#),
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
                // A path that takes edits too must not be declared to ask.
                let isMixed = ["/api.php", "/transmission/rpc"].contains(path)
                #expect(method == "LOCK" || detail.contains("match: \"\(method) ") != isMixed, "\(detail)")
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

    /// A program that reported a failure must not find later that its statement has been executed.
    @Test func noRouteLetsAStatementWait() async throws {
        try await PlayedWorld.with(upstream: ["routes": [["match": "/**", "queue": "always"]]], { _ in .text("ok") }) { world in
            try await world.turn("offline")
            let form = ["Content-Type: application/x-www-form-urlencoded"]
            for (path, fields, body) in [
                ("/query?db=pool&q=DROP+DATABASE+pool", [], ""), ("/exec", form, "q=drop+series+from+cpu"),
                ("/sql", ["Content-Type: application/json"], #"{"sql": "DELETE FROM t"}"#),
            ] {
                let reply = try await world.send("POST", path, fields: fields, body: body)
                expectProblem(reply, "not-queueable", 503)
                #expect(reply.json?["detail"]?.string?.contains("a statement in a query is not queued") == true, "\(reply.text)")
            }
            try await #expect(world.server.operations().isEmpty)
            try await #expect(world.send("POST", "/printers/a", fields: ["Content-Type: application/ipp"], body: "x").status == 202)
            try await #expect(world.send("POST", "/write?db=pool", fields: ["Content-Type: text/plain"], body: "cpu v=1").status == 202)
        }
    }

    /// `lpstat` asks again at once, some five hundred times a second.
    @Test func aFloodOfPrintingLeavesNothing() async throws {
        try await PlayedWorld.with({ _ in .text("ok") }) { world in
            try await world.turn("offline")
            let connection = try await RawConnection.open(world.server.gateway)
            for _ in 0..<300 {
                try await connection.send(
                    "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/ipp\r\n"
                        + "Content-Length: 8\r\n\r\n\u{2}\u{0}\u{0}\u{b}\u{0}\u{0}\u{0}\u{1}")
                try await #expect(connection.response().head.status == 503)
            }
            await connection.close()
            try await #expect(world.server.operations().isEmpty)
        }
    }

    /// A program that takes 202 for a failure, and repeats its write as fast as it can, is refused before it fills the outbox.
    @Test func aFloodOfEqualWritesIsRefused() async throws {
        try await PlayedWorld.with({ _ in .text("ok") }) { world in
            try await world.turn("offline")
            let connection = try await RawConnection.open(world.server.gateway)
            func post(_ body: String) async throws -> MessageHead {
                try await connection.send(
                    "POST /items HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
                return try await connection.response().head
            }
            var statuses: [Int] = []
            for _ in 0..<AcknowledgementLimit.count { statuses.append(try await post(#"{"a": 1}"#).status) }
            #expect(statuses.allSatisfy { $0 == 202 }, "\(statuses)")
            let refused = try await post(#"{"a": 1}"#)
            #expect(refused.status == 429 && refused["retry-after"].flatMap { Int($0) }.map { 1...10 ~= $0 } == true, "\(refused)")
            try await #expect(post(#"{"a": 2}"#).status == 202)
            await connection.close()
            try await #expect(world.server.operations().count <= AcknowledgementLimit.count + 1)
        }
    }

    @Test func whatARouteDeclaresToAskIsStoredByItsBody() async throws {
        let routes: JSONValue = ["routes": [["match": "POST /ask", "read": true]]]
        try await PlayedWorld.with(upstream: routes, { .text("answer to \($0.body)") }) { world in
            let ask = { (body: String) in
                try await world.send("POST", "/ask", fields: ["Content-Type: application/xml"], body: body)
            }
            for body in ["<a/>", "<b/>"] { try await #expect(ask(body).text == "answer to \(body)") }
            let insert = {
                try await world.send(
                    "POST", "/ask", fields: ["Content-Type: application/x-www-form-urlencoded"], body: "q=INSERT INTO t VALUES (1)")
            }
            try await #expect(insert().status == 200)
            try await world.turn("offline")
            for body in ["<b/>", "<a/>"] {
                try await eventually("the answer to \(body)") { try await ask(body).text == "answer to \(body)" }
            }
            expectProblem(try await ask("<c/>"), "offline-miss", 504)
            let drop = try await world.send(
                "POST", "/ask", fields: ["Content-Type: application/x-www-form-urlencoded"], body: "q=DROP TABLE t")
            expectProblem(drop, "not-queueable", 503)
            // It was answered while the API was there; that answer says nothing of the next one.
            expectProblem(try await insert(), "not-queueable", 503)
            expectProblem(try await ask(String(repeating: "x", count: 70_000)), "offline-miss", 504)
            try await #expect(world.server.operations().isEmpty)
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
