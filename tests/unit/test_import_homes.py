"""Readers of Claude, OpenClaw, Hermes, basic-memory and Letta."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.bundle_cast import home, outcomes, reasons, records_of, take_in
from tests.unit.import_cast import (
    KNOWN,
    claude,
    claude_message,
    drafts,
    folder,
    found,
    left_out,
    written,
    zipped,
)

from keepsaid.domain.memory import Kind
from keepsaid.errors import InputError
from keepsaid.services.imports.basic_memory import BasicMemoryReader
from keepsaid.services.imports.claude import ClaudeReader
from keepsaid.services.imports.files import open_files
from keepsaid.services.imports.hermes import HermesReader
from keepsaid.services.imports.letta import LettaReader
from keepsaid.services.imports.openclaw import OpenClawReader


def at(text: str) -> int:
    """A time in milliseconds UTC."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


CLAUDE = {
    "conversations.json": [
        claude(
            "c1",
            claude_message("m1", "human", "When do I prune the plum tree?", attachments=[{"file_name": "plan.pdf"}]),
            claude_message(
                "m2", "assistant", "", content=[{"type": "text", "text": "In summer."}, {"type": "tool_use"}]
            ),
            claude_message("m3", "human", ""),
            claude_message("m4", "bot", "Hello"),
        ),
        {"uuid": "c2"},
        5,
    ],
    "memories.json": [
        {
            "conversations_memory": "**Home**\n\nKeeps four plum trees in Moss.\n\n**Goals**\n- Wants to sell jam",
            "project_memories": {"p1": "The label of the jam is green."},
        }
    ],
    "projects.json": [{"uuid": "p1", "name": "Jam", "docs": [{"filename": "label.txt", "content": "x"}]}],
}


def test_claude_has_messages_and_what_it_remembers(tmp_path: Path) -> None:
    findings = found(ClaudeReader(), zipped(tmp_path / "data.zip", CLAUDE))
    remembered = [one for one in drafts(findings) if not one.conversation]
    assert [(one.kind, one.text) for one in remembered] == [
        (Kind.FACT, "Keeps four plum trees in Moss."),
        (Kind.GOAL, "Wants to sell jam"),
        (Kind.FACT, "The label of the jam is green."),
    ]
    talk = [one for one in drafts(findings) if one.conversation]
    assert [(one.ref, one.text, one.speaker, one.outside) for one in talk] == [
        ("c1/m1", "When do I prune the plum tree?", "user", False),
        ("c1/m2", "In summer.", "Claude", True),
    ]
    assert talk[0].said_at == at("2024-05-01T10:00:00.250")
    assert sorted(set(left_out(findings))) == [
        "it holds no text",
        "it is a document of a project",
        "it is an attached file",
        "it is not a conversation: it has no uuid, or no chat_messages",
        "it is not a message: it has no uuid, or was sent by neither the human nor the assistant",
    ]


def line(name: str, role: str, content: object, **fields: object) -> str:
    """A message in a transcript of OpenClaw."""
    about = {"type": "message", "id": name, "timestamp": "2026-02-06T07:49:03.491Z"}
    return json.dumps({**about, "message": {"role": role, "content": content}, **fields}) + "\n"


OPENCLAW: dict[str, object] = {
    "openclaw.json": {},
    "workspace/MEMORY.md": "# Preferences\n- Takes the 7:40 ferry to work\n- Tea\n",
    "workspace/memory/2026-01-02.md": "## Morning\n- Called the dentist about Friday\n",
    "workspace/skills/x/memory/a.md": "- not ours",
    "workspace/SOUL.md": "You are kind",
    "agents/main/sessions/s1.jsonl": json.dumps({"type": "session", "id": "s-one", "timestamp": "2026-02-06T07:00:00Z"})
    + "\n"
    + line("a", "user", [{"type": "text", "text": "Book the ferry for Monday"}])
    + line("b", "assistant", [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "It is booked."}])
    + line("c", "toolResult", "ok")
    + line("d", "assistant", [{"type": "toolCall"}])
    + "broken\n",
    "agents/main/sessions/s2.jsonl": line("e", "user", "We meet at six"),
    "agents/main/sessions/sessions.json": {"agent:main:telegram:group:7": {"sessionId": "s2"}, "agent:main:main": {}},
}


def test_openclaw_has_notes_and_sessions(tmp_path: Path) -> None:
    findings = found(OpenClawReader(), folder(tmp_path / "home", OPENCLAW))
    known = [(one.kind, one.text) for one in drafts(findings) if not one.conversation]
    assert known == [
        (Kind.PREFERENCE, "Takes the 7:40 ferry to work"),
        (Kind.PREFERENCE, "Preferences: Tea"),
        (Kind.OBSERVATION, "Called the dentist about Friday"),
    ]
    assert drafts(findings)[2].said_at == at("2026-01-02T12:00:00")
    talk = [one for one in drafts(findings) if one.conversation]
    assert [(one.ref, one.text, one.speaker, one.outside) for one in talk] == [
        ("main/s-one/a", "Book the ferry for Monday", "user", False),
        ("main/s-one/b", "It is booked.", "OpenClaw", True),
        ("main/s2/e", "We meet at six", "group", True),
    ]
    assert left_out(findings) == ["it is the output of a tool", "it holds no text", "it is not a JSON object"]


