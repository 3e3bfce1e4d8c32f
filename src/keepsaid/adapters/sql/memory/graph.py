"""The graph leg: from results along associations and mentions to more; and memories still to be related."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from keepsaid.adapters.sql.memory.rows import bound, space_names, statements, storable
from keepsaid.adapters.sql.query import every, load, only, reads
from keepsaid.adapters.sql.session import SqlReaders, SqlSession
from keepsaid.domain.commits import Commit
from keepsaid.domain.graph import (
    CARRIES,
    FANS,
    FURTHER,
    IMPORTANT,
    NAMED,
    NODES_MAX,
    SEEDS,
    WEIGHTY_SEEDS,
    Association,
    Mention,
    Seed,
    WalkStep,
    name_words,
    names_in,
)
from keepsaid.domain.memory import IMPORTANCE, Found, Listener, VectorSpace
from keepsaid.ports.memory_maintenance import Unrelated
from keepsaid.ports.redactor import Redactor, masked_texts
from keepsaid.ports.store_views import Operations
from keepsaid.text.normal import normalise
from keepsaid.text.words import root, spelled, topic

SQL = load("memory_relating")
_KINDS = json.dumps(list(IMPORTANCE))


def _unrelated(db: SqlSession, space: VectorSpace, after: int, limit: int) -> tuple[Unrelated, ...]:
    """Learned memories that hold, behind this one, by id, up to the first that still waits for its vector."""
    import numpy as np  # noqa: PLC0415 - a program that associates nothing starts without

    wanted = {**space_names(space), "after": after, "limit": limit, "kinds": _KINDS}
    rows: list[tuple[Any, ...]] = every(db, SQL["unrelated"], wanted)
    found: list[Unrelated] = []
    for memory_id, short, episodes in rows:
        if short is None:
            break
        vector = np.frombuffer(short, np.float16).astype(np.float32).tobytes()
        found.append(Unrelated(memory_id, vector, tuple(json.loads(episodes))))
    return tuple(found)


class SqlRelating:
    """What is to be associated, read only."""

    def __init__(self, readers: SqlReaders) -> None:
        self._readers = readers

    async def related_upto(self) -> int:
        """The newest memory that was found to be related to an older one; 0 for none."""
        return await self._readers.run(lambda db: int(only(db, SQL["related_upto"])[0]))

    unrelated = reads(_unrelated)

    async def among_learned(self, ids: Sequence[int]) -> Sequence[int]:
        """Those of the memories that are learned ones and hold, in the order given."""
        return await self._readers.run(_among_learned, tuple(ids))


def _among_learned(db: SqlSession, ids: tuple[int, ...]) -> tuple[int, ...]:
    found = every(db, SQL["among_learned"], {"ids": json.dumps(ids), "kinds": _KINDS})
    return tuple(int(str(row[0])) for row in found)


MEMORY_GRAPH = statements("memory_graph")
_WORDS_FROM_CHARS = 8_000
"""So much of an important memory is searched for a word of the query."""


@dataclass(frozen=True, slots=True)
class Relate(Commit[int]):
    """Write associations and mentions; returns how many are there now. What is there takes the new weight.

    One whose memory is gone or forgotten is not written, nor one from a memory to itself. `at` is milliseconds UTC.
    """

    associations: tuple[Association, ...]
    mentions: tuple[Mention, ...]
    at: int


class SqlGraph:
    """The graph of the memories; `writer` must know how a Relate is applied."""

    def __init__(self, writer: Operations, readers: SqlReaders, redactor: Redactor | None = None) -> None:
        self._writer = writer
        self._readers = readers
        self._redactor = redactor

    async def relate(self, associations: Sequence[Association], mentions: Sequence[Mention], at: int) -> int:
        """Write both, all or nothing; what is there already takes the new weight. Returns how many are there now.

        A secret in the name of an entity, or in its key, is masked before anything is written.
        """
        if self._redactor is not None and mentions:
            names = await _without_secrets(self._redactor, [one.name for one in mentions])
            entities = await _without_secrets(self._redactor, [one.entity for one in mentions])
            mentions = [
                replace(one, name=name, entity=entity)
                for one, name, entity in zip(mentions, names, entities, strict=True)
            ]
        return await self._writer.apply(Relate(tuple(associations), tuple(mentions), at))

    async def walk(self, listener: Listener, query: str, seeds: Sequence[Seed], limit: int) -> tuple[Found, ...]:
        """The memories reached from the seeds, and from what the query names, in at most two steps, best first."""
        return await self._readers.run(walk, listener, query, tuple(seeds), limit)


async def _without_secrets(redactor: Redactor, texts: Sequence[str]) -> list[str]:
    return [plain.text for plain in await masked_texts(redactor, texts)]


def relate(db: SqlSession, commit: Relate) -> int:
    """Apply one commit."""
    told = {
        "associations": json.dumps(
            [(one.source_id, one.target_id, one.relation, one.weight) for one in commit.associations]
        ),
        "mentions": json.dumps(
            [
                (one.memory_id, storable(one.entity), normalise(one.name), name_words(one.name), one.weight)
                for one in commit.mentions
            ]
        ),
        "at": commit.at,
    }
    db.execute(MEMORY_GRAPH["name_entities"], told)
    return sum(len(every(db, MEMORY_GRAPH[statement], told)) for statement in ("associate", "mention"))


class _Node(NamedTuple):
    """An entity or a memory."""

    entity: int
    id: int


class _Trail(NamedTuple):
    """A way from a seed to a node, its last step and the way before it, and how much of the seed's strength came."""

    strength: float
    start: _Node
    step: WalkStep
    before: _Trail | None = None

    def path(self) -> tuple[WalkStep, ...]:
        """All its steps."""
        return (*(self.before.path() if self.before else ()), self.step)


