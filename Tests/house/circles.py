"""Circles: two folders of a module of which each names types that the other defines."""

import re
from collections import defaultdict
from itertools import combinations

from lexer import SourceFile
from project import Project, Result, Table

_NAME = re.compile(r"(?<![\w.])[A-Z]\w*")
# Of the thinner direction, so many types are printed.
PRINTED = 6

Uses = dict[tuple[str, str], dict[str, str]]


def circles(project: Project) -> Result:
    """The number of a circle is that of the types to move or to avoid so that it opens."""
    result = Result("circles of folders", Table(["module", "folders", "circles"]))
    for module, files in project.modules.items():
        uses = _uses(project, files)
        folders = sorted({file.folder for file in files})
        found = [pair for pair in combinations(folders, 2) if pair in uses and pair[::-1] in uses]
        result.table.add(module, len(folders), len(found))
        for pair in found:
            thin, thick = sorted((uses[pair], uses[pair[::-1]]), key=len)
            source, target = pair if thin is uses[pair] else pair[::-1]
            shown = [f"{type_} ({file})" for type_, file in sorted(thin.items())[:PRINTED]]
            more = f" and {len(thin) - PRINTED} more" if len(thin) > PRINTED else ""
            result.excesses[f"{module}: {pair[0]} and {pair[1]}"] = len(thin)
            result.notes.append(f"{module}: {source} names {len(thin)} of {target}, {len(thick)} back: {', '.join(shown)}{more}")
    return result


def _uses(project: Project, files: list[SourceFile]) -> Uses:
    """By folder and other folder: the other's types that the folder's files name, each with the first file that does."""
    homes: dict[str, str] = {}
    for file in files:
        for type_ in project.declared[file.path].types:
            if type_.is_top_level and type_.kind != "extension":
                homes.setdefault(type_.name, file.folder)
    uses: Uses = defaultdict(dict)
    for file in files:
        nested = {type_.name.rpartition(".")[2] for type_ in project.declared[file.path].types if not type_.is_top_level}
        for name in set(_NAME.findall(file.code)) - nested:
            if (home := homes.get(name, file.folder)) != file.folder:
                uses[file.folder, home].setdefault(name, file.path.name)
    return uses
