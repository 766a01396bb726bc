"""Unlabelled parameters of named functions; initializers, operators, subscripts and closures do not count."""

from project import Project, Result, Table

PERCENT = 35
UNLABELLED = 2
# A percentage of fewer parameters says nothing.
FEW_PARAMETERS = 20


def parameters(project: Project) -> Result:
    result = Result(
        f"parameters: unlabelled (limit {PERCENT} %), functions with more than {UNLABELLED}",
        Table(["module", "parameters", "unlabelled", f"functions > {UNLABELLED}"]),
    )
    for module, members in [*project.modules.items(), ("all", project.files)]:
        declared = [function for file in members for function in project.declared[file.path].functions]
        labels = [function.labels for function in declared if function.name != "init" and function.name.isidentifier()]
        total = sum(map(len, labels))
        percent = round(100 * sum(own.count("_") for own in labels) / max(total, 1))
        several = sum(own.count("_") > UNLABELLED for own in labels)
        result.table.add(module, total, f"{percent} %", several)
        if percent > PERCENT and total >= FEW_PARAMETERS:
            result.excesses[f"{module}: unlabelled parameters in percent"] = percent
        if several:
            result.excesses[f"{module}: functions with more than {UNLABELLED}"] = several
    return result