_Level = dict[_Node, list[_Trail]]

_Edge = Sequence[Any]
"""How strong it is, whether it leads to an entity, to which id, over which relation, how important it is, its name."""


def walk(db: SqlSession, listener: Listener, query: str, seeds: Sequence[Seed], limit: int) -> tuple[Found, ...]:
    """The best way to each memory counts, times its importance; of equal ones the larger id first."""
    [(related,)] = every(db, MEMORY_GRAPH["related"])
    if not related:
        return ()
    bindings = bound(listener)
    bindings["audiences"] = _json(row[0] for row in _rows(db, "heard", bindings))
    best: dict[int, tuple[float, _Trail]] = {}
    first = _starts(db, bindings, query, seeds)
    second: _Level = {}
    for edge, share, trail in _stepped(db, {**bindings, "fan": FANS[0]}, first, 1.0):
        gone = _gone(edge, share, trail)
        _keep_two(second.setdefault(_Node(edge[1], edge[2]), []), gone)
        _keep_best(best, edge, share, trail)
    for edge, share, trail in _stepped(db, {**bindings, "fan": FANS[1]}, second, FURTHER):
        _keep_best(best, edge, share, trail)
    ranked = sorted(((round(score, 6), id_) for id_, (score, _) in best.items() if score > 0), reverse=True)
    return tuple(Found(id_, score, best[id_][1].path()) for score, id_ in ranked[: max(0, limit)])


