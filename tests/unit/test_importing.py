from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.bundle_cast import Place, bundle, home, outcomes, reasons, records_of, take_in, written

from keepsaid.domain.bundle import RECORDS_MAX
from keepsaid.domain.bundle_lines import line_of
from keepsaid.domain.memory import OWNER, Kind, person_scope
from keepsaid.domain.message import Trust
from keepsaid.errors import InputError
from keepsaid.services.bundles import LINE_BYTES_MAX
from keepsaid_testkit.contracts.learning import lives, said
from keepsaid_testkit.contracts.memories import AUDIT, HERE, episode
from keepsaid_testkit.contracts.people import ANN, BEN


@pytest.fixture
async def sample(tmp_path: Path) -> list[dict[str, Any]]:
    """Two versions of one thing, and a word."""
    async with home(tmp_path, "sample") as store:
        await store.learn([lives("m1", "Porto", 100), lives("m2", "Rome", 200)], 300)
        await store.keep([episode("message:1", "the cat sleeps", HERE, Trust.KNOWN, said_at=5)], 6)
        return await bundle(store, tmp_path / "sample.jsonl")


def memories(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines of memories, by key."""
    return sorted((one for one in records if one["type"] == "memory"), key=lambda one: str(one["key"]))


async def test_files_that_are_no_whole_bundle_are_refused_with_nothing_imported(
    tmp_path: Path, sample: list[dict[str, Any]]
) -> None:
    whole = (tmp_path / "sample.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    huge = json.dumps({**memories(sample)[0], "text": "x" * LINE_BYTES_MAX}).encode() + b"\n"
    cases = {
        "is not a bundle": b"",
        "not a bundle of keepsaid": bytes(range(256)) * 40,
        "is not a bundle of": b"not JSON\n",
        "is not a bundle of keepsaid's": b'["a", "list"]\n',
        "has format '2'; this keepsaid reads 1": written(tmp_path / "two", sample, format=2).read_bytes(),
        "breaks off after its header": lines[0],
        "breaks off after line 3": b"".join(lines[:3]),
        "breaks off after line": whole[:-30],
        "its checksum says otherwise": whole.replace(b"Porto", b"Parto"),
        "has more than 8,000,000 bytes": lines[0] + huge + b"".join(lines[1:]),
        "breaks off": b"".join([*lines[:-1], b"\xff\xfe\n"]),
    }
    async with home(tmp_path, "other") as other:
        for why, content in cases.items():
            file = tmp_path / "case"
            file.write_bytes(content)
            for dry_run in (True, False):
                with pytest.raises(InputError, match=why) as refused:
                    await take_in(other, file, dry_run=dry_run)
                assert refused.value.safe == "Nothing was imported."
        with pytest.raises(InputError, match="cannot be read"):
            await take_in(other, tmp_path)
        assert await records_of(other) == []


def _edge(**fields: object) -> dict[str, Any]:
    told = {"type": "association", "source": "m1", "target": "m2", "relation": "updates", "weight": 1, "at": 1}
    return {**told, **fields}


def _changed(line: dict[str, Any], **fields: object) -> dict[str, Any]:
    return {**line, **fields}


def _cases(porto: dict[str, Any], rome: dict[str, Any], talk: dict[str, Any]) -> list[tuple[object, str]]:
    """Lines that cannot be taken over, and what is said of each."""
    deep = "[" * 100_000 + "]" * 100_000
    return [
        (_changed(talk, kind="rumour"), "kind: 'rumour' is not one of"),
        (_changed(talk, scope="planet:mars"), "scope: nobody can read the scope 'planet:mars'"),
        (_changed(talk, scope="person:bob"), "scope: nobody can read the scope 'person:bob'"),
        (_changed(talk, scope=""), "scope: nobody can read"),
        (_changed(talk, trust="root"), "trust: 'root' is not one of"),
        (_changed(talk, state="forgotten"), "state: 'forgotten' is not one of"),
        (_changed(talk, said_at=1e300), "said_at: it must be milliseconds"),
        (_changed(talk, said_at=10**18), "said_at: it must be milliseconds"),
        (_changed(talk, importance=float("nan")), "importance: it must be a number from 0 to 1"),
        (_changed(talk, confidence=7), "confidence: it must be a number from 0 to 1"),
        (_changed(talk, evidence=-1), "evidence: it must be a whole number"),
        (_changed(talk, text=5), "text: it must be a text, not a number"),
        (_changed(talk, key="empty", text=" "), "it says nothing"),
        (_changed(talk, id="msg_1"), "id: it must be the id of a memory"),
        (_changed(talk, content_hash="zz"), "content_hash:"),
        (_changed(talk, content_hash="00"), "content_hash: it must be 16 bytes"),
        (_changed(talk, metadata="[]"), "metadata: it must be a JSON object"),
        (_changed(talk, metadata="{"), "metadata:"),
        (_changed(talk, lane=["a"]), "lane: it must be four texts"),
        (_changed(talk, sources=[{"kind": "message"}]), "sources: 'ref' is missing"),
        (_changed(talk, sources="many"), "sources: it must be a list"),
        (_changed(talk, mentions=[{"entity": "a", "since": 1, "name": "!", "weight": 1, "at": 1}]), "a name has words"),
        (_changed(talk, key=""), "key: it is empty"),
        (_changed(talk, key="k" * 5_000), "key: it has more than 4,000 characters"),
        (_changed(talk, extra=1), "'extra' does not belong there"),
        ({name: value for name, value in talk.items() if name != "text"}, "'text' is missing"),
        (_changed(porto, superseded_by="m1"), "superseded_by: nothing takes its own place"),
        (_changed(porto, key="long", text="word " * 12_000, superseded_by=""), "it is longer than 50,000 bytes"),
        (_changed(porto, key="junk", text="ok", superseded_by="", attribute="", value=""), "small talk"),
        (_changed(porto, key="outside", trust="external", superseded_by=""), "what outsiders wrote is not learned"),
        (_changed(talk, id=rome["id"], key="namesake"), "its id stood in an earlier line"),
        (rome, "the key 'm2' stood in an earlier line"),
        ({"type": "spell"}, "there is no record of type 'spell'"),
        ({"type": "link", "key": "m1", "replaced_by": "m2", "state": "active", "valid_to": None}, "links stand in"),
        (_edge(target="gone"), "not here"),
        (_edge(target="m1"), "itself"),
        (_edge(relation="eats"), "relation:"),
        (_edge(weight=0), "above 0"),
        ({"type": "person", "id": "per_1", "identities": []}, "a person is made of two or more"),
        ("[1, 2]", "it is a list, not an object"),
        ("no JSON at all", "it is not JSON"),
        (deep, "it is not JSON"),
    ]


async def test_lines_that_do_not_fit_are_named_and_the_others_are_taken_over(
    tmp_path: Path, sample: list[dict[str, Any]]
) -> None:
    porto, rome, talk = memories(sample)
    cases = _cases(porto, rome, talk)
    file = written(tmp_path / "cases", [porto, rome, talk, *(line for line, _ in cases)])
    async with home(tmp_path, "other") as other:
        dry = await take_in(other, file, dry_run=True)
        told = await take_in(other, file)
        assert told["counts"] == dry["counts"]
        assert outcomes(told)[:2] == (3, 0)
        why = reasons(told)
        for number, (_, expected) in enumerate(cases, start=5):
            assert expected in why.pop(number, "it was taken over"), cases[number - 5]
        assert why == {}
        assert memories(await records_of(other)) == [porto, rome, talk]


async def test_what_would_take_its_own_place_is_rejected(tmp_path: Path, sample: list[dict[str, Any]]) -> None:
    porto, rome, talk = memories(sample)
    rows = [_changed(porto, key=f"c{n}", id=f"mem_{n + 1:013d}", superseded_by=f"c{(n + 1) % 3}") for n in range(3)]
    tail = _changed(rome, key="tail", id="mem_0000000000009", superseded_by="c0", statements=[])
    file = written(tmp_path / "circle", [talk, *rows, tail])
    async with home(tmp_path, "other") as other:
        told = await take_in(other, file)
        assert outcomes(told) == (2, 0, 0, 3)
        assert set(reasons(told).values()) == {"superseded_by: it would take its own place"}
        assert list(reasons(told)) == [3, 4, 5]


async def test_nobody_says_more_than_he_may(tmp_path: Path) -> None:
    """A bundle that is trusted less tells nothing as the owner: neither pins nor certainty, corrections nor people."""
    async with home(tmp_path, "one") as store, home(tmp_path, "other") as other, home(tmp_path, "third") as third:
        word = lives("m1", "Porto", 100, trust=Trust.OWNER, corrects=True, scope=person_scope(OWNER))
        [learned] = await store.learn([word], 5)
        await store.revisions.pin(learned.memory_id, 6, pinned=True)
        await store.revisions.confirm(learned.memory_id, 6)
        await store.keep([episode("e", "something was said", HERE, Trust.OWNER)], 7)
        await store.people.join((ANN, BEN), OWNER, 8)
        await bundle(store, tmp_path / "all.jsonl")
        told = await take_in(other, tmp_path / "all.jsonl", trust=Trust.KNOWN)
        assert (outcomes(told), outcomes(told, "people")) == ((2, 0, 0, 0), (0, 0, 0, 1))
        for line in memories(await records_of(other)):
            assert (line["trust"], line["pinned"], line["confirmed_at"]) == ("known", False, None)
            assert not line["corrects"]
            assert not any(one["corrects"] for one in line["statements"])
        assert sum(outcomes(await take_in(other, tmp_path / "all.jsonl", trust=Trust.KNOWN))[2:]) == 0
        told = await take_in(third, tmp_path / "all.jsonl", trust=Trust.EXTERNAL)
        assert outcomes(told) == (1, 0, 0, 1)
        assert {line["trust"] for line in await records_of(third)} == {"external"}


async def test_secrets_are_left_out_and_the_rest_is_the_same_next_time(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    async with home(tmp_path, "one") as store, home(tmp_path, "other") as other:
        await store.learn([said("m1", f"the token of the printer is {secret}", speaker="Ann")], 5)
        await bundle(store, tmp_path / "all.jsonl")
        for outcome in ((1, 0, 0, 0), (0, 1, 0, 0)):
            told = await take_in(other, tmp_path / "all.jsonl")
            assert (outcomes(told), told["secrets"]) == (outcome, 1)
        [line] = await records_of(other)
        assert secret not in json.dumps(line)
        assert line["text"].startswith("the token of the printer is ")


async def test_an_import_goes_on_where_it_was_broken_off(tmp_path: Path) -> None:
    """After each batch in turn; what was taken over before is the same, and the end is as without the break."""
    async with home(tmp_path, "one") as store:
        await store.learn([lives("m1", "Porto", 100), lives("m2", "Rome", 200)], 900)
        await store.keep([said(f"s{n}", f"note {n} of many") for n in range(2 * RECORDS_MAX)], 900)
        await store.people.join((ANN, BEN), OWNER, 8)
        before = await bundle(store, tmp_path / "all.jsonl")
    async with home(tmp_path, "other") as other:
        place = Place(other)
        for batches in range(9):
            place.broken_after, place.writes = batches, []
            try:
                await take_in(place, tmp_path / "all.jsonl")
            except InterruptedError:
                continue
            break
        assert batches > 2
        assert await records_of(other) == before
        again = Place(other)
        assert sum(outcomes(await take_in(again, tmp_path / "all.jsonl"))) == 2 * RECORDS_MAX + 2
        assert await records_of(other) == before


async def test_what_this_home_knows_decides_with_what_comes(tmp_path: Path) -> None:
    """A slot of both is decided by all that was said; what is known in the same words is not kept twice."""
    async with home(tmp_path, "one") as store, home(tmp_path, "other") as other:
        await store.learn(
            [lives("m1", "Porto", 100), lives("m2", "Rome", 300), said("s", "tea is better than milk")], 400
        )
        await other.learn([lives("o1", "Lisbon", 200), said("t", "tea is better than milk")], 500)
        before = await bundle(store, tmp_path / "all.jsonl")
        dry = await take_in(other, tmp_path / "all.jsonl", dry_run=True)
        told = await take_in(other, tmp_path / "all.jsonl")
        assert outcomes(told) == outcomes(dry) == (2, 1, 0, 0)
        found = {one["key"]: one for one in memories(await records_of(other))}
        assert {key: (one["valid_to"], one["superseded_by"]) for key, one in found.items()} == {
            "m1": (200, "o1"),
            "o1": (300, "m2"),
            "m2": (None, ""),
            "t": (None, ""),
        }
        assert outcomes(await take_in(other, tmp_path / "all.jsonl")) == (0, 3, 0, 0)
        assert await records_of(store) == before


async def test_many_lines_are_counted_and_the_first_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path / "many", ["{}"] * 1_200)
    async with home(tmp_path, "other") as other:
        told = await take_in(other, file)
        assert (len(told["told"]), told["not_told"], outcomes(told, "lines")) == (1_000, 200, (0, 0, 0, 1_200))


async def test_kinds_that_are_made_again_give_way_to_those_made_here(tmp_path: Path) -> None:
    """The version of a summary counts in its home alone."""
    async with home(tmp_path, "one") as store, home(tmp_path, "other") as other:
        summary = episode("sum", "what was said before", HERE, Trust.KNOWN, kind=Kind.THREAD_SUMMARY, version=7)
        await store.keep([summary], 5)
        await bundle(store, tmp_path / "all.jsonl")
        await take_in(other, tmp_path / "all.jsonl")
        [there] = await other.find(AUDIT, (), 9)
        await other.keep([episode("sum", "made here", HERE, Trust.KNOWN, kind=Kind.THREAD_SUMMARY, version=1)], 6)
        [now] = await other.find(AUDIT, (), 9)
        assert (there.text, now.text) == ("what was said before", "made here")


def test_a_line_says_all_of_a_record(sample: list[dict[str, Any]]) -> None:
    from keepsaid.domain.bundle_lines import record_in  # noqa: PLC0415

    assert [line_of(record_in(line)) for line in sample] == sample
