"""Settings that change while `serve` is at work: by signal and by command, in real processes."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

from tests.acceptance.program import WITHIN_S, Program, Running

_SETTINGS = "models: {chat: none}\nbuffer: {window_ms: 0}\n"
_DROP = "routes: {rules: [{name: quiet, action: drop, match: {channel: http}}]}\n"


def said(running: Running) -> str:
    """What the runtime says next."""
    assert running.process.stderr is not None
    late = threading.Timer(WITHIN_S, running.process.kill)
    late.start()
    try:
        return running.process.stderr.readline()
    finally:
        late.cancel()


def until(running: Running, word: str) -> str:
    """The line that holds a word."""
    while word not in (line := said(running)):
        assert line, f"it never said {word}"
    return line


def test_a_signal_and_a_command_put_new_rules_in_force(tmp_path: Path) -> None:
    program = Program(tmp_path / "home")
    program.configure(_SETTINGS)
    with program.serving() as running:
        first = program.run("--json", "inbox", "send", "--channel", "http", "one").json["id"]
        assert running.settled(first)["state"] == "done"
        program.configure(_SETTINGS + _DROP)
        running.process.send_signal(signal.SIGHUP)
        assert "routes.rules" in until(running, "reloaded")
        second = program.run("--json", "inbox", "send", "--channel", "http", "two").json["id"]
        assert running.settled(second)["state"] == "dropped"
        program.configure("routes: {rules: [")
        running.process.send_signal(signal.SIGHUP)
        assert "config.yaml" in until(running, "not reloaded")
        assert program.run("config", "reload", code=4).err.startswith("error: ")
        program.configure(_SETTINGS.replace("0", "9"))
        changed = program.run("config", "reload", code=5).out
        assert changed.splitlines() == ["changed        routes.rules", "needs a restart: buffer.window_ms"]
        third = program.run("--json", "inbox", "send", "--channel", "http", "three").json["id"]
        assert running.settled(third)["state"] == "done"
    assert "nothing runs on this home" in program.run("config", "reload", code=3).err
