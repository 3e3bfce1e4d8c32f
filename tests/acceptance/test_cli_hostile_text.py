"""Every command over a home full of hostile text: none prints a control or a hidden character as it is."""

from __future__ import annotations

import asyncio
import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.acceptance.program import Program, Ran

from keepsaid import Keepsaid
from keepsaid.domain.message import Content, Inbound, Origin, Trust
from keepsaid.domain.pairing import CODE_MS, SendCode
from keepsaid.domain.reply import ReplyDraft
from keepsaid.domain.visibility import Identity
from keepsaid.interfaces.cli.commands import tree
from keepsaid.interfaces.cli.program import run, shared

HOSTILE = (
    "\x1b[31mred\x1b]0;title\x07 \u202egnp.exe \u2066iso\u2069 z\u200bw\u2060j\u00ad \U000e0041tag \x9b2J \x9d0;t\x9c"
    " del\x7f back\b line\u2028para\u2029 \ufeffbom\u061c"
)
_SAID = f"the kettle of Bosco {HOSTILE}"

_CONFIG = {
    "memory": {"deadline_ms": 5000},
    "buffer": {"window_ms": 0},
    "routes": {
        "rules": [
            {"name": "work", "match": {"text": "work*"}, "action": "spawn", "reason": HOSTILE},
            {"name": "junk", "match": {"text": "spam*"}, "action": "drop", "reason": HOSTILE},
        ]
    },
}

SHOWN: dict[str, tuple[str, ...]] = {
    "inbox ls": (),
    "inbox tail": (),
    "inbox show": ("{message}",),
    "inbox why": ("{message}",),
    "inbox lanes ls": (),
    "inbox lanes show": ("{lane}",),
    "memory ls": (),
    "memory search": ("kettle",),
    "memory show": ("{memory}",),
    "memory history": ("{memory}",),
    "memory people ls": (),
    "memory entities show": ("Bosco",),
    "inbox tasks ls": (),
    "inbox tasks show": ("{task}",),
    "schedule ls": (),
    "schedule show": ("{schedule}",),
    "why": (),
    "data logs": (),
    "channel ls": (),
}
"""Commands that show what others wrote, with arguments that make them do so."""

PLAIN: dict[str, tuple[str, ...]] = {
    "config show": (),
    "ext tools ls": (),
    "status": (),
    "memory entities ls": (),
    "memory extract ls": (),
    "ext events tail": (),
    "ext events topics": (),
    "ext events ls": (),
    "ext events dead": (),
    "ext ls": (),
    "ext show": ("memory",),
    "config path": (),
    "config validate": (),
    "config get": ("buffer.window_ms",),
    "config diff": (),
    "config schema": (),
    "doctor": ("--offline",),
    "models ls": (),
    "memory stats": (),
    "memory audit": (),
    "memory forgotten": (),
    "inbox replay": (),
    "data prune": (),
}
"""Commands that show counts, names of their own and ids."""

ERRORS_ALONE = {
    *(
        "chat",
        "serve",
        "mcp",
        "init",
        "selftest",
        "bench recall",
        "bench latency",
        "models pull",
        "models test",
        "models demo",
    ),
    *("inbox drop", "inbox requeue", "inbox resend", "inbox send", "inbox file", "inbox routes test"),
    *("inbox lanes reset", "inbox lanes compact", "inbox lanes summary"),
    *("memory flag", "memory maintain", "memory share", "memory forget", "memory edit", "memory pin", "memory unpin"),
    *("memory merge", "memory archive", "memory restore", "memory add", "memory people join", "memory people split"),
    *("memory entities merge", "memory entities export"),
    *(
        "memory extract run",
        "memory extract requeue",
        "inbox tasks run",
        "inbox tasks cancel",
        "inbox tasks approve",
        "inbox tasks reject",
    ),
    *(
        "ext events requeue",
        "ext events dismiss",
        "ext events unsubscribe",
        "ext enable",
        "ext disable",
        "ext new",
        "ext check",
        "ext connect",
    ),
    *(
        "schedule add",
        "schedule run",
        "schedule pause",
        "schedule resume",
        "schedule cancel",
        "config reload",
        "config set",
        "config unset",
        "config edit",
        "ext tools accept",
    ),
    *(
        "channel add",
        "channel test",
        "channel pair",
        "channel approve",
        "channel revoke",
        "channel pause",
        "channel rm",
    ),
    *("data export", "data import", "data backup", "data restore", "data accept-loss", "data move"),
}
"""Commands that change something, take long or show nothing of others: called with hostile arguments alone."""


