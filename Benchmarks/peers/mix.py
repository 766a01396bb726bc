"""A mix of requests over HTTP/2, at a fixed rate: 70 % hits with a bearer token, 10 % 304, 10 % misses, 5 % writes, 5 % large hits."""

import os
import resource
import subprocess
from dataclasses import dataclass, field

import load
import workloads
from servers import BenchmarkError

RATE = 2000  # requests a second of all parts


@dataclass(frozen=True)
class Part:
    name: str
    share: float
    path: str
    clients: int
    fields: dict = field(default_factory=dict)
    reaches_origin: bool = False


PARTS = (
    Part("hits", 0.7, "/hit/1k", 14, workloads.BEARER),
    Part("304", 0.1, "/hit/1k", 2, workloads.BEARER),
    Part("misses", 0.1, "/store/", 1, reaches_origin=True),
    Part("writes", 0.05, "/write/1", 1, {"Content-Type": "application/json"}, reaches_origin=True),
    Part("large", 0.05, "/hit/100k", 1),
)


def run(proxy, tag, etag, seconds, core, folder):
    """Runs all parts at once. Returns the counters of all, and how many requests had to reach the origin."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    running = [(part, *begin(part, proxy, tag, etag, seconds, core, folder)) for part in PARTS]
    times, size, reaching = [], 0, 0
    for part, process, log in running:
        output, errors = process.communicate(timeout=seconds + 60)
        done, traffic, failed = load.counters(output, errors, proxy.name)
        if failed or not done:
            raise BenchmarkError(f"{proxy.name}, mix, {part.name}: {failed} of {done} requests failed")
        times += load.times(log)
        size += traffic
        reaching += done if part.reaches_origin else 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return load.Load(len(times), size, seconds, *load.percentiles(times), cpu), reaching


def begin(part, proxy, tag, etag, seconds, core, folder):
    origin = f"https://127.0.0.1:{proxy.secure}"
    fields = {**load.HEADERS, **part.fields, **({"If-None-Match": etag} if part.name == "304" else {})}
    options = [f"-c{part.clients}", "-m4", f"-D{seconds}", f"--rps={RATE * part.share / part.clients:g}"]
    target = [origin + part.path]
    if part.name == "misses":
        urls = os.path.join(folder, "urls")
        with open(urls, "w") as file:
            file.writelines(f"{origin}{part.path}mix{tag}-{number}\n" for number in range(int(RATE * part.share * seconds * 2)))
        target = ["-i", urls]
    if part.name == "writes":
        note = os.path.join(folder, "note.json")
        with open(note, "w") as file:
            file.write('{"title": "a note", "body": "of some words"}')
        options += ["-d", note]
    log = os.path.join(folder, f"mix-{part.name}.log")
    command = load.h2load_command(fields, core, log) + options + target
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return process, log
