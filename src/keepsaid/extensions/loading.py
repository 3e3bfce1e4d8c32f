"""Loading: imports the code of extensions in order of their dependencies, each call within a time limit."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any

from keepsaid.errors import ExtensionError
from keepsaid.extensions.discovery import ExtensionSource, FoundExtension
from keepsaid.extensions.loaded import ExtensionFault, Phase, fault_of
from keepsaid.values import frozen

_LEAVE_S = 0.5
"""How long one that was broken off gets to end; one that does not heed it is left behind."""


def too_long(limit_s: float) -> str:
    """The reason of a fault for what exceeded its time limit."""
    return f"it took longer than {limit_s:g} s"


async def run_phase(phase: Phase, work: Callable[[], Awaitable[Any]], limit_s: float) -> ExtensionFault | None:
    """Run a phase of an extension; returns its fault, if any. Raises only when its caller is cancelled."""
    task = asyncio.create_task(_guarded(phase, work), name=f"extension-{phase}")
    try:
        done, _ = await asyncio.wait((task,), timeout=limit_s)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not done:
        task.cancel()
        await asyncio.wait((task,), timeout=_LEAVE_S)
        return ExtensionFault(phase, too_long(limit_s))
    return ExtensionFault(phase, "it cancelled itself") if task.cancelled() else task.result()


async def _guarded(phase: Phase, work: Callable[[], Awaitable[Any]]) -> ExtensionFault | None:
    try:
        await work()
    except (Exception, SystemExit) as error:  # noqa: BLE001  # guard: extension - what it raises is its own end alone
        return fault_of(phase, error)
    return None


@frozen
class LoadOrder:
    """Waves of extensions, each depending on earlier ones only; and why the others cannot be let in."""

    waves: tuple[tuple[str, ...], ...]
    faults: Mapping[str, str]


def ordered(needs: Mapping[str, Sequence[str]], out: Mapping[str, str] | None = None) -> LoadOrder:
    """The order of extensions by what each depends on. `out` says why some are not there: off, or broken before.

    The same extensions give the same order: within a wave by name.
    """
    faults: dict[str, str] = {}
    for name in sorted(needs):
        if missing := [one for one in needs[name] if one not in needs]:
            why = (out or {}).get(missing[0], "nothing with this id is there")
            faults[name] = f"it depends on {missing[0]}: {why}"
    waves: list[tuple[str, ...]] = []
    left = {name: set(needs[name]) for name in sorted(needs) if name not in faults}
    done: set[str] = set()
    while wave := tuple(name for name, wanted in left.items() if wanted <= done):
        waves.append(wave)
        done.update(wave)
        left = {name: wanted for name, wanted in left.items() if name not in done}
    for name in left:
        if round_trip := _cycle(name, left):
            faults[name] = f"it depends on itself: {' -> '.join(round_trip)}"
    for name in left:
        if name not in faults:
            broken = next(one for one in needs[name] if one in faults or one in left)
            faults[name] = f"it depends on {broken}, which cannot be let in"
    return LoadOrder(tuple(waves), faults)


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


async def loaded(found: FoundExtension) -> type | None:
    """The class of an extension; None for one that is all manifest. Raises whatever its import raises."""
    assert found.manifest is not None, "only what has a manifest is loaded"
    if (entrypoint := found.manifest.entrypoint) is None:
        return None
    if found.source is ExtensionSource.BUILT_IN:
        return _class_of(found, entrypoint)
    return await _apart(lambda: _class_of(found, entrypoint), found.id)


def forget(found: FoundExtension) -> None:
    """Make the next load read the source again."""
    name = _module_name(found)
    for one in [one for one in sys.modules if one == name or one.startswith(f"{name}.")]:
        del sys.modules[one]


async def _apart(work: Callable[[], type], name: str) -> type:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[type] = loop.create_future()

    def settle(put: Callable[[Any], None], outcome: object) -> None:
        if not done.done():
            put(outcome)

    def run() -> None:
        put: Callable[[Any], None] = done.set_result
        outcome: object
        try:
            outcome = work()
        except BaseException as error:  # noqa: BLE001  # guard: extension - its import may raise anything, an exit too
            put = done.set_exception
            outcome = error if isinstance(error, Exception) else ExtensionError(f"it raised {type(error).__name__}")
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, put, outcome)

    Thread(target=run, name=f"keepsaid-load-{name}", daemon=True).start()
    return await done


def _class_of(found: FoundExtension, entrypoint: str) -> type:
    named, _, attribute = entrypoint.partition(":")
    module = import_module(named) if found.source is not ExtensionSource.FOLDER else _from_folder(found, named)
    one: Any = getattr(module, attribute, None)
    if not isinstance(one, type):
        raise ExtensionError(f"its entrypoint {entrypoint} is not a class")
    return one


def _module_name(found: FoundExtension) -> str:
    return f"keepsaid_extension_{found.id.replace('-', '_')}"


def _from_folder(found: FoundExtension, named: str) -> ModuleType:
    """A module of a folder, under a name of its own: two extensions may both have a `main.py`."""
    name = _module_name(found)
    if found.place.is_file():
        return _from_file(name, found.place)
    package = ModuleType(name)
    package.__path__ = [str(found.place)]
    sys.modules[name] = package
    return import_module(f"{name}.{named}")


def _from_file(name: str, file: Path) -> ModuleType:
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ExtensionError(f"{file.name} is not a module")
    module = module_from_spec(spec)
    sys.modules[name] = module
    with ExitStack() as undo:
        undo.callback(sys.modules.pop, name)
        spec.loader.exec_module(module)
        undo.pop_all()
    return module
