"""Sizes: files, functions, types and folders."""

from collections import Counter, defaultdict

from project import Project, Result, Table, quantile

FUNCTION_LINES = 70
METHODS = 35
FOLDER_FILES = 14
# One file for each command is the order that a reader expects there.
WIDE_FOLDERS = {"Sources/rockpool/Commands"}


def files(project: Project) -> Result:
    table = Table(["module", "files", "median", "p90", "max", "X+Y files", "types a file", "files > 1 type"])
    for module, members in [*project.modules.items(), ("all", project.files)]:
        lines = [file.lines for file in members]
        types = [[type_ for type_ in project.declared[file.path].types if type_.kind != "extension"] for file in members]
        several = sum(sum(type_.is_top_level and type_.kind != "typealias" for type_ in own) > 1 for own in types)
        plus = sum("+" in file.path.name for file in members)
        rate = f"{sum(map(len, types)) / len(members):.1f}"
        sizes = (quantile(lines, 0.5), quantile(lines, 0.9), max(lines))
        table.add(module, len(members), *sizes, f"{100 * plus / len(members):.0f} %", rate, f"{100 * several / len(members):.0f} %")
    return Result("files: lines", table)


def functions(project: Project) -> Result:
    result = Result(
        f"functions: lines (limit {FUNCTION_LINES})",
        Table(["module", "functions", "median", "p90", "p99", "max", f"> {FUNCTION_LINES}"]),
    )
    for module, members in [*project.modules.items(), ("all", project.files)]:
        named = [(file.path, function) for file in members for function in project.declared[file.path].functions if function.lines]
        lines = [function.lines for _, function in named]
        long = [(path, function) for path, function in named if function.lines > FUNCTION_LINES]
        sizes = [quantile(lines, share) for share in (0.5, 0.9, 0.99, 1)]
        result.table.add(module, len(named), *sizes, len(long))
        result.excesses |= {f"{path} {function.owner}.{function.name}": function.lines for path, function in long}
    return result


def types(project: Project) -> Result:
    """Methods and stored properties of each type over all its extensions; an extension belongs to the module that defines its type."""
    homes: dict[str, list[str]] = defaultdict(list)
    for file in project.files:
        for type_ in project.declared[file.path].types:
            if type_.kind != "extension":
                homes[type_.name].append(file.module)
    methods: Counter[str] = Counter()
    properties: Counter[str] = Counter()
    for file in project.files:
        for function in project.declared[file.path].functions:
            if function.is_member and function.name != "init":
                methods[_full(function.owner, file.module, homes)] += 1
        for property_ in project.declared[file.path].properties:
            properties[_full(property_.owner, file.module, homes)] += property_.is_stored
    result = Result(f"types: methods (limit {METHODS}, but stores) and stored properties", Table(["type", "methods", "properties"]))
    busiest = {name for name, count in methods.items() if count > METHODS} | {name for name, _ in properties.most_common(5)}
    for name in sorted(busiest, key=lambda name: -methods[name]):
        result.table.add(name, methods[name], properties[name])
    result.excesses = {name: count for name, count in methods.items() if count > METHODS and not name.endswith("Store")}
    return result


def _full(owner: str, module: str, homes: dict[str, list[str]]) -> str:
    known = homes.get(owner, [])
    home = known[0] if module not in known and len(set(known)) == 1 else module
    return f"{home}.{owner}"


def folders(project: Project) -> Result:
    counts = Counter(file.path.parent.as_posix() for file in project.files)
    result = Result(f"folders: files (limit {FOLDER_FILES})", Table(["folder", "files"]))
    for folder, count in counts.most_common():
        if count > FOLDER_FILES and folder not in WIDE_FOLDERS:
            result.excesses[folder] = count
            result.table.add(folder, count)
    largest, count = counts.most_common(1)[0]
    result.notes.append(f"{len(counts)} folders; the largest is {largest} with {count} files")
    return result
