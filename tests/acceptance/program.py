"""The program as people start it: real processes on a home of their own, with a deadline on every wait."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import threading
from atexit import register
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.acceptance.asking import ask, order_of
from tests.acceptance.served import Process, WarmProcess

from keepsaid.interfaces.cli.program import run

ROOT = Path(__file__).resolve().parents[2]
WITHIN_S = 300.0
"""What takes so long hangs; a busy machine may well need half a minute for a start."""

_MODELS = ("OPENAI", "ANTHROPIC", "OLLAMA", "KEEPSAID", "NO_COLOR")


@cache
def warm_place() -> str:
    """Where this process asks for warm starts."""
    folder = tempfile.mkdtemp(prefix="warm-")
    register(partial(shutil.rmtree, folder, ignore_errors=True))
    place = str(Path(folder) / "asked")
    command = [sys.executable, "-m", "tests.acceptance.warm", place]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    register(process.communicate)
    assert process.stdout is not None
    assert process.stdout.readline(), "the warm process did not start"
    return place


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one object on stdout, in the envelope."""
        told: dict[str, Any] = json.loads(self.out)
        assert told["schema_version"] == 1
        return told


@dataclass
class Running:
    """A `serve` that listens."""

    process: Process
    url: str
    token: str

    def settled(self, message_id: str) -> dict[str, Any]:
        """The story of a message once it is settled."""
        headers = {"Authorization": f"Bearer {self.token}"}
        asked = f"{self.url}/v1/messages/{message_id}/events"
        events = httpx2.get(asked, headers=headers, timeout=WITHIN_S, verify=False).text
        last = events.rstrip().rsplit("\n\n", 1)[-1]
        story: dict[str, Any] = json.loads(last.partition("data: ")[2])
        return story


@dataclass(frozen=True)
class Program:
    """`python -m keepsaid` on one home."""

    home: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """No model, no settings of whoever runs the tests."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_MODELS)}
        return {**kept, "PYTHONPATH": str(ROOT / "src"), "KEEPSAID_HOME": str(self.home), **self.variables}

    def run(self, *arguments: str, given: str | bytes = "", code: int | None = 0) -> Ran:
        """Run a command to its end and expect an exit code; None takes any. Nothing may print a traceback."""
        order = order_of([*arguments], self.environment)
        with tempfile.TemporaryFile() as read, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            read.write(given.encode() if isinstance(given, str) else given)
            read.seek(0)
            ended = ask(warm_place(), order, (read.fileno(), out.fileno(), err.fileno()), WITHIN_S)
            out.seek(0)
            err.seek(0)
            ran = Ran(ended, out.read().decode(), err.read().decode())
        assert "Traceback" not in ran.err + ran.out, ran.err
        assert code is None or ran.code == code, f"{arguments} ended with {ran.code}\n{ran.out}\n{ran.err}"
        return ran

    def start(self, *arguments: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
        """Start a command that goes on."""
        return subprocess.Popen(
            self.command(*arguments),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment,
            text=True,
        )

    @contextmanager
    def serving(self, *options: str, is_cold: bool = False) -> Iterator[Running]:
        """A runtime that listens; it must stop by itself, and well, when it is told to, unless it was killed.

        A cold start takes a second of a core; one that is not about the start itself is warm, unless the program is
        another than this one.
        """
        is_cold = is_cold or "PYTHONPATH" in self.variables
        command = ("serve", "--port", "0", "--json", *options)
        warm = partial(WarmProcess, within_s=WITHIN_S)
        with self.start(*command) if is_cold else warm(warm_place(), order_of([*command], self.environment)) as process:
            try:
                address = json.loads(line_of(process))
                yield Running(process, address["url"], self.runtime()["token"])
                if process.poll() is None:
                    process.terminate()
                    assert process.wait(WITHIN_S) == 0
            finally:
                process.kill()

    def runtime(self) -> dict[str, Any]:
        """What the running instance left in its home."""
        told: dict[str, Any] = json.loads((self.home / "run" / "runtime.json").read_text("utf-8"))
        return told

    def configure(self, text: str) -> None:
        """Write the config file."""
        folder = self.home / "config"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / "config.yaml").write_text(text, "utf-8")

    def command(self, *arguments: str) -> list[str]:
        """The command line."""
        return [sys.executable, "-m", "keepsaid", *arguments]


def inside(program: Program, capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Ran:
    """The same command line in this process, which is quicker: for commands that only look."""
    ended = run(["--home", str(program.home), *arguments])
    ran = Ran(ended, *capsys.readouterr())
    assert ran.code == code, ran.err
    return ran


def line_of(process: Process) -> str:
    """The next line of a process's output; one that says nothing in time is ended, and says why on stderr."""
    assert process.stdout is not None
    assert process.stderr is not None
    late = threading.Timer(WITHIN_S, process.kill)
    late.start()
    try:
        line = process.stdout.readline()
    finally:
        late.cancel()
    assert line, process.stderr.read()
    return line


class Screen:
    """What a terminal shows, read piece by piece."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._shown = b""

    def until(self, wanted: bytes, within_s: float = WITHIN_S) -> bytes:
        """What it shows next, up to and with `wanted`."""
        while wanted not in self._shown:
            ready, _, _ = select.select([self._descriptor], [], [], within_s)
            assert ready, f"{wanted!r} was never shown after {self._shown!r}"
            self._shown += os.read(self._descriptor, 65_536)
        before, found, self._shown = self._shown.partition(wanted)
        return before + found
