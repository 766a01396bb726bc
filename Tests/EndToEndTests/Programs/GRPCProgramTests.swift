// gRPC's own client for Python inside a decrypted tunnel: every kind of call, trailers, deadlines, cancellation, and the server's absence.
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(3))) struct GRPCProgramTests {
    private static let service = """
        import grpc, sys, time
        from concurrent import futures

        def unary(request, context):
            if request == b"error":
                context.abort(grpc.StatusCode.NOT_FOUND, "no such shell")
            if request == b"sleep":
                time.sleep(3)
            if request == b"meta":
                context.send_initial_metadata((("x-head", dict(context.invocation_metadata())["x-asked"]),))
            context.set_trailing_metadata((("x-trail", "low"),))
            return request + b"!"

        def echo(requests, context):
            for request in requests:
                yield request + b"?"

        handlers = {
            "/pool/Unary": grpc.unary_unary_rpc_method_handler(unary),
            "/pool/Down": grpc.unary_stream_rpc_method_handler(lambda request, context: (request for _ in range(3))),
            "/pool/Up": grpc.stream_unary_rpc_method_handler(lambda requests, context: b",".join(requests)),
            "/pool/Both": grpc.stream_stream_rpc_method_handler(echo),
        }

        class Service(grpc.GenericRpcHandler):
            def service(self, details):
                return handlers.get(details.method)

        server = grpc.server(futures.ThreadPoolExecutor(8))
        server.add_generic_rpc_handlers((Service(),))
        key, certificate = (open(sys.argv[2] + end, "rb").read() for end in (".key", ".pem"))
        server.add_secure_port("127.0.0.1:" + sys.argv[1], grpc.ssl_server_credentials([(key, certificate)]))
        server.start()
        server.wait_for_termination()
        """

    /// Prints one line for each call.
    private static let client = """
        import grpc, queue, sys
        roots = open(sys.argv[2], "rb").read()
        channel = grpc.secure_channel("localhost:" + sys.argv[1], grpc.ssl_channel_credentials(roots))
        unary, down = channel.unary_unary("/pool/Unary"), channel.unary_stream("/pool/Down")
        up, both = channel.stream_unary("/pool/Up"), channel.stream_stream("/pool/Both")

        def call(name, work):
            try:
                print(name, work(), flush=True)
            except grpc.RpcError as error:
                print(name, error.code().name, flush=True)

        def trailers():
            reply, state = unary.with_call(b"a", timeout=10)
            return reply, dict((item.key, item.value) for item in state.trailing_metadata())["x-trail"]

        def metadata():
            call = unary.future(b"meta", metadata=(("x-asked", "tide"),), timeout=10)
            reply = call.result()
            return dict((item.key, item.value) for item in call.initial_metadata())["x-head"], reply

        def turns(count, cancel=False):
            asked, answers = queue.Queue(), []
            call = both(iter(asked.get, None), timeout=10)
            for number in range(count):
                asked.put(b"%d" % number)
                answers.append(next(call))
            if cancel:
                call.cancel()
            else:
                asked.put(None)
                answers += list(call)
            return b"".join(answers)

        call("unary", lambda: unary(b"a", timeout=10))
        call("future", lambda: unary.future(b"a", timeout=10).result())
        call("trailers", trailers)
        call("metadata", metadata)
        call("error", lambda: unary(b"error", timeout=10))
        call("deadline", lambda: unary(b"sleep", timeout=0.5))
        call("down", lambda: b"".join(down(b"d", timeout=10)))
        call("up", lambda: up(iter([b"a", b"b"]), timeout=10))
        call("both", lambda: b"".join(both(iter([b"a", b"b"]), timeout=10)))
        call("turns", lambda: turns(3))
        call("cancel", lambda: turns(1, cancel=True))
        call("large", lambda: len(unary(b"x" * 1000000, timeout=20)))
        """

    private static let python = Python.with("grpc")

    /// The connection of the first call ends unprocessed; the call is repeated by grpcio on a connection that is not decrypted.
    @Test(.enabled(if: Self.python != nil, "grpcio is not installed"))
    func everyKindOfCallIsAsItIsWithoutAProxy() async throws {
        let (python, authority, port) = (try #require(Self.python), try await TestAuthority(), FreePort.next())
        let pair = try await authority.certificate()
        let service = try await ChildProcess("/usr/bin/env", [python, "-c", Self.service, "\(port)", pair])
        let proxy: JSONValue = ["intercept": [.string("localhost:\(port)")], "connect_ports": [.number(JSONNumber(Int64(port)))]]
        let server = try await ServerProcess.start(ServerSettings(upstream: FreePort.next(), proxy: proxy))
        let roots = server.scratch.path + "/roots.pem"
        try Files.write(Files.bytes(of: server.stateDirectory + "/ca/ca.pem") + Files.bytes(of: authority.file), to: roots)
        let arguments = [python, "-c", Self.client, "\(port)", roots]
        let environment = ["https_proxy": "http://\(server.proxy)"]
        try await eventually("the service") {
            try await Command.run("/usr/bin/env", arguments, environment: environment).output.hasPrefix("unary b'a!'")
        }
        let run = try await Command.run("/usr/bin/env", arguments, environment: environment)
        let expected = [
            "unary b'a!'", "future b'a!'", "trailers (b'a!', 'low')", "metadata ('tide', b'meta!')", "error NOT_FOUND",
            "deadline DEADLINE_EXCEEDED", "down b'ddd'",
            "up b'a,b'", "both b'a?b?'", "turns b'0?1?2?'", "cancel b'0?'", "large 1000001",
        ]
        #expect(run.output.split(separator: "\n").map(String.init) == expected, "\(run.errors)")
        let clients = try await server.get("/v1/network").json?["untrusting"]?.array ?? []
        #expect(clients.count == 1 && clients.first?["alert"]?.string == "grpc", "\(clients)")
        try await #expect(server.command("doctor").output.contains("by gRPC"))
        service.signal(SIGKILL)
        _ = try await service.ending()
        let away = try await Command.run("/usr/bin/env", arguments, environment: environment)
        #expect(away.output.contains("unary UNAVAILABLE") && away.output.contains("both UNAVAILABLE"), "\(away.output)")
        try await #expect(server.operations().isEmpty)
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }
}
