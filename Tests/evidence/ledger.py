"""What has been run so far: for each target and each state of its code the runs, their seeds and what they found (ledger.json)."""

import fcntl
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

# States of the code that are kept for each target: the present one, and those before it.
KEPT = 3


@dataclass
class Outcome:
    """One run of a target. `seeds`: the first and the last; None if none is spent."""

    commit: str
    date: str
    command: str
    runs: int
    seconds: float
    seeds: tuple[int, int] | None
    findings: list[str] = field(default_factory=list)


@dataclass
class Entry:
    """The sum of all runs of a target on one state of its code. `commit`, `date` and `command` are those of the last one."""

    target: str
    code: str
    commit: str = ""
    date: str = ""
    command: str = ""
    seeds: list[list[int]] = field(default_factory=list)
    runs: int = 0
    times: int = 0
    longest: int = 0
    seconds: float = 0
    findings: list[str] = field(default_factory=list)

    def add(self, outcome):
        self.commit, self.date, self.command = outcome.commit, outcome.date, outcome.command
        self.seeds = joined([*self.seeds, outcome.seeds] if outcome.seeds else self.seeds)
        self.runs += outcome.runs
        self.times += 1
        self.longest = max(self.longest, outcome.runs)
        self.seconds = round(self.seconds + outcome.seconds, 1)
        self.findings += [finding for finding in outcome.findings if finding not in self.findings]


def joined(ranges):
    """Sorted ranges of seeds, both ends included; those that touch or overlap are one."""
    result = []
    for first, last in sorted(map(tuple, ranges)):
        if result and first <= result[-1][1] + 1:
            result[-1][1] = max(result[-1][1], last)
        else:
            result.append([first, last])
    return result


class Ledger:
    """The entries, in the order in which they were begun."""

    def __init__(self, entries=()):
        self.entries = list(entries)

    @classmethod
    def read(cls, path):
        text = Path(path).read_text(encoding="utf-8") if Path(path).exists() else ""
        return cls(Entry(**entry) for entry in json.loads(text or "[]"))

    def write(self, path):
        """An entry a line, so that a change of one is a change of a line."""
        lines = ",\n".join(json.dumps(asdict(entry), ensure_ascii=False) for entry in sorted(self.entries, key=lambda entry: entry.target))
        Path(path).write_text(f"[\n{lines}\n]\n" if lines else "[]\n", encoding="utf-8")

    def entry(self, target, code):
        """The entry of this state of the code; None if it has never been run."""
        return next((entry for entry in self.entries if (entry.target, entry.code) == (target, code)), None)

    def runs(self, target, code):
        entry = self.entry(target, code)
        return entry.runs if entry else 0

    def earlier(self, target, code):
        """The last entry of another state of the code."""
        return next((entry for entry in reversed(self.entries) if entry.target == target and entry.code != code), None)

    def next_seed(self, target):
        """The seed after all that were spent, whatever the code was: a new state of it meets new seeds."""
        return 1 + max((last for entry in self.entries if entry.target == target for _, last in entry.seeds), default=0)

    def rate(self, target, otherwise):
        """Runs in a second, as measured last."""
        measured = [entry for entry in self.entries if entry.target == target and entry.runs and entry.seconds]
        return measured[-1].runs / measured[-1].seconds if measured else otherwise

    def add(self, target, code, outcome):
        """Adds a run; a changed code begins a new entry."""
        entry = self.entry(target, code)
        if entry is None:
            entry = Entry(target, code)
            self.entries.append(entry)
        entry.add(outcome)
        of_target = [other for other in self.entries if other.target == target]
        surplus = [other for other in of_target if other is not entry][: max(0, len(of_target) - KEPT)]
        self.entries = [other for other in self.entries if not any(other is one for one in surplus)]


def record(path, target, code, outcome):
    """Adds a run to the file, which another process may have changed in the meantime."""
    with open(path, "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ledger = Ledger.read(path)
        ledger.add(target, code, outcome)
        ledger.write(path)
    return ledger


def least_known(targets, ledger, codes):
    """Of the targets with a code in `codes` the one with the fewest runs against its goal; of equal ones the first."""
    known = [target for target in targets if target.name in codes]
    return min(known, key=lambda target: ledger.runs(target.name, codes[target.name]) / target.goal, default=None)
