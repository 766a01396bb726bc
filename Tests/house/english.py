"""Symptoms of unclear English in Swift comments, for each 1,000 words (CONTRIBUTING.md)."""

import re
from collections.abc import Iterator

from lexer import SourceFile, load
from project import Project, Result, Table

WORDS = {
    "persons": re.compile(r"\b(nobody|somebody|anybody|everybody|someone|anyone|everyone|whoever|whomever|whose|whom|who)\b", re.I),
    "told": re.compile(r"\b(tells?|telling|told|asks?|asked|asking|looks?|looked|looking|says?|said|saying)\b", re.I),
    "theirs": re.compile(r"\b(theirs|mine|ours|another's|others')(?!\w)", re.I),
}
OPENING = re.compile(r"(what|it|that|whether|which|who|whose|whatever)\b", re.I)
LIMITS = {"persons": 1.0, "openings": 2.5, "told": 1.5, "theirs": 0.5}
# The merge literature's words are terms in these files.
MERGING = re.compile(r"merge|conflict", re.I)
# Below so many words, one word more is a symptom of nothing.
FEW_WORDS = 500


def english(project: Project) -> Result:
    result = Result(
        "English in comments, for each 1,000 words", Table(["where", "words", *(f"{kind} ≤ {limit}" for kind, limit in LIMITS.items())])
    )
    places = project.modules | {top: load(project.root, project.root / top) for top in ("Tests", "Benchmarks", "Fuzz")}
    for place, files in places.items():
        words, counts = _count(files)
        rates = {kind: round(1000 * count / max(words, 1), 1) for kind, count in counts.items()}
        result.table.add(place, words, *rates.values())
        if words >= FEW_WORDS:
            result.excesses |= {f"{place}: {kind}": rate for kind, rate in rates.items() if rate > LIMITS[kind]}
    return result


def _count(files: list[SourceFile]) -> tuple[int, dict[str, int]]:
    words, counts = 0, dict.fromkeys(LIMITS, 0)
    for file in files:
        for paragraph in _paragraphs(file):
            text = re.sub(r"`[^`]*`", "X", paragraph)
            words += len(re.findall(r"[A-Za-z][A-Za-z'-]*", text))
            for kind, pattern in WORDS.items():
                if kind != "theirs" or not MERGING.search(file.path.as_posix()):
                    counts[kind] += len(pattern.findall(text))
            counts["openings"] += sum(OPENING.match(sentence.strip()) is not None for sentence in re.split(r"(?<=[.:;!?])\s+|\s- ", text))
    return words, counts


def _paragraphs(file: SourceFile) -> Iterator[str]:
    """The comments, adjacent lines joined: a sentence may span several."""
    block: list[str] = []
    last = 0
    for comment in file.comments:
        if block and not (comment.is_whole_line and comment.line == last + 1):
            yield " ".join(block)
            block = []
        block.append(comment.text)
        last = comment.line if comment.is_whole_line else 0
    if block:
        yield " ".join(block)
