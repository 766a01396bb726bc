"""Prometheus' remote write over a line that comes and goes."""

import struct
import threading
import time

from place import found, free_ports, scene, shown


def snappy(data):
    """Returns the content of a block in snappy's format."""
    size = shift = place = 0
    while True:
        byte, place = data[place], place + 1
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    out = bytearray()
    while place < len(data):
        tag, place = data[place], place + 1
        kind, high = tag & 3, tag >> 2
        if kind == 0:
            if high >= 60:
                width = high - 59
                high, place = int.from_bytes(data[place : place + width], "little"), place + width
            out += data[place : place + high + 1]
            place += high + 1
            continue
        if kind == 1:
            length, offset = (high & 7) + 4, (high >> 3) << 8 | data[place]
            place += 1
        else:
            width = 2 if kind == 2 else 4
            length, offset = high + 1, int.from_bytes(data[place : place + width], "little")
            place += width
        for _ in range(length):
            out.append(out[-offset])
    assert len(out) == size
    return bytes(out)


def members(data):
    """The members of a message in protobuf: number and value."""
    place = 0

    def varint():
        nonlocal place
        value = shift = 0
        while True:
            byte = data[place]
            place += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while place < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        else:
            size = {1: 8, 5: 4}.get(tag & 7) or varint()
            yield tag >> 3, data[place : place + size]
            place += size


def samples(body):
    """Name, job and time of each sample of a request of remote write 1.0."""
    for number, series in members(snappy(body)):
        if number != 1:
            continue
        labels, found_samples = {}, []
        for kind, content in members(series):
            if kind == 1:
                pair = dict(members(content))
                labels[pair[1].decode()] = pair[2].decode()
            elif kind == 2:
                sample = dict(members(content))
                found_samples.append((sample[2], struct.unpack("<d", sample[1])[0] if 1 in sample else 0.0))
        yield from ((labels["__name__"], labels.get("job"), at) for at, _ in found_samples)


class Receiver:
    """Takes samples, and refuses one request in the middle, as a server does that has newer ones."""

    def __init__(self):
        self.got, self.refused, self.refuse, self.lock = [], [], 0, threading.Lock()

    def play(self, asked):
        if asked.path == "/metrics":
            return 200, {"Content-Type": "text/plain; version=0.0.4"}, "# TYPE tide gauge\ntide 1\n"
        if asked.method != "POST":
            return 200, {}, b""
        content = [one for one in samples(asked.body) if one[0] == "tide"]
        with self.lock:
            if self.refuse:
                self.refuse -= 1
                self.refused += content
                return 400, {"Content-Type": "text/plain"}, "out of order sample"
            self.got += content
        return 204, {}, b""


def prometheus_through(place, upstream, lengths=(2, 5, 1, 3)):
    """Runs Prometheus over a flapping line; returns the receiver and the writes that stay open."""
    receiver = Receiver()
    site = place.site(receiver.play)
    place.begin(site.port, upstream)
    (own,) = free_ports(1)
    place.write(
        "prometheus.yml",
        f"""
global: {{ scrape_interval: 500ms, scrape_timeout: 400ms }}
scrape_configs:
  - {{ job_name: tides, static_configs: [ {{ targets: ["127.0.0.1:{site.port}"] }} ] }}
remote_write:
  - url: {place.url}/api/v1/write
    remote_timeout: 5s
    queue_config:
      {{ max_shards: 1, max_samples_per_send: 20, batch_send_deadline: 500ms, min_backoff: 100ms, max_backoff: 500ms }}
    metadata_config: {{ send: false }}
""",
    )
    options = ["--config.file=prometheus.yml", "--storage.tsdb.path=tsdb", f"--web.listen-address=127.0.0.1:{own}"]
    place.start(found("prometheus"), *options, "--log.level=warn")
    place.eventually("the first samples", lambda: len(receiver.got) > 2, 40)
    for number, length in enumerate(lengths):
        place.away()
        time.sleep(length)
        if number == 1:
            receiver.refuse = 1
        place.back()
        before, since = len(receiver.got), time.monotonic()
        place.eventually("samples after the line's return", lambda before=before: len(receiver.got) > before, 15)
        print(f"  {length} s away, the next samples after {time.monotonic() - since:.1f} s")
        time.sleep(2)
    rest = place.settled()
    time.sleep(1)
    return receiver, rest


def judged(place, receiver):
    """Samples come every half second: none is missing but those that the receiver has refused."""
    with receiver.lock:
        times, refused = sorted(at for _, _, at in receiver.got), {at for _, _, at in receiver.refused}
    known = sorted({*times, *refused})
    gaps = [(later - at) / 1000 for at, later in zip(known, known[1:], strict=False) if later - at > 900]
    place.check(not gaps, f"missing samples: gaps of {gaps} s")
    # A request whose answer the cut line has lost comes again, which receivers of samples permit.
    print(f"  {len(times)} samples, {len(times) - len(set(times))} of them twice, {len(refused)} refused")


@scene("prometheus")
def prometheus(place):
    """Prometheus keeps its samples while the server is away, sends them afterwards, and one refusal ends nothing."""
    receiver, rest = prometheus_through(place, {})
    place.check(rest == [], f"nothing is queued: {shown(rest)}")
    judged(place, receiver)


@scene("prometheus")
def prometheus_queued(place):
    """With a line for its route, Rockpool keeps the samples, in their order; a refusal does not hold the later ones."""
    route = {"match": "POST /api/v1/write", "queue": "always", "offline_response": {"status": 204}}
    receiver, rest = prometheus_through(
        place, {"routes": [route], "queue": {"uncertain": "retry"}, "idempotency": {"max_processing": "1s"}}
    )
    place.check({row["state"] for row in rest} <= {"dead"}, f"only refusals stay open: {shown(rest)}")
    times = [at for _, _, at in receiver.got]
    firsts = list(dict.fromkeys(times))
    place.check(firsts == sorted(firsts), "samples come in their order")
    judged(place, receiver)


SCENES = [prometheus, prometheus_queued]
