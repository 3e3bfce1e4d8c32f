"""A chat prints each answer once, replies to earlier messages before it, and what was remembered after it."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from keepsaid.domain.route import PAUSED
from keepsaid.errors import StoreFull
from keepsaid.interfaces.cli import converse
from keepsaid.interfaces.cli.console import CliSession, begin
from keepsaid.interfaces.cli.rendering import end_of_blocks
from keepsaid.interfaces.cli.talk import ChatClient, Piece

_CODES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


class Heard(ChatClient):
    """A chat whose answer and unseen replies are known beforehand."""

    def __init__(self, *pieces: Piece, unseen: tuple[str, ...] = ()) -> None:
        self._pieces = pieces
        self._waiting = [
            {"id": f"rep_{text}", "text": text, "created_at": "2020-02-03T12:34:56.789Z"} for text in unseen
        ]
        self.shown: list[str] = []
        self._host = None

    async def put(self, text: str, key: str = "") -> str:
        return "msg_1"

    async def answer(self, message_id: str) -> AsyncGenerator[Piece, None]:
        for piece in self._pieces:
            yield piece

    async def any_unseen(self) -> bool:
        return bool(self._waiting)

    async def unseen(self) -> AsyncIterator[dict[str, Any]]:
        for reply in self._waiting[:]:
            yield reply

    async def story(self, message_id: str) -> dict[str, Any]:
        return {"replies": []}

    async def seen(self, reply_id: str) -> None:
        self.shown.append(reply_id)
        self._waiting = [one for one in self._waiting if one["id"] != reply_id]


def delta(text: str) -> Piece:
    return Piece("delta", {"text": text})


def stored(*texts: str, **more: object) -> Piece:
    replies = [{"id": f"rep_{text}", "text": text} for text in texts]
    return Piece("settled", {"id": "msg_1", "state": "done", "batch": {"reason": "a rule"}, "replies": replies, **more})


async def _printed(heard: Heard, home: Path, capsys: pytest.CaptureFixture[str]) -> tuple[list[str], str]:
    """The lines that stay on the screen, and what is said beside them."""
    begin(CliSession(root=home, colour=False))
    (home / "state").mkdir(parents=True)
    await converse.Conversation(heard, "terminal")._answer("where?")
    said = capsys.readouterr()
    lines = [line.rstrip() for line in _CODES.sub("", said.out).replace("\r", "\n").splitlines()]
    return [*dict.fromkeys(line for line in lines if line and "stops waiting" not in line)], said.err


@pytest.mark.parametrize(
    ("pieces", "printed"),
    [
        ((delta("It is "), delta("here."), stored("It is here.")), ["bot > It is here."]),
        ((stored("It is here."),), ["bot > It is here."]),
        (
            (delta("It"), delta("It is here."), stored("It is here.")),
            ["bot > ItIt is here.", "bot (as it was stored) >", "      It is here."],
        ),
        ((delta("\x1b[2J"), stored("\x1b[2J")), ["bot > \\u{1b}[2J"]),
        ((delta("one\n\ntwo"), stored("one\n\ntwo")), ["bot > one", "      two"]),
        ((stored(),), []),
    ],
)
async def test_an_answer_is_printed_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pieces: tuple[Piece, ...], printed: list[str]
) -> None:
    heard = Heard(*pieces)
    lines, said = await _printed(heard, tmp_path, capsys)
    assert lines[len(lines) - len(printed) :] == printed
    assert bool(lines) == bool(printed)
    assert heard.shown == [reply["id"] for reply in pieces[-1].data["replies"]]
    assert bool(said) == (not printed)


async def test_what_was_missed_comes_before_the_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    heard = Heard(delta("It is here."), stored("It is here."), unseen=("the first", "the second"))
    lines, _ = await _printed(heard, tmp_path, capsys)
    assert re.fullmatch(r"earlier, 2020-02-0\d \d\d:\d\d >", lines[0])
    assert lines[1:] == ["      the first", "      the second", "bot > It is here."]
    assert heard.shown == ["rep_the first", "rep_the second", "rep_It is here."]


async def test_a_wait_and_what_was_remembered_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    memory = {"id": "mem_1", "kind": "fact", "text": "lives in Porto", "replaces": ["mem_0"]}
    pieces = (
        Piece("waiting", {"text": "an outage"}),
        Piece("tool", {"name": "x"}),
        stored("Noted.", remembered=[memory]),
    )
    lines, said = await _printed(Heard(*pieces), tmp_path, capsys)
    assert lines == ["waiting: an outage", "bot > Noted."]
    assert "remembered: [fact] lives in Porto (replaces mem_0)   undo: /undo" in said


async def test_an_answer_with_the_words_of_a_pause_is_read_to_its_end() -> None:
    events = (("delta", {"text": PAUSED}), ("settled", {"id": "msg_1"}), ("delta", {"text": "after the end"}))
    body = "".join(f"event: {kind}\ndata: {json.dumps(data)}\n\n" for kind, data in events)
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, text=body))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        talk = ChatClient(client, "terminal", lambda: None)
        assert [piece.kind async for piece in talk.answer("msg_1")] == ["delta", "settled"]


class Failing(Heard):
    """A chat with a runtime whose store is in trouble."""

    async def unseen(self) -> AsyncIterator[dict[str, Any]]:
        for _ in range(1):
            raise StoreFull("no space is left")
        yield {}


async def test_what_fails_behind_a_prompt_costs_no_typed_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(converse, "_LATE_S", 0.0)
    begin(CliSession(root=tmp_path))
    (tmp_path / "state").mkdir()
    await converse.Conversation(Failing(), "terminal")._watch()


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("one", 0),
        ("one\n", 0),
        ("one\n\n", 5),
        ("one\n\ntwo", 5),
        ("```\na\n\nb", 0),
        ("```\na\n\nb\n```\n\n", 14),
    ],
)
def test_a_block_ends_at_an_empty_line_outside_of_code(text: str, end: int) -> None:
    assert end_of_blocks(text) == end


def test_names_and_words_are_completed() -> None:
    assert [one.text for one in converse._completions("/perso")] == ["/personality"]
    assert [one.text for one in converse._completions("/personality re")] == [
        "reset",
        "reset --person",
        "reset --global",
    ]
    assert [*converse._completions("hello /pe")] == []
