"""What `keepsaid doctor` prints in ten situations: kept in a file, so that a change is read by a person."""

from __future__ import annotations

import io
import json
import re
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from keepsaid.interfaces.cli.program import run

Harm = Callable[[Path], None]
_DEAD_PID = 2**22 + 1
_OFFLINE = ("doctor", "--offline")
_MACHINE = (
    (re.compile(r"python [\d.]+\S*, SQLite [\d.]+"), "python 3, SQLite 3"),
    (re.compile(r"[\d.]+ GB free"), "100.0 GB free"),
    (re.compile(r"log [\d.]+ MB"), "log 0.0 MB"),
    (re.compile(r"schema \d+"), "schema 1"),
    (re.compile(r"\b(mem|msg)_[0-9a-z]{13}"), r"\1_0123456789abc"),
)
"""What differs from machine to machine, and what is written in its place."""


def _untouched(_home: Path) -> None:
    """Leave the home as it is."""


def _used(home: Path) -> None:
    """Store a message and a memory."""
    _call(home, "inbox", "send", "the lamp is broken")
    _call(home, "memory", "add", "The kettle is in the cellar.")


def _configured(text: str) -> Harm:
    def write(home: Path) -> None:
        (home / "config").mkdir(mode=0o700, parents=True)
        (home / "config/config.yaml").write_text(text, "utf-8")

    return write


def _open_to_others(home: Path) -> None:
    _used(home)
    (home / "data").chmod(0o755)
    (home / "data/buffer.db").chmod(0o644)


def _killed(home: Path) -> None:
    _used(home)
    address = home / "run/runtime.json"
    address.write_text(json.dumps({"url": "http://127.0.0.1:1", "token": "t", "pid": _DEAD_PID}), "utf-8")
    address.chmod(0o600)


def _damaged(home: Path) -> None:
    _used(home)
    with (home / "data/memory.db").open("r+b") as file:
        file.seek(4_096)
        file.write(b"\xff" * 4_096)


def _lost(home: Path) -> None:
    _used(home)
    (home / "data/buffer.db").unlink()


def _late(home: Path) -> None:
    _configured("buffer: {warn_count: 1}\n")(home)
    _used(home)


SITUATIONS: dict[str, tuple[Harm, tuple[str, ...]]] = {
    "nothing was stored yet": (_untouched, _OFFLINE),
    "all is well": (_used, _OFFLINE),
    "every row is read": (_used, (*_OFFLINE, "--deep")),
    "the settings have a key that nobody reads": (_configured("buffr: {window_ms: 5}\n"), _OFFLINE),
    "settings are wrong": (_configured("server: {port: high}\nbuffer: {window_ms: -1}\n"), _OFFLINE),
    "others can read the stores": (_open_to_others, _OFFLINE),
    "the server was killed": (_killed, _OFFLINE),
    "a store is damaged": (_damaged, _OFFLINE),
    "a store is gone": (_lost, _OFFLINE),
    "messages wait for too long": (_late, _OFFLINE),
    "the model cannot be reached": (
        _configured("models: {chat: openai/small, base_url: 'http://127.0.0.1:9/v1', api_key: k}\n"),
        ("doctor",),
    ),
}
"""Each with what is done to a home, and the command."""


def page() -> str:
    """The text of every situation."""
    return "\n\n".join(f"# {name}\n{_printed(*told)}" for name, told in SITUATIONS.items()) + "\n"


def _printed(harm: Harm, command: tuple[str, ...]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder).resolve() / "home"
        harm(home)
        text = _call(home, *command).replace(str(home), "HOME")
    for pattern, written in _MACHINE:
        text = pattern.sub(written, text)
    return text.strip()


def _call(home: Path, *command: str) -> str:
    """Run a command in this process; returns what it prints and its exit code."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(["--home", str(home), *command])
    return f"$ keepsaid {' '.join(command)}\n{out.getvalue()}{err.getvalue()}exit code {code}"
