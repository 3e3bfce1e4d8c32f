"""A walk over the graph against every way there is, tried one by one, whatever was related, hidden and forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.property.memory_stage import Stage, stage
from tests.property.test_memory_scopes import hears

from keepsaid.adapters.sqlite.connection import open_writer
from keepsaid.domain.graph import (
    CARRIES,
    FANS,
    FURTHER,
    MENTIONS,
    NAMED,
    Association,
    Mention,
    Relation,
    Seed,
    WalkStep,
)
from keepsaid.domain.memory import GLOBAL, Listener, NewMemory, conversation_scope
from keepsaid.domain.message import Trust
from keepsaid_testkit.contracts.memories import AUDIT, HERE, OWNER_HERE, STRAND, THERE, episode, sample

LISTENERS = (AUDIT, OWNER_HERE, Listener(STRAND), Listener(THERE, cross=True), Listener(None))
NAMES = {"person:zoe": ("Zoë", "Dr. Miller"), "place:paris": ("Paris",), "thing:boat": ("the old boat", "Zoë")}
HEARD = ("active", "superseded")


@dataclass(frozen=True, slots=True)
class Hide:
    """What becomes of a memory, counted round."""

    which: int
    state: str


@dataclass(frozen=True, slots=True)
class Edge:
    """An association between two memories, counted round."""

    source: int
    target: int
    relation: Relation
    weight: float


@dataclass(frozen=True, slots=True)
class Named:
    """A memory, counted round, that mentions an entity by one of its names."""

    which: int
    entity: str
    name: int
    weight: float


Node = tuple[str, int | str]


@dataclass(slots=True)
class Model:
    """The store as the test has it."""

    memories: dict[int, NewMemory] = field(default_factory=dict)
    states: dict[int, str] = field(default_factory=dict)
    edges: dict[tuple[int, int, Relation], float] = field(default_factory=dict)
    mentions: dict[tuple[int, str], tuple[str, float]] = field(default_factory=dict)
    entities: list[str] = field(default_factory=list)

    def hide(self, id_: int, state: str) -> None:
        """A memory that was forgotten has no relations any more."""
        self.states[id_] = state
        if state == "forgotten":
            self.edges = {edge: weight for edge, weight in self.edges.items() if id_ not in edge[:2]}
            self.mentions = {one: told for one, told in self.mentions.items() if one[0] != id_}

    def heard(self, listener: Listener, id_: int) -> bool:
        """Whether a memory may be told."""
        return self.states[id_] in HEARD and hears(listener, self.memories[id_])

    def next(self, listener: Listener, node: Node, fan: int) -> list[tuple[float, Node, WalkStep]]:
        """The strongest edges of a node."""
        kind, id_ = node
        found: list[tuple[float, int, int, str, Node, WalkStep]] = []
        for (source, target, relation), weight in self.edges.items():
            for one, other in ((source, target), (target, source)):
                if kind == "memory" and one == id_ and self.heard(listener, other):
                    found.append((-weight, 0, -other, relation, ("memory", other), WalkStep(relation, other)))
        for (memory, entity), (name, weight) in self.mentions.items():
            number = self.entities.index(entity)
            if kind == "memory" and memory == id_:
                found.append((-weight, 1, -number, MENTIONS, ("entity", entity), WalkStep(MENTIONS, name=name)))
            if kind == "entity" and entity == id_ and self.heard(listener, memory):
                found.append((-weight, 0, -memory, MENTIONS, ("memory", memory), WalkStep(MENTIONS, memory)))
        found.sort(key=lambda edge: edge[:4])
        return [(-weight * CARRIES[relation], other, step) for weight, _, _, relation, other, step in found[:fan]]

    def ways(self, listener: Listener, start: Node, strength: float) -> Iterator[tuple[Node, float]]:
        """Every way of one or two steps."""
        for carried, middle, _ in self.next(listener, start, FANS[0]):
            yield middle, strength * carried
            for further, end, _ in self.next(listener, middle, FANS[1]):
                if end != start:
                    yield end, strength * carried * further * FURTHER

    def named(self, listener: Listener, name: str) -> set[str]:
        """The entities that have a name in a memory that is heard."""
        return {
            entity
            for (memory, entity), (told, _) in self.mentions.items()
            if told == name and self.heard(listener, memory)
        }

    def walk(self, listener: Listener, seeds: Sequence[Seed], name: str) -> dict[int, float]:
        """The best score of each memory."""
        starts: list[tuple[Node, float]] = [
            (("memory", seed.memory_id), seed.strength) for seed in seeds if self.heard(listener, seed.memory_id)
        ]
        starts += [(("entity", entity), NAMED) for entity in self.named(listener, name)]
        best: dict[int, float] = {}
        for start, strength in starts:
            for (_, end), carried in self.ways(listener, start, strength):
                if isinstance(end, int):
                    score = carried * self.memories[end].importance
                    best[end] = max(best.get(end, 0.0), score)
        return best


numbers = st.integers(0, 20)
weights = st.integers(1, 8).map(lambda n: n / 8)
importance = st.sampled_from((0.25, 0.5, 1.0))
memories = st.builds(
    lambda lane, trust, weight: episode("", "note", lane, trust, importance=weight),
    st.sampled_from((HERE, STRAND, THERE)), st.sampled_from((Trust.OWNER, Trust.EXTERNAL)), importance,
) | st.builds(
    lambda scope, weight: sample("", "note", scope=scope, importance=weight),
    st.sampled_from((GLOBAL, conversation_scope(HERE))), importance,
)  # fmt: skip
mentions = st.sampled_from(sorted(NAMES)).flatmap(
    lambda entity: st.builds(Named, numbers, st.just(entity), st.integers(0, len(NAMES[entity]) - 1), weights)
)
steps = (
    memories
    | st.builds(Edge, numbers, numbers, st.sampled_from(Relation), weights)
    | mentions
    | st.builds(Hide, numbers, st.sampled_from((*HEARD, "archived", "forgotten")))
)
stories = st.tuples(st.lists(memories, min_size=2, max_size=5), st.lists(steps, min_size=4, max_size=30))
started = st.lists(st.tuples(numbers, weights), max_size=4)


@settings(deadline=None, max_examples=examples(20))
@given(story=stories, started=started, name=st.sampled_from(("", "Zoë", "Paris", "the old boat")))
def test_a_walk_reaches_what_trying_every_way_reaches(
    story: tuple[list[NewMemory], list[object]], started: list[tuple[int, float]], name: str
) -> None:
    with TemporaryDirectory() as folder, stage(Path(folder)) as scene:
        model = Model()
        for n, step in enumerate([*story[0], *story[1]]):
            play(scene, Path(folder) / "memory.db", model, n, step)
        ids = list(model.memories)
        strengths = {ids[which % len(ids)]: strength for which, strength in started}
        seeds = [Seed(id_, strength) for id_, strength in strengths.items()]
        for listener in LISTENERS:
            found = scene.run(scene.store.graph.walk(listener, f"tell me of {name}", seeds, 99))
            expected = model.walk(listener, seeds, name)
            assert {one.memory_id: one.score for one in found} == {
                id_: round(score, 6) for id_, score in expected.items()
            }
            assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
            for one in found:
                assert is_way(model, listener, one.path, one.memory_id)


def play(scene: Stage, file: Path, model: Model, n: int, step: object) -> None:
    """Do one thing to the store and to the model."""
    ids = list(model.memories)
    if isinstance(step, NewMemory):
        new = replace(step, key=f"{n}")
        [id_] = scene.keep(new)
        model.memories[id_], model.states[id_] = new, "active"
    elif isinstance(step, Edge):
        source, target = ids[step.source % len(ids)], ids[step.target % len(ids)]
        scene.run(scene.store.graph.relate([Association(source, target, step.relation, step.weight)], [], 1))
        if source != target and "forgotten" not in (model.states[source], model.states[target]):
            model.edges[source, target, step.relation] = step.weight
    elif isinstance(step, Named):
        id_, name = ids[step.which % len(ids)], NAMES[step.entity][step.name]
        scene.run(scene.store.graph.relate([], [Mention(id_, step.entity, name, step.weight)], 1))
        if model.states[id_] != "forgotten":
            model.mentions[id_, step.entity] = (name, step.weight)
            model.entities += [step.entity] if step.entity not in model.entities else []
    elif isinstance(step, Hide):
        id_ = ids[step.which % len(ids)]
        with closing(open_writer(file)) as db:
            db.set_busy_timeout(10_000)
            db.execute("BEGIN IMMEDIATE")
            db.execute("UPDATE memory SET state = ? WHERE id = ?", (step.state, id_))
            db.reindex()
            db.execute("COMMIT")
        model.hide(id_, step.state)


def is_way(model: Model, listener: Listener, path: tuple[WalkStep, ...], end: int) -> bool:
    """Whether each memory on a way is heard, and it ends where it should."""
    told = [step.memory_id for step in path if step.memory_id]
    return (
        2 <= len(path) <= 3
        and path[0].relation == ""
        and told[-1] == end
        and all(model.heard(listener, id_) for id_ in told)
        and all(bool(step.memory_id) != bool(step.name) for step in path)
    )
