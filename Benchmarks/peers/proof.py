"""Checks that every round measured the workload its name states; a benchmark without such checks would be misleading."""

import dataclasses
import hashlib
import http.client
import ssl
import subprocess
import time

import load
from servers import BenchmarkError


def fetch(proxy, workload, path, tag=None):
    """The status, headers and body of one request, sent as wrk sends it."""
    port, target, host = load.request_target(proxy, workload, path)
    if workload.protocol == "h2":
        return fetch_h2(f"https://127.0.0.1:{port}{target}", load.request_fields(workload, host, tag))
    if workload.protocol == "tls":
        # The certificate is not what is measured.
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=ssl._create_unverified_context())
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.putrequest(workload.method, target, skip_host=True, skip_accept_encoding=True)
        for name, value in load.request_fields(workload, host, tag).items():
            connection.putheader(name, value)
        if workload.body:
            connection.putheader("Content-Length", str(len(workload.body)))
        connection.endheaders(workload.body.encode() or None)
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def fetch_h2(url, fields):
    """The same over HTTP/2, by curl."""
    words = [word for name, value in fields.items() if name != "Host" for word in ("-H", f"{name}: {value}")]
    answer = subprocess.run(["curl", "-sk", "--http2", "-i", *words, url], capture_output=True, timeout=10, check=True).stdout
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    if not status.startswith("HTTP/2 "):
        raise BenchmarkError(f"{url}: {status}, not HTTP/2")
    headers = http.client.HTTPMessage()
    for line in lines:
        name, _, value = line.partition(": ")
        headers[name] = value
    return int(status.split()[1]), headers, body


def check(proxy, workload, path, digest, hit, tag=None):
    """Checks one response: the origin's body byte for byte, and a hit or miss as `hit` states (None: either)."""
    status, headers, body = fetch(proxy, workload, path, tag)
    if workload.expected == "validated" and proxy.name == "rockpool" and hit is False and "fwd-status=304" not in headers["Cache-Status"]:
        raise BenchmarkError(f"{proxy.name}, {workload.name}: not validated, {headers['Cache-Status']!r}")
    if status not in (200, 204, 206, 304) or hashlib.sha256(body).hexdigest() != digest:
        raise BenchmarkError(f"{proxy.name}, {workload.name}: {status} with {len(body)} bytes, not the origin's answer")
    if hit is not None and proxy.is_hit(headers) != hit:
        says = headers.get("Cache-Status") or headers.get("X-Cache")
        raise BenchmarkError(f"{proxy.name}, {workload.name}: supposed to be a {'hit' if hit else 'miss'}, but it says {says!r}")


def before(proxy, workload, digest):
    """Fills the cache for hit workloads, and checks that the second response is as expected. Returns the ETag of the stored response."""
    if workload.expected == "store":
        return None
    if workload.is_stale:
        leave(proxy, workload)
    whole = dataclasses.replace(workload, fields={name: value for name, value in workload.fields.items() if name != "Range"})
    tag = fetch(proxy, whole, workload.path)[1].get("ETag")
    check(proxy, workload, workload.path, digest, None, tag)
    check(proxy, workload, workload.path, digest, workload.expected in ("hit", "mix"), tag)
    return tag


def leave(proxy, workload):
    """Stops the origin of stale responses once one is stored and stale."""
    if proxy.leaving.server.process.poll() is None:
        fetch(proxy, workload, workload.path)
        time.sleep(2)
        proxy.leaving.server.stop()
        time.sleep(0.5)
        fetch(proxy, workload, workload.path)


def after(proxy, workload, path, counted, reached, digest, tag=None, reaching=None):
    """Checks the number of requests that reached the origin, by its own count, in a round of `counted` requests, of which `reaching` had to
    in a mix."""
    if reaching is not None:
        if not reaching * 0.98 <= reached <= reaching * 1.02 + 10:
            raise BenchmarkError(f"{proxy.name}, {workload.name}: {reached} requests reached the origin, not {reaching}")
        return
    is_hit = workload.expected == "hit"
    # One request in a thousand changes no result, and on busy machines Squid has fetched a fresh entry again.
    strays = max(1, counted // 1000)
    if is_hit and reached > strays or not is_hit and reached < counted:
        raise BenchmarkError(f"{proxy.name}, {workload.name}: {reached} of {counted} requests reached the origin")
    if not workload.distinct:
        check(proxy, workload, path, digest, is_hit, tag)


def stored_share(proxy, workload, path, counted):
    """The share of hits in a sample of the URLs requested in a round."""
    sample = [counted * step // 25 for step in range(1, 25)]
    hits = [proxy.is_hit(fetch(proxy, workload, f"{path}{number}")[1]) for number in sample if number]
    return sum(hits) / len(hits)
