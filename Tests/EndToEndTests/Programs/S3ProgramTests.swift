// boto3 against moto: reads and lists offline, objects written while away arrive once, multipart uploads are refused.
import Foundation
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

@Suite(.serialized, .timeLimit(.minutes(3))) struct S3ProgramTests {
    /// Runs the steps that are named in its arguments and prints one line for each.
    private static let client = """
        import boto3, botocore, sys
        from botocore.config import Config
        config = Config(proxies={"http": sys.argv[2]} if sys.argv[2] else None, retries={"max_attempts": 1}, s3={"addressing_style": "path"})
        s3 = boto3.client("s3", endpoint_url=sys.argv[1], aws_access_key_id="AK", aws_secret_access_key="SK", region_name="us-east-1", config=config)
        steps = {
            "make": lambda: s3.create_bucket(Bucket="bucket") and "made",
            "put": lambda: s3.put_object(Bucket="bucket", Key="one", Body=b"low") and "put",
            "get": lambda: s3.get_object(Bucket="bucket", Key="one")["Body"].read(),
            "head": lambda: s3.head_object(Bucket="bucket", Key="one")["ContentLength"],
            "list": lambda: [item["Key"] for item in s3.list_objects_v2(Bucket="bucket")["Contents"]],
            "put-two": lambda: s3.put_object(Bucket="bucket", Key="two", Body=b"high")["ResponseMetadata"]["HTTPStatusCode"],
            "delete": lambda: s3.delete_object(Bucket="bucket", Key="one")["ResponseMetadata"]["HTTPStatusCode"],
            "multipart": lambda: s3.create_multipart_upload(Bucket="bucket", Key="big") and "begun",
        }
        for name in sys.argv[3:]:
            try:
                print(name, steps[name](), flush=True)
            except botocore.exceptions.ClientError as error:
                print(name, error.response["ResponseMetadata"]["HTTPStatusCode"], flush=True)
        """

    private static let python = Python.with("boto3", "moto.server")

    @Test(.enabled(if: Self.python != nil, "boto3 or moto is not installed")) func objectsAreReadAndWrittenOffline() async throws {
        let (python, port) = (try #require(Self.python), FreePort.next())
        let bucket = try await ChildProcess("/usr/bin/env", [python, "-m", "moto.server", "-p", "\(port)"])
        let url = "http://127.0.0.1:\(port)"
        try await eventually("moto", within: .seconds(60)) { try await Curl.send("GET", url + "/moto-api/").status == 200 }
        let server = try await ServerProcess.start(ServerSettings(upstream: port, ["routes": [["match": "/bucket/**", "kind": "s3"]]]))
        let run = { (proxy: String, steps: [String]) in
            let run = try await Command.run("/usr/bin/env", [python, "-c", Self.client, url, proxy] + steps)
            return run.output.split(separator: "\n").map(String.init)
        }
        let proxy = "http://" + server.proxy
        let online = try await run(proxy, ["make", "put", "get", "head", "list", "multipart"])
        #expect(online == ["make made", "put put", "get b'low'", "head 3", "list ['one']", "multipart begun"])
        _ = try await server.change("PUT", "/v1/network", ["mode": "offline"])
        let away = try await run(proxy, ["get", "head", "list", "put-two", "delete", "multipart"])
        #expect(away == ["get b'low'", "head 3", "list ['one']", "put-two 200", "delete 204", "multipart 503"])
        _ = try await server.change("PUT", "/v1/network", ["mode": "auto"])
        try await server.outboxIsEmpty()
        try await #expect(run("", ["list"]) == ["list ['two']"])
        bucket.signal(SIGKILL)
        _ = try await bucket.ending()
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }
}

/// What writes that are answered at once make of the stored copies of objects.
@Suite(.serialized, .timeLimit(.minutes(1))) struct ObjectTests {
    private static let routes: JSONValue = ["routes": [["match": "/b/**", "kind": "s3"]]]

    /// Plays a bucket: what is written without a type is `application/octet-stream`.
    private static func bucket() -> PlayedSite.Play {
        let objects = Mutex<[String: (type: String, content: String)]>([:])
        return { asked in
            let path = String(asked.path.prefix { $0 != "?" })
            return objects.withLock { objects in
                switch asked.method {
                case "GET":
                    guard let object = objects[path] else { return .text("none", status: 404, "Cache-Control: max-age=60") }
                    return .text(object.content, "Content-Type: \(object.type)", "Cache-Control: max-age=60")
                case "PUT", "POST":
                    let object = (type: asked["content-type"] ?? "application/octet-stream", content: asked.body)
                    objects[path] = asked["x-amz-copy-source"].map { objects["/" + $0] ?? object } ?? object
                    return PlayedSite.Said(status: 200)
                default: return PlayedSite.Said(status: 204)
                }
            }
        }
    }

    @Test func anUploadIsReadAtOnce() async throws {
        try await PlayedWorld.with(upstream: Self.routes, Self.bucket()) { world in
            try await #expect(world.get("/b/new").status == 404)
            try await world.stored("/b/new")
            try await #expect(world.send("POST", "/b/new?uploadId=1", body: "parts").status == 200)
            let made = try await world.get("/b/new")
            #expect(made.status == 200 && made.text == "parts")
            try await world.stored("/b/new")
            try await #expect(world.send("POST", "/b/new?uploadId=2", body: "others").status == 200)
            try await #expect(world.get("/b/new").text == "others")
        }
    }

    @Test func anObjectOfAnotherTypeIsNoPortal() async throws {
        try await PlayedWorld.with(upstream: Self.routes, Self.bucket()) { world in
            try await #expect(world.send("PUT", "/b/k", fields: ["Content-Type: text/plain"], body: "old").status == 200)
            _ = try await world.get("/b/k")
            try await world.stored("/b/k")
            try await #expect(world.send("PUT", "/b/k", fields: ["Content-Type:"], body: "new").status == 200)
            let read = try await world.get("/b/k")
            #expect(read.text == "new" && read["content-type"] == "application/octet-stream", "\(read["cache-status"] ?? "")")
        }
    }

    @Test func aCopyIsNotEmptyAway() async throws {
        try await PlayedWorld.with(upstream: Self.routes, Self.bucket()) { world in
            try await #expect(world.send("PUT", "/b/k", fields: ["Content-Type: text/plain"], body: "content").status == 200)
            _ = try await world.get("/b/k")
            try await world.stored("/b/k")
            try await #expect(world.send("PUT", "/b/copy", fields: ["X-Amz-Copy-Source: b/k"]).status == 200)
            try await world.turn("offline")
            let copy = try await world.get("/b/copy")
            #expect(copy.status == 200 && copy.text == "content", "\(copy.status) \(copy.text)")
            try await world.turn("auto")
            try await #expect(world.send("POST", "/b/copy?uploadId=1", body: "parts").status == 200)
            try await world.turn("offline")
            try await #expect(world.get("/b/copy").text != "content")
        }
    }
}
