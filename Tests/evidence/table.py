"""The table of goals and of what was reached."""

from pathlib import Path

BEGIN, END = "<!-- evidence: begin -->", "<!-- evidence: end -->"
INTRODUCTION = """\
## What has been run

Written by `make evidence-table`. Runs add up while the code that they test is the same; *before* is what the last other state of that code
had. No seed of a counted run is used again. The command is that of the last run."""


def rows(targets, ledger, codes):
    """A line of Markdown for each target, of its present code."""
    present = ((target, (target.name, codes[target.name])) for target in targets)
    return [row(target, ledger.entry(*key), ledger.earlier(*key)) for target, key in present]


def row(target, entry, earlier):
    cells = [target.name, f"{target.goal:,} {target.what}"]
    if entry:
        share = 100 * entry.runs / target.goal
        cells += [f"{entry.runs:,} ({share:.3g} %) in {entry.times}, the longest {entry.longest:,}", found(entry), seeds(entry)]
        cells += [f"{entry.date}, {entry.commit}", f"`{entry.command}`"]
    else:
        cells += ["0", "", "", "", ""]
    cells.append(f"{earlier.runs:,}, {found(earlier)} ({earlier.date}, {earlier.commit})" if earlier else "")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def found(entry):
    return f"{len(entry.findings)}: {entry.findings[-1]}" if entry.findings else "nothing"


def seeds(entry):
    return ", ".join(f"{first}–{last}" if last > first else str(first) for first, last in entry.seeds)


def page(targets, ledger, codes):
    head = ["| run | goal | reached | found | seeds | last, commit | command | before |", "|---|---|---|---|---|---|---|---|"]
    reached = sum(ledger.runs(target.name, codes[target.name]) >= target.goal for target in targets)
    total = f"{reached} of {len(targets)} goals are reached."
    return "\n".join([INTRODUCTION, "", total, "", *head, *rows(targets, ledger, codes)])


def publish(path, text):
    """Writes the page between its marks in the Markdown file `path`, or at its end."""
    path = Path(path)
    whole = path.read_text(encoding="utf-8")
    section = f"{BEGIN}\n{text}\n{END}"
    before, mark, rest = whole.partition(BEGIN)
    if mark:
        whole = before + section + rest.partition(END)[2]
    else:
        whole = f"{whole.rstrip()}\n\n{section}\n"
    path.write_text(whole, encoding="utf-8")
