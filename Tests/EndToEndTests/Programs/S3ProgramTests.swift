// boto3 against moto: reads and lists offline, objects written while away arrive once, multipart uploads are refused.
import Foundation
import RockpoolCore
import RockpoolTesting
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