async def test_line_that_moved_in_a_note_is_the_same_and_a_changed_one_is_new(tmp_path: Path) -> None:
    path = folder(tmp_path / "home", OPENCLAW)
    async with home(tmp_path, "one") as store:
        how: dict[str, Any] = {"source": "openclaw", **KNOWN}
        report = await take_in(store, path, **how)
        assert (outcomes(report), report["kinds"]["preference"]["new"]) == ((6, 0, 0, 0), 2)
        records = await records_of(store)
        [ferry] = [one for one in records if "7:40" in one["text"]]
        assert (ferry["scope"], ferry["trust"], ferry["derived"]) == ("person:owner", "known", True)
        assert json.loads(ferry["metadata"])["openclaw"]["file"] == "workspace/MEMORY.md"
        moved = "# Preferences\n- Tea\n\n- Takes the 7:40 ferry to work\n- Reads on the ferry\n"
        written(path / "workspace/MEMORY.md", moved)
        assert outcomes(await take_in(store, path, **how)) == (1, 6, 0, 0)


HERMES: list[dict[str, Any]] = [
    {
        "id": "h1",
        "source": "cli",
        "started_at": 1_700_000_000.0,
        "messages": [
            {
                "id": 1,
                "role": "user",
                "content": "I bake rye bread on Sundays",
                "timestamp": 1_700_000_001.5,
                "active": 1,
            },
            {"id": 2, "role": "assistant", "content": '\0json:[{"type": "text", "text": "A loaf"}, {"type": "image"}]'},
            {"id": 3, "role": "user", "content": "Never mind", "active": 0},
            {"id": 4, "role": "tool", "content": "{}"},
            {"id": 5, "role": "user", "content": "\1json:["},
        ],
    },
    {
        "id": "h2",
        "source": "telegram",
        "user_id": "42",
        "messages": [{"id": 6, "role": "user", "content": "Is it raining?"}],
    },
]


def hermes(path: Path) -> Path:
    """A home of Hermes with an export of its sessions."""
    entries = "The oven is slow.\n§\nTwo lines\nin one entry.\n§\n"
    sessions = "".join(json.dumps(one) + "\n" for one in HERMES)
    return folder(path, {"memories/MEMORY.md": entries, "sessions.jsonl": sessions})


def test_hermes_has_entries_and_sessions(tmp_path: Path) -> None:
    findings = found(HermesReader(), hermes(tmp_path / "home"))
    assert [(one.text, one.who) for one in drafts(findings)] == [
        ("The oven is slow.", None),
        ("Two lines\nin one entry.", None),
        ("I bake rye bread on Sundays", None),
        ("A loaf", None),
        ("Is it raining?", "telegram:42"),
    ]
    assert drafts(findings)[2].said_at == 1_700_000_001_500
    assert left_out(findings) == ["it was taken back in its session", "it is the output of a tool", "it holds no text"]


async def test_hermes_users_are_not_guessed(tmp_path: Path) -> None:
    path = hermes(tmp_path / "home")
    async with home(tmp_path, "one") as store:
        report = await take_in(store, path, source="hermes", **KNOWN)
        assert outcomes(report) == (4, 0, 0, 0)
        assert "nobody here is 'telegram:42'" in " ".join(reasons(report).values())
        report = await take_in(store, path, source="hermes", persons={"telegram:42": "telegram:bot:42"}, **KNOWN)
        assert outcomes(report) == (1, 4, 0, 0)


def test_hermes_export_is_read_line_by_line(tmp_path: Path) -> None:
    session = {
        "id": "h1",
        "source": "cli",
        "messages": [{"role": "user", "content": "I bake rye bread", "timestamp": 5}],
    }
    path = written(tmp_path / "sessions.jsonl", json.dumps(session) + '\n{"id": "h2"}\n{"messages": []}\nno')
    findings = found(HermesReader(), path)
    assert [one.ref for one in drafts(findings)] == ["h1/0"]
    assert left_out(findings) == [
        "it is not a session: it has no messages",
        "it is a session without an id",
        "it is not a session: it has no messages",
    ]


NOTE = """---
title: Coffee
permalink: notes/coffee
tags: [drinks]
created: 2025-03-01
---
# Coffee

I began with a cheap grinder.

## Observations
- [preference] Drinks filter coffee before noon #habit #home (since the move)
- [ ] buy filters
- [method] Grinds coarse for the press

## Relations
- pairs_with [[Rye bread]] (on Sundays)
"""


