"""The small pure parts of the command line, and settings that are wrong in every way."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from keepsaid.adapters.redaction.redactor import PatternRedactor
from keepsaid.domain.ids import show
from keepsaid.errors import InputError, KeepsaidError, KeyConflict, ModelTimeout, NotRunning, StoreFull
from keepsaid.interfaces.cli.chat import LineReader
from keepsaid.interfaces.cli.console import CliSession, Table, begin
from keepsaid.interfaces.cli.logs import JsonLines, append, keep_log
from keepsaid.interfaces.cli.program import exit_code, guarded, run, shared_first
from keepsaid.interfaces.cli.talk import SlashCommand, run_slash_command
from keepsaid.interfaces.problems import problem_in
from keepsaid.text.normal import counted, duration, tallied


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (None, "-"),
        (-5, "0 ms"),
        (999, "999 ms"),
        (1_000, "1.0 s"),
        (59_900, "59.9 s"),
        (241_000, "4 m 1 s"),
        (3_600_000, "1 h 0 m"),
        (48 * 3_600_000, "2 d 0 h"),
    ],
)
def test_duration(ms: float | None, said: str) -> None:
    assert duration(ms) == said


def test_counts() -> None:
    assert counted(1, "batch", "batches") == "1 batch"
    assert counted(2_041, "batch", "batches") == "2,041 batches"
    assert counted(0, "message") == "0 messages"
    assert tallied({"done": 3, "queued": 1}, ("queued", "dead")) == "queued 1   dead 0   done 3"
    assert tallied({}) == "none"


def test_a_table_is_aligned_and_every_cell_is_one_line() -> None:
    table = Table(("ID", "TEXT"), (("msg_1", "two\nlines"), ("m", "x" * 200)))
    assert table.lines()[:2] == ["ID     TEXT", "msg_1  two lines"]
    assert table.lines()[2] == f"m      {'x' * 99}…"


def test_shared_options_may_stand_anywhere() -> None:
    assert shared_first(["inbox", "ls", "--json", "-n", "3", "--home", "/x", "-q"]) == (
        ["--json", "--home", "/x", "-q"],
        ["inbox", "ls", "-n", "3"],
    )
    assert shared_first(["memory", "add", "--", "--json"]) == ([], ["memory", "add", "--", "--json"])
    assert shared_first(["status", "--home"]) == (["--home"], ["status"])
    assert shared_first(["--home=/x", "status"]) == (["--home=/x"], ["status"])


def test_commands_of_a_chat() -> None:
    for line in ("/help", "/why", " /why ", "/quit"):
        assert SlashCommand.parse(line) == SlashCommand(line.strip())
    for line in (
        "/why not?",
        "/quit now, please",
        "/reset",
        "/reset the router",
        "/usr/bin is full",
        "/rset",
        "//etc/passwd is gone",
        "/tmp is full",
        "hello /why",
    ):
        assert SlashCommand.parse(line) == line
    assert [SlashCommand.parse(line) for line in ("//quit", "//stop", "//foo")] == ["/quit", "/stop", "/foo"]
    assert SlashCommand.parse("//quit now") == "/quit now"
    assert [SlashCommand.parse(line) for line in ("/Help", " /WHY ")] == [SlashCommand("/help"), SlashCommand("/why")]
    assert SlashCommand.parse("//help") == "//help", "the runtime knows /help too, and takes this for talk"


@pytest.mark.parametrize(
    ("line", "meant"),
    [("/foo", ""), ("/qiut", "/quit"), ("/exit", ""), ("/remeber buy milk", "/remember")],
)
async def test_a_mistyped_command_is_not_sent(line: str, meant: str) -> None:
    command = SlashCommand.parse(line)
    assert isinstance(command, SlashCommand)
    with pytest.raises(InputError, match=f"there is no command {line}") as error:
        await run_slash_command(command, "terminal")
    assert (f"did you mean {meant}?" in error.value.what) == bool(meant)
    assert error.value.hint == f"/help, or /{line} to send it as it is"


@pytest.mark.parametrize("line", ["/why msg_0zz", "/quit now", "/Stop it"])
async def test_a_command_with_a_word_that_it_does_not_take_is_not_sent(line: str) -> None:
    command = SlashCommand.parse(line)
    assert isinstance(command, SlashCommand)
    with pytest.raises(InputError, match=f"{line.split(maxsplit=1)[0]} takes nothing after it") as error:
        await run_slash_command(command, "terminal")
    assert error.value.hint == f"{line.split(maxsplit=1)[0]}, or /{line} to send it as it is"


def test_a_problem_becomes_the_error_it_was() -> None:
    body = {"title": "used before", "code": "KS-INP-CONFLICT", "safe": "Kept.", "hint": "another id"}
    error = problem_in(json.dumps(body).encode(), 409)
    assert isinstance(error, KeyConflict)
    assert error.as_json() == {"code": "KS-INP-CONFLICT", "what": "used before", "safe": "Kept.", "hint": "another id"}
    assert isinstance(problem_in(b'{"title": "late", "code": "KS-MDL-TIMEOUT"}', 500), ModelTimeout)
    assert isinstance(problem_in(b'{"title": "full", "code": "KS-DB-FULL"}', 503), StoreFull)
    other = problem_in(b'{"title": "no token", "code": "KS-HTTP-AUTH"}', 401)
    assert (type(other), other.code) == (KeepsaidError, "KS-HTTP-AUTH")
    assert KeepsaidError.code == "KS-000"
    assert "HTTP 502" in problem_in(b"<html>", 502).what


def test_an_error_nobody_foresaw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> int:
        raise LookupError("the words of a person")

    assert exit_code(NotRunning("nothing answers")) == 3
    begin(CliSession(root=tmp_path))
    assert guarded(broken, as_json=True) == 1
    told = json.loads(capsys.readouterr().out)["error"]
    assert told["code"] == "KS-BUG"
    assert "LookupError" in told["what"]
    assert "person" not in told["what"] + (tmp_path / "state/keepsaid.log").read_text("utf-8")


def test_what_breaks_the_stores_is_logged_without_them(tmp_path: Path) -> None:
    lines = (
        "import sys",
        "sys.modules['apsw'] = None",
        "from keepsaid.interfaces.cli.program import run",
        f"sys.exit(run(['--home', {str(tmp_path)!r}, 'memory', 'ls']))",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ModuleNotFoundError" in done.stderr
    assert "KS-BUG" in done.stderr
    assert "unexpected error" in (tmp_path / "state/keepsaid.log").read_text("utf-8")


def test_the_log_holds_nobodys_words(tmp_path: Path) -> None:
    record = logging.makeLogRecord({"name": "keepsaid.turn", "levelname": "INFO", "msg": "turn ended"})
    record.__dict__ |= {"turn": 7, "batch": 8, "message": 9, "reply": 10, "how": "done", "text": "a secret"}
    try:
        raise ValueError("a secret")
    except ValueError as error:
        record.exc_info = (ValueError, error, error.__traceback__)
    line = JsonLines(PatternRedactor()).format(record)
    assert "a secret" not in line
    told = json.loads(line)
    assert (told["msg"], told["how"], told["error"]) == ("turn ended", "done", "ValueError")
    ids = {"turn": 7, "batch": 8, "message": 9, "reply": 10}
    assert {kind: told[kind] for kind in ids} == {kind: show(kind, number) for kind, number in ids.items()}
    assert told["trace"]
    assert json.loads(JsonLines(PatternRedactor(), text=True).format(record))["detail"] == "a secret"
    append(tmp_path / "state/keepsaid.log", record)
    assert (tmp_path / "state/keepsaid.log").stat().st_mode & 0o777 == 0o600


def test_the_log_is_written_at_its_level(tmp_path: Path) -> None:
    root, ours = logging.getLogger(), logging.getLogger("keepsaid")
    before, level = list(root.handlers), ours.level
    keep_log(tmp_path / "log", "warning", PatternRedactor(), text=False)
    try:
        logging.getLogger("keepsaid.turn").info("not this")
        logging.getLogger("keepsaid.turn").warning("this")
        [line] = (tmp_path / "log").read_text("utf-8").splitlines()
        assert json.loads(line)["level"] == "warning"
    finally:
        ours.setLevel(level)
        for added in set(root.handlers) - set(before):
            root.removeHandler(added)
            added.close()


async def test_lines_end_at_lf_alone() -> None:
    reading, writing = os.pipe()
    lines = LineReader(reading)
    os.write(writing, "a\u2028b\x85\r\n\nlast".encode())
    os.close(writing)
    assert [await lines.next() for _ in range(4)] == ["a\u2028b\x85\r".encode(), b"", b"last", None]
    os.close(reading)


async def test_a_line_that_never_comes_can_be_given_up() -> None:
    reading, writing = os.pipe()
    lines = LineReader(reading)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await lines.next()
    os.write(writing, b"too late\nin time\n")
    assert await lines.next() == b"in time"
    os.close(writing)


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("models: {api_key: '${NO_SUCH_VARIABLE}'}", 4, "the environment variable NO_SUCH_VARIABLE is not set"),
        ("buffer: {window_ms: soon}", 4, "buffer.window_ms"),
        ("models: {chat: gpt}", 4, "is not one of: auto, none"),
        ("- a list", 4, "must hold keys and values"),
        ("a: [", 4, "cannot be read"),
        ("server: {host: 0.0.0.0}", 4, "server.token must be set"),
        ("bufer: {window_ms: 5}", 5, "did you mean buffer?"),
        ("log: {level: warning}", 0, "valid: "),
    ],
)
def test_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, code: int, told: str) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.yaml").write_text(text, "utf-8")
    assert run(["--home", str(tmp_path), "config", "validate"]) == code
    said = "".join(capsys.readouterr())
    assert told in said
    assert ("[KS-CFG]" in said) == (code == 4)
    assert "try   keepsaid config validate" not in said
