"""The chat of a person, driven in a pseudo-terminal with a scripted model: what is shown, in which order, and stops."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.acceptance.program import WITHIN_S, Program, Screen

from keepsaid.testing.model_script import Call, ChatRequest, Empty, Hang, Reaction, Say
from keepsaid.testing.model_server import ThreadedModelServer

_ROWS = 40
_MARKDOWN = (
    "# Rivers\n\nThe **Douro** flows to Porto, and this line is so long that it has to wrap.\n\n- one\n- two\n&#27;[31m"
)
_OWN_TERMINAL = (
    "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)
"""Starts a program as a shell in this terminal would: Ctrl-C interrupts it."""
_CSI = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[=>]")


class Person:
    """Somebody at a terminal: types, and reads what is shown without its escape codes."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int) -> None:
        self.process = process
        self.terminal = terminal
        self._screen = Screen(terminal)

    def sees(self, text: str) -> str:
        """What is shown next, up to and with a text."""
        shown = _CSI.sub(b"", self._screen.until(text.encode())).replace(b"\r", b"\n")
        return shown.decode("utf-8", "replace")

    def types(self, text: str) -> None:
        """Press keys."""
        os.write(self.terminal, text.encode())

    def leaves(self) -> None:
        """End the chat at its prompt."""
        self.types("\x04")
        self.sees("To continue: keepsaid chat")
        assert self.process.wait(WITHIN_S) == 0


