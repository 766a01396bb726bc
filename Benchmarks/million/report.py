"""The section of RESULTS.md, made from the measurements."""

import re

BEGIN, END = "<!-- a million entries: begin -->", "<!-- a million entries: end -->"
PHASES = [
    ("quiet", "quiet"),
    ("storing", "storing, eight connections at once"),
    ("vacuum", "`storage-cleanup --vacuum`"),
    ("eviction", "evicting after a start with a lowered limit"),
    ("limit", "storing at the limit, evicting"),
    ("aggressive", "`storage-cleanup --aggressive`"),
]


def number(n):
    return f"{n:,.0f}"


def span(seconds):
    return "–" if seconds is None else f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def milliseconds(value):
    return "–" if value is None else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def per_entry(run):
    return (run["start"]["memory"] - run["empty"]) / run["entries"]


def knows(run):
    """nginx loads its index only a minute after its start: before that its memory use means nothing."""
    return run["cache"] != "nginx"


def main_table(found):
    rows = [
        ("stored through the proxy, 64 connections", "", lambda r: f"{number(r['fill']['rate'])}/s"),
        ("… in its first part and its last", "", lambda r: f"{number(r['fill']['first'])}/s, {number(r['fill']['last'])}/s"),
        ("CPU for each stored", "", lambda r: f"{r['fill']['cpu']:.2f} ms"),
        ("disk for each entry (bodies: 3.0 KB)", "", lambda r: f"{number(r['disk'] / r['entries'])} bytes"),
        ("exec to ready", "", lambda r: span(r["start"]["ready"])),
        ("exec to the last byte of the first hit", "≤ 1 s", lambda r: span(r["start"]["first"])),
        ("the same after SIGKILL", "≤ 1 s", lambda r: span(r.get("killed", {}).get("first"))),
        ("… and to the first entry stored again", "", lambda r: span(r.get("killed", {}).get("stores"))),
        ("memory after a thousand hits", "", lambda r: f"{r['start']['memory'] / 1e6:.0f} MB" if knows(r) else "–"),
        (
            "… beyond that of an empty cache, for each entry",
            "≤ 100 bytes",
            lambda r: f"{max(0, per_entry(r)):.0f} bytes" if knows(r) else "–",
        ),
        ("evicted", "", lambda r: number(r["eviction"]["gone"]) if r.get("eviction") else "–"),
        ("CPU for each evicted", "constant", lambda r: f"{r['eviction']['cpu']:.0f} µs" if r.get("eviction") else "–"),
    ]
    yield "| | target | " + " | ".join(f"{r['cache']}, {number(r['entries'])}" for r in found) + " |"
    yield "| --- | --- |" + " ---: |" * len(found)
    for title, target, value in rows:
        yield f"| {title} | {target} | " + " | ".join(value(r) for r in found) + " |"


def latency_table(found):
    yield "| | while | hot p50 | hot p99 | worst | control p99 | cold p50 | cold p99 | hot p99 ÷ quiet | control ÷ quiet | hits | load |"
    yield "| --- | --- |" + " ---: |" * 10
    for run in found:
        for name, title in PHASES:
            phase = run.get(name)
            seen = phase if not phase or name != "limit" else phase["evicting"]
            if not seen or not seen["hot"]["hits"]:
                continue
            hot, cold, control = (seen[probe] for probe in ("hot", "cold", "control"))
            ratios = [f"{seen[probe]['p99'] / run['quiet'][probe]['p99']:.1f} ×" for probe in ("hot", "control")]
            times = [hot["p50"], hot["p99"], hot["worst"], control["p99"], cold["p50"], cold["p99"]]
            columns = [*map(milliseconds, times), *ratios, number(hot["hits"] + cold["hits"]), f"{phase['load']:.0f}"]
            yield f"| {run['cache']}, {number(run['entries'])} | {title} | " + " | ".join(columns) + " |"


def section(found, described):
    loads = [phase["load"] for run in found for phase in run.values() if isinstance(phase, dict) and "load" in phase]
    facts = dict(described)
    yield BEGIN
    yield "## A million entries"
    yield ""
    yield (
        f"`make bench-million` ([README.md](README.md) says how it measures): {facts['machine']}; {facts['date']};\n"
        f"Rockpool {facts['Rockpool']}; {facts['nginx']}; Squid {facts['Squid']}."
    )
    yield (
        f"The load average was {min(loads):.0f} to {max(loads):.0f} on two cores, of which this run made about two"
        + ("; others were at work, so that latencies are to be read beside the control's." if max(loads) > 4 else ".")
    )
    yield ""
    yield from main_table(found)
    yield ""
    yield (
        "Latencies of hits in milliseconds, from sent to the last byte; the target for hot hits while entries are evicted is "
        "p99 ≤ 2 × quiet:"
    )
    yield ""
    yield from latency_table(found)
    yield ""
    yield END


def publish(path, found, described):
    with open(path) as file:
        text = file.read()
    found = sorted(found, key=lambda run: (run["cache"] != "Rockpool", run["cache"], run["entries"]))
    lines = "\n".join(section(found, described))
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.S)
    text = pattern.sub(lambda _: lines, text) if pattern.search(text) else text.rstrip() + "\n\n" + lines + "\n"
    with open(path, "w") as file:
        file.write(text)
