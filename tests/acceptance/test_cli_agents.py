"""Agents of extensions across a real death of the process: an unsafe call of theirs is made once."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from tests.acceptance.program import WITHIN_S, Program, inside
from tests.unit.extension_cast import put_folder

from keepsaid.testing.model_script import Call, Script
from keepsaid.testing.model_server import ThreadedModelServer

Capture = pytest.CaptureFixture[str]

MANIFEST = """
id: till
api: 1
entrypoint: main:Till
schedules:
  - name: hourly
    every_s: 3600
    task: Charge the card of the customer
events:
  subscribes:
    - topic: schedule.paused
      handler: invoke_agent
agent:
  instructions: You charge cards.
  tools: [charge]
"""
SOURCE = """
import os
import signal

from keepsaid.extensions import tool


class Till:
    async def initialize(self, context):
        self.book = context.data / "book"

    @tool(serves="anyone")
    async def charge(self) -> str:
        '''Charge the card; the process dies before the answer.'''
        with self.book.open("a") as book:
            book.write("x")
        os.kill(os.getpid(), signal.SIGKILL)
        return "charged"
"""


@pytest.mark.parametrize("verb", ["run", "pause"])
def test_a_killed_agent_does_not_repeat_an_unsafe_call(tmp_path: Path, capsys: Capture, verb: str) -> None:
    """Whether its schedule or an event began the task."""
    home = tmp_path / "home"
    put_folder(home / "config" / "extensions", "till", MANIFEST, SOURCE)
    with ThreadedModelServer(Script(default=Call("charge", usage=(700, 7)))) as server:
        settings = {"OPENAI_API_KEY": "k", "KEEPSAID_MODELS__BASE_URL": server.url, "KEEPSAID_MODELS__CHAT": "openai/x"}
        program = Program(home, settings)
        with program.serving() as first:
            program.run("schedule", verb, "hourly", code=None)
            assert first.process.wait(WITHIN_S) == -signal.SIGKILL
        with program.serving():
            [task] = inside(program, capsys, "inbox", "tasks", "ls", "--json").json["tasks"]
            shown = inside(program, capsys, "why", task["id"])
            spent = inside(program, capsys, "status", "--json").json["tokens"]
    assert (home / "data" / "extensions" / "till" / "book").read_text() == "x"
    assert (task["state"], task["kind"], task["agent"]) == ("needs_review", "agent", "till")
    assert ("tool charge: started" in shown.out, "agent       till" in shown.out) == (True, True)
    assert spent == {"in": 700, "out": 7}
