from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.unit.bundle_cast import Place, home, outcomes, reasons, records_of, take_in
from tests.unit.import_cast import BOAT, KNOWN, chatgpt, drafts, files_in, found, left_out, node, said, written, zipped

from keepsaid.domain.bundle import BundleEntry, ImportVerdict
from keepsaid.domain.memory import Listener
from keepsaid.domain.message import Lane, Trust
from keepsaid.errors import InputError
from keepsaid.services.imports.chatgpt import ChatGptReader
from keepsaid_testkit.contracts.memories import AUDIT

HOW: dict[str, Any] = {"source": "chatgpt", **KNOWN}


def one(folder: Path, conversation: object) -> Path:
    """An export with one conversation."""
    return written(folder / "conversations.json", [conversation])


async def test_messages_become_episodes_of_the_owner(tmp_path: Path) -> None:
    path = one(tmp_path, BOAT)
    async with home(tmp_path, "one") as store:
        report = await take_in(store, path, dry_run=True, **HOW)
        assert outcomes(report) == (3, 0, 0, 0)
        assert report["kinds"]["episode"]["new"] == 3
        assert await records_of(store) == []
        assert outcomes(await take_in(store, path, **HOW)) == (3, 0, 0, 0)
        records = sorted(await records_of(store), key=lambda record: (record["said_at"], record["id"]))
        assert [record["text"] for record in records] == [
            "My rowing boat is in the shed at the lake.",
            "Then it is dry.",
            "Remind me to paint it.",
        ]
        first, answer, _ = records
        assert first["key"] == "import:chatgpt:c1/q"
        assert first["lane"] == ["chatgpt", "import", "c1", "root:c1"]
        assert (first["scope"], first["chat_of"], first["speaker_id"]) == ("person:owner", "owner", "owner")
        assert (first["trust"], answer["trust"]) == ("known", "external")
        assert (answer["speaker"], answer["speaker_id"]) == ("ChatGPT", "")
        assert json.loads(first["metadata"]) == {
            "chatgpt": {"title": "A boat", "file": "conversations.json", "id": "c1/q"}
        }
        assert [source["ref"] for source in first["sources"]] == ["chatgpt:c1/q"]


async def test_second_import_changes_nothing_and_a_longer_export_adds_what_is_new(tmp_path: Path) -> None:
    path = one(tmp_path, BOAT)
    yes = [node("x", None, said("x", "user", "Yes, please.")), node("y", "x", said("y", "user", "Yes, please."))]
    async with home(tmp_path, "one") as store:
        await take_in(store, path, **HOW)
        before = await records_of(store)
        assert outcomes(await take_in(store, path, **HOW)) == (0, 3, 0, 0)
        assert await records_of(store) == before
        written(path, [BOAT, chatgpt("c2", yes, "y")])
        assert outcomes(await take_in(store, path, **HOW)) == (2, 3, 0, 0)
        written(path, [BOAT, chatgpt("c2", [*yes, node("z", "y", said("z", "user", "Yes, please."))], "z")])
        assert outcomes(await take_in(store, path, **HOW)) == (1, 5, 0, 0)


async def test_forgotten_messages_stay_forgotten(tmp_path: Path) -> None:
    path = one(tmp_path, BOAT)
    async with home(tmp_path, "one") as store:
        await take_in(store, path, **HOW)
        ids = [memory.id for memory in await store.find(AUDIT, (), 9)]
        traced = await store.forgetful.lineage(ids, [])
        await store.forgetful.hide(ids, [digest for one in traced for digest in one.digests], 9)
        await store.forgetful.erase(ids)
        for dry_run in (True, False):
            why = reasons(await take_in(store, path, dry_run=dry_run, **HOW))
            assert sum("forgotten" in one for one in why.values()) == 3


def test_only_the_branch_that_was_shown_is_read(tmp_path: Path) -> None:
    findings = found(ChatGptReader(), one(tmp_path, BOAT))
    assert [draft.ref for draft in drafts(findings)] == ["c1/q", "c1/a", "c1/e"]
    assert left_out(findings) == ["it is the output of a tool", "it is on a branch that was given up"]


def test_without_a_current_node_the_newest_leaf_ends_the_conversation(tmp_path: Path) -> None:
    findings = found(ChatGptReader(), one(tmp_path, {**BOAT, "current_node": None}))
    assert [draft.ref for draft in drafts(findings)] == ["c1/q", "c1/a", "c1/e"]


