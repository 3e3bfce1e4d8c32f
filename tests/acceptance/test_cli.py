"""The command line as people use it: real processes, on homes of their own, without any model."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from tests.acceptance.program import WITHIN_S, Program, Running, Screen, inside, line_of

from keepsaid.domain.ids import show

FACT = "The blue kettle is kept in the boathouse, shelf 42."
_AT_LEISURE = "memory: {deadline_ms: 5000}\n"
"""Recall is not cut short, however busy the machine is."""

_DROPPING = f"""
{_AT_LEISURE}
routes:
  rules:
    - {{name: junk, match: {{text: "*spam*"}}, action: drop, reason: nobody wants it}}
"""


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A home in which a fact was told."""
    program = Program(tmp_path_factory.mktemp("lived"))
    program.configure(_AT_LEISURE)
    program.run("chat", given=f"{FACT}\n")
    return program


@pytest.fixture
def fresh(tmp_path: Path) -> Program:
    """A home that does not exist yet."""
    return Program(tmp_path / "home")


# Talking


def test_what_one_process_is_told_another_remembers(lived: Program) -> None:
    answer = lived.run("chat", given="Where is the blue kettle kept?\n")
    assert FACT in answer.out
    assert "No model is set" in answer.out
    assert "keepsaid init" in answer.err
    assert "lane root:terminal" in answer.err
    why = lived.run("why").out
    assert FACT in why
    assert "already in this prompt" in why


def test_piped_each_line_has_its_block_and_nothing_else_is_printed(fresh: Program) -> None:
    lines = b"hello there\n\n   \nbroken \xff bytes\r\na \0 zero\n/tmp is full\n//slash\n//stop\n/help\n"
    talked = fresh.run("chat", given=lines + b"the last, without an end")
    blocks = talked.out.split("\n\n")
    assert blocks.pop() == ""
    assert blocks.pop(-2).startswith("/help ")
    assert len(blocks) == 7
    assert all(block.startswith("No model is set") for block in blocks)
    listed = fresh.run("inbox", "ls", "--json").json["messages"]
    said = [message["text"] for message in reversed(listed)]
    slashed = ["/tmp is full", "/slash", "/stop"]
    assert said == ["hello there", "broken � bytes", "a � zero", *slashed, "the last, without an end"]
    assert {message["state"] for message in listed} == {"done"}
    assert [reply["state"] for message in listed for reply in message["replies"]] == ["sent"] * 7


def test_why_in_a_chat_explains_its_last_turn(lived: Program) -> None:
    talked = lived.run("chat", "--conversation", "attic", given="/why\nGood morning, everyone!\n/why\n/quit\nnever\n")
    assert "no turn has ended yet" in talked.err
    assert "Good morning, everyone!" in talked.out
    assert "CHOSEN 0" in talked.out
    assert "never" not in talked.out


def test_one_shot(lived: Program) -> None:
    story = lived.run("chat", "-m", "/why not?", "--json").json["message"]
    assert story["text"] == "/why not?"
    assert story["state"] == "done"
    assert story["replies"][0]["text"].startswith("No model is set")


