"""Encrypted rooms of Matrix with the whole runtime: what is written there is answered there, also after a restart."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.http_cast import site
from tests.unit.matrix_cast import ANN, MEGOLM, ROOM, api_of
from tests.unit.test_telegram import line_that_is, until

from keepsaid.adapters.channels.matrix.setup import look_up
from keepsaid.config import Home
from keepsaid.domain.line import LineState
from keepsaid.interfaces.cli.program import run
from keepsaid.testing.providers.matrix import TOKEN, MatrixServer
from keepsaid.testing.providers.matrix_peer import MatrixPeer
from keepsaid.testing.providers.matrix_rooms import USER
from keepsaid.testing.providers.mischief import Mischief, one_after_the_other

OWNER = [{"channel": "matrix", "account": USER, "sender": ANN}]


def settings(matrix: MatrixServer) -> dict[str, str]:
    return {"token": TOKEN, "homeserver": matrix.url}


def answered(matrix: MatrixServer, count: int) -> Callable[[], bool]:
    return lambda: len(matrix.sent) == count


async def test_what_is_written_in_an_encrypted_room_is_answered_there(tmp_path: Path) -> None:
    async with MatrixServer() as matrix:
        matrix.room(ROOM, ANN, encryption=MEGOLM)
        ann = MatrixPeer(matrix)
        async with site(tmp_path, matrix=settings(matrix), owner=OWNER) as at:
            await line_that_is(at, LineState.UP)
            ann.say("my dog is called Rex")
            await matrix.wait_for(answered(matrix, 1))
        async with site(tmp_path, matrix=settings(matrix), owner=OWNER) as at:
            await line_that_is(at, LineState.UP)
            ann.say("what is the name of my dog?")
            await matrix.wait_for(answered(matrix, 2))
            names = {name.split(" ")[1] for (name,) in at.rows("SELECT name FROM cursor WHERE name LIKE 'e2ee %'")}
        assert "Rex" in ann.texts()[1]
        assert {"account", "olm", "in", "out", "seen", "user"} <= names
        assert {one.name for one in (tmp_path / "data").glob("*.db")} == {"buffer.db", "memory.db"}


async def test_a_message_whose_key_comes_late_is_answered_then_and_once(tmp_path: Path) -> None:
    async with MatrixServer() as matrix:
        matrix.room(ROOM, ANN, encryption=MEGOLM)
        ann = MatrixPeer(matrix)
        ann.holds_keys = True
        async with site(tmp_path, matrix=settings(matrix), owner=OWNER) as at:
            await line_that_is(at, LineState.UP)
            number = ann.say("my dog is called Rex")
            assert await until(at, "SELECT event FROM message") == [("unreadable",)]
            assert matrix.sent == []
            ann.release()
            await matrix.wait_for(answered(matrix, 1))
            ann.say("what is the name of my dog?")
            await matrix.wait_for(answered(matrix, 2))
            rows = at.rows("SELECT external_id FROM message ORDER BY received_at")
        assert [one for (one,) in rows[:2]] == [f"matrix:{number}:encrypted", f"matrix:{number}"]
        assert (len(ann.texts()), "Rex" in ann.texts()[1]) == (2, True)


async def test_an_answer_waits_while_keys_cannot_be_looked_up(tmp_path: Path) -> None:
    """It is nobody's failure: the reply is tried again, and nothing of it was sent before."""
    async with MatrixServer() as matrix:
        matrix.room(ROOM, ANN, encryption=MEGOLM)
        ann = MatrixPeer(matrix)
        async with site(tmp_path, matrix=settings(matrix), owner=OWNER) as at:
            await line_that_is(at, LineState.UP)
            matrix.mischief = one_after_the_other(Mischief.FAIL, Mischief.DROP, method="joined_members")
            ann.say("my dog is called Rex")
            await matrix.wait_for(answered(matrix, 1))
            assert matrix.calls["joined_members"] >= 3
        assert len(ann.texts()) == 1


async def test_without_the_extra_what_is_written_there_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vodozemac", None)
    async with MatrixServer() as matrix:
        matrix.room(ROOM, ANN, encryption=MEGOLM)
        async with site(tmp_path, matrix=settings(matrix), owner=OWNER) as at:
            line = await line_that_is(at, LineState.UP)
            assert "matrix-e2ee" in line["reason"]
            matrix.send("m.room.encrypted", ROOM, ANN, {"algorithm": MEGOLM, "ciphertext": "?", "session_id": "?"})
            assert await until(at, "SELECT event FROM message") == [("unreadable",)]
        assert (matrix.sent, matrix.keys.uploads) == ([], [])


async def test_a_look_up_says_how_encrypted_rooms_fare() -> None:
    async with MatrixServer() as matrix:
        matrix.room(ROOM, ANN, encryption=MEGOLM)
        notes = (await look_up(api_of(matrix), decrypts=True)).notes
        assert notes == ("encrypted rooms are read by the device SCRIPTED",)
        [note] = (await look_up(api_of(matrix))).notes
        assert "matrix-e2ee" in note


@pytest.mark.parametrize("is_there", [True, False])
def test_the_doctor_says_whether_the_extra_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    if not is_there:
        monkeypatch.setitem(sys.modules, "vodozemac", None)
    home = Home.at(tmp_path)
    home.make()
    home.config.mkdir(mode=0o700, exist_ok=True)
    (home.config / "config.yaml").write_text(json.dumps({"matrix": {"token": TOKEN}}), "utf-8")
    run(["--home", str(tmp_path), "doctor", "--offline"])
    out = capsys.readouterr().out
    expected = "encrypted rooms of Matrix can be read" if is_there else "the extra matrix-e2ee is missing"
    assert expected in out
    assert is_there or "pip install" in out
