"""Makes calls of every kind and prints a line for each: grpc_client.py PORT ROOTS|- [KIND …]."""

import queue
import sys
import threading
import time

import grpc

OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.keepalive_time_ms", 500),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_time_between_pings_ms", 500),
]
if sys.argv[2] == "-":
    channel = grpc.insecure_channel("localhost:" + sys.argv[1], OPTIONS)
else:
    channel = grpc.secure_channel("localhost:" + sys.argv[1], grpc.ssl_channel_credentials(open(sys.argv[2], "rb").read()), OPTIONS)
ask, down = channel.unary_unary("/pool/Unary"), channel.unary_stream("/pool/Down")
up, both = channel.stream_unary("/pool/Up"), channel.stream_stream("/pool/Both")


def chosen(metadata, *names):
    found = dict((item.key, item.value) for item in metadata)
    return [found.get(name) for name in names]


class Talk:
    """A stream in both directions, of which one side says something, then the other."""

    def __init__(self, **options):
        self.asked = queue.Queue()
        self.call = both(iter(self.asked.get, None), **options)

    def turn(self, text):
        self.asked.put(text)
        return next(self.call)

    def end(self):
        self.asked.put(None)
        return list(self.call)


def unary():
    return ask(b"a", timeout=10), ask.future(b"b", timeout=10).result()


def server_streaming():
    return [len(one) for one in down(b"5 1000", timeout=10)]


def client_streaming():
    return up(iter([b"a", b"bc"]), timeout=10)


def streaming_in_turns():
    talk = Talk(timeout=10)
    return [talk.turn(b"%d" % number) for number in range(20)] + talk.end()


def error():
    try:
        return ask(b"error", timeout=10)
    except grpc.RpcError as failed:
        return failed.code().name, failed.details(), chosen(failed.trailing_metadata(), "x-why")


def error_within_a_stream():
    talk = Talk(timeout=10)
    try:
        return talk.turn(b"a"), talk.turn(b"fail")
    except grpc.RpcError as failed:
        return failed.code().name, failed.details()


def unknown_method():
    return channel.unary_unary("/pool/None")(b"", timeout=10)


def metadata():
    sent = (("x-asked", "tide, ebb"), ("x-asked-bin", bytes(range(256))))
    reply, call = ask.with_call(b"metadata", metadata=sent, timeout=10)
    head = chosen(call.initial_metadata(), "x-head", "x-head-bin")
    return reply, head, chosen(call.trailing_metadata(), "x-trail", "x-trail-bin")


def deadline():
    return ask(b"sleep", timeout=0.5)


def seen(*expected):
    """What the server knows of calls that were ended by their clients."""
    found = set()
    for _ in range(400):
        found |= set(ask(b"cancelled", timeout=10).decode().split(",")) - {""}
        if found >= set(expected):
            break
        time.sleep(0.05)
    return sorted(found)


def cancel():
    talk = Talk()
    first = talk.turn(b"a")
    talk.call.cancel()
    return first, talk.call.code().name, seen("deadline", "stream")


def a_stream_was_cancelled():
    return seen("stream")


def large():
    sizes = [len(ask(b"x" * 20_000_000, timeout=60)), up(iter([b"y" * 300_000] * 40), timeout=60)]
    total = 0
    for number, one in enumerate(down(b"200 100000", timeout=60)):
        assert one.startswith(b"%08d" % number)
        total += len(one)
        # The stream is full meanwhile, and other calls go on.
        if number == 20:
            time.sleep(1)
            sizes.append(len(ask(b"meanwhile", timeout=10)))
    return sizes, total


def compression():
    reply = channel.unary_unary("/pool/Unary")(b"compressed", timeout=10, compression=grpc.Compression.Gzip)
    return len(reply), len(ask(b"z" * 500_000, timeout=10, compression=grpc.Compression.Deflate))


def many():
    calls = [ask.future(b"%d" % number, timeout=60) for number in range(300)]
    talks = [Talk(timeout=60) for _ in range(40)]
    turns = sum(talk.turn(b"a") == b"a?" for talk in talks) + sum(talk.turn(b"b") == b"b?" for talk in talks)
    return sum(call.result() == b"%d!" % number for number, call in enumerate(calls)), turns, sum(len(talk.end()) for talk in talks)


def pings():
    """A stream on which nothing passes but pings."""
    talk = Talk()
    first = talk.turn(b"a")
    time.sleep(3)
    return first, talk.turn(b"b"), talk.end()


def server_that_leaves():
    talk = Talk(timeout=30)
    before = int(ask(b"generation", timeout=10))
    first = talk.turn(b"a")
    ask(b"leave", timeout=10)
    now = before
    for _ in range(200):
        try:
            now = int(ask(b"generation", timeout=10, wait_for_ready=True))
        except grpc.RpcError:
            # It has still taken the call, and leaves.
            pass
        if now > before:
            break
        time.sleep(0.05)
    return first, now - before, talk.turn(b"b"), talk.end()


def left_alone():
    """Prints the first answer of a stream, and how it ends; nobody ends it here."""
    talk = Talk()
    print("first", talk.turn(b"a"), flush=True)
    return talk.turn(b"b") if sys.stdin.readline() else next(talk.call)


KINDS = [
    unary, server_streaming, client_streaming, streaming_in_turns, error, error_within_a_stream, unknown_method, metadata,
    deadline, cancel, large, compression, many, pings, server_that_leaves,
]  # fmt: skip
named = {kind.__name__: kind for kind in [*KINDS, left_alone, a_stream_was_cancelled]}
for kind in [named[name] for name in sys.argv[3:]] or KINDS:
    result = queue.Queue()

    def run(kind=kind, result=result):
        try:
            result.put(kind())
        except grpc.RpcError as failed:
            result.put(failed.code().name)
        except Exception as failed:
            result.put(repr(failed))

    threading.Thread(target=run, daemon=True).start()
    try:
        print(kind.__name__, result.get(timeout=90), flush=True)
    except queue.Empty:
        print(kind.__name__, "hangs", flush=True)
