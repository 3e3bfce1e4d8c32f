"""Processes of the play: modules of this package, each in a session of its own, so that all it forks can be ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from keepsaid import errors


def environ() -> dict[str, str]:
    """This process's environment, with both packages to be found and nothing set that changes it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KEEPSAID_")}
    places = Path(errors.__file__).parents[1], Path(__file__).parents[2]
    return {**kept, "PYTHONPATH": os.pathsep.join(map(str, places))}


@contextmanager
def running(arguments: Sequence[str], out: IO[bytes] | int, errors: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """A module under `python -m`, ended with all it forked when the block ends; its input is a pipe."""
    process = subprocess.Popen(  # noqa: S603 - our own modules
        [sys.executable, "-m", *arguments],
        env=environ(),
        stdin=subprocess.PIPE,
        stdout=out,
        stderr=errors,
        start_new_session=True,
    )
    with process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
