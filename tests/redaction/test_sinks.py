"""Sinks: a secret that was said stays in the buffer, and reaches no other file."""

from __future__ import annotations

import base64
import json
import logging
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import apsw
import pytest
from tests.redaction.labelled import secret_texts

from keepsaid import Episode, Keepsaid, Message
from keepsaid.adapters.redaction.redactor import PatternRedactor
from keepsaid.app.redaction import redactor_of
from keepsaid.config import Config, load
from keepsaid.domain.graph import Mention
from keepsaid.errors import ConfigError
from keepsaid.interfaces.cli.logs import JsonLines
from keepsaid.ports.runtime import masked_texts

OURS = "lantern/harbour+42?=x"  # gitleaks:allow
SETTINGS = {
    "models": {"chat": "none"},
    "buffer": {"window_ms": 0},
    "server": {"token": OURS},
    "redaction": {"patterns": [r"PROJ-\d{4}"]},
}


def _kept(home: Path, name: str) -> bytes:
    """Every byte of a store: its file and its log."""
    return b"".join(file.read_bytes() for file in sorted((home / "data").glob(f"{name}.db*")))


def _rows(home: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(apsw.Connection(str(home / "data" / "buffer.db"))) as db:
        return db.execute(statement).fetchall()


async def test_what_was_said_reaches_memory_without_secrets(tmp_path: Path) -> None:
    """Neither memory nor its full text nor the journal holds one; the message does, and marks say where."""
    forms = (OURS, quote(OURS, safe=""), base64.b64encode(OURS.encode()).decode(), OURS.encode().hex())
    said = [*(f"take {form} now" for form in forms), *(one.text for one in list(secret_texts(1))[:40]), "PROJ-1234"]
    async with Keepsaid.open(tmp_path, answering=True, settings=SETTINGS) as ks:
        for n, text in enumerate(said):
            await ks.inbox.put(Message(text, "u1", f"c{n}"))
        instance = ks._opened().instance
        seen = await instance.operations.overview()
        while seen.episodes_due or seen.batches.get("done", 0) < len(said):
            await instance.recorder.catch_up()
            seen = await instance.operations.overview()
        await ks.memory.record([Episode(f"and {OURS}", "Ann", "harbour", 1_000)])
    memory, buffer = _kept(tmp_path, "memory"), _kept(tmp_path, "buffer")
    for form in forms:
        assert form.encode() not in memory
        assert form.encode() in buffer
    assert b"PROJ-1234" not in memory
    assert b"[redacted: own secret]" in memory
    assert b"lantern" not in memory, "the full text holds no part of it"
    journal = json.dumps(_rows(tmp_path, "SELECT topic, payload FROM journal"))
    marked = _rows(tmp_path, "SELECT message.text, marks FROM redaction JOIN message ON message.id = message_id")
    assert len(marked) >= len(said) - 2
    for words, marks in marked:
        for start, end, what in json.loads(str(marks)):
            secret = str(words)[start:end]
            assert what
            assert secret not in journal
            assert secret not in str(marks)


@pytest.mark.parametrize(
    "mention",
    [
        Mention(0, "thing:boat", f"the boat {OURS}"),
        Mention(0, f"thing:{OURS}", "the boat"),
        Mention(0, "thing:PROJ-1234", "PROJ-1234"),
        Mention(0, f"thing:{OURS}", OURS),
    ],
)
async def test_no_secret_in_a_name_is_written_through_the_graph(tmp_path: Path, mention: Mention) -> None:
    async with Keepsaid.open(tmp_path, settings=SETTINGS) as ks:
        memory_id = (await ks._opened().instance.services.memories.add("We went out by boat.", "fact")).id
        graph = ks._opened().instance.memories.graph
        assert await graph.relate([], [replace(mention, memory_id=memory_id)], 1) == 1
    memory = _kept(tmp_path, "memory")
    for secret in (OURS.encode(), b"lantern", b"PROJ-1234", b"proj 1234"):
        assert secret not in memory
    assert b"[redacted: " in memory


def test_no_line_of_the_log_holds_a_secret() -> None:
    """Neither what is said, nor a field, nor the words of an error."""
    config, _ = load(Path("/nowhere/config.yaml"), SETTINGS)
    lines = JsonLines(redactor_of(config), text=True)
    try:
        raise ValueError(f"refused {OURS}")
    except ValueError:
        record = logging.makeLogRecord({"msg": "key %s", "args": (OURS,), "code": OURS, "exc_info": sys.exc_info()})
    told = json.loads(lines.format(record))
    assert (told["msg"], told["code"]) == ("key [redacted: own secret]", "[redacted: own secret]")
    assert told["detail"] == "refused [redacted: own secret]"


def test_every_secret_of_the_settings_and_of_the_models_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Token, webhook secrets, keys in settings and environment, and the password in an address."""
    monkeypatch.setenv("OPENAI_API_KEY", "key-in-the-environment")  # gitleaks:allow
    config = Config(
        server={"token": OURS},
        channels={"github": {"secret": "webhook-and-more"}},
        models={"api_key": "key-in-the-settings", "base_url": "http://me:pass%20word-99@models.test/v1"},
        memory={"embedder_url": "http://me:other-word-98@vectors.test/v1"},
    )
    redactor = redactor_of(config)
    keys = "key-in-the-environment", "webhook-and-more", "key-in-the-settings"
    for secret in (OURS, *keys, "pass word-99", "other-word-98"):
        assert redactor.redacted(f"so {secret} it is") == "so [redacted: own secret] it is"


@pytest.mark.parametrize(("pattern", "fault"), [("(", "is not a regular expression"), ("x*", "matches an empty text")])
def test_a_pattern_that_cannot_be_meant_is_refused(pattern: str, fault: str) -> None:
    """With its reason, before anything is opened."""
    with pytest.raises(ConfigError, match=fault):
        load(Path("/nowhere/config.yaml"), {"redaction": {"patterns": [pattern]}})


async def test_a_long_text_is_read_off_the_loop() -> None:
    """What is longer than a moment's work is read in a thread, with the same result."""
    redactor = PatternRedactor([OURS])
    long = "word " * 10_000 + OURS
    [found] = await masked_texts(redactor, [long])
    assert found.marks == redactor.marks(long)
    assert found.marks[0].start == 50_000
    assert found.text == redactor.redacted(long)
