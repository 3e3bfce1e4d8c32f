"""The command line as people use it: real processes, on homes of their own, without any model."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from tests.acceptance.program import ROOT, Program, line_of, read_until

from keepsaid.testing.model_script import Refuse, Say, Script
from keepsaid.testing.model_server import ThreadedModelServer

FACT = "The blue kettle is kept in the boathouse, shelf 42."
_DROPPING = """
routes:
  rules:
    - {name: junk, match: {text: "*spam*"}, action: drop, reason: nobody wants it}
"""


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A home in which a fact was told."""
    program = Program(tmp_path_factory.mktemp("lived"))
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
    lines = b"hello there\n\n   \nbroken \xff bytes\r\na \0 zero\n/nope\n//slash\nthe last, without an end"
    talked = fresh.run("chat", given=lines)
    blocks = talked.out.split("\n\n")
    assert blocks.pop() == ""
    assert len(blocks) == 5
    assert all(block.startswith("No model is set") for block in blocks)
    assert "/nope is no command and was not sent" in talked.err
    listed = fresh.run("inbox", "ls", "--json").json["messages"]
    said = [message["text"] for message in reversed(listed)]
    assert said == ["hello there", "broken � bytes", "a � zero", "/slash", "the last, without an end"]
    assert {message["state"] for message in listed} == {"done"}
    assert [reply["state"] for message in listed for reply in message["replies"]] == ["sent"] * 5


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
    assert "empty" in lived.run("chat", "-m", "  ", code=1).err


def test_a_person_at_a_terminal(fresh: Program) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        fresh.command("chat"), stdin=theirs, stdout=theirs, stderr=theirs, env={**fresh.environment, "TERM": "dumb"}
    )
    try:
        os.close(theirs)
        read_until(ours, b"you > ")
        os.write(ours, b"hello there\r")
        shown = read_until(ours, b"keepsaid init\r\n")
        assert b"No model is set" in shown
        read_until(ours, b"you > ")
        os.write(ours, b"/nope\r")
        read_until(ours, b"was not sent")
        read_until(ours, b"you > ")
        os.write(ours, b"\x04")
        assert process.wait(30) == 0
    finally:
        process.kill()
        os.close(ours)


def test_a_model_is_tried_before_it_is_saved_and_then_answers(fresh: Program) -> None:
    fresh.configure("log: {level: debug}\n")
    with ThreadedModelServer(Script(Refuse(401), default=Say("It is on shelf 42."))) as server:
        program = Program(fresh.home, {"OPENAI_API_KEY": "k", "KEEPSAID_MODELS__BASE_URL": server.url})
        refused = program.run("init", "--model", "openai/tiny", code=1)
        assert "refused the key" in refused.err
        assert (fresh.home / "config/config.yaml").read_text("utf-8") == "log: {level: debug}\n"
        assert program.run("init", "--model", "openai/tiny", "--json").json["model"] == "openai/tiny"
        assert "level: debug" in (fresh.home / "config/config.yaml").read_text("utf-8")
        assert (fresh.home / "config/config.yaml.bak").exists()
        assert (fresh.home / "config/agents/main/SOUL.md").exists()
        assert program.run("chat", given="Where is it?\n").out == "It is on shelf 42.\n\n"


def test_init_works_without_a_model(fresh: Program) -> None:
    made = fresh.run("init", "--non-interactive")
    assert "No model is set" in made.err
    assert "Next:  keepsaid chat" in made.err
    assert fresh.run("init", "--json").json["wrote"] == []


# Beside a running instance, and without one


def test_beside_a_running_instance(fresh: Program, tmp_path: Path) -> None:
    fresh.configure(_DROPPING)
    waiting = fresh.run("inbox", "send", "said before the start", "--key", "k1")
    assert "waits for the next one" in waiting.err
    assert fresh.run("inbox", "send", "said before the start", "--key", "k1").out.split()[1] == "duplicate"
    with fresh.serving() as running:
        assert running.settled(waiting.out.split()[0])["state"] == "done"
        busy = fresh.run("serve", code=1)
        assert f"process {running.process.pid} is already running this home" in busy.err
        assert f"Running at {running.url}" in fresh.run("status").out
        conflict = fresh.run("inbox", "send", "said otherwise", "--key", "k1", code=1)
        assert "KS-INP-CONFLICT" in conflict.err
        assert fresh.run("memory", "add", "The roof of the tram depot leaks.").out.startswith("mem_")
        assert "tram depot" in fresh.run("chat", "-m", "Does the tram depot leak?").out
        backed_up_and_restored(fresh, tmp_path)
        requeued(fresh, running.settled)
        assert "a runtime is up" in fresh.run("doctor", "--offline").out
    assert not (fresh.home / "run/runtime.json").exists()
    assert fresh.run("status").out.startswith("Not running: nothing waits.")


