"""Arguments: what a model gave a memory tool, read; what is wrong is told so that it can be put right."""

from __future__ import annotations

from collections.abc import Mapping

from keepsaid.domain.ids import moment, read
from keepsaid.domain.memory import Kind
from keepsaid.domain.prompt import Json
from keepsaid.domain.search import Narrowing
from keepsaid.errors import ToolError

LIMIT_DEFAULT, LIMIT_MAX = 10, 50
AROUND_DEFAULT, AROUND_MAX = 3, 10
_PERSON_CHARS_MAX = 200


def query_in(arguments: Mapping[str, Json]) -> str:
    """The words to look for."""
    query = arguments.get("query")
    if not isinstance(query, str) or not query.strip():
        raise ToolError("query must be a text that is not empty")
    return query


def limit_in(arguments: Mapping[str, Json]) -> int:
    """How many memories are wanted."""
    return _number(arguments, "limit", LIMIT_DEFAULT, (1, LIMIT_MAX))


def around_in(arguments: Mapping[str, Json]) -> int:
    """How many neighbours are wanted on each side."""
    return _number(arguments, "around", AROUND_DEFAULT, (0, AROUND_MAX))


def archived_in(arguments: Mapping[str, Json]) -> bool:
    """Whether what was archived is to be searched."""
    given = arguments.get("archived", False)
    if not isinstance(given, bool):
        raise ToolError("archived must be true or false")
    return given


def memory_in(arguments: Mapping[str, Json]) -> int:
    """The memory that is meant."""
    given = arguments.get("id")
    number = read("memory", given) if isinstance(given, str) else None
    if number is None:
        raise ToolError("id must name a memory as memory_search does: mem_ and 13 letters or digits")
    return number


def narrowing_in(arguments: Mapping[str, Json]) -> Narrowing:
    """What the search keeps to."""
    since, until = _time(arguments, "since"), _time(arguments, "until", ends=True)
    if since is not None and until is not None and since > until:
        raise ToolError("since must not be later than until")
    return Narrowing(_kind(arguments), _person(arguments), since, until, _time(arguments, "as_of", ends=True))


def _number(arguments: Mapping[str, Json], name: str, default: int, bounds: tuple[int, int]) -> int:
    number = arguments.get(name, default)
    least, most = bounds
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
        raise ToolError(f"{name} must be a whole number from {least} to {most}")
    return number


def _kind(arguments: Mapping[str, Json]) -> Kind | None:
    kind = arguments.get("kind")
    if kind is None:
        return None
    if kind not in list(Kind):
        raise ToolError(f"kind must be one of {', '.join(Kind)}")
    return Kind(str(kind))


def _person(arguments: Mapping[str, Json]) -> str:
    person = arguments.get("person")
    if person is None:
        return ""
    if not isinstance(person, str) or not person.strip() or len(person) > _PERSON_CHARS_MAX:
        raise ToolError(f"person must be a name of at most {_PERSON_CHARS_MAX} characters")
    return person


def _time(arguments: Mapping[str, Json], name: str, *, ends: bool = False) -> int | None:
    """Milliseconds UTC; a day stands for its beginning, or for its end where it `ends` something."""
    given = arguments.get(name)
    if given is None:
        return None
    try:
        return moment(given if isinstance(given, str) else "", ends=ends)
    except ValueError as error:
        raise ToolError(f"{name} must be {error}") from None
