"""The load: wrk, or h2load for HTTP/2, with 64 connections, the same eight request headers for every proxy, and its counters."""

import os
import re
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
{method}
{generator}
function done(summary, latency, requests)
    local errors = summary.errors
    io.write(string.format("RESULT %d %d %d %.0f %.0f %d\\n", summary.requests, summary.bytes, summary.duration,
        latency:percentile(50), latency:percentile(99),
        errors.connect + errors.read + errors.write + errors.timeout + errors.status))
end
"""

# The round's number begins the ids, so that none is used in two rounds.
GENERATED = """
local count, start = 0, {round} * 100000000
local fields = {{}}
function request()
    count = count + 1
    local id = start + count
    for name, value in pairs(wrk.headers) do fields[name] = value end
    {generated}
    return wrk.format(nil, wrk.path .. {suffix}, fields)
end
"""

GENERATED_FIELDS = {
    "ids": """fields["traceparent"] = string.format("00-%032x-%016x-01", id * 7919, id)
    fields["X-Request-Id"] = string.format("%08x-7c1e-4d53-9a2f-%012x", id, id)""",
    "users": """fields["Authorization"] = "Bearer user" .. (count % 1000)""",
    "keys": """fields["Idempotency-Key"] = "k-" .. id""",
}


@dataclass(frozen=True)
class Load:
    """The counters of one round."""

    requests: int
    bytes: int
    seconds: float
    p50: float  # milliseconds
    p99: float
    p999: float  # 0 if it is not measured
    cpu: float  # seconds of the load itself


def request_target(proxy, workload, path):
    """The port, the target and the Host of a request to `proxy`."""
    if workload.forward:
        authority = f"127.0.0.1:{proxy.origin.port}"
        return proxy.forward, f"http://{authority}{path}", authority
    port = proxy.away if workload.is_stale else proxy.gateway if workload.protocol == "http" else proxy.secure
    port = {"tls": proxy.from_tls, "h2": proxy.from_h2, "items": proxy.items}.get(workload.upstream, port)
    return port, path, f"127.0.0.1:{port}"


def request_fields(workload, host, tag=None):
    """The fields of each request; `tag` is the ETag of the stored response, for a conditional workload."""
    fields = {"Host": host, **HEADERS, **workload.fields}
    return {**fields, "If-None-Match": tag} if tag and workload.conditional else fields


def generator(workload, number):
    """The part of wrk's script that makes each request; nothing if all are equal."""
    if not workload.distinct and not workload.generated:
        return ""
    generated = "\n    ".join(GENERATED_FIELDS[kind] for kind in workload.generated)
    return GENERATED.format(round=number + 2, generated=generated, suffix="count" if workload.distinct else '""')


def run(proxy, workload, path, seconds, core, folder, tag=None, number=0):
    """Runs one round of the load; every response must be a 2xx or a 304."""
    port, target, host = request_target(proxy, workload, path)
    fields = request_fields(workload, host, tag)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    load = h2load if workload.protocol == "h2" else wrk
    scheme = "http" if workload.protocol == "http" else "https"
    counted = load(f"{scheme}://127.0.0.1:{port}", target, fields, workload, seconds, core, folder, number)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    requests, size, microseconds, p50, p99, errors = counted
    if errors or not requests:
        raise BenchmarkError(f"{proxy.name}, {workload.name}: {errors} of {requests} requests failed")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Load(requests, size, microseconds / 1e6, p50 / 1000, p99 / 1000, 0, cpu)


def wrk(origin, target, fields, workload, seconds, core, folder, number):
    """The counters of one run of wrk: requests, bytes, microseconds, p50 and p99 in microseconds, errors."""
    headers = ", ".join(f"""["{name}"] = '{value}'""" for name, value in fields.items())
    script = os.path.join(folder, "load.lua")
    with open(script, "w") as file:
        method = f"wrk.method = 'POST'; wrk.body = '{workload.body}'" if workload.body else ""
        file.write(SCRIPT.format(headers=headers, path=target, method=method, generator=generator(workload, number)))
    command = ["taskset", "-c", str(core), "wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", script, f"{origin}/"]
    output = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds + 60)
    found = [line.split()[1:] for line in output.stdout.splitlines() if line.startswith("RESULT ")]
    if not found:
        raise BenchmarkError(f"wrk counted nothing at {origin}: {output.stderr.strip() or output.stdout.strip()}")
    return tuple(map(int, found[0]))


def h2load(origin, target, fields, _workload, seconds, core, folder, _number):
    """The same of one run of h2load: 16 connections with four streams each."""
    log = os.path.join(folder, "h2load.log")
    command = [*h2load_command(fields, core, log), f"-c{CONNECTIONS // 4}", "-m4", f"-D{seconds}", f"{origin}{target}"]
    output = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds + 60)
    done, size, failed = counters(output.stdout, output.stderr, origin)
    p50, p99, _ = percentiles(times(log))
    return done, size, int(seconds * 1e6), p50 * 1000, p99 * 1000, failed


def h2load_command(fields, core, log):
    if os.path.exists(log):
        os.unlink(log)  # h2load appends.
    headers = [word for name, value in fields.items() if name != "Host" for word in ("-H", f"{name.lower()}: {value}")]
    return ["taskset", "-c", str(core), "h2load", "-t1", f"--log-file={log}", *headers]


def counters(output, errors, name):
    """What h2load says: requests that ended, bytes, failures."""
    summary = re.search(r"requests: \d+ total, \d+ started, (\d+) done, (\d+) succeeded", output)
    traffic = re.search(r"traffic: .*?\((\d+)\) total", output)
    if not summary or not traffic:
        raise BenchmarkError(f"h2load counted nothing at {name}: {errors.strip() or output.strip()}")
    done, succeeded = map(int, summary.groups())
    return done, int(traffic.group(1)), done - succeeded


def times(log):
    """The times of all requests in a log of h2load, in milliseconds."""
    with open(log) as file:
        return [int(line.split()[2]) / 1000 for line in file if line.strip()]


def percentiles(values):
    """p50, p99 and p99.9; zeros without values."""
    values = sorted(values)
    return tuple(values[min(len(values) - 1, int(len(values) * share))] if values else 0 for share in (0.5, 0.99, 0.999))


def at_rate(proxy, workload, rate, seconds, core, folder, tag=None):
    """p50, p99 and p99.9 in milliseconds at a fixed rate of requests a second."""
    port, target, host = request_target(proxy, workload, workload.path)
    scheme = "http" if workload.protocol == "http" else "https"
    log = os.path.join(folder, "rate.log")
    clients = CONNECTIONS // 4
    options = [f"-c{clients}", f"-D{seconds}", f"--rps={max(1, round(rate / clients))}"] + (
        ["-m4"] if workload.protocol == "h2" else ["--h1"]
    )
    command = h2load_command(request_fields(workload, host, tag), core, log) + options + [f"{scheme}://127.0.0.1:{port}{target}"]
    if workload.body:
        with open(os.path.join(folder, "body"), "w") as file:
            file.write(workload.body)
        command += ["-d", file.name]
    output = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds + 60)
    _, _, failed = counters(output.stdout, output.stderr, proxy.name)
    if failed:
        raise BenchmarkError(f"{proxy.name}, {workload.name}: {failed} requests failed")
    return percentiles(times(log))