def backed_up_and_restored(program: Program, place: Path) -> None:
    made, home = place / "backup", place / "restored"
    counts = program.run("data", "backup", str(made), "--json").json["counts"]
    assert counts["buffer"] == 2
    assert "KS-HOME" in program.run("data", "backup", str(made), code=1).err
    restored = program.run("data", "restore", str(made), "--to", str(home))
    assert f"keepsaid --home {home} status" in restored.err
    copy = program.run("--home", str(home), "status", "--json").json
    assert copy["messages"] == 2
    assert copy["runtime"]["up"] is False
    assert "not an empty directory" in program.run("data", "restore", str(made), "--to", str(home), code=1).err
    with (made / "memory.db").open("r+b") as file:
        file.seek(5_000)
        file.write(b"changed")
    broken = program.run("data", "restore", str(made), "--to", str(place / "no"), code=1)
    assert "is not the file that was backed up" in broken.err
    assert not (place / "no").exists()


def requeued(program: Program, settled: object) -> None:
    assert callable(settled)
    junk = program.run("inbox", "send", "buy spam", "--json").json["id"]
    dropped = settled(junk)
    assert dropped["state"] == "dropped"
    assert "nobody wants it" in program.run("inbox", "show", junk).out
    assert program.run("inbox", "requeue", junk, "--reason", "it was wanted").out.split()[1:] == ["queued", "again"]
    assert settled(junk)["state"] == "done"
    again = program.run("inbox", "requeue", dropped["batch"]["id"], code=1)
    assert "is not dead, dropped or in review" in again.err


def test_killed_between_put_and_reply(fresh: Program) -> None:
    slow = Program(fresh.home, {"KEEPSAID_BUFFER__WINDOW_MS": "2000"})
    with slow.serving() as running:
        body = {"text": "remember me", "sender": "ann", "conversation": "room"}
        put = httpx2.post(f"{running.url}/v1/messages", json=body)
        running.process.kill()
        running.process.wait()
    assert put.status_code == 201
    story = fresh.run("inbox", "show", put.json()["id"], "--json").json["message"]
    assert story["state"] == "received"
    assert fresh.run("status").out.startswith("Not running: 1 message to route")
    assert "was killed" in fresh.run("doctor", "--offline", code=5).out
    with fresh.serving() as again:
        assert again.settled(put.json()["id"])["replies"][0]["text"].startswith("No model is set")


def test_a_reply_nobody_saw_is_shown_at_the_next_start(fresh: Program) -> None:
    body = {"text": "hello", "sender": "owner", "conversation": "terminal", "channel": "terminal", "direct": True}
    with fresh.serving() as running:
        headers = {"Authorization": f"Bearer {running.token}"}
        put = httpx2.post(f"{running.url}/v1/messages", json=body, headers=headers)
        assert running.settled(put.json()["id"])["replies"][0]["state"] == "pending"
    first = fresh.run("chat", given="")
    assert "earlier reply" in first.err
    assert first.out == ""
    assert "earlier reply" not in fresh.run("chat", given="").err


def test_stopped_by_a_signal_a_chat_ends_well(fresh: Program) -> None:
    process = fresh.start("chat", "--json", stdin=subprocess.PIPE)
    with process:
        assert process.stdin is not None
        process.stdin.write("hello\n")
        process.stdin.flush()
        assert json.loads(line_of(process))["message"]["state"] == "done"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert not (fresh.home / "run/runtime.json").exists()


def test_a_reader_that_goes_away_is_no_error(lived: Program) -> None:
    process = lived.start("logs")
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""


# For programs, and for people


_READING = (
    ("status",),
    ("inbox", "ls"),
    ("inbox", "show", "MESSAGE"),
    ("memory", "search", "kettle"),
    ("memory", "ls"),
    ("memory", "show", "MEMORY"),
    ("why",),
    ("why", "TURN"),
    ("why", "MESSAGE"),
    ("why", "BATCH"),
    ("logs",),
    ("config", "show"),
    ("config", "path"),
    ("config", "validate"),
    ("doctor", "--offline"),
    ("--version",),
)
_SPOKEN = ("inbox", "memory", "logs")


def test_every_command_speaks_json_and_text(lived: Program) -> None:
    message = lived.run("inbox", "ls", "--conversation", "terminal", "--json").json["messages"][-1]
    [memory] = lived.run("memory", "search", "kettle boathouse", "-n", "1", "--json").json["hits"]
    ids = {"MESSAGE": message["id"], "TURN": message["turn"], "BATCH": message["batch"]["id"]}
    ids["MEMORY"] = memory["memory"]["id"]
    calls = [tuple(ids.get(word, word) for word in call) for call in _READING]
    with ThreadPoolExecutor(4) as pool:
        told = dict(zip(_READING, pool.map(lambda call: lived.run(*call, "--json").json, calls), strict=True))
        spoken = list(pool.map(lambda call: lived.run(*call).out, [call for call in calls if call[0] in _SPOKEN]))
    assert all(spoken)
    assert told["inbox", "show", "MESSAGE"]["message"]["text"] == FACT
    assert {told["why", name]["turn"]["id"] for name in ("TURN", "MESSAGE", "BATCH")} == {message["turn"]}
    assert told["status",]["memories"]["kinds"]["episode"] >= 2
    assert told["logs",]["lines"][0]["logger"].startswith("keepsaid")
    assert FACT not in json.dumps(told["logs",])
    assert "\x1b" not in "".join(spoken)


