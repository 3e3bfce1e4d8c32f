"""The graph leg: from results along associations and mentions to more; and memories still to be related."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple

from keepsaid.adapters.sql.memory.rows import MemoryAccess, bound, space_names, statements, storable
from keepsaid.adapters.sql.query import (
    JointStatement,
    MemorySession,
    Row,
    SqlView,
    as_json,
    column,
    every,
    load,
    only,
    reads,
)
from keepsaid.domain import graph as domain
from keepsaid.domain.commits import Commit
from keepsaid.domain.memory import IMPORTANCE, Found, Listener, VectorSpace
from keepsaid.ports.memory_maintenance import Unrelated
from keepsaid.text.normal import normalise
from keepsaid.text.topics import topic
from keepsaid.text.words import root, spelled
from keepsaid.values import frozen

RELATING = load("memory_relating")
_KINDS = as_json(IMPORTANCE)


def _related_upto(db: MemorySession) -> int:
    return int(only(db, RELATING["related_upto"])[0])


def _unrelated(db: MemorySession, space: VectorSpace, after: int, limit: int) -> tuple[Unrelated, ...]:
    import numpy as np  # noqa: PLC0415 - a program that associates nothing starts without

    found: list[Unrelated] = []
    bindings = {**space_names(space), "after": after, "limit": limit, "kinds": _KINDS}
    for memory_id, short, episodes in every(db, RELATING["unrelated"], bindings):
        if short is None:
            break
        vector = np.frombuffer(short, np.float16).astype(np.float32).tobytes()
        found.append(Unrelated(memory_id, vector, tuple(json.loads(episodes))))
    return tuple(found)


def _among_learned(db: MemorySession, ids: Sequence[int]) -> Sequence[int]:
    return column(db, RELATING["among_learned"], {"ids": as_json(ids), "kinds": _KINDS})


class SqlRelating(SqlView):
    """Memories still to be related, read only."""

    related_upto = reads(_related_upto)
    unrelated = reads(_unrelated)
    among_learned = reads(_among_learned)


MEMORY_GRAPH = statements("memory_graph")
_WORDS_FROM_CHARS = 8_000
"""The characters of an important memory that are searched for a word of the query."""


@frozen
class Relate(Commit[int]):
    """Write associations and mentions; returns how many are there now. What is there takes the new weight.

    One whose memory is gone or forgotten is not written, nor one from a memory to itself. `at` is milliseconds UTC.
    """

    associations: tuple[domain.Association, ...]
    mentions: tuple[domain.Mention, ...]
    at: int


def relate(db: MemorySession, commit: Relate) -> int:
    associations = ((one.source_id, one.target_id, one.relation, one.weight) for one in commit.associations)
    mentions = (
        (one.memory_id, storable(one.entity), normalise(one.name), domain.name_words(one.name), one.weight)
        for one in commit.mentions
    )
    bindings = {"associations": as_json(associations), "mentions": as_json(mentions), "at": commit.at}
    db.post(MEMORY_GRAPH["name_entities"], bindings)
    return sum(len(every(db, MEMORY_GRAPH[statement], bindings)) for statement in ("associate", "mention"))


class _Node(NamedTuple):
    """An entity or a memory."""

    entity: int
    id: int


class _Trail(NamedTuple):
    """A path from a seed to a node: its last step, the path before it, and how much of the seed's strength is left."""

    strength: float
    start: _Node
    step: domain.WalkStep
    before: _Trail | None = None

    def path(self) -> tuple[domain.WalkStep, ...]:
        return (*(self.before.path() if self.before else ()), self.step)


_STRENGTH = attrgetter("strength")
_Level = dict[_Node, list[_Trail]]

_Edge = Sequence[Any]
"""How strong it is, whether it leads to an entity, to which id, over which relation, how important it is, its name."""


def walk(
    db: MemorySession, listener: Listener, query: str, seeds: Sequence[domain.Seed], limit: int
) -> tuple[Found, ...]:
    """The score of a memory is its best path times its importance; of equal ones the larger id comes first."""
    bindings = bound(listener)
    related = JointStatement(MEMORY_GRAPH["related"])
    [(is_related,)], heard = db.ask(related, JointStatement(MEMORY_GRAPH["heard"], bindings))
    if not is_related:
        return ()
    bindings["audiences"] = as_json(row[0] for row in heard)
    best: dict[int, tuple[float, _Trail]] = {}
    first = _starts(db, bindings, query, seeds)
    second: _Level = {}
    for edge, share, trail in _stepped(db, {**bindings, "fan": domain.FANS[0]}, first, 1.0):
        _keep_two(second.setdefault(_Node(edge[1], edge[2]), []), _extended(edge, share, trail))
        _keep_best(best, edge, share, trail)
    for edge, share, trail in _stepped(db, {**bindings, "fan": domain.FANS[1]}, second, domain.FURTHER):
        _keep_best(best, edge, share, trail)
    ranked = sorted(((round(score, 6), id_) for id_, (score, _) in best.items() if score > 0), reverse=True)
    return tuple(Found(id_, score, best[id_][1].path()) for score, id_ in ranked[: max(0, limit)])