def _commands(of: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    below = getattr(of, "commands", None)
    if not below:
        yield " ".join(path)
    for name, command in (below or {}).items():
        yield from _commands(command, (*path, name))


def _hidden(text: str) -> set[str]:
    """What of a text no terminal may be sent, by the class of each character."""
    classes = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
    return {ascii(letter) for letter in text if letter not in "\t\n" and unicodedata.category(letter) in classes}


def _texts(value: Any) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


async def _said(home: Path) -> None:
    async with Keepsaid.open(home) as ks:
        for n, text in enumerate((f"work {HOSTILE}", f"spam {HOSTILE}", _SAID)):
            origin = Origin("library", "default", f"c {HOSTILE}", f"u{n} {HOSTILE}", HOSTILE, trust=Trust.KNOWN)
            instance = ks._opened().instance
            received = await instance.receive(Inbound(origin, Content(b"", text), topic=HOSTILE))
            who, notice = Identity("library", "default", origin.sender), ReplyDraft(instance.ids.next(), "a code")
            now = instance.clock.now_ms()
            await instance.operations.apply(SendCode(who, received.id, f"ABCDEFG{n + 2}", notice, now, now + CODE_MS))


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Program, dict[str, str]]:
    """A home with hostile text wherever somebody outside can write, and ids of what it holds."""
    home = tmp_path_factory.mktemp("planted")
    planting = Program(home)
    planting.configure(yaml.safe_dump(_CONFIG))
    asyncio.run(_said(home))
    planting.run("memory", "add", _SAID)
    planting.run("chat", "--conversation", f"attic {HOSTILE}", given=f"{_SAID}\n")
    planting.run("schedule", "add", "--every", "9000", "--ask", _SAID, "--name", f"s {HOSTILE}")
    planting.run("inbox", "tasks", "run", "--text", f"work {HOSTILE}")
    with (home / "state" / "keepsaid.log").open("a", encoding="utf-8") as log:
        log.write(
            json.dumps({"ts": "t", "level": "info", "logger": HOSTILE, "msg": HOSTILE}, ensure_ascii=False) + "\n"
        )
        log.write(f"{HOSTILE}\n")
    first = {
        "message": ("inbox", "messages"),
        "memory": ("memory", "memories"),
        "task": ("inbox tasks", "tasks"),
        "schedule": ("schedule", "schedules"),
    }
    ids = {
        kind: planting.run(*noun.split(), "ls", "--json").json[many][0]["id"] for kind, (noun, many) in first.items()
    }
    lanes = planting.run("inbox", "lanes", "ls", "--json").json["lanes"]
    return planting, {**ids, "lane": lanes[0]["lane"]["key"]}


def _ran(home: Path, capfd: pytest.CaptureFixture[str], arguments: list[str]) -> Ran:
    code = run(["--home", str(home), *arguments])
    return Ran(code, *capfd.readouterr())


def test_every_command_is_covered() -> None:
    """A new command has to take its place in one of the lists above."""
    assert sorted(_commands(tree([], shared))) == sorted([*SHOWN, *PLAIN, *ERRORS_ALONE])


@pytest.mark.parametrize("command", [*SHOWN, *PLAIN])
def test_no_command_prints_a_hidden_character(
    planted: tuple[Program, dict[str, str]], capfd: pytest.CaptureFixture[str], command: str
) -> None:
    """Neither in text nor in JSON; what is shown can be read, and JSON gives it back."""
    there, ids = planted
    arguments = [*command.split(), *(one.format_map(ids) for one in {**SHOWN, **PLAIN}[command])]
    text = _ran(there.home, capfd, arguments)
    assert _hidden(text.out + text.err) == set()
    told = _ran(there.home, capfd, [*arguments, "--json"])
    assert _hidden(told.out + told.err) == set()
    assert told.code == text.code
    assert told.code in (0, 5, 6), text.err
    if command in SHOWN:
        assert "\\u{1b}[31mred" in text.out
        assert "\\u{202e}gnp.exe" in text.out
        assert any("\x1b[31mred" in one for one in _texts(json.loads(told.out)))


@pytest.mark.parametrize("command", sorted([*SHOWN, *PLAIN, *ERRORS_ALONE]))
def test_no_error_prints_a_hidden_character(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Every command, given hostile arguments it does not know."""
    monkeypatch.chdir(tmp_path)
    for more in ([HOSTILE, f"--{HOSTILE}"], ["--json", f"--{HOSTILE}=x", HOSTILE]):
        ran = _ran(tmp_path / "home", capfd, [*command.split(), *more])
        assert ran.code != 0
        assert _hidden(ran.out + ran.err) == set()
        assert "31m" in ran.out + ran.err


def test_a_reply_over_a_pipe_is_shown_with_escapes(planted: tuple[Program, dict[str, str]]) -> None:
    """The answer quotes what was remembered, and stdout may well be a terminal further on."""
    there, _ = planted
    ran = there.run("chat", "-m", "what about the kettle?")
    assert _hidden(ran.out + ran.err) == set()
    assert "\\u{202e}gnp.exe" in ran.out