def test_a_person_at_a_terminal(fresh: Program) -> None:
    ours, theirs = pty.openpty()
    terminal = {**fresh.environment, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
    process = subprocess.Popen(fresh.command("chat"), stdin=theirs, stdout=theirs, stderr=theirs, env=terminal)
    os.close(theirs)
    screen = Screen(ours)
    try:
        screen.until(b"you >")
        os.write(ours, b"hello there\r")
        shown = screen.until(b"keepsaid init ")
        assert b"No model is set" in shown
        screen.until(b"you >")
        os.write(ours, b"/rset\r")
        screen.until(b"did you mean /reset?")
        screen.until(b"you >")
        os.write(ours, b"/reset the router\r")
        screen.until(b"your message is stored")
        screen.until(b"you >")
        fresh.run("inbox", "send", "water the plants", "--channel", "terminal", "--conversation", "terminal")
        screen.until(b"\x1b[1mbot, ")
        screen.until(b"No model is set")
        screen.until(b"you >")  # only then the terminal is in raw mode again, where Ctrl-D is a key
        os.write(ours, b"\x04")
        assert process.wait(WITHIN_S) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_a_line_that_is_refused_is_named_in_a_quiet_pipe_too(fresh: Program) -> None:
    talked = fresh.run("chat", "--quiet", given="/nope\n", code=1)
    assert talked.err == "refused: there is no command /nope. Nothing was sent.\n"
    assert talked.out == ""


# Beside a running instance, and without one


def test_beside_a_running_instance(fresh: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fresh.configure(_DROPPING)
    waiting = fresh.run("inbox", "send", "said before the start", "--key", "k1")
    assert "waits for the next one" in waiting.err
    again = inside(fresh, capsys, "inbox", "send", "said before the start", "--key", "k1")
    assert again.out.split()[1] == "duplicate"
    with fresh.serving(is_cold=True) as running:
        assert running.settled(waiting.out.split()[0])["state"] == "done"
        busy = fresh.run("serve", code=1)
        assert f"process {running.process.pid} is already running this home" in busy.err
        assert f"Running at {running.url}" in inside(fresh, capsys, "status").out
        conflict = inside(fresh, capsys, "inbox", "send", "said otherwise", "--key", "k1", code=1)
        assert "KS-INP-CONFLICT" in conflict.err
        assert fresh.run("memory", "add", "The roof of the tram depot leaks.").out.startswith("mem_")
        assert "tram depot" in fresh.run("chat", "-m", "Does the tram depot leak?").out
        backed_up_and_restored(fresh, tmp_path, capsys)
        requeued(fresh, running, capsys)
        assert "a runtime is up" in inside(fresh, capsys, "doctor", "--offline").out
        unseen(running)
    assert not (fresh.home / "run/runtime.json").exists()
    shown = fresh.run("chat", given="")
    assert "earlier reply to 'hello', " in shown.err
    assert shown.out == ""
    replies = inside(fresh, capsys, "inbox", "ls", "--conversation", "terminal", "--json").json["messages"][0][
        "replies"
    ]
    assert [reply["state"] for reply in replies] == ["sent"]


def backed_up_and_restored(program: Program, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, home = place / "backup", place / "restored"
    counts = program.run("data", "backup", str(made), "--json").json["counts"]
    assert counts["buffer"] == 2
    assert "KS-HOME" in inside(program, capsys, "data", "backup", str(made), code=1).err
    restored = program.run("data", "restore", str(made), "--to", str(home))
    assert f"keepsaid --home {home} status" in restored.err
    copy = program.run("--home", str(home), "status", "--json").json
    assert copy["messages"] == 2
    assert copy["runtime"]["up"] is False
    with (made / "memory.db").open("r+b") as file:
        file.seek(5_000)
        file.write(b"changed")
    broken = inside(program, capsys, "data", "restore", str(made), "--to", str(place / "no"), code=1)
    assert "is not the file that was backed up" in broken.err
    assert not (place / "no").exists()


def unseen(running: Running) -> None:
    """Say something as the owner, and go away before the reply."""
    body = {"text": "hello", "sender": "owner", "conversation": "terminal", "channel": "terminal", "direct": True}
    put = httpx2.post(f"{running.url}/v1/messages", json=body, headers={"Authorization": f"Bearer {running.token}"})
    assert running.settled(put.json()["id"])["replies"][0]["state"] == "pending"


def requeued(program: Program, running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    junk = program.run("inbox", "send", "buy spam", "--json").json["id"]
    dropped = running.settled(junk)
    assert dropped["state"] == "dropped"
    assert "nobody wants it" in inside(program, capsys, "inbox", "show", junk).out
    assert program.run("inbox", "requeue", junk, "--reason", "it was wanted").out.split()[1:] == ["queued", "again"]
    assert running.settled(junk)["state"] == "done"
    again = inside(program, capsys, "inbox", "requeue", dropped["batch"]["id"], code=1)
    assert "is not dead, dropped or in review" in again.err


def test_killed_between_put_and_reply(fresh: Program, capsys: pytest.CaptureFixture[str]) -> None:
    slow = Program(fresh.home, {"KEEPSAID_BUFFER__WINDOW_MS": "1500"})
    with slow.serving(is_cold=True) as running:
        body = {"text": "remember me", "sender": "ann", "conversation": "room"}
        put = httpx2.post(f"{running.url}/v1/messages", json=body)
        running.process.kill()
        running.process.wait()
    assert put.status_code == 201
    story = inside(fresh, capsys, "inbox", "show", put.json()["id"], "--json").json["message"]
    assert story["state"] == "received"
    assert inside(fresh, capsys, "status").out.startswith("Not running: 1 message to route")
    assert "was killed" in inside(fresh, capsys, "doctor", "--offline", code=5).out
    with fresh.serving(is_cold=True) as again:
        assert again.settled(put.json()["id"])["replies"][0]["text"].startswith("No model is set")


def test_stopped_by_a_signal_a_chat_ends_well(fresh: Program) -> None:
    process = fresh.start("chat", "--json", stdin=subprocess.PIPE)
    with process:
        assert process.stdin is not None
        process.stdin.write("hello\n")
        process.stdin.flush()
        assert json.loads(line_of(process))["message"]["state"] == "done"
        process.send_signal(signal.SIGTERM)
        assert process.wait(WITHIN_S) == 0
    assert not (fresh.home / "run/runtime.json").exists()


def test_a_reader_that_goes_away_is_no_error(lived: Program) -> None:
    process = lived.start("data", "logs")
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""


# For programs, and for people


_READING = (
    ("status",),
    ("inbox", "ls"),
    ("memory", "search", "kettle"),
    ("why",),
    ("data", "logs"),
    ("config", "show"),
    ("doctor", "--offline"),
)
_ALSO = (
    ("inbox", "show", "MESSAGE"),
    ("memory", "ls"),
    ("memory", "show", "MEMORY"),
    ("why", "TURN"),
    ("why", "MESSAGE"),
    ("why", "BATCH"),
    ("config", "path"),
    ("config", "validate"),
    ("config", "get", "models.chat"),
    ("config", "diff"),
    ("config", "schema"),
    ("--version",),
)


def test_every_command_speaks_json_and_text(lived: Program, capsys: pytest.CaptureFixture[str]) -> None:
    with ThreadPoolExecutor(4) as pool:
        told = dict(zip(_READING, pool.map(lambda call: lived.run(*call, "--json").json, _READING), strict=True))
    message, memory = told["inbox", "ls"]["messages"][-1], told["memory", "search", "kettle"]["hits"][0]["memory"]
    ids = {"MESSAGE": message["id"], "TURN": message["turn"], "BATCH": message["batch"]["id"], "MEMORY": memory["id"]}
    for call in (*_READING, *_ALSO):
        words = [ids.get(word, word) for word in call]
        told[call] = inside(lived, capsys, *words, "--json").json
        spoken = inside(lived, capsys, *words).out
        assert spoken
        assert "\x1b" not in spoken
    assert told["inbox", "show", "MESSAGE"]["message"]["text"] == FACT
    assert {told["why", name]["turn"]["id"] for name in ("TURN", "MESSAGE", "BATCH")} == {message["turn"]}
    assert told["status",]["memories"]["kinds"]["episode"] >= 1
    assert told["data", "logs"]["lines"][0]["logger"].startswith("keepsaid")
    assert FACT not in json.dumps(told["data", "logs"])
    assert "nothing" not in inside(lived, capsys, "data", "logs", "-n", "0").err
    assert " True" not in inside(lived, capsys, "ext", "events", "tail").out


def test_help_and_wrong_usage(fresh: Program, capsys: pytest.CaptureFixture[str]) -> None:
    assert "Talk:" in fresh.run().out
    assert inside(fresh, capsys, "--version").out.startswith("keepsaid ")
    assert "Did you mean 'status'" in inside(fresh, capsys, "statsu", code=2).err
    assert "Missing command" in inside(fresh, capsys, "inbox", code=2).err
    error = inside(fresh, capsys, "inbox", "ls", "--json", "--state", "lost", code=2).json["error"]
    assert error["code"] == "KS-USE"
    assert error["hint"] == "keepsaid inbox ls --help"
    for word, hint in (("connect", "ext connect "), ("backup", "data backup "), ("ls", ""), ("nonsense", "")):
        assert inside(fresh, capsys, word, "--json", code=2).json["error"]["hint"] == f"keepsaid {hint}--help", word


def test_nothing_was_ever_stored(fresh: Program, capsys: pytest.CaptureFixture[str]) -> None:
    assert "nothing was ever stored here" in fresh.run("status").out
    for looking in (("inbox", "ls"), ("memory", "ls"), ("memory", "search", "kettle")):
        assert "nothing was ever stored here" in inside(fresh, capsys, *looking).err
    assert inside(fresh, capsys, "inbox", "ls", "--json").json["messages"] == []
    for asking in (("why",), ("inbox", "show", show("message", 1)), ("memory", "show", show("memory", 1))):
        assert inside(fresh, capsys, *asking, "--json", code=1).json["error"]["code"] == "KS-INP"
    assert not fresh.home.exists()
