"""Writes RESULTS.md: a row for each workload, measure and peer. A run replaces its own rows; the others and all sections stay."""

import os
import re

import workloads

BEGIN, END = "<!-- kept by hand: begin -->", "<!-- kept by hand: end -->"
BY_HAND = f"{BEGIN}\n{END}"
HEADER = ["workload", "measure", "peer", "Rockpool", "the peer", "ratio", "over the rounds", "target", "", "run"]
DISTURBED = 0.05  # of both cores, used by other processes

NAMES = {"rockpool": "Rockpool", "nginx": "nginx", "squid": "Squid", "varnish": "Varnish"}
MEASURES = {"cpu": "CPU per request", "rate": "throughput", "p99": "p99 latency"}
FORMS = {"cpu": "{:.1f} µs", "rate": "{:,.0f}/s", "p99": "{:.2f} ms"}


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


def ratios(results, run=""):
    """Rockpool's value beside each peer's, in rows by workload, measure and peer; a row without a target is for information."""
    rows = {}
    for name in results.workloads():
        workload = workloads.ALL[name]
        for measure in measures_of(workload):
            for peer in (proxy for proxy in results.proxies(name) if proxy != "rockpool"):
                ratio = results.ratio(name, peer, measure)
                [target] = [each for each in workload.targets if (each.measure, each.peer) == (measure, peer)] or [None]
                verdict = "" if target is None else "**met**" if target.is_met(ratio.middle) else "not met"
                values = [FORMS[measure].format(results.middle(name, proxy, measure)) for proxy in ("rockpool", peer)]
                spread = f"{ratio.low:.2f}–{ratio.high:.2f}"
                add(rows, name, MEASURES[measure], peer, [*values, f"{ratio.middle:.2f}", spread, target or "", verdict, run])
    for name, ours, theirs in half_load(results):
        values = [FORMS["p99"].format(value) for value in (ours, theirs)]
        add(rows, name, "p99 at half load", "nginx", [*values, f"{ours / theirs:.2f}", "", "", "", run])
    return rows


def add(rows, name, measure, peer, cells):
    key = (f"{workloads.ALL[name].title} (`{name}`)", measure, NAMES[peer])
    rows[key] = [*key, *cells]


def half_load(results):
    """The p99 of hits, in ms, at half the rate that the slower one of Rockpool and nginx reaches; of the mix at its fixed rate."""
    for name, by_proxy in results.half.items():
        yield name, by_proxy["rockpool"][1], by_proxy["nginx"][1]
    for name, samples in results.samples.items():
        if workloads.ALL[name].expected == "mix" and "nginx" in samples:
            yield name, results.middle(name, "rockpool", "p99"), results.middle(name, "nginx", "p99")


def kept_rows(path):
    """The rows of earlier runs in the file, as `ratios` has them."""
    if not os.path.exists(path):
        return {}
    with open(path) as file:
        before = file.read().partition(BEGIN)[0]
    lines = re.findall(r"(?m)^\| (.*\(`[\w-]+`\) \| .*) \|$", before)
    rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    return {tuple(row[:3]): row for row in rows if len(row) == len(HEADER)}


def workload_of(title):
    """The name in the first cell of a row."""
    return re.search(r"\(`([\w-]+)`\)", title).group(1)


def in_order(rows):
    """The rows in the order of the workloads, then of measures and peers."""
    names, measures = list(workloads.ALL), [*MEASURES.values(), "p99 at half load"]

    def place(key):
        name = workload_of(key[0])
        return (names.index(name) if name in names else len(names), measures.index(key[1]), list(NAMES.values()).index(key[2]))

    return [rows[key] for key in sorted(rows, key=place)]


def kept_by_hand(path):
    """The text from the marker to the end of the file: other programs write the sections after it."""
    if not os.path.exists(path):
        return BY_HAND
    with open(path) as file:
        found = re.search(re.escape(BEGIN) + ".*" + re.escape(END) + ".*", file.read(), re.DOTALL)
    return found.group(0).rstrip() if found else BY_HAND


def document(results, facts, command, chart, path):
    middle, worst = results.others()
    date, commit = dict(facts)["date"][:10], dict(facts)["Rockpool"].split(",")[0].removeprefix("commit ")
    is_disturbed = middle > DISTURBED or worst > 4 * DISTURBED
    run = f"{date}, {commit}" + (f", **disturbed**: others used {middle:.0%} of the cores" if is_disturbed else "")
    return page(kept_rows(path) | ratios(results, run), [*facts, ("command", f"`{command}`")], chart, kept_by_hand(path))


def page(rows, facts, chart, by_hand):
    return f"""# Results

Each figure with its command; [README.md](README.md) says how each measures, [HISTORY.md](HISTORY.md) what was tried and learnt. A ratio of
a disturbed run holds for CPU, hardly for throughput and latency.

## Beside its peers

`Benchmarks/peers/run --only NAME --output Benchmarks/RESULTS.md` (`make bench` for all) replaces the rows of the workloads that it
measures. Values are medians over the rounds; the ratio is taken within a round. Less is better, except for throughput. CPU is user and
system time of the proxy's whole process tree. The last run:

{table(["", ""], facts).replace("---:", "---")}

![Rockpool over its peers]({chart})

{table(HEADER, in_order(rows))}

{by_hand}
"""
