"""The dialect: statements and tables are written once, for SQLite; here they become PostgreSQL's.

What both understand stays as it is. Where the two differ in more than a word, `functions.sql` defines what SQLite has
built in, and a statement that nothing here translates has a text of its own in `statements/`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, reduce
from importlib.resources import files

from keepsaid.adapters.sql.memory.rows import filled
from keepsaid.adapters.sql.query import load
from keepsaid.values import frozen

PACKAGE = "keepsaid.adapters.postgres"
_OWN_PAGES = ("undo_rows", "place", "peers", "tables", "postings", "moves", "near")
"""Pages of statements that SQLite has no use for."""

_TOKEN = re.compile(r"'(?:[^']|'')*'|--[^\n]*|\?\d*|:[a-z_][a-z_0-9]*|[A-Za-z_][A-Za-z_0-9]*|\s+|.", re.DOTALL)
"""A token of a statement: a text, a comment, a mark, a name, spaces, or one character."""

_FLAG = r"(?:\w+\.)?(?:beside|external|laned|whole|counted)"
"""Columns that are 0 or 1."""

_MARK = re.compile(r"\?\d*|:[a-z_][a-z_0-9]*")
_LISTS: Mapping[str, str] = {
    "carray": "unnest({}) AS {} (value)",
    "json_each/*numbers*/": (
        "unnest(CAST(translate({}, '[]', '{{}}') AS bigint[])) WITH ORDINALITY AS {} (value, rowid)"
    ),
    "json_each/*texts*/": (
        "unnest(ARRAY(SELECT jsonb_array_elements_text(CAST({} AS jsonb)))) WITH ORDINALITY AS {} (value, rowid)"
    ),
}
"""How a list that is bound to a mark becomes rows. The functions of `functions.sql` take 50 to 350 us for each call."""

_LIST = re.compile(rf"\b({'|'.join(map(re.escape, _LISTS))})\(([?:]\w*)\)(?: AS (\w+))?")
_WORDS = (
    (re.compile(r"\s(?:NOT INDEXED|INDEXED BY \w+)"), ""),
    (re.compile(r"\bCROSS (JOIN \w+(?: AS \w+)?\s+ON\b)"), r"\1"),
    (re.compile(r"\bjson_each/\*(numbers|texts)\*/"), r"json_\1"),
    (re.compile(r"(?<=\s)\+(?=[a-z])"), ""),
    (re.compile(r"\bAS INTEGER\)"), "AS bigint)"),
    (re.compile(r"\bAS REAL\)"), "AS double precision)"),
    (re.compile(rf"(?<![\w.])(WHERE|AND|\()(\s*{_FLAG})(?=\s*(?:AND|OR|ORDER|\)|\n|$))"), r"\1\2 = 1"),
    (re.compile(rf"\bNOT ({_FLAG})(?=\s*(?:AND|OR|ORDER|\)|\n|$))"), r"\1 = 0"),
    (re.compile(r"\bAS BLOB\)"), "AS bytea)"),
    (re.compile(r"/\*(RETURNING [a-z_, ]+)\*/"), r"\1"),
)
"""Words that PostgreSQL does not know, or knows by another name."""

_OR_IGNORE = re.compile(r"\b(INSERT) OR IGNORE( INTO)\b")


@frozen
class Translation:
    """A statement as PostgreSQL takes it, and where each of its `$n` comes from: a place from 0, or a name."""

    text: str
    marks: tuple[int | str, ...]

    def values(self, bound: Sequence[object] | Mapping[str, object]) -> list[object]:
        """Return the values of the marks in their order."""
        if isinstance(bound, Mapping):
            return [bound[str(mark)] for mark in self.marks]
        return [bound[int(mark)] for mark in self.marks]


@cache
def own_statements() -> Mapping[str, str]:
    """Statements that PostgreSQL needs other texts for, by SQLite's."""
    folder = files(PACKAGE).joinpath("statements")
    pages = (entry.name.removesuffix(".sql") for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return {theirs: ours for page in pages if page not in _OWN_PAGES for theirs, ours in _differing(page)}


def _differing(page: str) -> Iterator[tuple[str, str]]:
    """Yield the statements of a page that has texts of its own here, by SQLite's, as memory completes them too."""
    theirs, ours = load(page), load(page, PACKAGE)
    for part in ours.keys() - theirs.keys():
        ours = {name: sql.replace(f"/*{part}*/", ours[part]) for name, sql in ours.items()}
    for name in ours.keys() & theirs.keys():
        yield theirs[name], ours[name]
        yield filled(theirs)[name], filled(ours)[name]


@lru_cache(4_096)
def translated(sql: str) -> Translation:
    """Return the translation of a statement."""
    sql = own_statements().get(sql, sql)
    sql = _LIST.sub(lambda found: _LISTS[found[1]].format(found[2], found[3] or "listed"), sql)
    for theirs, ours in _WORDS:
        sql = theirs.sub(ours, sql)
    if _OR_IGNORE.search(sql):
        sql = _OR_IGNORE.sub(r"\1\2", sql) + " ON CONFLICT DO NOTHING"
    marks = _Marks()
    return Translation(_written(_tokens(sql), marks), tuple(marks.numbers))


def _tokens(sql: str) -> list[str]:
    return [token for token in _TOKEN.findall(sql) if not token.startswith("--")]


class _Marks:
    """The marks of a statement: `numbers` has the `n` of the `$n` that each becomes."""

    def __init__(self) -> None:
        self.numbers: dict[int | str, int] = {}
        self._highest = -1

    def number(self, mark: str) -> str:
        """Number a mark: `?` is the place after the highest before it, `?3` the third, `:name` what has that name."""
        place: int | str = mark[1:]
        if mark[0] == "?":
            place = int(mark[1:] or self._highest + 2) - 1
            self._highest = max(self._highest, place)
        return f"${self.numbers.setdefault(place, len(self.numbers) + 1)}"


def _written(tokens: Sequence[str], marks: _Marks) -> str:
    """Write tokens, with the calls among them translated and the marks numbered."""
    out: list[str] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if _MARK.fullmatch(token) and tokens[at - 1 : at] != [":"]:
            out.append(marks.number(token))
        elif (call := _CALLS.get(token.lower())) is not None and tokens[at + 1 : at + 2] == ["("]:
            end = _end(tokens, at + 1)
            arguments = [_written(part, marks).strip() for part in _arguments(tokens[at + 2 : end])]
            out.append(call(token, arguments))
            at = end
        else:
            out.append(token)
        at += 1
    return "".join(out)


def _end(tokens: Sequence[str], opened: int) -> int:
    """Return the place of the bracket that closes the one at `opened`."""
    depth = 0
    for at in range(opened, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[at], 0)
        if not depth:
            return at
    raise ValueError("a bracket of a statement is not closed")


def _arguments(tokens: Sequence[str]) -> list[Sequence[str]]:
    """Return the arguments of a call; none for what has only spaces between its brackets."""
    depth, began, found = 0, 0, list[Sequence[str]]()
    for at, part in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(part, 0)
        if part == "," and not depth:
            found.append(tokens[began:at])
            began = at + 1
    last = tokens[began:]
    return [*found, last] if found or "".join(last).strip() else []


Call = Callable[[str, Sequence[str]], str]


def _case(_name: str, arguments: Sequence[str]) -> str:
    condition, then, *other = arguments
    return f"CASE WHEN {condition} THEN {then}" + (f" ELSE {other[0]}" if other else "") + " END"


def _extreme(name: str, arguments: Sequence[str]) -> str:
    """Return the aggregate of one argument, else the function of several, which is NULL if one of them is."""
    if len(arguments) == 1:
        return f"{name}({arguments[0]})"
    return reduce(lambda before, one: f"{name}_of({before}, {one})", arguments)


def _array(_name: str, arguments: Sequence[str]) -> str:
    return f"coalesce(jsonb_agg({', '.join(arguments)}), '[]')"


def _renamed(now: str) -> Call:
    return lambda _name, arguments: f"{now}({', '.join(arguments)})"


_CALLS: Mapping[str, Call] = {
    "iif": _case,
    "max": _extreme,
    "min": _extreme,
    "char": _renamed("chr"),
    "instr": _renamed("strpos"),
    "json_array": _renamed("jsonb_build_array"),
    "json_object": _renamed("jsonb_build_object"),
    "json_group_array": _array,
    "json": _renamed("json_parsed"),
    "unhex": lambda _name, arguments: f"decode({arguments[0]}, 'hex')",
    "hex": lambda _name, arguments: f"upper(encode({arguments[0]}, 'hex'))",
}
"""How calls of SQLite's functions are written."""