@contextmanager
def chatting(program: Program, columns: int = 100) -> Iterator[Person]:
    """A chat in a terminal of so many columns, at its first prompt."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, columns, 0, 0))
    environment = {**program.environment, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
    environment.pop("COLUMNS", None)
    command = [sys.executable, "-c", _OWN_TERMINAL, *program.command("chat")]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    try:
        person = Person(process, ours)
        person.sees("you >")
        yield person
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _react(request: ChatRequest) -> Reaction:
    asked = request.last("user")
    if "hang" in asked:
        return Hang()
    if "thanks" in asked:
        return Empty()
    if "be quiet" in asked:
        return Call("stay_silent", {"reason": "you asked for silence"})
    if "rivers" in asked:
        return Say(_MARKDOWN, chunk=7)
    if "look up" in asked and request.messages[-1]["role"] == "user":
        return Call("memory_search", {"query": "rivers"})
    return Say(f"answer to {'late' if 'late' in asked else 'quick'}", delay_s=1.5 if "late" in asked else 0.0)


@pytest.fixture
def talking(tmp_path: Path) -> Iterator[Program]:
    with ThreadedModelServer(_react) as server:
        program = Program(tmp_path / "home")
        models = f"models: {{chat: openai/scripted, base_url: '{server.url}', api_key: none}}"
        program.configure(f"{models}\ncollection: {{extractor: none}}\nbuffer: {{window_ms: 0}}\n")
        yield program


def test_markdown_is_rendered_in_the_width_of_the_window(talking: Program) -> None:
    with chatting(talking, columns=60) as person:
        person.types("rivers?\r")
        person.sees("Ctrl-C stops waiting")
        shown = person.sees("you >")
        assert "**" not in shown
        assert "# Rivers" not in shown
        assert "• one" in shown
        assert "\x1b" not in shown
        lines = [line for line in shown.splitlines() if "Douro" in line]
        assert lines
        assert max(map(len, lines)) <= 60
        person.leaves()


def test_a_message_without_a_reply_is_settled_and_says_why(talking: Program) -> None:
    with chatting(talking) as person:
        person.types("thanks\r")
        person.sees("is done, without a reply: the model gave no answer")
        person.sees("you >")
        person.types("be quiet\r")
        person.sees("is done, without a reply: you asked for silence")
        person.sees("you >")
        person.leaves()
    once = talking.run("chat", "-m", "thanks")
    assert (once.out, once.err.count("without a reply: the model gave no answer")) == ("", 1)
    assert "committed" in talking.run("why").out
    assert "silent: the model gave no answer" in talking.run("why").out


def test_replies_are_shown_in_the_order_of_the_questions(talking: Program) -> None:
    with chatting(talking) as person:
        person.types("late please\r")
        person.sees("thinking")
        person.types("\x03")
        person.sees("Ctrl-C again or /stop cancels it")
        person.sees("you >")
        person.types("now\r")
        before = person.sees("answer to quick")
        assert "answer to late" in before
        person.sees("you >")
        person.leaves()


def test_what_is_typed_during_an_answer_is_kept_and_not_shown_in_it(talking: Program) -> None:
    with chatting(talking) as person:
        person.types("late please\r")
        person.sees("thinking")
        person.types("now\rhalf a li")
        waiting = person.sees("answer to late")
        assert "now" not in waiting
        person.sees("you > now")
        person.sees("answer to quick")
        person.sees("half a li")
        person.types("ne\r")
        person.sees("answer to quick")
        person.sees("you >")
        person.leaves()


def test_what_is_typed_survives_that_the_waiting_is_stopped(talking: Program) -> None:
    with chatting(talking) as person:
        person.types("hang\r")
        person.sees("thinking")
        person.types("/stop\r")
        person.types("\x03")
        person.sees("Ctrl-C again or /stop cancels it")
        person.sees("Stopped; there will be no reply.")
        person.sees("you >")
        person.leaves()


@pytest.mark.parametrize("second", ["\x03", "/stop\r"])
def test_the_turn_and_its_call_are_cancelled_on_request(talking: Program, second: str) -> None:
    with chatting(talking) as person:
        person.types("hang\r")
        person.sees("thinking")
        person.types("\x03")
        person.sees("Ctrl-C again or /stop cancels it")
        person.sees("you >")
        person.types(second)
        person.sees("Stopped; there will be no reply.")
        person.sees("you >")
        person.types("and now\r")
        person.sees("answer to quick")
        person.sees("you >")
        person.types("/stop\r")
        person.sees("Nothing of this chat is being answered.")
        person.sees("you >")
        person.leaves()
    [_, stopped] = talking.run("inbox", "ls", "--json").json["messages"]
    assert (stopped["state"], stopped["batch"]["reason"]) == ("dropped", "stopped by the person who asked")


def test_the_running_tool_is_named(talking: Program) -> None:
    with chatting(talking) as person:
        person.types("look up the capital\r")
        person.sees("answer to quick")
        person.sees("you >")
        person.leaves()
    story = talking.run("inbox", "ls", "--json").json["messages"][0]
    assert story["state"] == "done"


def test_the_line_typed_when_the_host_went_away_is_answered(talking: Program) -> None:
    with chatting(talking) as second, chatting(talking) as first:
        second.leaves()  # it ran the instance for both
        first.types("is anybody there\r")
        first.sees("answer to quick")
        first.sees("you >")
        first.leaves()
    assert [one["text"] for one in talking.run("inbox", "ls", "--json").json["messages"]] == ["is anybody there"]


def test_commands_and_their_words_are_completed(talking: Program) -> None:
    with chatting(talking) as person:
        person.types("/pers\t")
        person.sees("how the agent speaks")
        person.types(" re\t")
        person.sees("reset")
        person.types("\x15")  # the line is cleared
        person.leaves()


def test_a_paused_conversation_keeps_what_is_said_until_it_is_resumed(talking: Program) -> None:
    with chatting(talking) as person:
        for line, seen in (
            ("/pause\r", "Paused."),
            ("first\r", "this conversation is paused; /resume answers what waits here"),
        ):
            person.types(line)
            person.sees(seen)
            person.sees("you >")
        person.leaves()
    assert "this conversation is paused" in talking.run("chat", "-m", "second", code=1).err
    waiting = next(one["id"] for one in talking.run("inbox", "ls", "--json").json["messages"] if one["text"] == "first")
    assert "waits       until /resume: the conversation is paused" in talking.run("inbox", "why", waiting).out
    with chatting(talking) as person:
        person.types("/incognito\r")
        person.sees("Incognito is on.")
        person.sees("you >")
        person.types("/resume\r")
        person.sees("answer to quick")
        person.sees("you >")
        person.leaves()
    states = {one["text"]: one["state"] for one in talking.run("inbox", "ls", "--json").json["messages"]}
    assert (states["first"], states["second"]) == ("done", "done")
    begun = talking.run("chat", given="").err
    assert "Incognito is on" in begun
    assert "paused" not in begun


def test_a_server_ends_when_its_terminal_is_closed_and_reloads_on_the_signal_otherwise(talking: Program) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", _OWN_TERMINAL, *talking.command("serve", "--port", "0")]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=talking.environment)
    os.close(theirs)
    try:
        person = Person(process, ours)
        person.sees("Ctrl-C stops it")
        process.send_signal(signal.SIGHUP)
        person.sees("reloaded")
        os.close(ours)
        assert process.wait(WITHIN_S) == 0
    finally:
        process.kill()
        process.wait()


def test_what_was_remembered_is_said_and_taken_back(talking: Program) -> None:
    with chatting(talking) as person:
        person.types("/remember the spare key is under the blue pot\r")
        person.sees("remembered: [fact]")
        person.sees("you >")
        person.types("/undo\r")
        person.sees("undone: [fact]")
        person.sees("you >")
        person.leaves()
