"""Loading: the one place where code of an extension is imported; in a thread that can be given up: it may hang."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any

from keepsaid.errors import ExtensionError
from keepsaid.extensions.discover import Found, Source

_PREFIX = "keepsaid_extension_"


async def loaded(found: Found) -> type | None:
    """The class of an extension; None for one that is all manifest. Raises whatever its import raises."""
    assert found.manifest is not None, "only what has a manifest is loaded"
    entrypoint = found.manifest.entrypoint
    if entrypoint is None:
        return None
    if found.source is Source.BUILT_IN:
        return _class_of(found, entrypoint)
    return await _apart(lambda: _class_of(found, entrypoint), found.id)


def forget(found: Found) -> None:
    """Let the next load read the source anew."""
    name = _module_name(found)
    for one in [one for one in sys.modules if one == name or one.startswith(f"{name}.")]:
        del sys.modules[one]


async def _apart(work: Callable[[], type], name: str) -> type:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[type] = loop.create_future()

    def settle(result: type | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        elif result is not None:
            done.set_result(result)

    def run() -> None:
        result, raised = None, None
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001  # guard: extension - its import may raise anything, an exit too
            raised = error if isinstance(error, Exception) else ExtensionError(f"it raised {type(error).__name__}")
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, raised)

    Thread(target=run, name=f"keepsaid-load-{name}", daemon=True).start()
    return await done


def _class_of(found: Found, entrypoint: str) -> type:
    named, _, attribute = entrypoint.partition(":")
    module = import_module(named) if found.source is not Source.FOLDER else _from_folder(found, named)
    one: Any = getattr(module, attribute, None)
    if not isinstance(one, type):
        raise ExtensionError(f"its entrypoint {entrypoint} is no class")
    return one


def _module_name(found: Found) -> str:
    return f"{_PREFIX}{found.id.replace('-', '_')}"


def _from_folder(found: Found, named: str) -> ModuleType:
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
        raise ExtensionError(f"{file.name} is no module")
    module = module_from_spec(spec)
    sys.modules[name] = module
    whole = False
    try:
        spec.loader.exec_module(module)
        whole = True
    finally:
        if not whole:
            del sys.modules[name]
    return module
