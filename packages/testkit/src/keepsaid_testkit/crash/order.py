"""The order: what one life of the runtime is to be, and how it tells what happened to it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, field
from importlib import import_module
from typing import Any

from keepsaid.values import frozen

Program = Callable[[list[str]], int]
"""Takes a command line, returns an exit code."""

LEASE_MS = 60_000
"""As the program has it."""


@frozen
class Order:
    """A life to be lived: its command line, home and log, and where it dies: `aims` has for points at which pass.

    `effects` is the file its tools leave their marks in, `fault` a mistake to be built in, `lease_ms` how long it may
    work on a batch without a sign. While the file `full` exists, its disk has no space; "" for a disk as it is.
    """

    arguments: tuple[str, ...]
    home: str
    log: str
    effects: str
    aims: Mapping[str, int] = field(default_factory=dict)
    fault: str = ""
    lease_ms: int = LEASE_MS
    full: str = ""

    @classmethod
    def read(cls, line: str) -> Order:
        """An order from its line."""
        return cls(**json.loads(line))

    def line(self) -> str:
        """It as a line of JSON."""
        return json.dumps(asdict(self)) + "\n"


def program_of(name: str) -> Program:
    """The program of a name such as `package.module:function`."""
    module, _, function = name.partition(":")
    program: Program = getattr(import_module(module), function)
    return program


def tell(event: dict[str, Any], file: int = 1) -> None:
    """Write an event in one piece, so that lines of two processes never mix."""
    os.write(file, json.dumps(event).encode() + b"\n")
