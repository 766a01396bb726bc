"""Journeys: the files that a request passes, by the tables of docs/architecture.md."""

import re
from collections.abc import Sequence
from pathlib import Path

from project import Project, Result, Table

PAGE = "docs/architecture.md"
# The heading, and the limits of distinct files and of returns to a file that the journey already left.
JOURNEYS = {
    "read miss": ("### Life of a read", 24, 8),
    "queued write": ("### Life of a write", 22, 6),
    "replay": ("### Life of a replay", 20, 10),
}


def journeys(project: Project) -> Result:
    result = Result(f"journeys of {PAGE}", Table(["journey", "steps", "files", "limit", "returns", "limit"]))
    page = project.root / PAGE
    if not page.exists():
        result.notes.append(f"{PAGE} is missing: no journey is measured")
        return result
    text = page.read_text(encoding="utf-8")
    for name, (heading, most_files, most_returns) in JOURNEYS.items():
        steps = _steps(text, heading)
        if not steps:
            result.failures.append(f"{PAGE} has no table under “{heading}”")
            continue
        path = [_resolved(project, file) for _, file in steps]
        for (function, file), found in zip(steps, path, strict=True):
            if found is None:
                result.failures.append(f"{PAGE}, {heading.lstrip('# ')}: there is no file {file}")
            elif not _declares(project, found, function):
                result.failures.append(f"{PAGE}, {heading.lstrip('# ')}: {file} declares no {function}")
        passed, back = len(set(path)), returns(path)
        result.table.add(name, len(steps), passed, most_files, back, most_returns)
        result.excesses |= {f"{name}: files": passed} if passed > most_files else {}
        result.excesses |= {f"{name}: returns": back} if back > most_returns else {}
    return result


def returns(path: Sequence[object]) -> int:
    """How often `path` goes to a file that it already left."""
    return sum(file != before and file in path[:at] for at, (before, file) in enumerate(zip(path, path[1:], strict=False)))


def _steps(text: str, heading: str) -> list[tuple[str, str]]:
    """The function and the file of each row under `heading`, without the header and its rule."""
    section = re.search(rf"^{re.escape(heading)}[^\n]*\n(.*?)(?=^#+ |\Z)", text, re.M | re.S)
    lines = section.group(1).splitlines() if section else []
    rows = [[_plain(cell) for cell in line.strip().strip("|").split("|")] for line in lines if line.startswith("|")]
    return [(row[1], row[2]) for row in ([*cells, "", ""] for cells in rows[2:])]


def _plain(cell: str) -> str:
    """A cell without backticks, and of a link its text."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", cell).replace("`", "").strip()


def _resolved(project: Project, file: str) -> Path | None:
    """The file of that path, with or without `Sources/`, or the only one of that name."""
    whole = [path for path in (Path(file), Path("Sources") / file) if path in project.declared]
    named = [path for path in project.declared if path.name == file]
    return whole[0] if whole else named[0] if len(named) == 1 else None


def _declares(project: Project, path: Path, function: str) -> bool:
    """True if the file declares `function`, such as `Engine.respond(to:)` or `respond`; a property will do."""
    owner, _, name = function.partition("(")[0].rpartition(".")
    declared = project.declared[path]
    members = [(function.owner, function.name) for function in declared.functions]
    members += [(property_.owner, property_.name) for property_ in declared.properties]
    return any(own == name and (not owner or f".{type_}".endswith(f".{owner}")) for type_, own in members)
