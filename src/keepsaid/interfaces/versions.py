"""Versions: the owner's hand on a memory: put right, pinned, merged; the same by command and over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from keepsaid.domain.ids import show
from keepsaid.domain.learning import BYTES_MAX, How, Learnt
from keepsaid.domain.memory import OWNER, Kind, NewMemory, Source, person_scope
from keepsaid.domain.message import Trust
from keepsaid.errors import InputError
from keepsaid.text.normal import digest, normalise

if TYPE_CHECKING:
    from keepsaid.app.instance import Instance


async def edit(instance: Instance, memory_id: int, text: str, value: str) -> Learnt:
    """Put a memory right, as its owner; what it said before is kept as past.

    `value` is what its slot is from now on, where it has one; without, the text is. Raises InputError when it cannot
    be done.
    """
    said, now = normalise(text).strip(), instance.clock.now_ms()
    if not said or len(said.encode()) > BYTES_MAX:
        raise InputError(f"a memory needs a text of at most {BYTES_MAX:,} bytes", safe="Nothing was changed.")
    key = f"edit:{digest(str(memory_id), said, value, str(now)).hex()}"
    word = NewMemory(
        key,
        Kind.FACT,
        said,
        person_scope(OWNER),
        Trust.OWNER,
        speaker=OWNER,
        speaker_id=OWNER,
        said_at=now,
        value=normalise(value).strip(),
        sources=(Source("person", key),),
        asked=True,
    )
    done = await instance.memories.truth.correct(memory_id, word, now)
    if done.how is How.REFUSED:
        raise InputError(
            f"{show('memory', memory_id)}: {done.why}", safe="Nothing was changed.", hint="keepsaid memory ls"
        )
    if done.how is How.FORGOTTEN:
        raise InputError("this was forgotten, and what was forgotten is not learned again", safe="Nothing was changed.")
    return done


async def pin(instance: Instance, memory_id: int, *, pinned: bool) -> None:
    """Pin a memory or take the pin out; raises InputError when there is none."""
    if not await instance.memories.truth.pin(memory_id, pinned=pinned):
        name = show("memory", memory_id)
        raise InputError(f"there is no memory {name}", safe="Nothing was changed.", hint="keepsaid memory ls")


async def merge(instance: Instance, into: int, others: Sequence[int]) -> None:
    """Have one memory stand for others; raises InputError when they cannot be merged."""
    if not await instance.memories.truth.merge(into, others, instance.clock.now_ms()):
        raise InputError(
            "these memories cannot be merged: each must be there, be no episode or summary, be heard by the same "
            "people and say something of the same slot, with nothing else that held between them",
            safe="Nothing was changed.",
            hint=f"keepsaid memory history {show('memory', into)}",
        )


async def put_away(instance: Instance, named: Sequence[int], *, back: bool) -> tuple[int, ...]:
    """Archive memories, or bring them `back`; raises InputError when none of them is there to be."""
    done = await instance.memories.truth.put_away(named, instance.clock.now_ms(), back=back)
    if not done:
        what = "archived" if back else "active, of a kind that is learned"
        hint = "keepsaid memory search --archived" if back else "keepsaid memory ls"
        raise InputError(f"none of these memories is {what}", safe="Nothing was changed.", hint=hint)
    return done
