"""What differs between two trees of settings, by key; and the one with a part of the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

Key = tuple[str, ...]
_ANY = "*"


def changed(before: Any, after: Any, at: Key = ()) -> Iterator[Key]:
    """The keys of settings that are not the same; a list is one setting."""
    if before == after:
        return
    if isinstance(before, BaseModel) and isinstance(after, BaseModel):
        before, after = dict(before), dict(after)
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in sorted({*before, *after}, key=str):
            yield from changed(before.get(name), after.get(name), (*at, str(name)))
    else:
        yield at


def taken(before: Any, after: Any, wanted: Callable[[Key], bool], at: Key = ()) -> Any:
    """The settings of `before`, and those of `after` whose keys are wanted."""
    if before == after or wanted(at):
        return after
    if isinstance(before, BaseModel) and isinstance(after, BaseModel):
        parts = {name: taken(one, getattr(after, name), wanted, (*at, name)) for name, one in before}
        return before.model_copy(update=parts)
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        kept = {name: taken(one, after.get(name), wanted, (*at, str(name))) for name, one in before.items()}
        new = {name: one for name, one in after.items() if name not in before and wanted((*at, str(name)))}
        return {**{name: one for name, one in kept.items() if one is not None or before[name] is None}, **new}
    return before


def within(key: Key, patterns: tuple[str, ...]) -> bool:
    """Whether a key is one of the patterns or below it: `routes`, `channels.*.unmatched`."""
    return any(_is(key, pattern.split(".")) for pattern in patterns)


def _is(key: Key, wanted: list[str]) -> bool:
    fits = zip(key, wanted, strict=False)
    return len(key) >= len(wanted) and all(part in (_ANY, name) for name, part in fits)
