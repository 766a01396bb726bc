"""Functions, by their lines."""

from project import Project, Result, Table, quantile

FUNCTION_LINES = 70


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
