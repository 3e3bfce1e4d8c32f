"""Ears: a subscriber of the runtime that fails, hangs and is slow by chance, and what is promised to it."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence

from keepsaid.app.instance import Instance
from keepsaid.domain.commits import Commit
from keepsaid.domain.event import Event, SettleDeliveries, TakeDeliveries, wants
from keepsaid.engine.subscriptions import DeliveryTerms
from keepsaid.errors import StoreError
from keepsaid.ports.store import Store
from keepsaid_testkit.simulator.ledger import DeliveryAttempt, RunRecord
from keepsaid_testkit.simulator.net import Net

NAME = "ear"
TOPICS = ("turn.*", "session.*", "reply.*")
_TERMS = DeliveryTerms(limit_ms=2_000, attempts_max=10_000, again_ms=200, again_ms_max=2_000)
_SLOW_S, _AGAIN_S = 1.5, 1.0
_ALL = 1 << 20


class UnreliableSubscriber:
    """Subscriber of one process that fails, hangs and is slow at random.

    It has a random generator of its own, so that seeds without it do not change.
    """

    def __init__(self, net: Net, seen: RunRecord, life: str, number: int) -> None:
        self._net = net
        self._seen = seen
        self._life = life
        self._chance = random.Random(number)  # noqa: S311 - repeatable, not secret

    async def subscribe(self, instance: Instance) -> None:
        """Subscribe from the first event; retries when the disk refuses the subscription."""
        while True:
            try:
                await instance.telling.subscribe(NAME, TOPICS, self._hear, from_start=True, terms=_TERMS)
            except StoreError:
                await asyncio.sleep(_AGAIN_S)
            else:
                return

    async def _hear(self, event: Event) -> None:
        self._seen.heard.append(
            DeliveryAttempt(self._life, event.id, event.correlation_id, event.id in self._seen.done)
        )
        share = self._net.weather.hearing or 0.0
        if not self._net.calm and self._chance.random() < share:
            trouble = self._chance.randrange(3)
            if trouble == 0:
                raise ValueError("it did not hear")
            if trouble == 1:
                await asyncio.Event().wait()
            await asyncio.sleep(self._chance.uniform(0.0, _SLOW_S))


def note(seen: RunRecord, commit: Commit[object], result: object) -> None:
    """What the disk took of hearing: which delivery is of which event, and which are done, in order.

    Of a commit that is the last of its process nothing is noted: it may be kept or not.
    """
    if isinstance(commit, TakeDeliveries) and isinstance(result, tuple):
        seen.taken.update({one.id: (one.event.id, one.event.correlation_id) for one in result})
    elif isinstance(commit, SettleDeliveries) and result == len(commit.settled):
        done = [seen.taken[one.delivery_id] for one in commit.settled if one.tried and not one.error]
        seen.done.update(event for event, _ in done)
        seen.ended += done


async def has_delivered_all(store: Store) -> bool:
    """Whether no delivery is pending or under way."""
    behind = sum(one.behind for one in await store.journal.subscribers())
    return not behind and not await store.journal.deliveries(("pending", "processing"), "", 1)


async def delivery_violations(store: Store, seen: RunRecord) -> list[str]:
    """Broken guarantees of delivery. After the last fault, every event must have been delivered to its end."""
    told = [one for one in await store.journal.events(0, _ALL) if wants(TOPICS, one.topic)]
    done = {one.event_id for one in await store.journal.deliveries(("done",), NAME, _ALL)}
    return [*_missed(told, seen, done), *_find_repeated(seen), *_out_of_order(seen)]


def _missed(told: Sequence[Event], seen: RunRecord, done: set[int]) -> Iterator[str]:
    heard = {one.event for one in seen.heard}
    for one in told:
        if one.id not in heard or one.id not in done:
            yield f"told: {one.topic} {one.id} was never delivered"


def _find_repeated(seen: RunRecord) -> Iterator[str]:
    """Events that were delivered again after they were done. A process that was raced may repeat what it holds."""
    for one in seen.heard:
        if one.was_done and one.life not in seen.raced:
            yield f"told: event {one.event} was delivered again after it was done"


def _out_of_order(seen: RunRecord) -> Iterator[str]:
    by_key: defaultdict[str, list[int]] = defaultdict(list)
    for event, key in seen.ended:
        by_key[key].append(event)
    for key, events in by_key.items():
        if events != sorted(set(events)):
            yield f"told: what is about {key} was not done in order, each once"
