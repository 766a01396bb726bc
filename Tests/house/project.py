"""The code base as the checks see it, and what a check returns."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from declarations import Declarations, declarations
from lexer import SourceFile, load


@dataclass(frozen=True)
class Project:
    root: Path

    @cached_property
    def files(self) -> list[SourceFile]:
        return load(self.root, self.root / "Sources")

    @cached_property
    def declared(self) -> dict[Path, Declarations]:
        return {file.path: declarations(file) for file in self.files}

    @cached_property
    def modules(self) -> dict[str, list[SourceFile]]:
        """The files of each module of Sources."""
        names = sorted({file.module for file in self.files}, key=str.lower)
        return {name: [file for file in self.files if file.module == name] for name in names}


@dataclass
class Table:
    header: list[str]
    rows: list[list[str]] = field(default_factory=list)

    def add(self, *cells: object) -> None:
        self.rows.append([str(cell) for cell in cells])

    def lines(self) -> list[str]:
        """Aligned text: the first column to the left, columns with a number in each row to the right."""
        rows = [self.header, *self.rows]
        widths = [max(len(row[n]) for row in rows) for n in range(len(self.header))]
        numeric = [n > 0 and all(row[n][:1].isdigit() for row in self.rows) for n in range(len(self.header))]
        return ["  ".join(_aligned(*cell) for cell in zip(row, widths, numeric, strict=True)).rstrip() for row in rows]


def _aligned(cell: str, width: int, to_the_right: bool) -> str:
    return cell.rjust(width) if to_the_right else cell.ljust(width)


@dataclass
class Result:
    """`excesses`: numbers above a limit, by name, to be compared with the allowances. `failures` allow no exception."""

    title: str
    table: Table
    excesses: dict[str, float] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


Check = Callable[[Project], Result]


def quantile(values: Iterable[int], share: float) -> int:
    """The value at `share` (0…1) of the sorted values; 0 of none."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0
