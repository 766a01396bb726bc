"""What is run: each target with its goal, its command, and how many runs its output tells of."""

import math
import os
import re
from dataclasses import dataclass
from pathlib import Path

READING = ("Sources/RockpoolNetwork", "Sources/RockpoolEngine", "Sources/RockpoolCore/HTTP", "Sources/RockpoolCore/Caching")
OUTBOX = (
    "Sources/RockpoolCore/Outbox",
    "Sources/RockpoolEngine/Outbox",
    "Sources/RockpoolEngine/Replay",
    "Sources/RockpoolEngine/Write",
    "Sources/RockpoolStore/Data",
)
SESSIONS = (
    *OUTBOX,
    "Sources/RockpoolCore/ReadYourWrites",
    "Sources/RockpoolEngine/ReadYourWrites",
    "Sources/RockpoolEngine/Read",
    "Sources/RockpoolCore/Encoding",
)
STORE = (*OUTBOX, "Sources/RockpoolStore")
SIMULATED = ("Tests/RockpoolCoreTests/Simulation",)
TESTS = "{build} --testing-library swift-testing --filter"


@dataclass(frozen=True)
class Target:
    """Something that is run again and again with new seeds.

    `command` and `variables` take `{build}`, `{first}` (the first seed), `{count}` (how many), and `{seconds}` (how long).
    `done` finds the number of runs in the output; without a group it finds that the runs that were asked for took place.
    `build` is one of `binary`, `tests` and `fuzzer`. `least` is the shortest useful run in seconds, `rate` a guess of runs in a second
    until one was measured, and `each` the runs that one unit of `{count}` makes. With `spends` each unit has a seed of its own, else the
    whole run has one.

    The code is in `sources`, in the folders of the core that declare what the Swift files of `naming` name, and in the Python files of
    `harness` with what they import.
    """

    name: str
    what: str
    goal: int
    command: str
    done: str
    variables: tuple[tuple[str, str], ...] = ()
    build: str = "binary"
    least: int = 30
    rate: float = 1
    each: float = 1
    spends: bool = False
    sources: tuple[str, ...] = ()
    naming: tuple[str, ...] = ()
    harness: tuple[str, ...] = ()

    def request(self, build, first, seconds, rate):
        """The command for that many seconds, with its variables."""
        count = max(1, round(rate * seconds / self.each))
        values = {"build": build, "first": first, "count": count, "seconds": max(1, round(seconds))}
        variables = {name: value.format(**values) for name, value in self.variables}
        return Request(self, [word.format(**values) for word in self.command.split()], variables, first, count)


@dataclass(frozen=True)
class Request:
    """A command that is about to be run."""

    target: Target
    words: list[str]
    variables: dict[str, str]
    first: int
    count: int

    def __str__(self):
        return " ".join([*(f"{name}={value}" for name, value in self.variables.items()), *self.words])

    def judged(self, status, output):
        """The number of runs, the seeds that they spent, and what was found; None where something that the run needs is missing."""
        if re.search(r"(?m)^(?:\S+ +)?skipped:", output):
            return None
        output = re.sub(r"\x1b\[[0-9;]*m", "", output)
        found = re.search(self.target.done, output)
        runs = 0
        if found:
            runs = int(found[1].replace(",", "")) if found.groups() else self.count
        spent = math.ceil(runs / self.target.each) if self.target.spends else 1
        seeds = (self.first, self.first + spent - 1) if runs else None
        findings = [] if status == 0 and found else [f"{self}: {told(output) or f'ended with {status}'}"]
        return runs, seeds, findings


