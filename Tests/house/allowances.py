"""What may be above a limit today: allowed.json holds a number for each excess, which must not rise."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from project import Result

Allowed = dict[str, dict[str, float]]


@dataclass
class Verdict:
    failures: list[str] = field(default_factory=list)
    lowerable: list[str] = field(default_factory=list)


def read(path: Path) -> Allowed:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(path: Path, allowed: Allowed) -> None:
    """Sorted, without empty checks."""
    kept = {check: dict(sorted(numbers.items())) for check, numbers in sorted(allowed.items()) if numbers}
    path.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def judge(check: str, result: Result, allowed: dict[str, float]) -> Verdict:
    verdict = Verdict([f"{check}: {failure}" for failure in result.failures])
    for name, number in result.excesses.items():
        if name not in allowed:
            verdict.failures.append(f"{check}: {name}: {number} is above the limit")
        elif number > allowed[name]:
            verdict.failures.append(f"{check}: {name}: {number}, and {allowed[name]} are allowed")
    for name, number in allowed.items():
        now = result.excesses.get(name)
        if now is None:
            verdict.lowerable.append(f"{check}: {name}: its allowance of {number} is no longer needed")
        elif now < number:
            verdict.lowerable.append(f"{check}: {name}: the allowance of {number} can be lowered to {now}")
    return verdict


def lowered(result: Result, allowed: dict[str, float]) -> dict[str, float]:
    """The allowances that are still needed, at most at today's numbers."""
    return {name: min(number, result.excesses[name]) for name, number in allowed.items() if name in result.excesses}
