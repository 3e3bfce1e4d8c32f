from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.bundle_cast import NOW, home, outcomes, reasons, records_of, take_in

from keepsaid.domain.message import Trust
from keepsaid.errors import InputError
from keepsaid_testkit.contracts.learning import said
from keepsaid_testkit.contracts.memories import AUDIT

HOW: dict[str, Any] = {"source": "mem0", "trust": Trust.KNOWN, "persons": {"alice": "owner", "bob": "telegram:bot:42"}}


def item(name: str, text: str, user: str = "alice", **fields: object) -> dict[str, Any]:
    """A memory as `get_all` tells of it."""
    times = {"created_at": "2024-07-20T05:29:36.630547-07:00", "updated_at": None, "hash": "a4e1"}
    return {"id": name, "memory": text, "user_id": user, "metadata": None, **times, **fields}


def given(folder: Path, items: object) -> Path:
    """A file of mem0."""
    file = folder / "mem0.json"
    file.write_text(json.dumps(items), "utf-8")
    return file


@pytest.mark.parametrize(
    "wrap", [lambda items: items, lambda items: {"results": items}, lambda items: {"memories": items}]
)
async def test_memories_are_learned_for_whom_they_are_about(tmp_path: Path, wrap: Any) -> None:
    items = [
        item(
            "a1",
            "Is allergic to walnuts and figs",
            categories=["health", "food_preferences"],
            metadata={"from": "chat"},
        ),
        item("b1", "Works for Acme as a baker", "bob", created_at=None),
    ]
    file = given(tmp_path, wrap(items))
    async with home(tmp_path, "one") as store:
        assert outcomes(await take_in(store, file, dry_run=True, **HOW)) == (2, 0, 0, 0)
        assert await records_of(store) == []
        assert outcomes(await take_in(store, file, **HOW)) == (2, 0, 0, 0)
        first, second = sorted(await records_of(store), key=lambda one: str(one["key"]))
        assert (first["kind"], first["scope"], first["subject_id"]) == ("preference", "person:owner", "owner")
        assert (second["kind"], second["scope"], second["said_at"]) == ("fact", "person:telegram:bot:42", NOW)
        assert (first["key"], first["trust"], first["derived"]) == ("import:mem0:a1", "known", True)
        assert first["said_at"] == 1_721_478_576_630
        assert json.loads(first["metadata"])["mem0"]["metadata"] == {"from": "chat"}
        assert first["sources"] == [{"kind": "import", "ref": "mem0:a1", "statement": "import:mem0:a1"}]
        before = await records_of(store)
        assert outcomes(await take_in(store, file, **HOW)) == (0, 2, 0, 0)
        assert await records_of(store) == before


async def test_what_is_known_is_evidence_and_what_changed_is_a_conflict(tmp_path: Path) -> None:
    async with home(tmp_path, "one") as store:
        words = "Sings in a choir on Monday evenings"
        [known] = await store.learn([said("m", words, scope="person:owner")], 5)
        items = [item("a1", words), item("a2", "Owns a blue bicycle"), item("a3", "Owns a blue bicycle")]
        assert outcomes(await take_in(store, given(tmp_path, items), **HOW)) == (1, 2, 0, 0)
        kept = await store.get(AUDIT, known.memory_id)
        assert kept is not None
        items[1]["memory"] = "Owns a green bicycle"
        told = await take_in(store, given(tmp_path, items), **HOW)
        assert outcomes(told) == (0, 2, 1, 0)
        assert reasons(told) == {2: "it is here with another text"}


async def test_a_fact_of_one_word_is_learned_because_it_is_about_its_user(tmp_path: Path) -> None:
    async with home(tmp_path, "one") as store:
        items = [item("a1", "Vegetarian"), item("a2", "Is left-handed"), item("a3", "ok")]
        assert outcomes(await take_in(store, given(tmp_path, items), **HOW)) == (2, 0, 0, 1)


async def test_what_cannot_be_learned_is_named(tmp_path: Path) -> None:
    items = [
        item("a1", "ok"),
        item("a2", "word " * 12_000),
        item("a3", "Keeps bees", user="carol"),
        {"id": "a4"},
        {"memory": "Keeps bees", "user_id": "alice"},
        item("a6", "Keeps bees", created_at="yesterday"),
        item("a7", "Keeps bees", created_at=5),
        item("a8", "Keeps three hives of bees"),
        item("a8", "Keeps four hives of bees"),
        "a text",
        {"id": "a9", "memory": "The agent answers in rhyme", "agent_id": "poet"},
    ]
    async with home(tmp_path, "one") as store:
        told = await take_in(store, given(tmp_path, items), **HOW)
        expected = {
            1: "small talk",
            2: "longer than 50,000 bytes",
            3: "nobody here is 'carol'",
            4: "no text",
            5: "no `id`",
            6: "a day such as",
            7: "created_at is a number",
            9: "stood in an earlier line",
            10: "it is a text",
            11: "nobody here is 'poet'",
        }
        why = reasons(told)
        assert why.keys() == expected.keys()
        for number, part in expected.items():
            assert part in why[number]
        assert [one["text"] for one in await records_of(store)] == ["Keeps three hives of bees"]
        everybody = {**HOW, "persons": {"*": "owner"}}
        assert outcomes(await take_in(store, given(tmp_path, items[2:3] + items[10:]), **everybody)) == (2, 0, 0, 0)


async def test_what_was_forgotten_stays_forgotten(tmp_path: Path) -> None:
    file = given(tmp_path, [item("a1", "Owes Dan ninety euros")])
    async with home(tmp_path, "one") as store:
        await take_in(store, file, **HOW)
        [memory] = await store.find(AUDIT, (), 9)
        [traced] = await store.forgetful.lineage([memory.id], [])
        await store.forgetful.hide([memory.id], traced.digests, 9)
        await store.forgetful.erase([memory.id])
        for dry_run in (True, False):
            told = await take_in(store, file, dry_run=dry_run, **HOW)
            assert reasons(told) == {1: "it was forgotten here"}


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b"5", b'{"results": 5}', b'{"message": "no"}', b"[" * 99_999]
)
async def test_what_is_no_file_of_mem0_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "mem0.json"
    file.write_bytes(content)
    async with home(tmp_path, "one") as store:
        with pytest.raises(InputError) as refused:
            await take_in(store, file, **HOW)
        assert refused.value.safe == "Nothing was imported."
