"""Separates Swift code from comments and the text of string literals."""

import re
from dataclasses import dataclass
from pathlib import Path

# Where code ends: a comment, or a string literal with any number of `#`.
_EDGE = re.compile(r'//[^\n]*|/\*|#*"""|#*"')
_PAREN = re.compile(r'//[^\n]*|/\*|#*"""|#*"|[()]')


ROOT = "root"


class Lexer:
    """Copies code, and replaces comments and the text of literals with spaces: positions and line breaks stay."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.code: list[str] = []
        self._scan(0, in_interpolation=False)

    def _scan(self, at: int, in_interpolation: bool) -> int:
        """Copies code from `at` to the end of the text or, in an interpolation, behind its closing parenthesis."""
        depth, edge = 1, _PAREN if in_interpolation else _EDGE
        while found := edge.search(self.text, at):
            self.code.append(self.text[at : found.start()])
            token = found.group()
            if token in "()":
                self.code.append(token)
                depth += 1 if token == "(" else -1
                at = found.end()
                if depth == 0:
                    return at
            elif token.startswith("//"):
                at = found.end()
                self._blank(found.start(), at)
            elif token == "/*":
                at = self._block_comment(found.start())
            else:
                at = self._literal(found.start(), token)
        self.code.append(self.text[at:])
        return len(self.text)

    def _blank(self, start: int, end: int) -> None:
        self.code.append(re.sub(r"[^\n]", " ", self.text[start:end]))

    def _block_comment(self, start: int) -> int:
        comment = self.text[start:].partition("*/")
        end = start + len(comment[0]) + len(comment[1])
        self._blank(start, end)
        return end

    def _literal(self, start: int, opening: str) -> int:
        """Blanks a string literal, except its interpolations."""
        hashes = opening.rstrip('"')
        closing = opening[len(hashes) :] + hashes
        stop = re.compile(rf"\\{hashes}\(|{re.escape(closing)}|\\{hashes}.|\Z", re.S)
        at = start + len(opening)
        self._blank(start, at)
        while found := stop.search(self.text, at):
            interpolates = found.group() == f"\\{hashes}("
            self._blank(at, found.end() - interpolates)
            at = found.end()
            if interpolates:
                self.code.append("(")
                at = self._scan(at, in_interpolation=True)
            elif found.group() in (closing, ""):
                break
        return at


@dataclass(frozen=True)
class SourceFile:
    """A Swift file: `folder` is its folder below the module's, `root` for the module's own."""

    path: Path
    module: str
    folder: str
    code: str


def load(root: Path, top: Path) -> list[SourceFile]:
    """The Swift files below `top`; each folder in `top` is a module."""
    files = []
    for path in sorted(top.rglob("*.swift")):
        text = path.read_text(encoding="utf-8")
        code = "".join(Lexer(text).code)
        module, *folders, _ = path.relative_to(top).parts
        folder = "/".join(folders) or ROOT
        files.append(SourceFile(path.relative_to(root), module, folder, code))
    return files
