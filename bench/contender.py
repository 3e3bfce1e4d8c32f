"""A contender: something that stores messages durably, how it is opened, and why one cannot take part."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.intake import PRODUCERS, Put


class Absent(Exception):
    """A contender that cannot be measured here; its text says why."""


@dataclass(frozen=True, slots=True)
class Contender:
    """How it is opened in a folder of its own, by how many producers it is fed, and what it does for durability."""

    opened: Callable[[Path], AbstractAsyncContextManager[Put]]
    durable: str
    producers: int = PRODUCERS


def needed(module: str) -> Any:
    """The module of a contender; raises Absent when it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise Absent(f"{module} is not installed") from error
