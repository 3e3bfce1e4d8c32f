"""What one statement is to another of its finding becomes an association, and nothing else does."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.contract.test_memories import Counting
from tests.unit.collection_cast import Scene, Scripted
from tests.unit.test_extractor import PASSAGE, fact

from keepsaid.adapters.models.extractor import Staging
from keepsaid.adapters.redaction.redactor import PatternRedactor
from keepsaid.adapters.sqlite.stores import open_memories
from keepsaid.domain.graph import Relation, Seed
from keepsaid.domain.learning import LINKS_MAX, Statement, StatementLink, decoded, encoded, kept
from keepsaid.domain.memory import Kind
from keepsaid.domain.session import Passage
from keepsaid.domain.turn import Usage
from keepsaid.engine.collector import Collector
from keepsaid.memory.extraction import Collection
from keepsaid.ports.model import Extracted
from keepsaid_testkit.contracts.memories import AUDIT

CAUSE, PART = StatementLink(Relation.CAUSED_BY, 0), StatementLink(Relation.PART_OF, 2)


def stated(text: str, *links: StatementLink) -> Statement:
    return Statement(Kind.FACT, text, records=(1,), links=links)


THREE = (stated("a"), stated("b", CAUSE, PART), stated("c"))


def test_links_come_back_and_what_was_kept_without_them_is_read_too() -> None:
    assert decoded(encoded(THREE)) == THREE
    old = [{key: value for key, value in one.items() if key != "links"} for one in json.loads(encoded(THREE))]
    assert decoded(json.dumps(old)) == tuple(replace(one, links=()) for one in THREE)


@pytest.mark.parametrize(
    "links",
    [
        [["related_to", 0]],
        [["caused_by", -1]],
        [["caused_by", True]],
        [["caused_by"]],
        ["caused_by"],
        {"caused_by": 0},
        [["caused_by", 0]] * (LINKS_MAX + 1),
    ],
)
def test_what_is_no_link_is_refused(links: object) -> None:
    told = [{**one, "links": links} for one in json.loads(encoded(THREE[:1]))]
    with pytest.raises(ValueError, match=r".+"):
        decoded(json.dumps(told))


@pytest.mark.parametrize("gone", ["a", "b", "c"])
def test_what_is_left_is_linked_as_before(gone: str) -> None:
    left = kept(THREE, lambda one: one.text != gone)
    texts = [one.text for one in left]
    linked = {(one.text, link.relation, texts[link.to]) for one in left for link in one.links}
    whole = {("b", Relation.CAUSED_BY, "a"), ("b", Relation.PART_OF, "c")}
    assert linked == {one for one in whole if gone not in (one[0], one[2])}


@pytest.mark.parametrize(
    ("links", "found"),
    [
        ([{"relation": "caused_by", "fact": 1}], [StatementLink(Relation.CAUSED_BY, 1)]),
        ([{"relation": "caused_by", "fact": 2}], []),
        ([{"relation": "caused_by", "fact": 3}], []),
        (
            [{"relation": "part_of", "fact": 4}, {"relation": "part_of", "fact": 4}],
            [StatementLink(Relation.PART_OF, 3)],
        ),
        ([{"relation": "result_of", "fact": 99}, {"relation": "updates", "fact": 1}, {"fact": 0}, "x", None], []),
        ([{"relation": ["caused_by"], "fact": 1}, {"relation": "caused_by", "fact": "1"}], []),
        ("caused_by 1", []),
        (None, []),
    ],
)
def test_a_model_links_facts_of_one_call_by_their_place(links: Any, found: list[StatementLink]) -> None:
    """Fact 2 is no fact, so that it is refused, and fact 3 is the one that is linked; one was staged before."""
    staging = Staging(PASSAGE)
    staging.save(json.dumps({"facts": [fact(text="before")]}))
    facts = [fact(text="one"), fact(sources=[2]), fact(text="two", links=links), fact(text="three")]
    assert staging.save(json.dumps({"facts": facts})) == "3 staged, 1 refused"
    assert [one.links for one in staging.statements] == [(), (), tuple(found), ()]


class Linking(Scripted):
    """Finds that what was told first caused what was told next."""

    async def extract(self, passage: Passage) -> Extracted:
        found = [Statement(Kind.FACT, one.text, records=(one.position,), confidence=0.5) for one in passage.sources]
        caused = [found[0], *(replace(one, links=(StatementLink(Relation.CAUSED_BY, 0),)) for one in found[1:])]
        return Extracted(tuple(caused), 1, Usage(1, 1), self.name)


async def test_the_graph_walks_from_what_was_learned_to_what_caused_it(tmp_path: Path) -> None:
    scene = Scene()
    memories = await open_memories(tmp_path / "memory.db", Counting())
    try:
        time = scene.clock, scene.ids
        collection = Collection(
            scene.operations, memories, Linking(), *time, PatternRedactor(), scene.reading, memories.graph
        )
        await scene.talk("the bridge of Porto is closed", "Ann came too late to work", "Bob took the ferry to Gaia")
        assert await Collector(collection).tick() == 1
        cause, late, ferry = sorted(await memories.find(AUDIT, (Kind.FACT,), 9), key=lambda one: one.id)
        walked = await memories.graph.walk(AUDIT, "", [Seed(late.id, 1.0)], 9)
        [(first, *_), *_] = [(one, one.path) for one in walked if one.memory_id == cause.id]
        assert (first.path[1].relation, first.score) == (Relation.CAUSED_BY, round(0.5 * 1.3 * cause.new.importance, 6))
        assert ferry.id in [one.memory_id for one in walked]
    finally:
        await memories.close()
