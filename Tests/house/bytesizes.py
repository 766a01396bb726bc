"""Notations of sizes in bytes: `.kib(64)` and `.mib(4)`, of `ByteCount` and of integers, are the only ones."""

import re

from project import Project, Result, Table

SMALLEST = 4096
NOTATIONS = {
    "bare": re.compile(r"(?<![\w.])(?:[1-9]\d{0,2}(?:_\d{3})+|[1-9]\d+)(?![\w.])"),
    "1 << n": re.compile(r"(?<![\w.])(?:1 << \d{2}|\d+ << [1-6]0)\b"),
    "n * 1024": re.compile(r"\* 1_?024\b|(?<![\w.])1_?024 \*"),
}
# A number given to one of these names is a count of something else: `keyCount = 4096`, `pages: 65_536`.
COUNT = re.compile(r"(?<!byte)(?:count|Count|connections|pages)(?:: Int(?:64)?)?(?: =|:) $")


def byte_sizes(project: Project) -> Result:
    result = Result(f"byte sizes outside ByteCount (numbers ≥ {SMALLEST})", Table(["module", *NOTATIONS]))
    for module, members in [*project.modules.items(), ("all", project.files)]:
        code = "\n".join(file.code for file in members if not file.path.name.startswith("ByteCount"))
        counts = {name: sum(_is_size(match) for match in pattern.finditer(code)) for name, pattern in NOTATIONS.items()}
        result.table.add(module, *counts.values())
        if module != "all":
            result.excesses |= {f"{module}: {name}": count for name, count in counts.items() if count}
    return result


def _is_size(number: re.Match[str]) -> bool:
    """True for an expression, and for a multiple of 1024 of at least `SMALLEST`, which includes powers of two.

    Multiples of 1000 are counts or times, such as 86_400_000, as are the numbers of a `COUNT`.
    """
    if COUNT.search(number.string, number.string.rfind("\n", 0, number.start()) + 1, number.start()):
        return False
    digits = number.group().replace("_", "")
    return not digits.isdigit() or (int(digits) >= SMALLEST and int(digits) % 1024 == 0 and int(digits) % 1000 != 0)
