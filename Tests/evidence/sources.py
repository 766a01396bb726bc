"""Which code a target depends on, and its hash: figures add up only while it is the same.

Lines that are only a comment, and blank ones, do not count."""

import ast
import hashlib
import re
import subprocess
from functools import cache
from pathlib import Path

CORE = "Sources/RockpoolCore/"
DECLARED = re.compile(
    r"^(?:@\w+\s+)*(?:(?:package|public|final|indirect|nonisolated)\s+)*(?:struct|enum|class|actor|protocol|typealias)\s+(\w+)", re.M
)
NAMED = re.compile(r"\b[A-Z]\w*")
COMMENT = {".swift": "//", ".py": "#"}


class Repository:
    """Files as commits have them. `root` is the folder of the checkout."""

    def __init__(self, root):
        self.root = Path(root)
        self.texts, self.trees = {}, {}

    def git(self, *arguments, given=None):
        return subprocess.run(["git", "-C", self.root, *arguments], input=given, capture_output=True, check=True).stdout

    def commit(self, name):
        """The short name of a commit."""
        return self.git("rev-parse", "--short=12", f"{name}^{{commit}}").decode().strip()

    def files(self, commit):
        """The id of each file's text, by path."""
        if commit not in self.trees:
            lines = self.git("ls-tree", "-r", "-z", commit).decode().split("\0")
            entries = (line.partition("\t") for line in lines if line)
            self.trees[commit] = {path: entry.split()[2] for entry, _, path in entries}
        return self.trees[commit]

    def read(self, commit, paths):
        """The texts of the paths, by path; those that the commit lacks are left out."""
        ids = {path: self.files(commit)[path] for path in paths if path in self.files(commit)}
        if missing := sorted(set(ids.values()) - set(self.texts)):
            answer = self.git("cat-file", "--batch", given="\n".join(missing).encode() + b"\n")
            for one in missing:
                head, _, rest = answer.partition(b"\n")
                size = int(head.split()[2])
                self.texts[one], answer = rest[:size].decode(errors="replace"), rest[size + 1 :]
        return {path: self.texts[id_] for path, id_ in ids.items()}

    def below(self, commit, places):
        """The files that are a place, or are in one."""
        return {path for path in self.files(commit) if any(path == place or path.startswith(f"{place}/") for place in places)}

    @property
    def changed(self):
        """Paths with changes that are in no commit."""
        return [line[3:] for line in self.git("status", "--porcelain", "-z", "--no-renames").decode().split("\0") if line]


def code_lines(path, text):
    """The text without blank lines and lines that are only a comment."""
    mark = COMMENT.get(Path(path).suffix)
    lines = (line.rstrip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not (mark and line.lstrip().startswith(mark)))


def named_folders(repository, commit, places):
    """The folders of the core that declare a type which these Swift files name."""
    core = repository.read(commit, repository.below(commit, [CORE.rstrip("/")]))
    homes = {}
    for path, text in core.items():
        for name in DECLARED.findall(text):
            homes.setdefault(name, set()).add("/".join(path.split("/")[:3]))
    texts = repository.read(commit, repository.below(commit, places))
    names = {name for path, text in texts.items() for name in NAMED.findall(code_lines(path, text))}
    return {home for name in names for home in homes.get(name, ())}


def imported(repository, commit, places):
    """The Python files, and those that they import, from their own folder or from Tests/faults."""
    found, open_ = set(), list(places)
    while open_:
        path = open_.pop()
        if path in found or path not in repository.files(commit):
            continue
        found.add(path)
        for name in imports(repository.read(commit, [path])[path]):
            open_ += {f"{path.rpartition('/')[0]}/{name}.py", f"Tests/faults/{name}.py"}
    return found


@cache
def imports(text):
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return frozenset(names)


class Code:
    """The code of a target: `built`, as the build's commit has it, and `harness`, as HEAD has it."""

    def __init__(self, repository, target, commit, head):
        self.repository = repository
        places = [*target.sources, *target.naming, "Package.resolved"]
        if target.naming:
            places += named_folders(repository, commit, target.naming)
        self.places = places
        self.built = repository.read(commit, repository.below(commit, places))
        self.harness = repository.read(head, imported(repository, head, target.harness))

    @property
    def hash(self):
        digest = hashlib.sha256()
        for path, text in sorted({**self.built, **self.harness}.items()):
            digest.update(f"{path}\0{code_lines(path, text)}\0".encode())
        return digest.hexdigest()[:12]

    def changed(self, of_build=True):
        """A path with a change that is in no commit: a run would belong to none."""
        for path in self.repository.changed:
            if path in self.harness or of_build and any(path == place or path.startswith(f"{place}/") for place in self.places):
                return path
        return None

    def newer_than(self, build):
        """A source that was changed after the build was made."""
        made = Path(build).stat().st_mtime
        paths = (self.repository.root / path for path in sorted(self.built))
        return next((path.relative_to(self.repository.root) for path in paths if path.exists() and path.stat().st_mtime > made), None)
