"""Writes RESULTS.md: the tables, and the section written by hand, which a new run preserves."""

import os
import re

import workloads

BEGIN, END = "<!-- kept by hand: begin -->", "<!-- kept by hand: end -->"
BY_HAND = f"{BEGIN}\n## What remains, and why\n\nNothing has been written here yet.\n{END}"
DISTURBED = 0.05  # of both cores, used by other processes

NAMES = {"rockpool": "Rockpool", "nginx": "nginx", "squid": "Squid", "varnish": "Varnish"}
MEASURES = {"cpu": "CPU per request", "rate": "throughput", "p99": "p99 latency"}


def table(header, rows):
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def measurements(results):
    """One table per workload."""
    parts = []
    for name in results.workloads():
        rows = []
        for proxy in results.proxies(name):
            middle = {measure: results.middle(name, proxy, measure) for measure in ("cpu", "rate", "megabytes", "p50", "p99", "core")}
            rows.append(
                [
                    NAMES[proxy],
                    f"{middle['cpu']:.1f}",
                    f"{middle['rate']:,.0f}",
                    f"{middle['megabytes']:,.1f}",
                    f"{middle['p50']:.2f}",
                    f"{middle['p99']:.2f}",
                    f"{middle['core']:.0%}",
                ]
            )
        header = [f"{name}: {workloads.ALL[name].title}", "CPU, µs/request", "requests/s", "MB/s", "p50, ms", "p99, ms", "core used"]
        parts.append(table(header, rows))
        if name in results.stored:
            shares = ", ".join(f"{NAMES[proxy]} {share:.0%}" for proxy, share in results.stored[name].items())
            parts.append(f"Found stored afterwards, of a sample of the URLs: {shares}.")
    return "\n\n".join(parts)


def measures_of(workload):
    """Throughput is relevant where bytes are moved, latency only where a target names it."""
    return ["cpu"] + [measure for measure in ("rate", "p99") if any(target.measure == measure for target in workload.targets)]


def ratios(results):
    """Rockpool's value divided by each peer's; a row without a target is for information."""
    rows = []
    for name in results.workloads():
        workload = workloads.ALL[name]
        peers = [proxy for proxy in results.proxies(name) if proxy != "rockpool"]
        for measure in measures_of(workload):
            for peer in peers:
                ratio = results.ratio(name, peer, measure)
                [target] = [each for each in workload.targets if (each.measure, each.peer) == (measure, peer)] or [None]
                verdict = "" if target is None else "**met**" if target.is_met(ratio.middle) else "not met"
                rows.append(
                    [
                        workload.title,
                        MEASURES[measure],
                        NAMES[peer],
                        f"{ratio.middle:.2f}",
                        f"{ratio.low:.2f}–{ratio.high:.2f}",
                        target or "",
                        verdict,
                    ]
                )
    return table(["workload", "measure", "peer", "Rockpool ÷ peer", "over the rounds", "target", ""], rows)


def half_load(results):
    """The times of hits at half the rate that the slower one of the two reaches."""
    rows = []
    for name, by_proxy in results.half.items():
        ours, theirs = by_proxy["rockpool"], by_proxy["nginx"]
        rows.append([workloads.ALL[name].title, *(f"{our:.2f} / {their:.2f}" for our, their in zip(ours, theirs, strict=True))])
    for name, samples in results.samples.items():
        if workloads.ALL[name].expected == "mix":
            middle = {proxy: [results.middle(name, proxy, measure) for measure in ("p50", "p99", "p999")] for proxy in samples}
            pairs = zip(middle["rockpool"], middle.get("nginx", [0] * 3), strict=True)
            rows.append([workloads.ALL[name].title, *(f"{our:.2f} / {their:.2f}" for our, their in pairs)])
    return table(["ms: Rockpool / nginx", "p50", "p99", "p99.9"], rows)


def kept_by_hand(path):
    """The text from the marker to the end of the file: other programs write the sections after it."""
    if not os.path.exists(path):
        return BY_HAND
    with open(path) as file:
        found = re.search(re.escape(BEGIN) + ".*" + re.escape(END) + ".*", file.read(), re.DOTALL)
    return found.group(0).rstrip() if found else BY_HAND


def document(results, facts, command, chart, by_hand):
    middle, worst = results.others()
    state = f"Others used {middle:.0%} of the two cores in the median round, {worst:.0%} in the worst"
    if middle > DISTURBED or worst > 4 * DISTURBED:
        state = f"**Disturbed run.** {state}: the ratios of CPU hold, those of throughput and latency hardly, times not at all"
    return f"""# Benchmarks: Rockpool and its peers

Written by `Benchmarks/peers/run`; [README.md](README.md) says how it measures. {state}.

{table(["", ""], facts + [("command", f"`{command}`")]).replace("---:", "---")}

## Ratios

Rockpool's value over the peer's in the same round; the median over the rounds, with the least and the greatest.
Less is better, except for throughput. Targets are those of the design, §7.

![Rockpool over its peers]({chart})

{ratios(results)}

## At half load

Every proxy gets half the rate that the slower one of Rockpool and nginx reaches; the mix has a fixed rate.

{half_load(results)}

## Measurements

Medians over the rounds. CPU is user and system time of the proxy's whole process tree.

{measurements(results)}

{by_hand}
"""