def test_basic_memory_has_observations_relations_and_notes(tmp_path: Path) -> None:
    given = folder(tmp_path / "notes", {"coffee.md": NOTE, ".obsidian/x.md": "no", "plain.md": "Only words."})
    findings = drafts(found(BasicMemoryReader(), given))
    assert [(one.kind, one.text) for one in findings[:3]] == [
        (Kind.PREFERENCE, "Drinks filter coffee before noon"),
        (Kind.FACT, "Grinds coarse for the press"),
        (Kind.FACT, "Coffee pairs_with Rye bread"),
    ]
    assert findings[0].about == {
        "title": "Coffee",
        "category": "preference",
        "tags": ["habit", "home"],
        "context": "since the move",
    }
    assert findings[0].said_at == at("2025-03-01")
    note, plain = findings[3:]
    assert (note.conversation, note.outside, "cheap grinder" in note.text) == ("notes/coffee", True, True)
    assert (plain.text, plain.conversation) == ("Only words.", "plain")


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ("a: &a [x, x]\nb: &b [*a, *a]\ntitle: 'My coffee'", "My coffee"),
        ("title: [", "coffee"),
        ("- a list", "coffee"),
        ("title: !!python/object/apply:os.system [ls]", "coffee"),
        ("x: " + "[" * 5_000, "coffee"),
        ("title: " + "y" * 30_000, "coffee"),
        ("title:", "coffee"),
        ("date: 2025-99-99", "coffee"),
    ],
)
def test_front_matter_is_read_for_plain_fields_only(tmp_path: Path, head: str, title: str) -> None:
    given = folder(tmp_path / "notes", {"coffee.md": f"---\n{head}\n---\n- [fact] The press holds one litre"})
    first = drafts(found(BasicMemoryReader(), given))[0]
    assert (first.text, first.about["title"]) == ("The press holds one litre", title)


AGENT = {
    "agents": [
        {
            "id": "agent-0",
            "name": "Sam",
            "messages": [
                {"id": "message-0", "role": "system", "content": [{"type": "text", "text": "You are Sam"}]},
                {"id": "message-1", "role": "user", "content": [{"type": "text", "text": "I row on Tuesdays"}]},
                {
                    "id": "message-2",
                    "role": "assistant",
                    "content": [{"type": "text", "text": "(thinks)"}],
                    "tool_calls": [{"function": {"name": "send_message", "arguments": '{"message": "Good for you."}'}}],
                    "created_at": "2025-06-01T08:00:00+00:00",
                },
                {"id": "message-3", "role": "tool", "content": "ok"},
                {"id": "message-4", "role": "user", "content": '{"type": "user_message", "message": "And swim"}'},
                {"id": "message-5", "role": "user", "content": '{"type": "heartbeat", "reason": "x"}'},
            ],
        }
    ],
    "blocks": [
        {"id": "block-0", "label": "human", "value": "Rows with the club in Drammen.\nHas a sister, Tuva."},
        {"id": "block-1", "label": "persona", "value": "I am Sam."},
        {"label": 5},
    ],
}


def test_letta_agent_has_blocks_and_messages(tmp_path: Path) -> None:
    findings = found(LettaReader(), written(tmp_path / "sam.af", AGENT))
    assert [(one.ref.split("#")[0], one.text, one.outside) for one in drafts(findings)] == [
        ("block/block-0", "Rows with the club in Drammen. Has a sister, Tuva.", False),
        ("agent-0/message-1", "I row on Tuesdays", False),
        ("agent-0/message-2", "Good for you.", True),
        ("agent-0/message-4", "And swim", False),
    ]
    assert sorted(left_out(findings)) == [
        "it holds no text",
        "it is a block that describes the agent",
        "it is a system message",
        "it is not a block: it has no label, or no value",
        "it is the output of a tool",
    ]


PASSAGES: list[dict[str, Any]] = [
    {"id": "passage-1", "text": "The boat club opens in April", "created_at": "2025-11-05 23:04:24.901468+00:00"},
    {"id": "passage-2", "text": "Old", "is_deleted": True},
    {"text": "no id"},
    {"id": "passage-3", "text": "Wants a lighter oar", "tags": ["goals", 5]},
]


def test_letta_passages_are_facts(tmp_path: Path) -> None:
    findings = found(LettaReader(), written(tmp_path / "passages.json", PASSAGES))
    first, second = drafts(findings)
    assert (first.ref, first.said_at) == ("passage/passage-1", at("2025-11-05T23:04:24.901"))
    assert (second.kind, second.about) == (Kind.GOAL, {"tags": ["goals"]})
    assert len(left_out(findings)) == 2
    legacy = {"agent_type": "memgpt_agent", "name": "Sam", "core_memory": AGENT["blocks"], "messages": []}
    assert len(drafts(found(LettaReader(), written(tmp_path / "old.af", legacy)))) == 1
    with pytest.raises(InputError, match="neither an agent file nor"):
        found(LettaReader(), written(tmp_path / "other" / "x.json", {"a": 1}))


@pytest.mark.parametrize(
    "reader", [ClaudeReader(), OpenClawReader(), HermesReader(), BasicMemoryReader(), LettaReader()]
)
def test_files_of_another_product_are_refused(tmp_path: Path, reader: Any) -> None:
    path = folder(tmp_path / "given", {"a.txt": "words", "b.csv": "1,2"})
    assert not reader.recognises(open_files(path))
    with pytest.raises(InputError, match="holds n"):
        found(reader, path)
