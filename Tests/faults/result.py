"""The result of a run, and the table for it."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

BEGIN, END = "<!-- faults: begin -->", "<!-- faults: end -->"


@dataclass
class Result:
    """`met` is None if the machine lacks a requirement; `measured` then names it."""

    goal: str
    target: str
    measured: str
    met: bool | None

    @property
    def word(self):
        return {True: "**met**", False: "not met", None: "skipped"}[self.met]


class Skip(Exception):
    """This machine lacks a requirement of the run."""


def row(name, result):
    date = time.strftime("%m-%d %H:%M", time.gmtime())
    cells = (f"`{name}`", result.goal, result.target, result.measured, result.word, f"{date}, {os.getloadavg()[0]:.1f}")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def publish(path, rows, order):
    """Writes `rows` (name → line) into the table in `path`, replacing the lines of the same runs."""
    text = Path(path).read_text()
    section = text[text.index(BEGIN) : text.index(END)] if BEGIN in text else ""
    kept = {line.split("`")[1]: line for line in section.splitlines() if line.startswith("| `")}
    kept |= {name: line for name, line in rows.items() if "| skipped |" not in line or name not in kept}
    lines = [
        BEGIN,
        "## Faults and load",
        "",
        "Written by `Tests/faults/run` (`make faults`, `make faults-all`, `make soak`), each line when that run last ended, in "
        "UTC, with the",
        "machine's load average over the last minute: two cores that proxy, origin, clients and whatever else ran share.",
        "",
        "| run | goal | target | measured |  | when, load |",
        "|---|---|---|---|---|---|",
    ]
    section = "\n".join(lines + [kept[name] for name in order if name in kept] + [END])
    if BEGIN in text:
        text = text[: text.index(BEGIN)] + section + text[text.index(END) + len(END) :]
    else:
        text = text.rstrip() + "\n\n" + section + "\n"
    Path(path).write_text(text)