def _starts(db: SqlSession, bindings: Mapping[str, Any], query: str, seeds: Sequence[Seed]) -> _Level:
    """The best seeds, the important ones among the others that are about the query, and the entities it names."""
    named = _rows(db, "named", {**bindings, "names": _json(names_in(query)), "limit": SEEDS})
    first = {seed.memory_id: seed.strength for seed in seeds[:SEEDS]}
    others = {seed.memory_id: seed.strength for seed in seeds[SEEDS:]}
    asked = topic(query)
    if others:
        wanted = {"ids": _json(others), "entities": _json([row[0] for row in named])}
        weighty = _rows(db, "weighty", {**bindings, **wanted, "importance": IMPORTANT, "limit": WEIGHTY_SEEDS})
        for id_, text, speaker, mentions in weighty:
            if mentions or _shares_word(asked, f"{speaker} {text[:_WORDS_FROM_CHARS]}"):
                first[id_] = max(others[id_], NAMED)
    heard = [row[0] for row in _rows(db, "starts", {**bindings, "ids": _json(first)})]
    level: _Level = {
        node: [_Trail(first[node.id], node, WalkStep("", node.id))] for node in (_Node(0, id_) for id_ in heard)
    }
    for id_, name in named:
        node = _Node(1, id_)
        level[node] = [_Trail(NAMED, node, WalkStep("", name=name))]
    return level


def _shares_word(asked: frozenset[str], text: str) -> bool:
    return bool(asked) and any(root(word) in asked for word in spelled(text))


def _stepped(
    db: SqlSession, bindings: Mapping[str, Any], level: _Level, carried: float
) -> Iterator[tuple[_Edge, float, _Trail]]:
    """Every way that goes one step further: over which edge, how much of its strength is left, and the way so far."""
    strongest = sorted(level, key=lambda node: (-level[node][0].strength, node))[:NODES_MAX]
    edges = _edges(db, bindings, strongest)
    for node in strongest:
        for edge in edges.get(node, ()):
            weight, entity, id_, relation, *_ = edge
            share = weight * CARRIES[relation] * carried
            for trail in level[node]:
                if trail.start != (entity, id_):
                    yield edge, share, trail


def _gone(edge: _Edge, share: float, trail: _Trail) -> _Trail:
    """The way with one step more."""
    _, entity, id_, relation, _, name = edge
    step = WalkStep(relation, name=name) if entity else WalkStep(relation, id_)
    return _Trail(trail.strength * share, trail.start, step, trail)


def _keep_best(best: dict[int, tuple[float, _Trail]], edge: _Edge, share: float, trail: _Trail) -> None:
    """The best way to each memory; one that is not the best is not written down."""
    _, entity, id_, _, importance, _ = edge
    if entity:
        return
    score = trail.strength * share * importance
    known = best.get(id_)
    if known is None or known[0] < score:
        best[id_] = score, _gone(edge, share, trail)


def _keep_two(trails: list[_Trail], gone: _Trail) -> None:
    """Of the ways to a node the best from two different seeds are enough: one never leads back to where it began."""
    if not trails:
        trails.append(gone)
        return
    others = [trail for trail in trails if trail.start != gone.start]
    same = [trail for trail in (*trails, gone) if trail.start == gone.start]
    trails[:] = sorted((max(same, key=_strength), *others), key=_strength, reverse=True)[:2]


def _strength(trail: _Trail) -> float:
    return trail.strength


def _edges(db: SqlSession, bindings: Mapping[str, Any], nodes: Iterable[_Node]) -> dict[_Node, list[Any]]:
    """The strongest edges of each node, of those that lead to what is heard."""
    found: dict[_Node, list[Any]] = {}
    for entity, statement in enumerate(("from_memories", "from_entities")):
        ids = [node.id for node in nodes if node.entity == entity]
        rows = _rows(db, statement, {**bindings, "nodes": _json(ids)}) if ids else []
        told = iter(json.loads(f"[{','.join(edges for row in rows for edges in row[1:])}]"))
        for id_, *ways in rows:
            edges = [edge for _ in ways for edge in next(told)]
            edges.sort(key=_strongest)
            found[_Node(entity, id_)] = edges[: bindings["fan"]]
    return found


def _strongest(edge: Sequence[Any]) -> tuple[Any, ...]:
    return -edge[0], edge[1], -edge[2], edge[3]


def _rows(db: SqlSession, statement: str, bindings: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    return every(db, MEMORY_GRAPH[statement], bindings)


def _json(values: Iterable[object]) -> str:
    return json.dumps(list(values), ensure_ascii=False)
