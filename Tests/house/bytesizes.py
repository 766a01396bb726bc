"""Notations of sizes in bytes: `ByteCount` is the only place for their numbers."""

import re

from project import Project, Result, Table

SMALLEST = 4096
NOTATIONS = {
    "bare": re.compile(r"(?<![\w.])(?:[1-9]\d{0,2}(?:_\d{3})+|[1-9]\d+)(?![\w.])"),
    "1 << n": re.compile(r"(?<![\w.])1 << \d{2}\b"),
    "n * 1024": re.compile(r"\* 1_?024\b|(?<![\w.])1_?024 \*"),
}


def byte_sizes(project: Project) -> Result:
    result = Result(f"byte sizes outside ByteCount (numbers ≥ {SMALLEST})", Table(["module", *NOTATIONS]))
    for module, members in [*project.modules.items(), ("all", project.files)]:
        code = "\n".join(file.code for file in members if not file.path.name.startswith("ByteCount"))
        counts = {name: sum(_is_size(match.group()) for match in pattern.finditer(code)) for name, pattern in NOTATIONS.items()}
        result.table.add(module, *counts.values())
        if module != "all":
            result.excesses |= {f"{module}: {name}": count for name, count in counts.items() if count}
    return result


def _is_size(text: str) -> bool:
    """True for an expression, and for a multiple of 1024 of at least `SMALLEST`, which includes powers of two.

    Multiples of 1000 are counts or times, such as 86_400_000.
    """
    digits = text.replace("_", "")
    return not digits.isdigit() or (int(digits) >= SMALLEST and int(digits) % 1024 == 0 and int(digits) % 1000 != 0)