@pytest.mark.parametrize("current", ["a", "b", None])
def test_circle_of_messages_is_left_out(tmp_path: Path, current: str | None) -> None:
    circle = [node("a", "b", said("a", "user", "Hello there"), "b"), node("b", "a", said("b", "user", "Again"), "a")]
    findings = found(ChatGptReader(), one(tmp_path, chatgpt("c", circle, current)))
    assert (drafts(findings), left_out(findings)) == ([], ["its messages form a circle, or lead nowhere"])


def test_other_content_is_counted_by_its_reason(tmp_path: Path) -> None:
    image = {"content_type": "multimodal_text", "parts": [{"content_type": "image_asset_pointer"}]}
    spoken = {"content_type": "multimodal_text", "parts": [{"content_type": "audio_transcription", "text": "By voice"}]}
    messages = [
        said("m0", "user", "", content=image),
        said("m1", "user", "", content=spoken),
        said("m2", "assistant", "", content={"content_type": "code", "text": "print(1)"}),
        said("m3", "assistant", "search('lake')", recipient="browser"),
        said("m4", "user", "hidden", metadata={"is_visually_hidden_from_conversation": True}),
        said("m5", "system", "You are helpful"),
        said("m6", "critic", "No"),
        {"id": "m7", "author": "user", "content": 5},
    ]
    nodes = [node(f"n{n}", f"n{n - 1}" if n else None, message) for n, message in enumerate(messages)]
    findings = found(ChatGptReader(), one(tmp_path, chatgpt("c", nodes, "n7")))
    assert [draft.text for draft in drafts(findings)] == ["By voice"]
    assert left_out(findings) == [
        "it holds no text, but a file or an image",
        "its content is 'code', not text",
        "it is a call of a tool",
        "it is hidden in its conversation",
        "it is a system message",
        "it was said by neither the user nor the assistant",
    ]


@pytest.mark.parametrize(
    ("given", "at"),
    [
        (1_700_000_000, 1_700_000_000_000),
        (1_700_000_000.25, 1_700_000_000_250),
        (1_700_000_000_250, 1_700_000_000_250),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        (None, 1_600_000_000_000),
        (-5, 1_600_000_000_000),
        (9e30, 1_600_000_000_000),
        (4_000_000_000, 1_600_000_000_000),
        (True, 1_600_000_000_000),
        ("soon", 1_600_000_000_000),
        ([], 1_600_000_000_000),
    ],
)
def test_time_is_read_or_taken_from_the_conversation(tmp_path: Path, given: object, at: int) -> None:
    conversation = chatgpt("c", [node("a", None, said("a", "user", "Hello there", create_time=given))], "a")
    [draft] = drafts(found(ChatGptReader(), one(tmp_path, conversation)))
    assert draft.said_at == at


@pytest.mark.parametrize(
    "names", [("conversations.json",), ("export/conversations-000.json", "conversations-001.json")]
)
async def test_archive_is_read_and_never_unpacked(tmp_path: Path, names: tuple[str, ...]) -> None:
    path = zipped(
        tmp_path / "export.zip", {"../../escape.txt": "x", "chat.html": "", **{name: [BOAT] for name in names}}
    )
    async with home(tmp_path, "one") as store:
        report = await take_in(store, path, **HOW)
        assert outcomes(report) == (3, 0, 0, 3 * (len(names) - 1))
    assert files_in(tmp_path) == ["export.zip", "one"]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (json.dumps([BOAT, BOAT])[:-40], "is not whole"),
        (json.dumps([BOAT])[:-1], "is not whole"),
        (json.dumps([BOAT]) + "x", "something follows"),
        (json.dumps([BOAT]) + "[", "something follows"),
        ("", "is not a list"),
        ("{}", "is not a list"),
        (b"[\xff]", "is not"),
        ("[" * 10_000, "nested too deeply"),
        (json.dumps([BOAT])[:-1] + "," + '{"a":' * 10_000, "nested too deeply"),
        (json.dumps([BOAT])[:-1] + ",NaN]", "NaN is not JSON"),
    ],
)
async def test_damaged_export_imports_nothing(tmp_path: Path, content: str | bytes, why: str) -> None:
    path = written(tmp_path / "conversations.json", content)
    async with home(tmp_path, "one") as store:
        with pytest.raises(InputError, match=why) as error:
            await take_in(store, path, **HOW)
        assert error.value.safe == "Nothing was imported."
        assert error.value.what.count("conversations.json") == 1
        assert await records_of(store) == []


