"""Order: which extensions are let in after which, and which never, because of what they depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Order:
    """Waves of extensions, each depending on earlier ones only; and why the others cannot be let in."""

    waves: tuple[tuple[str, ...], ...]
    faults: Mapping[str, str]


def ordered(needs: Mapping[str, Sequence[str]], out: Mapping[str, str] | None = None) -> Order:
    """The order of extensions by what each depends on. `out` says why some are not there: off, or broken before.

    The same extensions give the same order: within a wave by name.
    """
    faults: dict[str, str] = {}
    for name in sorted(needs):
        missing = [one for one in needs[name] if one not in needs]
        if missing:
            why = (out or {}).get(missing[0], "nothing with this id is there")
            faults[name] = f"it depends on {missing[0]}: {why}"
    waves: list[tuple[str, ...]] = []
    left = {name: set(needs[name]) for name in sorted(needs) if name not in faults}
    done: set[str] = set()
    while left:
        wave = tuple(name for name, wanted in left.items() if wanted <= done)
        if not wave:
            break
        waves.append(wave)
        done.update(wave)
        left = {name: wanted for name, wanted in left.items() if name not in done}
    for name in left:
        round_trip = _cycle(name, left)
        if round_trip:
            faults[name] = f"it depends on itself: {' -> '.join(round_trip)}"
    for name in left:
        if name not in faults:
            faults[name] = f"it depends on {_broken(needs[name], faults, left)}, which cannot be let in"
    return Order(tuple(waves), faults)


def _broken(wanted: Sequence[str], faults: Mapping[str, str], left: Mapping[str, set[str]]) -> str:
    return next(one for one in wanted if one in faults or one in left)


def _cycle(start: str, left: Mapping[str, set[str]]) -> list[str]:
    """The way from one back to itself, if there is one."""
    paths, seen = [[start]], {start}
    while paths:
        path = paths.pop(0)
        for one in sorted(left.get(path[-1], ())):
            if one == start:
                return [*path, start]
            if one not in seen:
                seen.add(one)
                paths.append([*path, one])
    return []
