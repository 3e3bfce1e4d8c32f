"""Settings of an extension: what its manifest allows, checked before anything of it is run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from keepsaid.errors import ExtensionError
from keepsaid.extensions.manifest import Manifest, Setting

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
}


def settings_of(manifest: Manifest, given: Mapping[str, Any]) -> dict[str, Any]:
    """Every setting with its value. Raises ExtensionError naming what is wrong, but no value: it may be secret."""
    faults = [*_unknown(manifest, given), *_wrong(manifest, given)]
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        key = f"extensions.{manifest.id}.config"
        raise ExtensionError(f"its settings are wrong: {key}.{faults[0]}{more}", hint="keepsaid config show extensions")
    return {name: given.get(name, one.default) for name, one in manifest.config.items()}


def _unknown(manifest: Manifest, given: Mapping[str, Any]) -> Iterator[str]:
    for name in given:
        if name not in manifest.config:
            near = get_close_matches(str(name), manifest.config, 1)
            yield f"{name}: there is no such setting" + (f"; did you mean {near[0]}?" if near else "")


def _wrong(manifest: Manifest, given: Mapping[str, Any]) -> Iterator[str]:
    for name, one in manifest.config.items():
        if name in given and given[name] is not None:
            fault = _fault(one, given[name])
            if fault:
                yield f"{name}: {fault}"
        elif one.required:
            yield f"{name}: it has to be set"


def _fault(one: Setting, value: Any) -> str:
    if not isinstance(value, _TYPES[one.type]) or (isinstance(value, bool) and one.type != "boolean"):
        return f"it must be of the type {one.type}"
    if one.enum and value not in one.enum:
        return f"it must be one of: {', '.join(map(str, one.enum))}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        if one.minimum is not None and value < one.minimum:
            return f"it must be at least {one.minimum:g}"
        if one.maximum is not None and value > one.maximum:
            return f"it must be at most {one.maximum:g}"
    return ""
