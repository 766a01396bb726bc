// A queued signed write says until when it lives, and is signed anew where its upstream has the key
// (docs/reference/configuration.md#upstreams).
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(2))) struct SigningTests {
    private static let python = Python.with("botocore")

    /// Prints the fields with which botocore signs a PUT of `body`, with its length, as the SDKs for Go sign it.
    private static let signing = """
        import datetime, sys
        from botocore import auth, awsrequest, credentials
        url, secret, body, region = sys.argv[1:5]
        request = awsrequest.AWSRequest("PUT", url, data=body.encode(), headers={"Content-Type": "text/plain", "Content-Length": str(len(body))})
        auth.S3SigV4Auth(credentials.Credentials("AKIA1", secret), "s3", region).add_auth(request)
        for name, value in request.headers.items():
            print(f"{name}: {value}")
        """

    /// Prints the signature that a request to `url` with these fields must have.
    private static let judging = """
        import sys
        from botocore import auth, awsrequest, credentials
        url, secret, date, digest, names = sys.argv[1:6]
        headers = dict(pair.split(": ", 1) for pair in sys.argv[6:])
        request = awsrequest.AWSRequest("PUT", url, data=b"bytes", headers=headers)
        request.context["timestamp"] = date
        signer = auth.S3SigV4Auth(credentials.Credentials("AKIA1", secret), "s3", "us-east-1")
        text = signer.string_to_sign(request, signer.canonical_request(request))
        print(signer.signature(text, request))
        """

    private func run(_ script: String, _ arguments: String...) async throws -> String {
        let python = try #require(Self.python)
        let run = try await Command.run("/usr/bin/env", [python, "-c", script] + arguments)
        try #require(run.status == 0, "\(run.errors)")
        return run.output
    }

    private func fields(_ url: String, secret: String, region: String = "us-east-1") async throws -> [String] {
        try await run(Self.signing, url, secret, "bytes", region).split(separator: "\n").map { String($0) }
    }

    @Test func aSignedWriteSaysUntilWhenItLives() async throws {
        try await PlayedWorld.with({ _ in .text("") }) { world in
            try await world.turn("offline")
            let fields = { (date: String) in
                [
                    "Authorization: AWS4-HMAC-SHA256 Credential=AKIA1/20130524/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=1",
                    "X-Amz-Date: \(date)",
                ]
            }
            let lasting = try await world.send("PUT", "/b/one", fields: fields("20991231T000000Z"), body: "x")
            #expect(lasting["rockpool-expires"] == "Thu, 31 Dec 2099 00:15:00 GMT")
            let document = try await world.server.operations().first
            #expect(document?["expiresAt"]?.string == "2099-12-31T00:15:00.000Z")
            _ = try await world.send("PUT", "/b/two", fields: fields("20130524T000000Z"), body: "x")
            try await world.turn("auto")
            try await eventually("the second is dead") {
                try await world.server.operations().contains {
                    $0["reason"]?.string == "signature-expired" && $0["state"]?.string == "dead"
                }
            }
            #expect(world.site.count("/b/two") == 0)
        }
    }

    @Test(.enabled(if: Self.python != nil, "botocore is not installed")) func aWriteIsSignedAnewAtTheGatewayAndAtReplay() async throws {
        let scratch = try Scratch()
        let file = scratch.path + "/secret"
        try Files.write(Array("hidden\n".utf8), to: file)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
        let sign: JSONValue = [
            "sign": ["sigv4": ["key_id": "AKIA1", "secret_file": .string(file), "region": "us-east-1", "service": "s3"]]
        ]
        try await PlayedWorld.with(upstream: sign, { _ in .text("") }) { world in
            let gateway = "http://\(world.server.gateway)"
            for (path, mode) in [("/b/live", "auto"), ("/b/later", "offline")] {
                try await world.turn(mode)
                _ = try await world.send("PUT", path, fields: fields(gateway + path, secret: "hidden"), body: "bytes")
            }
            // Passed on as it is, and never queued: not the key's own signature, for another region, and with a field that was added on the way.
            let foreign = gateway + "/b/foreign"
            for fields in [
                try await fields(foreign, secret: "guessed"), try await fields(foreign, secret: "hidden", region: "eu-west-1"),
                try await fields(foreign, secret: "hidden") + ["X-Amz-Acl: public-read"],
            ] {
                let refused = try await world.send("PUT", "/b/foreign", fields: fields, body: "bytes")
                #expect(refused.status == 503, "\(fields)")
            }
            try await world.turn("auto")
            try await world.server.outboxIsEmpty()
            for path in ["/b/live", "/b/later"] {
                let sent = try #require(world.site.asked.first { $0.path == path })
                let authorization = sent["authorization"] ?? ""
                let names = authorization.split(separator: "SignedHeaders=").last?.prefix { $0 != "," } ?? ""
                let pairs = names.split(separator: ";").filter { $0 != "host" }.map { "\($0): \(sent[String($0)] ?? "")" }
                let python = try #require(Self.python)
                let judged = try await Command.run(
                    "/usr/bin/env",
                    [
                        python, "-c", Self.judging, world.url(path), "hidden", sent["x-amz-date"] ?? "", sent["x-amz-content-sha256"] ?? "",
                        String(names),
                    ] + pairs)
                #expect(authorization.hasSuffix("Signature=\(judged.output.dropLast())"), "\(path): \(authorization) \(judged.errors)")
            }
        }
    }
}
