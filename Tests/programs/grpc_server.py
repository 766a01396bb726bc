"""A gRPC server with a method for each kind of call: grpc_server.py PORT [CERTIFICATE, without .pem and .key]."""

import sys
import threading
import time
from concurrent import futures

import grpc

OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 400),
]
cancelled = []
servers = []


def unary(request, context):
    if request == b"error":
        context.set_trailing_metadata((("x-why", "gone"),))
        context.abort(grpc.StatusCode.NOT_FOUND, "no such shell: 100 % ébb")
    if request == b"sleep":
        context.add_callback(lambda: cancelled.append("deadline"))
        time.sleep(3)
    if request == b"cancelled":
        # Others are added meanwhile.
        return ",".join(sorted({cancelled.pop() for _ in range(len(cancelled))})).encode()
    if request == b"generation":
        return str(len(servers)).encode()
    if request == b"leave":
        threading.Thread(target=leave).start()
    if request == b"metadata":
        asked = dict(context.invocation_metadata())
        context.send_initial_metadata((("x-head", asked["x-asked"]), ("x-head-bin", asked["x-asked-bin"] + b"\x00\xff")))
    if request == b"compressed":
        context.set_compression(grpc.Compression.Gzip)
        return b"tide" * 100000
    context.set_trailing_metadata((("x-trail", "low"), ("x-trail-bin", b"\x01\xfe")))
    return request + b"!"


def down(request, context):
    count, size = (int(part) for part in request.split(b" "))
    for number in range(count):
        yield b"%08d" % number + b"x" * (size - 8)


def both(requests, context):
    ends = []
    context.add_callback(lambda: ends or cancelled.append("stream"))
    for request in requests:
        if request == b"fail":
            ends.append("failed")
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "low tide")
        yield request + b"?"
    ends.append("done")


HANDLERS = {
    "/pool/Unary": grpc.unary_unary_rpc_method_handler(unary),
    "/pool/Down": grpc.unary_stream_rpc_method_handler(down),
    "/pool/Up": grpc.stream_unary_rpc_method_handler(lambda requests, context: b"%d" % sum(len(one) for one in requests)),
    "/pool/Both": grpc.stream_stream_rpc_method_handler(both),
}


class Service(grpc.GenericRpcHandler):
    def service(self, details):
        return HANDLERS.get(details.method)


def serve():
    server = grpc.server(futures.ThreadPoolExecutor(64), options=OPTIONS)
    server.add_generic_rpc_handlers((Service(),))
    address = "127.0.0.1:" + sys.argv[1]
    if len(sys.argv) > 2:
        key, certificate = (open(sys.argv[2] + end, "rb").read() for end in (".key", ".pem"))
        server.add_secure_port(address, grpc.ssl_server_credentials([(key, certificate)]))
    else:
        server.add_insecure_port(address)
    servers.append(server)
    server.start()


def leave():
    """Says goodbye to its clients (GOAWAY); another server takes the port."""
    before = servers[-1]
    before.stop(20)
    serve()


serve()
while True:
    time.sleep(60)
