"""Parts: what built-in extensions are given beside what every extension is given; they are of the core and trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from keepsaid.config import Config
from keepsaid.domain.turn import Claimed
from keepsaid.engine.supervisor import ServiceLoop
from keepsaid.extensions.discovery import ExtensionSource, FoundExtension
from keepsaid.extensions.manifest import Manifest, manifest_of, read_manifest
from keepsaid.extensions.services import RuntimeExtensionContext
from keepsaid.ports.model import Tool

NAMES = ("terminal", "http", "github", "memory", "memory_consolidator")
"""Those there are."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What an instance has made of its config that built-in extensions bring in.

    `elsewhere` names the channels that other extensions bring.
    """

    config: Config
    memory_tools: Callable[[Claimed], Sequence[Tool]]
    collecting: Callable[[], Sequence[ServiceLoop]]
    elsewhere: frozenset[str] = frozenset()


class BuiltInContext(RuntimeExtensionContext):
    """The context of a built-in extension."""

    parts: Parts


@cache
def _manifest(name: str) -> Manifest:
    return manifest_of(read_manifest((files(__package__) / f"{name}.yaml").read_text("utf-8")))


def built_in(config: Config) -> Iterator[FoundExtension]:
    """The built-in extensions, and whether each is wanted."""
    for name in NAMES:
        manifest = _manifest(name)
        enabled = config.extensions[name].enabled if name in config.extensions else True
        yield FoundExtension(name, ExtensionSource.BUILT_IN, Path(str(manifest.entrypoint)), manifest, enabled=enabled)
