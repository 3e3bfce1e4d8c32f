"""Truth over a made-up life: a thousand changes of facts, told in other words, twice, late, and among small talk.

The store is measured, not a model: what each saying states is known.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.figures import Figures

from keepsaid.adapters.sqlite.stores import SqliteMemories, open_memories
from keepsaid.app.stores import PATIENT_MS, recollection
from keepsaid.domain.learning import LearnOutcome
from keepsaid.domain.memory import GLOBAL, Hit, Kind, Listener, NewMemory, Source
from keepsaid.domain.message import Trust
from keepsaid.memory.recall.recollection import Recollection
from keepsaid.testing.clock import CountingIds, VirtualClock
from keepsaid_testkit.made_life import ATTRIBUTES, PEOPLE, LifeSaying, MadeLife, Stated

_LISTENER = Listener(None)
_LOOKED_AT = 20
_ASKED = 600


def learned(number: int, said: LifeSaying, stated: Stated) -> NewMemory:
    """What an extractor makes of a saying."""
    return NewMemory(
        key=f"finding:{number}:0",
        kind=Kind.FACT,
        text=f"{stated.person}'s {stated.attribute} is {stated.value}",
        scope=GLOBAL,
        trust=Trust.KNOWN,
        speaker=stated.person,
        subject=stated.person,
        attribute=stated.attribute,
        value=stated.value,
        valid_from=stated.since,
        said_at=said.at,
        sources=(Source("finding", f"{number}:0"), Source("message", str(number))),
        derived=True,
    )


def answer(hits: tuple[Hit, ...], person: str, attribute: str) -> str | None:
    """What the best hit that says anything of it says."""
    words = f"{person}'s {attribute} is "
    return next((hit.memory.text.removeprefix(words) for hit in hits if hit.memory.text.startswith(words)), None)


async def asked(recall: Recollection, slot: tuple[str, str], as_of: int | None = None) -> str | None:
    """What is recalled of somebody."""
    person, attribute = slot
    found = await recall.recall(_LISTENER, f"What is {person}'s {attribute}?", _LOOKED_AT, as_of=as_of)
    return answer(found.hits, person, attribute)


async def test_what_is_answered_holds_now_and_what_held_then_is_known(tmp_path: Path, figures: Figures) -> None:
    """Of a thousand changes less than 2 % are answered stale, and more than 95 % are right as of any time."""
    life, chance = MadeLife(), Random(1)
    assert (len(PEOPLE), len(ATTRIBUTES), life.changes) == (20, 40, 1_000)
    memories = await open_memories(tmp_path / "memory.db", CountingIds())
    try:
        recall = recollection(memories, VirtualClock(), PATIENT_MS, None)
        stale, outcomes = await _told(life, memories, recall, chance)
        last = life.said[-1].at
        moments = [(chance.choice(life.slots), chance.randrange(life.start, last)) for _ in range(_ASKED)]
        right = [await asked(recall, slot, at) == life.holds(*slot, at) for slot, at in moments]
    finally:
        await memories.close()
    stated = sum(one.stated is not None for one in life.said)
    shares = {"stale": sum(stale) / len(stale), "as_of_right": sum(right) / len(right)}
    counts = {str(how): count for how, count in outcomes.items()}
    figures(changes=life.changes, stated=stated, asked=len(stale), **shares, **counts)
    assert shares["stale"] < 0.02, shares
    assert shares["as_of_right"] > 0.95, shares
    assert (
        outcomes[LearnOutcome.EVIDENCE]
        == stated - outcomes[LearnOutcome.NEW] - outcomes[LearnOutcome.UPDATES] - outcomes[LearnOutcome.PAST]
    )


async def _told(
    life: MadeLife, memories: SqliteMemories, recall: Recollection, chance: Random
) -> tuple[list[bool], dict[LearnOutcome, int]]:
    """Tell a life; whether what was asked meanwhile was stale, and what became of what was told."""
    stale: list[bool] = []
    outcomes = dict.fromkeys(LearnOutcome, 0)
    for number, (said, holding) in enumerate(life.replay_sayings()):
        if said.stated is None:
            continue
        [done] = await memories.learn([learned(number, said, said.stated)], said.at)
        outcomes[done.how] += 1
        if chance.random() < _ASKED / life.changes / 2:
            slot = said.stated.person, said.stated.attribute
            stale.append(await asked(recall, slot) != holding[slot])
            slot = chance.choice(tuple(holding))
            stale.append(await asked(recall, slot) != holding[slot])
    return stale, outcomes