def _starts(db: MemorySession, bindings: Mapping[str, Any], query: str, seeds: Sequence[domain.Seed]) -> _Level:
    """The best seeds, the important ones among the others that are about the query, and the entities it names."""
    names = domain.names_in(query)
    named = _rows(db, "named", {**bindings, "names": as_json(names), "limit": domain.SEEDS}) if names else []
    first = {seed.memory_id: seed.strength for seed in seeds[: domain.SEEDS]}
    if others := {seed.memory_id: seed.strength for seed in seeds[domain.SEEDS :]}:
        words = topic(query)
        of_query = {"ids": as_json(others), "entities": as_json([row[0] for row in named])}
        limits = {"importance": domain.IMPORTANT, "limit": domain.WEIGHTY_SEEDS}
        for id_, text, speaker, mentions in _rows(db, "weighty", {**bindings, **of_query, **limits}):
            searched = f"{speaker} {text[:_WORDS_FROM_CHARS]}" if words else ""
            if mentions or any(root(word) in words for word in spelled(searched)):
                first[id_] = max(others[id_], domain.NAMED)
    visible = (_Node(0, row[0]) for row in _rows(db, "starts", {**bindings, "ids": as_json(first)}))
    level: _Level = {node: [_Trail(first[node.id], node, domain.WalkStep("", node.id))] for node in visible}
    for id_, name in named:
        node = _Node(1, id_)
        level[node] = [_Trail(domain.NAMED, node, domain.WalkStep("", name=name))]
    return level


def _stepped(
    db: MemorySession, bindings: Mapping[str, Any], level: _Level, carried: float
) -> Iterator[tuple[_Edge, float, _Trail]]:
    """Every path that goes one step further: over which edge, how much of its strength is left, and the path so far."""
    strongest = sorted(level, key=lambda node: (-level[node][0].strength, node))[: domain.NODES_MAX]
    edges = _edges(db, bindings, strongest)
    for node in strongest:
        for edge in edges.get(node, ()):
            weight, entity, id_, relation, *_ = edge
            share = weight * domain.CARRIES[relation] * carried
            for trail in level[node]:
                if trail.start != (entity, id_):
                    yield edge, share, trail


def _extended(edge: _Edge, share: float, trail: _Trail) -> _Trail:
    """The path with one step more."""
    _, entity, id_, relation, _, name = edge
    step = domain.WalkStep(relation, name=name) if entity else domain.WalkStep(relation, id_)
    return _Trail(trail.strength * share, trail.start, step, trail)


def _keep_best(best: dict[int, tuple[float, _Trail]], edge: _Edge, share: float, trail: _Trail) -> None:
    """Keep the best path to each memory."""
    _, entity, id_, _, importance, _ = edge
    if entity:
        return
    score = trail.strength * share * importance
    known = best.get(id_)
    if known is None or known[0] < score:
        best[id_] = score, _extended(edge, share, trail)


def _keep_two(trails: list[_Trail], new: _Trail) -> None:
    """Keep the best paths to a node from two different seeds: a path never leads back to its start."""
    if not trails:
        trails.append(new)
        return
    others = [trail for trail in trails if trail.start != new.start]
    same = [trail for trail in (*trails, new) if trail.start == new.start]
    trails[:] = sorted((max(same, key=_STRENGTH), *others), key=_STRENGTH, reverse=True)[:2]


_EDGES = "from_memories", "from_entities"
"""The statements that find the edges of memories, and those of entities."""


def _edges(db: MemorySession, bindings: Mapping[str, Any], nodes: Iterable[_Node]) -> dict[_Node, list[Any]]:
    """The strongest edges of each node, of those that lead to what the listener may read."""
    found: dict[_Node, list[Any]] = {}
    ids = {entity: [node.id for node in nodes if node.entity == entity] for entity in range(len(_EDGES))}
    asked = {
        entity: JointStatement(MEMORY_GRAPH[_EDGES[entity]], {**bindings, "nodes": as_json(wanted)})
        for entity, wanted in ids.items()
        if wanted
    }
    for entity, rows in zip(asked, db.ask(*asked.values()) if asked else (), strict=True):
        lists = iter(json.loads(f"[{','.join(edges for row in rows for edges in row[1:])}]"))
        for id_, *ways in rows:
            edges = [edge for _ in ways for edge in next(lists)]
            edges.sort(key=lambda edge: (-edge[0], edge[1], -edge[2], edge[3]))
            found[_Node(entity, id_)] = edges[: bindings["fan"]]
    return found


def _rows(db: MemorySession, statement: str, bindings: Mapping[str, Any]) -> list[Row]:
    return every(db, MEMORY_GRAPH[statement], bindings)


class SqlGraph(MemoryAccess):
    """The graph of the memories; a secret in the name of an entity, or in its key, is masked before it is written."""

    walk = reads(walk)

    async def relate(
        self, associations: Sequence[domain.Association], mentions: Sequence[domain.Mention], at: int
    ) -> int:
        names = await self._masked([one.name for one in mentions])
        entities = await self._masked([one.entity for one in mentions])
        plain = zip(mentions, names, entities, strict=True)
        clean = tuple(replace(one, name=name, entity=entity) for one, name, entity in plain)
        return await self._writer.apply(Relate(tuple(associations), clean, at))