def told(output):
    """The line that says what was wrong, shortened: the first that says so in one of the words of the runs, else the last."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    wrong = [line for line in lines if re.search(r"not met|FAILS|FOUND SOMETHING|^seed \d+|recorded an issue|Error\b", line)]
    return (wrong or lines[-1:] or [""])[0][:300]


def fault(name, what, goal, done, **others):
    return Target(
        name=others.pop("called", name), what=what, goal=goal, command=f"Tests/faults/run {name} --binary {{build}}", done=done, **others
    )


FAULTS = [
    fault(
        "flips",
        "mutated live requests",
        1_000_000,
        r"R4: ([\d,]+) mutated requests",
        variables=(("FLIPS", "{count}"), ("FLIPS_FROM", "{first}")),
        rate=500,
        spends=True,
        sources=("Sources/RockpoolNetwork", "Sources/RockpoolCore/HTTP", "Sources/RockpoolEngine/Request"),
        harness=("Tests/faults/flips.py",),
    ),
    fault(
        "restart",
        "SIGKILLs while clients write",
        2_000,
        r"(\d+) SIGKILLs",
        called="kills",
        variables=(("RESTARTS", "{count}"), ("RESTARTS_FROM", "{first}")),
        rate=0.5,
        # Every other crash is a SIGSEGV.
        each=0.5,
        spends=True,
        sources=STORE,
        harness=("Tests/faults/crash.py",),
    ),
    fault(
        "power",
        "power cuts",
        2_000,
        r"([\d,]+) power cuts",
        variables=(("POWER", "{count}"), ("DISK_SEED", "{first}")),
        least=150,
        rate=1,
        # In each of 17 scenes three modes, and two modes after a failed sync.
        each=85,
        sources=STORE,
        harness=("Tests/faults/disk.py",),
    ),
    fault(
        "soak",
        "seconds of chaos",
        3 * 3_600,
        r"L2: (\d+) s",
        called="chaos",
        variables=(("SOAK_SECONDS", "{seconds}"), ("SOAK_SEED", "{first}")),
        least=60,
        sources=(*READING, "Sources/RockpoolStore"),
        harness=("Tests/faults/slow.py",),
    ),
    fault(
        "held",
        "seconds at 70 % of the peak",
        3_600,
        r"L1: (\d+) s",
        variables=(("HELD_SECONDS", "{seconds}"), ("HELD_SEED", "{first}")),
        least=60,
        sources=(*READING, "Sources/RockpoolStore/Cache"),
        harness=("Tests/faults/held.py",),
    ),
    fault(
        "histories",
        "requests of clients with and without credentials",
        100_000,
        r"R5: ([\d,]+) random requests",
        variables=(("HISTORY", "{count}"), ("HISTORY_SEED", "{first}")),
        rate=300,
        sources=(*READING, "Sources/RockpoolCore/Identity", "Sources/RockpoolStore/Cache"),
        harness=("Tests/faults/histories.py",),
    ),
    fault(
        "compound",
        "pairs of disk faults",
        1_000,
        r"([\d,]+) pairs",
        variables=(("COMPOUND", "{count}"), ("DISK_SEED", "{first}")),
        least=120,
        rate=0.5,
        sources=STORE,
        harness=("Tests/faults/disk.py",),
    ),
]


def sequences(name, what, clients, module):
    return Target(
        name=name,
        what=what,
        goal=5_000,
        command=f"Tests/sessions/run --binary {{build}} --clients {clients} --sequences {{count}} --seed {{first}}",
        done=r"sessions: \d client\(s\), (\d+) sequences",
        rate=0.2,
        spends=True,
        sources=SESSIONS,
        harness=(f"Tests/sessions/{module}.py",),
    )


def simulated(name, what, test, done):
    return Target(
        name=name,
        what=what,
        goal=100_000,
        command=f"{TESTS} RockpoolCoreTests\\.{test}",
        done=done,
        variables=(("SIM_RUNS", "{count}"), ("SIM_FROM", "{first}")),
        build="tests",
        least=120,
        rate=8,
        spends=True,
        sources=SIMULATED,
        naming=SIMULATED,
    )


OTHERS = [
    sequences("sessions", "sequences of one client", 1, "sequences"),
    sequences("rivals", "sequences of two clients", 2, "rivals"),
    simulated(
        "histories-simulated",
        "simulated histories of the outbox",
        "SimulationTests/everySeedKeepsItsPromises",
        r"simulation, shard 1: .* 0 failing seeds",
    ),
    simulated(
        "sessions-simulated",
        "simulated sequences of one client",
        "SessionSimulationTests/oneClientSeesItsOwnWorld",
        r"sessions, shard 1: .* 0 failing seeds",
    ),
    Target(
        name="fleet",
        what="minutes of random faults of a fleet",
        goal=60,
        command="Tests/fleet/run S14 --binary {build} --minutes {count} --seed {first}",
        done=r"holds: seed \d+, (\d+) min",
        least=150,
        rate=1 / 75,
        sources=(*OUTBOX, "Sources/RockpoolStore/Shared"),
        harness=("Tests/fleet/chance.py",),
    ),
]


def fuzz(root):
    """A target for each folder of the corpus."""
    files = sorted(Path(root, "Tests/Fuzz/Targets").rglob("FuzzTarget+*.swift"))
    paths = {path.stem.partition("+")[2].lower(): path.relative_to(root).as_posix() for path in files}
    shared = ("Tests/Fuzz/Targets/BrokenProperty.swift", "Tests/Fuzz/Targets/FuzzInput.swift")
    return [
        Target(
            name=f"fuzz {name}",
            what=f"inputs of {name}",
            goal=1_000_000,
            command=f"Tests/Fuzz/run {name}",
            done=r"(\d+) runs,",
            variables=(("FUZZ_PROGRAM", "{build}"), ("FUZZ_SECONDS", "{seconds}"), ("FUZZ_SEED", "{first}")),
            build="fuzzer",
            least=20,
            sources=(*shared, paths[name.replace("-", "")]),
            naming=(paths[name.replace("-", "")],),
        )
        for name in sorted(os.listdir(Path(root, "Tests/Fuzz/corpus")))
    ]


def every(root):
    """All targets; of equally unknown ones the first is run first."""
    return [*FAULTS[:3], *OTHERS, *FAULTS[3:], *fuzz(root)]
