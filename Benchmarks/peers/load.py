"""The load: wrk with 64 connections, the same eight request headers for every proxy, and its counters."""

import os
import resource
import subprocess
from dataclasses import dataclass

from servers import BenchmarkError

CONNECTIONS = 64
HEADERS = {
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Accept": "application/json, text/plain, */*",
    "Accept-Language": "en-GB,en;q=0.8,de;q=0.5",
    "Accept-Encoding": "gzip, deflate",
    "Referer": "http://app.example/notes",
    "Sec-Fetch-Mode": "cors",
    "Sec-Fetch-Dest": "empty",
}  # With Host: eight.

SCRIPT = """
wrk.headers = {{ {headers} }}
wrk.path = "{path}"
{numbered}
function done(summary, latency, requests)
    local errors = summary.errors
    io.write(string.format("RESULT %d %d %d %.0f %.0f %d\\n", summary.requests, summary.bytes, summary.duration,
        latency:percentile(50), latency:percentile(99),
        errors.connect + errors.read + errors.write + errors.timeout + errors.status))
end
"""

NUMBERED = """
local count = 0
function request()
    count = count + 1
    return wrk.format(nil, wrk.path .. count)
end
"""


@dataclass(frozen=True)
class Load:
    """The counters of wrk for one round."""

    requests: int
    bytes: int
    seconds: float
    p50: float  # milliseconds
    p99: float
    cpu: float  # seconds of wrk itself


def request_target(proxy, workload, path):
    """The port, the target and the Host of a request to `proxy`."""
    if workload.forward:
        authority = f"127.0.0.1:{proxy.origin.port}"
        return proxy.forward, f"http://{authority}{path}", authority
    return proxy.gateway, path, f"127.0.0.1:{proxy.gateway}"


def request_fields(workload, host, tag=None):
    """The fields of each request; `tag` is the ETag of the stored response, for a conditional workload."""
    fields = {"Host": host, **HEADERS, **workload.fields}
    return {**fields, "If-None-Match": tag} if tag and workload.conditional else fields


def run(proxy, workload, path, seconds, core, folder, tag=None):
    """Runs one round of wrk; every response must be a 2xx or a 304."""
    port, target, host = request_target(proxy, workload, path)
    fields = request_fields(workload, host, tag)
    headers = ", ".join(f"""["{name}"] = '{value}'""" for name, value in fields.items())
    script = os.path.join(folder, "load.lua")
    with open(script, "w") as file:
        file.write(SCRIPT.format(headers=headers, path=target, numbered=NUMBERED if workload.distinct else ""))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = ["taskset", "-c", str(core), "wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", script, f"http://127.0.0.1:{port}/"]
    output = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds + 60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = [line.split()[1:] for line in output.stdout.splitlines() if line.startswith("RESULT ")]
    if not found:
        raise BenchmarkError(f"wrk counted nothing at {proxy.name}: {output.stderr.strip() or output.stdout.strip()}")
    requests, size, microseconds, p50, p99, errors = map(int, found[0])
    if errors or not requests:
        raise BenchmarkError(f"{proxy.name}, {workload.name}: {errors} of {requests} requests failed")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Load(requests, size, microseconds / 1e6, p50 / 1000, p99 / 1000, cpu)
