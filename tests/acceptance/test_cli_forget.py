"""Forgotten for good: told to a running program, recalled, repeated by a model, and then in no byte of the home."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.acceptance.program import WITHIN_S, Program, Running, inside

from keepsaid.testing.model_script import ChatRequest, Reaction, Say, Script, text_of
from keepsaid.testing.model_server import ThreadedModelServer

_SECRET = "My locker code is Zebraquix7741 at the Quovadisium gym"
_UNIQUE = ("zebraquix7741", "quovadisium")
_KEY = "locker-1"
_FORGOTTEN_S = 300.0


def repeats(request: ChatRequest) -> Reaction:
    """A model that says all that it was shown."""
    return Say(" / ".join(text_of(one) for one in request.messages if one.get("role") != "system")[-3_000:])


def say(server: Running, text: str, conversation: str = "desk", key: str | None = None) -> dict[str, Any]:
    """Say something, and wait until it is answered."""
    headers = {"Authorization": f"Bearer {server.token}", **({"Idempotency-Key": key} if key else {})}
    body = {"sender": "ann", "conversation": conversation, "text": text}
    sent = httpx2.post(f"{server.url}/v1/messages", json=body, headers=headers, timeout=WITHIN_S, verify=False)
    told: dict[str, Any] = sent.raise_for_status().json()
    server.settled(told["id"])
    return told


def residue(home: Path) -> list[tuple[str, str]]:
    """Files of the home that hold one of the unique words, however it is written."""
    files = [file for file in home.rglob("*") if file.is_file()]
    bytes_of = {file: file.read_bytes().lower() for file in files}
    wanted = [(word, word.encode()) for word in _UNIQUE]
    return [(file.name, word) for file, held in bytes_of.items() for word, raw in wanted if raw in held]


def found(program: Program, capsys: pytest.CaptureFixture[str], query: str) -> list[dict[str, Any]]:
    """What a search finds."""
    hits: list[dict[str, Any]] = inside(program, capsys, "memory", "search", query, "--json").json["hits"]
    return [hit["memory"] for hit in hits]


def until_remembered(program: Program, capsys: pytest.CaptureFixture[str], query: str, text: str) -> dict[str, Any]:
    """The memory of what was said, once it is there."""
    deadline = time.monotonic() + WITHIN_S
    while True:
        said = [one for one in found(program, capsys, query) if one["text"] == text]
        if said:
            return said[0]
        assert time.monotonic() < deadline, f"{text!r} is not remembered"


def test_what_is_forgotten_is_in_no_file_and_does_not_come_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ThreadedModelServer(Script(default=repeats)) as model:
        program = Program(tmp_path / "home")
        program.configure(
            json.dumps(
                {
                    "models": {"chat": "openai/scripted", "base_url": model.url, "api_key": "none needed"},
                    "memory": {"embedder": "hashed"},
                    "compaction": {"messages": 4, "keep": 2},
                }
            )
        )
        with program.serving() as server:
            say(server, "The train to Porto leaves at nine")
            first = say(server, _SECRET, key=_KEY)
            say(server, "The dentist is in Braga on Friday")
            say(server, "what is my locker code?")
            for n in range(3):
                say(server, f"and what else do you know, number {n}?")
            memory = until_remembered(program, capsys, "locker code", _SECRET)
            before = found(program, capsys, "When does the train to Porto leave?")[0]["id"]
            assert residue(program.home), "it was there"
            backup = tmp_path / "backup"
            inside(program, capsys, "data", "backup", str(backup))
            dry = inside(program, capsys, "memory", "forget", memory["id"], "--json").json
            assert dry["counts"]["messages"] == 1
            assert memory["id"] in [one["id"] for one in dry["memories"]]
            assert residue(program.home), "nothing is changed without a word"
            began = time.monotonic()
            receipt = inside(program, capsys, "memory", "forget", memory["id"], "--yes", "--json").json
            assert receipt["state"] == "done"
            assert time.monotonic() - began < _FORGOTTEN_S
            assert residue(program.home) == []
            assert receipt["backups"] == [str(backup)]
            assert receipt["counts"]["memories"] >= 2, "what was said, and what repeated it"
            assert found(program, capsys, "When does the train to Porto leave?")[0]["id"] == before
            assert all("7741" not in one["text"] for one in found(program, capsys, "locker code"))
            assert say(server, _SECRET, key=_KEY)["id"] == first["id"]
            assert residue(program.home) == []
        listed = inside(program, capsys, "memory", "forgotten", "--json").json["forgettings"]
        assert [(one["id"], one["state"]) for one in listed] == [(receipt["id"], "done")]
        shown = inside(program, capsys, "memory", "forgotten", receipt["id"]).out
        assert str(backup) in shown
        inside(program, capsys, "doctor", "--deep")
        assert residue(program.home) == []
        restored = Program(tmp_path / "restored")
        inside(program, capsys, "data", "restore", str(backup), "--to", str(restored.home))
        assert residue(restored.home), "a backup holds it"
        with restored.serving():
            inside(restored, capsys, "memory", "forgotten", "--wait")
        assert residue(restored.home) == []
