"""Commands beside whatever works in a home: one that comes back, one that does not listen, one that is another's."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.acceptance.program import WITHIN_S, Program, inside, line_of

from keepsaid import Keepsaid
from keepsaid.testing.model_script import Hang, Script
from keepsaid.testing.model_server import ThreadedModelServer

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def fresh(tmp_path: Path) -> Program:
    """A home that does not exist yet."""
    return Program(tmp_path / "home")


def say(process: subprocess.Popen[str], text: str) -> str:
    """Say a line in a chat over a pipe; returns the text it was stored as."""
    assert process.stdin is not None
    process.stdin.write(f"{text}\n")
    process.stdin.flush()
    return str(json.loads(line_of(process))["message"]["text"])


@pytest.mark.parametrize("same_port", [True, False])
def test_an_open_chat_goes_on_with_the_next_runtime(fresh: Program, *, same_port: bool) -> None:
    with fresh.serving(is_cold=True) as first:
        chat = fresh.start("chat", "--json", stdin=subprocess.PIPE)
        assert say(chat, "to the first") == "to the first"
    port = str(urlsplit(first.url).port) if same_port else "0"
    with chat, fresh.serving("--port", port) as second:
        assert say(chat, "to the second") == "to the second"
        assert str(second.process.pid) in json.dumps(fresh.runtime())
        assert chat.stdin is not None
        chat.stdin.close()
        assert chat.wait(WITHIN_S) == 0


def test_a_chat_without_a_runtime_says_so(fresh: Program) -> None:
    with fresh.serving():
        chat = fresh.start("chat", "--json", stdin=subprocess.PIPE)
        assert say(chat, "to the first") == "to the first"
    with chat:
        assert chat.stdin is not None
        assert chat.stdout is not None
        chat.stdin.write("to nobody\n")
        chat.stdin.close()
        assert json.loads(chat.stdout.read())["error"]["code"] == "KS-HOME-IDLE"
        assert chat.wait(WITHIN_S) == 3


def test_stopped_before_its_reply_a_message_is_named(fresh: Program, capsys: pytest.CaptureFixture[str]) -> None:
    with ThreadedModelServer(Script(default=Hang())) as server:
        settings = {"OPENAI_API_KEY": "k", "KEEPSAID_MODELS__BASE_URL": server.url, "KEEPSAID_TURNS__STOP_S": "0"}
        process = Program(fresh.home, settings).start("chat", "-m", "hello there")
        with process:
            server.wait_for(1, WITHIN_S)
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=WITHIN_S)
    assert (process.returncode, out) == (143, "")
    [message] = inside(fresh, capsys, "inbox", "ls", "--json").json["messages"]
    assert f"{message['id']} is stored: keepsaid inbox show {message['id']}" in err


def test_a_chat_listens_on_loopback_whatever_a_server_would(fresh: Program) -> None:
    fresh.configure("server: {host: 0.0.0.0, port: 0, token: t}\n")
    chat = fresh.start("chat", "--json", stdin=subprocess.PIPE)
    with chat:
        assert say(chat, "hello") == "hello"
        place = urlsplit(fresh.runtime()["url"])
        assert place.hostname == "127.0.0.1"
        assert place.port is not None
        with pytest.raises(OSError, match=r"refused|timed out"):
            socket.create_connection(("127.0.0.2", place.port), timeout=1.0)
        assert chat.stdin is not None
        chat.stdin.close()
        assert chat.wait(WITHIN_S) == 0


async def test_a_program_that_uses_the_library_is_named(fresh: Program) -> None:
    async with Keepsaid.open(fresh.home):
        told = fresh.run("status", "--json").json
        assert told["sentence"].startswith(f"Process {os.getpid()} holds this home and does not listen")
        assert told["runtime"] == {"up": False, "pid": os.getpid(), "url": None}
        looked = fresh.run("doctor", "--offline").out
        assert f"Process {os.getpid()} holds this home and does not listen" in looked
    assert fresh.run("status", "--json").json["runtime"] == {"up": False, "pid": None, "url": None}


def test_a_chat_greets_with_the_model_that_answers(fresh: Program) -> None:
    with fresh.serving():
        other = Program(fresh.home, {"KEEPSAID_MODELS__CHAT": "openai/of-this-shell"})
        assert "model none   " in other.run("chat", given="").err


class _AnotherServer(BaseHTTPRequestHandler):
    """A server that took the port of one of ours."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>hello</html>")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - so it is called
        """Nothing."""


