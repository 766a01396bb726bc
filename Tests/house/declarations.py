"""Finds the types and functions that Swift code declares, by their keywords and braces."""

import re
from dataclasses import dataclass, field

from lexer import SourceFile

_TYPE = r"\b(?P<kind>struct|class|enum|actor|protocol|extension)\s+(?P<type>[A-Z][\w.]*)"
_FUNCTION = r"\bfunc\s+(?P<function>`?\w+`?|[^\s\w(]+)|(?P<init>\binit)\b[?]?(?=\s*[(<])"
_ALIAS = r"\btypealias\s+(?P<alias>\w+)"
_TOKEN = re.compile(rf"(?P<brace>[{{}}])|(?<![\w.`])(?:{_TYPE}|{_FUNCTION}|{_ALIAS})")


@dataclass(frozen=True)
class Type:
    name: str
    kind: str
    is_top_level: bool


@dataclass
class Function:
    """`owner` is empty for a free function; `lines` is 0 without a body."""

    owner: str
    name: str
    line: int
    lines: int = 0


@dataclass
class _Scope:
    """What a brace opened: `type` is set for a type's, `function` for a function's."""

    type: Type | None = None
    function: Function | None = None


@dataclass
class Declarations:
    types: list[Type] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)


def declarations(file: SourceFile) -> Declarations:
    """What `file` declares, in order."""
    found, scopes, pending, at = Declarations(), [_Scope()], _Scope(), 0
    while token := _TOKEN.search(file.code, at):
        at = token.end()
        outer = next((scope.type for scope in reversed(scopes) if scope.type), None)
        owner = outer.name if outer else ""
        if token["brace"] == "{":
            scopes.append(pending)
            pending = _Scope()
        elif token["brace"]:
            if (closed := scopes.pop().function) is not None:
                closed.lines = _line(file, token.start()) - closed.line + 1
        elif name := token["type"] or token["alias"]:
            type_ = Type(f"{owner}.{name}" if owner else name, token["kind"] or "typealias", len(scopes) == 1)
            found.types.append(type_)
            pending = _Scope(type=type_) if token["type"] else pending
        elif name := token["function"] or token["init"]:
            at = _after_parameters(file.code, at)
            function = Function(owner, name.strip("`"), _line(file, token.start()))
            found.functions.append(function)
            is_requirement = scopes[-1].type is not None and outer is not None and outer.kind == "protocol"
            pending = _Scope() if is_requirement else _Scope(function=function)
    return found


def _line(file: SourceFile, at: int) -> int:
    return file.code.count("\n", 0, at) + 1


def _after_parameters(code: str, at: int) -> int:
    """The position behind a parameter list."""
    depth = 0
    for end in range(code.index("(", at), len(code)):
        depth += (code[end] in "([{") - (code[end] in ")]}")
        if depth == 0:
            return end + 1
    return at
