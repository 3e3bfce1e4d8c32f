"""Many commands in one process that may not write what its files' modes forbid, or on a disk of its own."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from tests.acceptance.program import ROOT, WITHIN_S, Program, Ran

_DROP_FROM_BOUNDING_SET, _DAC_OVERRIDE = 24, 1


def run_many(program: Program, *commands: tuple[str, ...], front: tuple[str, ...] = (), fill: str = "") -> list[Ran]:
    """Run commands one after the other in a process without the privileges of root; returns how each ended.

    `front` starts the process. Before the command `fill`, the disk of the home is filled to the last byte.
    """
    order = json.dumps({"home": str(program.home), "commands": commands, "fill": fill})
    environment = {**program.environment, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [*front, sys.executable, "-m", "tests.acceptance.many", order]
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=WITHIN_S, check=False, cwd=ROOT
    )
    assert ended.returncode == 0, ended.stderr
    return [Ran(*json.loads(line)) for line in ended.stdout.splitlines()]


def _drop_privileges() -> None:
    """Make modes of files hold for root too; a process that is started has what is left in the bounding set."""
    if os.getuid() == 0 and sys.platform == "linux" and os.environ.get("DROPPED") is None:
        assert ctypes.CDLL(None).prctl(_DROP_FROM_BOUNDING_SET, _DAC_OVERRIDE, 0, 0, 0) == 0
        again = [sys.executable, "-m", "tests.acceptance.many", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, "DROPPED": "1"})


def _fill(folder: Path) -> None:
    with (folder / "filling").open("wb", buffering=0) as file:
        try:
            while file.write(b"\0" * 1_024):
                pass
        except OSError:
            return


def _main(order: dict[str, Any]) -> None:
    from keepsaid.interfaces.cli.program import run  # noqa: PLC0415 - after the privileges are dropped

    for command in order["commands"]:
        if command == [order["fill"]]:
            _fill(Path(order["home"]).parent)
            continue
        out, err = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = run(["--home", order["home"], *command])
        print(json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)


if __name__ == "__main__":
    _drop_privileges()
    _main(json.loads(sys.argv[1]))