@contextmanager
def another_server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _AnotherServer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"url": "http://127.0.0.1:99999"},
        {"url": "http://[nowhere"},
        {"url": "http://127.0.0.1:7448\n"},
        {"pid": 10**30},
        {"pid": -1},
        {"pid": float("inf")},
        {"token": "two\nlines"},
    ],
)
def test_a_runtime_file_that_is_not_true(
    fresh: Program, capsys: pytest.CaptureFixture[str], changed: dict[str, object]
) -> None:
    (fresh.home / "run").mkdir(parents=True)
    with another_server() as url:
        told = {"url": url, "token": "t", "pid": os.getpid(), **changed}
        (fresh.home / "run/runtime.json").write_text(json.dumps(told), "utf-8")
        assert inside(fresh, capsys, "status", "--json").json["runtime"]["up"] is False
        assert inside(fresh, capsys, "inbox", "send", "hello").out.startswith("msg_")


_OPERATOR = "an-operator-token-of-32-characters-or-more"


@pytest.fixture
def elsewhere(fresh: Program, tmp_path: Path) -> Iterator[Program]:
    """A program on an empty home of its own, with the token of an instance that runs in another home."""
    fresh.configure(f"models: {{chat: none}}\nserver: {{operator_token: {_OPERATOR}}}\n")
    with fresh.serving(is_cold=True) as running:
        assert running.token == _OPERATOR
        yield Program(tmp_path / "mine", {"KEEPSAID_TOKEN": _OPERATOR, "AT": running.url})


def test_commands_speak_to_an_instance_elsewhere(elsewhere: Program) -> None:
    at = ("--url", elsewhere.variables["AT"])
    added = elsewhere.run(*at, "memory", "add", "The kettle is in the cellar.", "--json").json["id"]
    assert [one["memory"]["id"] for one in elsewhere.run(*at, "memory", "search", "kettle", "--json").json["hits"]] == [
        added
    ]
    assert "nothing matches" in elsewhere.run(*at, "memory", "search", "umbrella").err
    assert "in the cellar" in elsewhere.run(*at, "chat", "-m", "Where is the kettle?").out
    piped = elsewhere.run(*at, "chat", given="Where is the kettle?\n/quit\n")
    assert "in the cellar" in piped.out
    assert f"To continue: keepsaid chat --url {at[1]}" not in piped.out
    elsewhere.run(*at, "schedule", "add", "--every", "3600", "--say", "hello", "--name", "hourly")
    assert "hourly" in elsewhere.run(*at, "schedule", "ls").out
    assert "every 1h" in elsewhere.run(*at, "schedule", "show", "hourly").out
    status = elsewhere.run(*at, "status").out
    assert status.startswith(f"Running at {at[1]}: nothing waits.")
    assert "memory      " in status
    assert elsewhere.run(*at, "status", "--json").json["runtime"]["url"] == at[1]
    assert not elsewhere.home.exists(), "nothing is made here for an instance elsewhere"


@pytest.mark.parametrize("command", ["inbox ls", "doctor", "config show", "data backup", "serve", "memory ls", "why"])
def test_a_command_on_files_says_that_they_are_elsewhere(fresh: Program, command: str, capsys: Capture) -> None:
    fails = 2 if command == "doctor" else 1
    told = inside(fresh, capsys, "--url", "http://127.0.0.1:9", *command.split(), code=fails)
    assert "--url names an instance elsewhere" in told.out + told.err


@pytest.mark.parametrize(
    ("url", "token", "said"),
    [
        ("ftp://example.org", _OPERATOR, "is not an address such as https://example.org"),
        ("http://[::1", _OPERATOR, "is not an address such as https://example.org"),
        ("http://127.0.0.1:9?x=1", _OPERATOR, "is not an address such as https://example.org"),
        ("http://127.0.0.1:9", "", "--url needs the operator token in KEEPSAID_TOKEN"),
    ],
)
def test_an_address_or_token_that_cannot_be_used(fresh: Program, url: str, token: str, said: str) -> None:
    program = Program(fresh.home, {"KEEPSAID_TOKEN": token})
    assert said in program.run("--url", url, "status", code=1).err


def test_nobody_there_and_a_wrong_token(elsewhere: Program) -> None:
    assert "start it there, or correct --url" in elsewhere.run("--url", "http://127.0.0.1:9", "status", code=3).err
    wrong = Program(elsewhere.home, {"KEEPSAID_TOKEN": "x" * 40})
    assert "export KEEPSAID_TOKEN" in wrong.run("--url", elsewhere.variables["AT"], "status", code=1).err


def test_a_short_operator_token_is_refused(fresh: Program) -> None:
    fresh.configure("server: {operator_token: short}\n")
    assert "needs at least 32 ASCII characters" in fresh.run("doctor", "--offline", code=6).out
    assert "needs at least 32 ASCII characters" in fresh.run("serve", "--port", "0", code=4).err
