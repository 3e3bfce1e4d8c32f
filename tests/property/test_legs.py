"""Both legs against a search of everything in plain Python, whatever was kept, changed and forgotten, in any order.

When a memory held neither hides it nor shows it to a leg; asked as of a time, what is found is narrowed to what held.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.property.memory_stage import Stage, stage
from tests.property.test_memory_scopes import hears

from keepsaid.adapters.embedders.hashed import Hashed
from keepsaid.adapters.sql.search.vector_index import VectorIndex
from keepsaid.adapters.sqlite.connection import open_writer
from keepsaid.domain.memory import GLOBAL, Found, Kind, Listener, Narrowing, NewMemory, conversation_scope
from keepsaid.domain.message import Trust
from keepsaid.memory.indexing import Embedding
from keepsaid.testing.clock import VirtualClock
from keepsaid.text.words import pieces, root, said_words, spelled
from keepsaid_testkit.contracts.memories import AUDIT, HERE, OWNER_HERE, STRAND, THERE, episode, sample

VOCABULARY = ["quetzal", "heron", "lantern", "harbour", "oak", "rain", "candle", "tide"]
LISTENERS = (AUDIT, OWNER_HERE, Listener(STRAND), Listener(THERE, cross=True), Listener(None))
STATES = ("active", "superseded", "archived", "forgotten")
SEARCHABLE = ("active", "superseded")
TIMES = (0, 2, 3, 5, 9)
_KNOWN_MORE = 1.25
LONG = "oak tide. " * 101


@dataclass(frozen=True, slots=True)
class Kept:
    """A memory as the model of the test has it."""

    id: int
    new: NewMemory
    state: str = "active"


@dataclass(frozen=True, slots=True)
class Change:
    """What is done to one that is there, counted round: a new state or a new text."""

    which: int
    state: str = ""
    text: str = ""


texts = st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=6).map(" ".join) | st.just(LONG)
lanes = st.sampled_from((HERE, STRAND, THERE))
episodes = st.builds(
    lambda text, lane, trust, at: episode("", text, lane, trust, said_at=at, speaker="Ann"),
    texts, lanes, st.sampled_from((Trust.OWNER, Trust.EXTERNAL)), st.integers(1, 5),
)  # fmt: skip
spans = st.tuples(st.none() | st.integers(0, 4), st.none() | st.integers(5, 9))
facts = st.builds(
    lambda text, scope, span: sample(
        "", text, scope=scope, kind=Kind.FACT, said_at=3, valid_from=span[0], valid_to=span[1]
    ),
    texts, st.sampled_from((GLOBAL, conversation_scope(HERE))), spans,
)  # fmt: skip
changes = st.builds(Change, st.integers(0, 30), state=st.sampled_from(STATES)) | st.builds(
    Change, st.integers(0, 30), text=texts
)
stories = st.lists(episodes | facts | changes | st.just("embed"), min_size=1, max_size=14)
queries = st.lists(st.sampled_from([*VOCABULARY, "ann", "nobody"]), min_size=1, max_size=3).map(" ".join)


def said(text: str, at: int) -> NewMemory:
    """An episode of one conversation."""
    return episode("", text, HERE, Trust.OWNER, said_at=at, speaker="Ann")


@settings(deadline=None, max_examples=examples(12))
@given(story=stories, query=queries)
@example(story=[said("quetzal quetzal", 1), "embed", said(LONG, 1), Change(0, state="active")], query="quetzal")
@example(story=[said(LONG, 2), said("quetzal", 1), said(LONG, 1), Change(0, text=LONG)], query="quetzal")
def test_both_legs_find_what_a_search_of_everything_finds(story: list[object], query: str) -> None:
    with TemporaryDirectory() as folder, stage(Path(folder)) as scene:
        embedding = Embedding(Hashed(), scene.store, VirtualClock())
        index = VectorIndex(exact_max=2)
        kept: list[Kept] = []
        for n, step in enumerate(story):
            if isinstance(step, NewMemory):
                new = replace(step, key=f"{n}")
                kept.append(Kept(scene.keep(new)[0], new))
            elif isinstance(step, Change) and kept:
                place = step.which % len(kept)
                kept[place] = changed(Path(folder) / "memory.db", kept[place], step)
            elif step == "embed":
                scene.run(embedding.finish())
                scene.run(embedding.search(AUDIT, query, 9))  # what is at hand must follow what comes next
                look(scene, index, AUDIT, query)
        scene.run(embedding.finish())
        for listener in LISTENERS:
            assert near(scene.run(scene.store.text(listener, query, 99)), by_words(kept, listener, query))
            expected = by_meaning(scene, kept, listener, query)
            assert near(scene.run(embedding.search(listener, query, 99)), expected)
            assert near(look(scene, index, listener, query), expected), "by signs"
            for at in TIMES:
                ids = [one.id for one in kept]
                held = [one.id for one in kept if holds(one, at) and hears(listener, one.new)]
                assert list(scene.run(scene.store.library.narrowed(listener, ids, Narrowing(as_of=at)))) == held


def holds(one: Kept, at: int) -> bool:
    """Whether it held at a time, by its own word; what was said from then on, where it says nothing."""
    begins = one.new.said_at if one.new.valid_from is None else one.new.valid_from
    return one.state in SEARCHABLE and begins <= at and (one.new.valid_to is None or at < one.new.valid_to)


def look(scene: Stage, index: VectorIndex, listener: Listener, query: str) -> tuple[Found, ...]:
    """A search by signs: so few may be in memory whole that none are."""
    space, vector = scene.run(Hashed().space()), scene.run(Hashed().query(query))
    return scene.run(scene.store._readers.run(index.search, listener, space, vector, 99))


def changed(path: Path, one: Kept, change: Change) -> Kept:
    """Another program changes a row, as every commit does: with what is derived from it."""
    new, state = replace(one.new, text=change.text or one.new.text), change.state or one.state
    with closing(open_writer(path)) as db:
        db.set_busy_timeout(10_000)
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE memory SET state = ?, text = ? WHERE id = ?", (state, new.text, one.id))
        db.reindex()
        db.execute("COMMIT")
    return Kept(one.id, new, state)


def near(found: Sequence[Found], expected: Mapping[int, float]) -> bool:
    """Whether these are found, best first, with these scores."""
    scores = [one.score for one in found]
    if scores != sorted(scores, reverse=True):
        return False
    told = {one.memory_id: one.score for one in found}
    unsure = {id_ for id_, score in expected.items() if score < 1e-3}
    return expected.keys() - unsure <= told.keys() <= expected.keys() and all(
        abs(score - expected[id_]) < 2e-3 for id_, score in told.items()
    )


def stems(text: str) -> list[str]:
    return [root(word) for word in spelled(text)]


def searched(kept: Sequence[Kept]) -> list[tuple[Kept, list[str], list[str], list[str]]]:
    """Every piece: its memory, its terms, those of its marks, and those beside it."""
    found = []
    there = [one for one in kept if one.state in SEARCHABLE]
    for one in there:
        lane = [
            other
            for other in there
            if one.new.kind is other.new.kind is Kind.EPISODE
            and (one.new.scope, one.new.trust is Trust.EXTERNAL, one.new.lane)
            == (other.new.scope, other.new.trust is Trust.EXTERNAL, other.new.lane)
        ]
        lane.sort(key=lambda other: (other.new.said_at, other.id))
        place = lane.index(one) if one in lane else 0
        before = [other.new.text for other in lane[max(0, place - 2) : place]]
        after = [other.new.text for other in lane[place + 1 : place + 2]]
        bodies = pieces(one.new.text)
        around = [*before, *bodies, *after]
        marks = stems(f"{one.new.speaker} {said_words(one.new.said_at)}")
        for n, body in enumerate(bodies, start=len(before)):
            lent = around[max(0, n - 2) : n] + around[n + 1 : n + 2]
            found.append((one, stems(body), marks, [stem for text in lent for stem in stems(text[:200])]))
    return found


def by_words(kept: Sequence[Kept], listener: Listener, query: str) -> dict[int, float]:
    """BM25 as memory_score describes it, over everything."""
    everything = searched(kept)
    best: dict[int, float] = {}
    known = [sum(term in terms for _, terms, _, _ in everything) for term in set(stems(query))]
    most = 2.2 * sum(math.log(1 + (len(everything) - df + 0.5) / (df + 0.5)) for df in known)
    for one, own, marks, beside in everything:
        counts = (Counter(own), Counter(marks), Counter(beside))
        own_norm = min(0.5 + 0.5 * len(own) / 30, 1.8)
        near_norm = max(0.25 + 0.75 * len(beside) / 70, 1)
        score = 0.0
        for term in set(stems(query)):
            often = counts[0][term] / own_norm + counts[1][term] + 0.5 * counts[2][term] / near_norm
            df = sum(term in terms for _, terms, _, _ in everything)
            score += math.log(1 + (len(everything) - df + 0.5) / (df + 0.5)) * often * 2.2 / (often + 1.2)
        if score > 0 and hears(listener, one.new):
            share = score / most if one.new.kind is Kind.EPISODE else score / most * _KNOWN_MORE
            best[one.id] = max(best.get(one.id, 0.0), share)
    return best


def by_meaning(scene: Stage, kept: Sequence[Kept], listener: Listener, query: str) -> dict[int, float]:
    """The best piece of each memory, against the mean of all that is heard."""
    asked = array("f", scene.run(Hashed().query(query)))
    cosines: list[tuple[int, float]] = []
    for one in kept:
        if one.state in SEARCHABLE and hears(listener, one.new):
            for body in pieces(one.new.text):
                text = f"{one.new.speaker}: {body}" if one.new.speaker else body
                vector = array("f", scene.run(Hashed().query(text)))
                cosines.append((one.id, sum(a * b for a, b in zip(asked, vector, strict=True))))
    mean = sum(cosine for _, cosine in cosines) / max(1, len(cosines))
    best: dict[int, float] = {}
    for id_, cosine in cosines:
        best[id_] = max(best.get(id_, -2.0), cosine - mean)
    return {id_: score for id_, score in best.items() if score > 0}
