"""Faults: runtimes that break a promise, so that the judge can show that it sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.domain.commits import Commit, IntakeResult, Receive, Received, Settle, TurnCommit
from keepsaid.domain.compaction import Summarise
from keepsaid.domain.event import DeliveryResult, SettleDeliveries, TakeDeliveries
from keepsaid.domain.reply import Delivered
from keepsaid.domain.turn import ClaimedBatch, Lease
from keepsaid.ports.store_views import R
from keepsaid_testkit.simulator.making import note_made
from keepsaid_testkit.simulator.watch import Watched

_LATER_S = 0.5
_FENCELESS, _GREEDY = (Path(__file__).with_name(f"{name}.sql").read_text("utf-8") for name in ("fenceless", "greedy"))


class Hasty(Watched):
    """Acknowledges a message before its commit."""

    _writing: asyncio.Task[Received] | None = None

    async def apply(self, commit: Commit[R]) -> R:
        """Say that it is stored, and store it later."""
        if not isinstance(commit, Receive):
            return await super().apply(commit)
        self._writing = asyncio.ensure_future(self._later(commit))
        arrival = commit.arrival
        receipt: Any = Received(IntakeResult.STORED, arrival.id, arrival.inbound.lane, 0)
        kept: R = receipt
        return kept

    async def _later(self, commit: Receive) -> Received:
        await asyncio.sleep(_LATER_S)
        return await super().apply(commit)


class Forgetful(Watched):
    """Never records the result of sending a reply."""

    async def apply(self, commit: Commit[R]) -> R:
        """Say that it is settled, and settle nothing."""
        if not isinstance(commit, Settle):
            return await super().apply(commit)
        said: Any = True
        settled: R = said
        return settled


class Fenceless(Watched):
    """Takes the answer of a former owner. In memory only."""

    async def apply(self, commit: Commit[R]) -> R:
        """Let whoever commits a turn hold its batch."""
        changed: Any = commit
        if isinstance(commit, TurnCommit) and isinstance(self.store, InMemoryOperations):
            names = {"batch": commit.batch_id, "fence": commit.fence, "turn": commit.turn_id}
            self.store.database.db.execute(_FENCELESS, names)
            changed = replace(commit, ending=None)
        result: R = await super().apply(changed)
        return result


class Doubling(Watched):
    """Does not know a message that comes again."""

    async def apply(self, commit: Commit[R]) -> R:
        """Store every copy."""
        changed: Any = commit
        if isinstance(commit, Receive):
            changed = replace(commit, arrival=commit.arrival._replace(key_hash=None))
        result: R = await super().apply(changed)
        return result


class Careless(Watched):
    """Forgets which calls had begun."""

    async def claimed(self, lease: Lease) -> ClaimedBatch | None:
        """Leave out the steps without a result."""
        claimed = await super().claimed(lease)
        if claimed is None:
            return None
        return replace(claimed, steps=tuple(step for step in claimed.steps if step.state == "finished"))


class Certain(Watched):
    """Takes a reply that may have arrived for one that has not."""

    async def apply(self, commit: Commit[R]) -> R:
        """Know no doubt."""
        changed: Any = commit
        if isinstance(commit, Settle) and commit.outcome is Delivered.DOUBT:
            changed = replace(commit, outcome=Delivered.RETRY)
        result: R = await super().apply(changed)
        return result


class Greedy(Watched):
    """Makes a summary swallow the record after those it covers. In memory only."""

    async def apply(self, commit: Commit[R]) -> R:
        """Move the head of the lane too far."""
        result: R = await super().apply(commit)
        if result and isinstance(commit, Summarise) and isinstance(self.store, InMemoryOperations):
            self.store.database.db.execute(_GREEDY, commit.lane._asdict())
        return result


class Deaf(Watched):
    """Answers a command as if it were obeyed, and keeps no word of it."""

    async def apply(self, commit: Commit[R]) -> R:
        """Take what people told the program for talk."""
        changed: Any = commit
        if isinstance(commit, TurnCommit) and commit.outcome.executed:
            changed = replace(commit, outcome=replace(commit.outcome, executed=()))
        result: R = await super().apply(changed)
        return result


class Eager(Watched):
    """Lets whoever speaks next answer what somebody else was asked."""

    async def claimed(self, lease: Lease) -> ClaimedBatch | None:
        """Take the speaker for who was asked."""
        claimed = await super().claimed(lease)
        if claimed is None or not claimed.messages:
            return claimed
        speaker = claimed.messages[-1].inbound.origin.sender
        slots = tuple(replace(slot, person=speaker) for slot in claimed.around.slots)
        return replace(claimed, around=replace(claimed.around, slots=slots))


class Absent(Watched):
    """Answers, and forgets what was to be done."""

    async def apply(self, commit: Commit[R]) -> R:
        """Commit the turn without what its tools left."""
        if not isinstance(commit, TurnCommit):
            return await super().apply(commit)
        bare: Any = replace(commit, outcome=replace(commit.outcome, effects=()))
        result: R = await super().apply(bare)
        note_made(self._seen, commit, result)
        return result


class Inattentive(Watched):
    """Ends deliveries that nobody received."""

    async def apply(self, commit: Commit[R]) -> R:
        """Take them, say that they are done, and give nothing."""
        result: Any = await super().apply(commit)
        if isinstance(commit, TakeDeliveries):
            done = tuple(DeliveryResult(one.id) for one in result)
            await super().apply(SettleDeliveries(commit.subscriber, commit.fence, done, commit.at))
            result = ()
        kept: R = result
        return kept


class Repeating(Watched):
    """Gives what was taken once more."""

    _last: Any = ()

    async def apply(self, commit: Commit[R]) -> R:
        """The same deliveries twice, though they are done the second time."""
        result: Any = self._last
        if not isinstance(commit, TakeDeliveries):
            result = await super().apply(commit)
        elif result:
            self._last = ()
        else:
            self._last = result = await super().apply(commit)
        kept: R = result
        return kept


FAULTS: Mapping[str, tuple[type[Watched], str]] = MappingProxyType(
    {
        "hasty": (Hasty, "was acknowledged and is lost"),
        "forgetful": (Forgetful, "not everything has ended in time"),
        "fenceless": (Fenceless, "was answered by 2 replies"),
        "doubling": (Doubling, "is stored 2 times"),
        "careless": (Careless, "the unsafe tool took effect"),
        "greedy": (Greedy, "its head is of version"),
        "deaf": (Deaf, "done 0 times"),
        "eager": (Eager, "was asked"),
        "absent": (Absent, "which a turn made, is lost"),
        "inattentive": (Inattentive, "was never delivered"),
        "repeating": (Repeating, "was delivered again after it was done"),
        "certain": (Certain, "times unmarked"),
    }
)
"""Faults by name, each with words of the breach it must lead to."""