async def test_words_that_cannot_be_stored_or_are_too_long_are_handled(tmp_path: Path) -> None:
    texts = ["\ud800 and \0", "long " * 50_000, " \n ", "the key is sk-ant-REDACTED"]
    nodes = [node(f"n{n}", f"n{n - 1}" if n else None, said(f"m{n}", "user", text)) for n, text in enumerate(texts)]
    nodes.append(node("n4", "n3", said("m0", "user", "A second message of this id")))
    path = one(tmp_path, chatgpt("c", nodes, "n4"))
    async with home(tmp_path, "one") as store:
        report = await take_in(store, path, **HOW)
        assert outcomes(report) == (2, 0, 0, 1)
        assert [one["lines"] for one in report["reasons"]] == [1, 1]
        assert sorted(reasons(report).values()) == [
            "it is longer than 200,000 bytes",
            "the key 'import:chatgpt:c/m0' stood in an earlier line",
        ]
        assert "\ufffd and \ufffd" in [record["text"] for record in await records_of(store)]


async def test_names_that_cannot_be_stored_are_written_out(tmp_path: Path) -> None:
    odd = "\ud800 \0 \x1b[31m"
    nodes = [node(odd, None, said(odd, "user", "The boat is red")), node("b", odd, said("b", "assistant", odd))]
    path = one(tmp_path, chatgpt(f"c {odd}", nodes, "b", title=odd))
    async with home(tmp_path, "one") as store:
        assert outcomes(await take_in(store, path, **HOW)) == (2, 0, 0, 0)
        assert outcomes(await take_in(store, path, **HOW)) == (0, 2, 0, 0)


async def test_owner_s_messages_are_recalled_in_direct_chats_and_the_assistant_s_are_not(tmp_path: Path) -> None:
    path = one(tmp_path, BOAT)
    here = Lane("telegram", "bot", "7", "root:7")
    async with home(tmp_path, "one") as store:
        await take_in(store, path, **HOW)

        async def texts(listener: Listener) -> list[str]:
            return sorted(memory.text for memory in await store.find(listener, (), 9))

        owner = await texts(Listener(here, person="owner", direct=True))
        assert owner == ["My rowing boat is in the shed at the lake.", "Remind me to paint it."]
        assert await texts(Listener(here, person="owner")) == []
        assert await texts(Listener(here, person="telegram:bot:42", direct=True)) == []
        assert len(await texts(AUDIT)) == 3


async def test_secrets_are_removed_from_texts_and_titles(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    message = said("m", "user", f"My token is {secret} for the boat club")
    path = one(tmp_path, chatgpt("c", [node("n", None, message)], "n", title=f"About {secret}"))
    async with home(tmp_path, "one") as store:
        report = await take_in(store, path, **HOW)
        assert (outcomes(report), report["secrets"]) == ((1, 0, 0, 0), 1)
        [record] = await records_of(store)
        assert secret not in json.dumps(record)
        assert json.loads(record["metadata"])["chatgpt"]["id"] == "c/m"


async def test_import_that_was_broken_off_continues(tmp_path: Path) -> None:
    nodes = [node(f"n{n}", f"n{n - 1}" if n else None, said(f"m{n}", "user", f"Line {n} of it")) for n in range(60)]
    path = one(tmp_path, chatgpt("c", nodes, "n59"))

    class Breaking(Place):
        async def learn(self, records: Sequence[BundleEntry]) -> Sequence[ImportVerdict]:
            if self.writes:
                raise InterruptedError
            self.writes.append(len(records))
            return await super().learn(records)

    async with home(tmp_path, "one") as store:
        with pytest.raises(InterruptedError):
            await take_in(Breaking(store), path, **HOW)
        assert len(await records_of(store)) == 25
        assert outcomes(await take_in(store, path, **HOW)) == (35, 25, 0, 0)
        assert len(await records_of(store)) == 60


async def test_the_owner_s_words_are_the_owner_s_only_if_that_is_said(tmp_path: Path) -> None:
    path = one(tmp_path, BOAT)
    async with home(tmp_path, "one") as store:
        await take_in(store, path, source="chatgpt", trust=Trust.OWNER)
        assert {record["speaker_id"]: record["trust"] for record in await records_of(store)} == {
            "owner": "owner",
            "": "external",
        }
    async with home(tmp_path, "two") as store:
        await take_in(store, path, source="chatgpt", trust=Trust.KNOWN, persons={"user": "telegram:bot:42"})
        assert {record["scope"] for record in await records_of(store)} == {"person:telegram:bot:42"}
