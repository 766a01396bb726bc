"""A number and its noun in a text of Sources: `count.counted("write")` chooses the form, never the text itself."""

import re

from project import Project, Result, Table

NOUNS = (
    "blobs bodies bytes clients conflicts connections copies databases entries fields files hits hosts lines nodes notices operations "
    "references repeats requests resources responses sites stores tunnels upstreams writes"
)
# `\(…) writes`, `\(…) queued writes`. After "of", a number is a whole, and its noun is a plural always; a limit is never one.
TEXT = re.compile(
    r"(?<!of )\\\((?P<value>[^()]*(?:\([^()]*\)[^()]*)*)\) (?:[a-z]+ly |free |live |more |offline |open |other |queued |stored |waiting )*"
    rf"(?:{'|'.join(NOUNS.split())})\b"
)
LARGE = re.compile(r"limit|least|longest|budget|needed|[nN]ame", re.I)
BY_HAND = re.compile(r'== 1 \? "[^"\\]*" : "')


def plurals(project: Project) -> Result:
    result = Result("plurals without `counted`", Table(["file", "text"]))
    for file in project.files:
        if file.path.name == "Int+Counted.swift":
            continue
        text = (project.root / file.path).read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            found = [match for match in TEXT.finditer(line) if not LARGE.search(match["value"])]
            if found or BY_HAND.search(line):
                result.table.add(f"{file.path}:{number}", line.strip()[:120])
                result.failures.append(f"{file.path}:{number}: a number with a plural; use counted()")
    return result
