"""Finds the types, functions and properties that Swift code declares, by their keywords and braces."""

import re
from dataclasses import dataclass, field

from lexer import SourceFile

_TYPE = r"\b(?P<kind>struct|class|enum|actor|protocol|extension)\s+(?P<type>[A-Z][\w.]*)"
_FUNCTION = r"\bfunc\s+(?P<function>`?\w+`?|[^\s\w(]+)|(?P<init>\binit)\b[?]?(?=\s*[(<])"
_VALUE = r"\b(?P<value>var|let)\s+(?P<first>`?\w+`?)"
_ALIAS = r"\btypealias\s+(?P<alias>\w+)"
_TOKEN = re.compile(rf"(?P<brace>[{{}}])|(?<![\w.`])(?:{_TYPE}|{_FUNCTION}|{_VALUE}|{_ALIAS})")
_PARAMETER = re.compile(r"(?:^|,)\s*(?:@\w+\s+)*`?(\w+)`?(?:\s+`?\w+`?)?\s*:")


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
    labels: list[str]
    is_member: bool
    lines: int = 0


@dataclass(frozen=True)
class Property:
    owner: str
    name: str
    is_stored: bool


@dataclass
class _Scope:
    """What a brace opened: `type` is set for a type's, `function` for a function's."""

    type: Type | None = None
    function: Function | None = None


@dataclass
class Declarations:
    types: list[Type] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    properties: list[Property] = field(default_factory=list)


def declarations(file: SourceFile) -> Declarations:
    """What `file` declares, in order."""
    found, scopes, pending, at = Declarations(), [_Scope()], _Scope(), 0
    while token := _TOKEN.search(file.code, at):
        at = token.end()
        outer = next((scope.type for scope in reversed(scopes) if scope.type), None)
        owner, is_member = outer.name if outer else "", scopes[-1].type is not None
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
            labels, at = _parameters(file.code, at)
            function = Function(owner, name.strip("`"), _line(file, token.start()), labels, is_member)
            found.functions.append(function)
            is_requirement = is_member and outer is not None and outer.kind == "protocol"
            pending = _Scope() if is_requirement else _Scope(function=function)
        elif is_member and outer is not None and outer.kind != "protocol":
            found.properties.append(Property(owner, token["first"].strip("`"), _is_stored(file.code, token)))
    return found


def _line(file: SourceFile, at: int) -> int:
    return file.code.count("\n", 0, at) + 1


def _parameters(code: str, at: int) -> tuple[list[str], int]:
    """The argument labels of a parameter list, and the position behind it."""
    depth, shallow = 0, ""
    for end in range(code.index("(", at), len(code)):
        depth -= code[end] in ")]}"
        shallow += code[end] if depth == 1 else ""
        depth += code[end] in "([{"
        if depth == 0:
            return _PARAMETER.findall(shallow), end + 1
    return [], at


def _is_stored(code: str, token: re.Match[str]) -> bool:
    """True for a stored property of an instance."""
    if re.search(r"\b(?:static|class)\b[^\n]*$", code[code.rfind("\n", 0, token.start()) + 1 : token.start()]):
        return False
    end = re.compile(r"=|\n|\{\s*(?P<observer>willSet|didSet)?").search(code, token.end())
    return token["value"] == "let" or end is None or end.group()[0] != "{" or end["observer"] is not None