def test_help_and_wrong_usage() -> None:
    program = Program(ROOT / "nowhere")
    assert "Commands:" in program.run().out
    assert program.run("--version").out.startswith("keepsaid ")
    assert "Did you mean 'status'" in program.run("statsu", code=2).err
    error = program.run("inbox", "ls", "--json", "--state", "lost", code=2).json["error"]
    assert error["code"] == "KS-USE"
    assert error["hint"] == "keepsaid inbox ls --help"


# Bad input


def test_a_wrong_setting(fresh: Program) -> None:
    fresh.configure("models: {api_key: '${NO_SUCH_VARIABLE}'}")
    for command in (("config", "validate"), ("status",)):
        refused = fresh.run(*command, code=4)
        assert "models.api_key needs the environment variable NO_SUCH_VARIABLE" in refused.err
        assert "[KS-CFG]" in refused.err
        assert "No data was touched." in refused.err


def test_a_setting_says_where_it_comes_from(fresh: Program) -> None:
    fresh.configure("buffer:\n  window_ms: 250\nchannels:\n  github:\n    secret: very-secret\nbufer: 1\n")
    program = Program(fresh.home, {"KEEPSAID_LOG__LEVEL": "error"})
    ran = program.run("config", "show", "--json")
    settings = {one["key"]: one for one in ran.json["settings"]}
    assert settings["buffer.window_ms"]["value"] == 250
    assert settings["buffer.window_ms"]["where"].endswith("config.yaml:2")
    assert (settings["log.level"]["from"], settings["log.level"]["where"]) == ("env", "KEEPSAID_LOG__LEVEL")
    assert settings["turns.stop_s"]["from"] == "default"
    assert settings["channels.github.secret"]["value"] == "**********"
    assert "very-secret" not in ran.out
    assert "warning: " in ran.err
    assert "unknown key bufer is ignored; did you mean buffer?" in ran.err


def not_sqlite(file: Path) -> None:
    file.write_bytes(b"what somebody else keeps here, at some length")


def of_another_program(file: Path) -> None:
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE recipe (name TEXT)")
    db.close()


def of_a_newer_keepsaid(file: Path) -> None:
    Program(file.parents[1]).run("inbox", "send", "hello")
    with sqlite3.connect(file) as db:
        db.execute("UPDATE keepsaid_schema SET version = 999")
    db.close()


@pytest.mark.parametrize(
    ("make", "code"),
    [(not_sqlite, "KS-DB-FOREIGN"), (of_another_program, "KS-DB-FOREIGN"), (of_a_newer_keepsaid, "KS-DB-NEWER")],
)
def test_a_database_that_is_not_ours(fresh: Program, make: Callable[[Path], None], code: str) -> None:
    file = fresh.home / "data/buffer.db"
    file.parent.mkdir(parents=True)
    make(file)
    before = hashlib.sha256(file.read_bytes()).digest()
    for command in (("inbox", "ls"), ("chat", "-m", "hello")):
        refused = fresh.run(*command, code=1)
        assert f"[{code}]" in refused.err
        assert "The file was not touched." in refused.err
    assert hashlib.sha256(file.read_bytes()).digest() == before


def test_a_damaged_database_is_found(fresh: Program) -> None:
    fresh.run("inbox", "send", "hello")
    with (fresh.home / "data/buffer.db").open("r+b") as file:
        file.seek(8_192)
        file.write(bytes(range(256)) * 32)
    assert "fail" in fresh.run("doctor", "--offline", code=6).out


def test_a_file_in_place_of_the_home(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("something of mine")
    program = Program(tmp_path / "file" / "home")
    for command in (("status",), ("init", "--non-interactive")):
        refused = program.run(*command, code=1)
        assert "[KS-HOME]" in refused.err
    assert (tmp_path / "file").read_text() == "something of mine"


def test_a_port_in_use(fresh: Program) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = fresh.run("serve", "--port", port, code=1)
        assert f"port {port} of 127.0.0.1 cannot be used" in refused.err
        assert "keepsaid serve --port 0" in refused.err
        there = Program(fresh.home, {"KEEPSAID_SERVER__PORT": port})
        assert "No model is set" in there.run("chat", "-m", "hello").out


def test_nothing_was_ever_stored(fresh: Program) -> None:
    assert "nothing was ever stored here" in fresh.run("status").out
    assert "Nothing was stored here so far." in fresh.run("inbox", "ls", code=1).err
    assert fresh.run("inbox", "show", "msg_1", "--json", code=1).json["error"]["code"] == "KS-INP"
    assert not fresh.home.exists()
