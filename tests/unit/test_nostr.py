"""Nostr receives: wraps are stored before the cursor moves, each message once, whatever relay it comes from."""

from __future__ import annotations

import asyncio
import logging

import pytest
from tests.unit.nostr_cast import AGENT, listening

from keepsaid.domain.line import LineState
from keepsaid.ports.runtime import Clock
from keepsaid.testing.clock import FastClock, VirtualClock
from keepsaid.testing.listening import LineLog, MemoryInbox, never
from keepsaid.testing.providers.nostr import NostrDeliveryAct, NostrRelayServer
from keepsaid.testing.providers.nostr_people import NostrPerson

_HOUR_S, _DAY_S = 3_600, 86_400


def now_s(clock: Clock) -> int:
    return clock.now_ms() // 1_000


def person_of(name: str, clock: Clock) -> NostrPerson:
    return NostrPerson(name, lambda: now_s(clock))


async def test_message_is_kept_with_sender_conversation_and_cursor() -> None:
    clock, inbox, shown = VirtualClock(), MemoryInbox(), LineLog()
    async with NostrRelayServer() as relay, listening(inbox, clock, relay.url, shown=shown):
        person = person_of("ann", clock)
        await relay.wait_for(lambda: relay.subscribed > 0)
        assert relay.queries[0]["since"] == now_s(clock) - 2 * _DAY_S - _HOUR_S
        assert (relay.queries[0]["kinds"], relay.queries[0]["#p"]) == ([1_059], [AGENT])
        number, wrap = person.write("hello", AGENT)
        await relay.store(wrap)
        await inbox.wait_for(lambda: inbox.texts == ["hello"])
        found = inbox.kept[f"nostr:{number}"]
        assert (found.sender, found.provider_id, found.direct, found.addressed) == (person.public, number, True, True)
        room = found.conversation.removeprefix("nostr:direct:")
        assert inbox.stored[f"people:{room}"] == person.public
        assert inbox.stored[f"eose:{relay.url}"] == inbox.stored["first"] == str(now_s(clock))
        assert await shown.until_now(LineState.UP) == ""


async def test_message_sent_while_off_is_read_from_the_cursor_on() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with NostrRelayServer() as relay:
        person = person_of("ann", clock)
        async with listening(inbox, clock, relay.url):
            await inbox.wait_for(lambda: "first" in inbox.stored)
        began = now_s(clock)
        await clock.advance(5 * _HOUR_S * 1_000)
        for n in (3, 1, 2):
            await relay.store(person.write(f"missed {n}", AGENT, at_s=began + n)[1])
        async with listening(inbox, clock, relay.url):
            await inbox.wait_for(lambda: len(inbox.kept) == 3)
        assert inbox.texts == ["missed 1", "missed 2", "missed 3"]
        assert [one["since"] for one in relay.queries if "since" in one][-1] == began - 2 * _DAY_S - _HOUR_S
        assert inbox.stored[f"eose:{relay.url}"] == str(now_s(clock))


async def test_first_contact_reads_no_history() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with NostrRelayServer() as relay:
        person = person_of("ann", clock)
        await relay.store(person.write("history", AGENT, at_s=now_s(clock) - 60)[1])
        async with listening(inbox, clock, relay.url):
            await inbox.wait_for(lambda: "first" in inbox.stored)
            await relay.store(person.write("a clock is slow", AGENT, at_s=now_s(clock) - 50)[1])
            await relay.store(person.write("long ago", AGENT, at_s=now_s(clock) - 2 * _HOUR_S)[1])
            await relay.store(person.write("hello", AGENT)[1])
            await inbox.wait_for(lambda: "hello" in inbox.texts)
        assert inbox.texts == ["a clock is slow", "hello"]


async def test_relay_with_small_pages_is_read_to_the_end() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with NostrRelayServer() as relay:
        relay.page_max = 7
        person = person_of("ann", clock)
        async with listening(inbox, clock, relay.url):
            await inbox.wait_for(lambda: "first" in inbox.stored)
        for n in range(40):
            await relay.store(person.write(f"missed {n}", AGENT, at_s=now_s(clock) + n)[1])
        async with listening(inbox, clock, relay.url):
            await inbox.wait_for(lambda: len(inbox.kept) == 40)
        assert inbox.texts == [f"missed {n}" for n in range(40)]


async def test_catch_up_is_bounded_and_the_rest_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with NostrRelayServer() as relay:
        ann, bob = person_of("ann", clock), person_of("bob", clock)
        async with listening(inbox, clock, relay.url):
            await inbox.wait_for(lambda: "first" in inbox.stored)
        began = now_s(clock)
        await relay.store(ann.write("too old", AGENT, at_s=began + 10)[1])
        await clock.advance((_DAY_S + 600) * 1_000)
        for n in range(103):
            await relay.store(ann.write(f"ann {n}", AGENT, at_s=began + 700 + n)[1])
        await relay.store(bob.write("bob", AGENT, at_s=began + 900)[1])
        with caplog.at_level(logging.WARNING, "keepsaid.nostr"):
            async with listening(inbox, clock, relay.url):
                await inbox.wait_for(lambda: "bob" in inbox.texts)
        assert inbox.texts == [*(f"ann {n}" for n in range(100)), "bob"]
        assert "not read: 4" in caplog.text


async def test_same_message_by_two_relays_and_two_wraps_is_kept_once() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with (
        NostrRelayServer() as one,
        NostrRelayServer() as two,
        listening(inbox, clock, one.url, two.url),
    ):
        person = person_of("ann", clock)
        await one.wait_for(lambda: one.subscribed > 0)
        await two.wait_for(lambda: two.subscribed > 0)
        number, rumor = person.keys.make_rumor(14, "hello", [["p", AGENT]], now_s(clock))
        first, again = person.wrap(rumor, AGENT), person.wrap(rumor, AGENT)
        await one.store(first)
        await two.store(first)
        await one.store(again)
        await two.store(person.write("done", AGENT)[1])
        await inbox.wait_for(lambda: len(inbox.kept) == 2)
        assert set(inbox.kept) >= {f"nostr:{number}"}


async def test_store_that_refuses_loses_nothing_and_holds_the_cursor() -> None:
    clock, inbox, shown = FastClock(30), MemoryInbox(), LineLog()
    async with NostrRelayServer() as relay, listening(inbox, clock, relay.url, shown=shown):
        person = person_of("ann", clock)
        await inbox.wait_for(lambda: "first" in inbox.stored)
        before = dict(inbox.stored)
        inbox.refuses = lambda: True
        await relay.store(person.write("hello", AGENT)[1])
        assert "the disk is full" in await shown.until_now(LineState.DOWN)
        assert inbox.stored == before
        inbox.refuses = never
        await inbox.wait_for(lambda: inbox.texts == ["hello"])
        await shown.until_now(LineState.UP)


async def test_own_messages_are_ignored() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with NostrRelayServer() as relay, listening(inbox, clock, relay.url):
        await relay.wait_for(lambda: relay.subscribed > 0)
        await relay.store(person_of("agent", clock).write("mine", AGENT, person_of("ann", clock).public)[1])
        await relay.store(person_of("ann", clock).write("hello", AGENT)[1])
        await inbox.wait_for(lambda: len(inbox.kept) == 1)
        assert inbox.texts == ["hello"]


async def test_legacy_messages_are_read_only_if_that_is_set() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with NostrRelayServer() as relay, listening(inbox, clock, relay.url, legacy=True):
        person = person_of("ann", clock)
        await relay.wait_for(lambda: relay.subscribed > 0)
        assert relay.queries[0]["kinds"] == [1_059, 4]
        event = person.write_legacy("as before", AGENT)
        await relay.store({**event, "content": "forged"})
        await relay.store(event)
        await inbox.wait_for(lambda: len(inbox.kept) == 1)
        assert inbox.texts == ["as before"]
        assert next(value for name, value in inbox.stored.items() if name.startswith("people:")).startswith("4 ")


async def test_forged_copy_does_not_hide_the_message() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with NostrRelayServer() as relay, listening(inbox, clock, relay.url) as listener:
        relay.act = lambda _number: NostrDeliveryAct.FORGE
        await relay.wait_for(lambda: relay.subscribed > 0)
        await relay.store(person_of("ann", clock).write("hello", AGENT)[1])
        await inbox.wait_for(lambda: inbox.texts == ["hello"])
        assert sum(listener.failures.values()) == 1


async def test_relays_and_name_are_announced_once() -> None:
    clock, inbox = FastClock(30), MemoryInbox()
    async with NostrRelayServer() as relay:
        for _ in range(2):
            async with listening(inbox, clock, relay.url):
                await relay.wait_for(lambda: {one["kind"] for one in relay.accepted} == {0, 10_050})
                relay.drop()
                await relay.wait_for(lambda: relay.subscribed == 0)
                await relay.wait_for(lambda: relay.subscribed > 0)
        assert len(relay.publications) == 2
        listed = next(one for one in relay.accepted if one["kind"] == 10_050)
        assert (listed["tags"], listed["pubkey"]) == ([["relay", relay.url]], AGENT)


async def test_idle_hour_writes_nothing_and_asks_little() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with NostrRelayServer() as relay, listening(inbox, clock, relay.url):
        await relay.wait_for(lambda: len(relay.accepted) == 2)
        puts = inbox.calls
        relay.calls.clear()
        for n in range(6):
            await clock.advance(600_001)
            await relay.wait_for(lambda n=n: relay.calls.get("CLOSE", 0) == n + 1)  # type: ignore[misc]
        assert relay.opened == 1
        assert sum(relay.calls.values()) <= 24
        assert inbox.calls == puts


async def test_relay_that_is_deaf_is_dialled_again() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with NostrRelayServer() as relay, listening(inbox, clock, relay.url):
        await relay.wait_for(lambda: len(relay.accepted) == 2)
        relay.is_silent = True
        await relay.store(person_of("ann", clock).write("unheard", AGENT)[1], is_shown=False)
        while relay.opened == 1:
            await clock.advance(60_000)
            await asyncio.to_thread(int)
        relay.is_silent = False
        relay.drop()
        while not inbox.kept:
            await clock.advance(60_000)
            await asyncio.to_thread(int)
        assert inbox.texts == ["unheard"]


async def test_relay_that_never_sends_all_it_stored_still_delivers() -> None:
    """It loses the connection at every fourth event."""
    clock, inbox = FastClock(300), MemoryInbox()
    async with NostrRelayServer() as relay:
        person = person_of("ann", clock)
        async with listening(inbox, clock, relay.url):
            await inbox.wait_for(lambda: "first" in inbox.stored)
        for n in range(12):
            await relay.store(person.write(f"missed {n}", AGENT)[1])
        relay.act = lambda number: NostrDeliveryAct.DROP if number % 5 == 4 else NostrDeliveryAct.DELIVER
        before = inbox.stored[f"eose:{relay.url}"]
        async with listening(inbox, clock, relay.url):
            await inbox.wait_for(lambda: len(inbox.kept) >= 3)
        assert inbox.stored[f"eose:{relay.url}"] == before
        relay.act = lambda _number: NostrDeliveryAct.DELIVER
        async with listening(inbox, clock, relay.url):
            await inbox.wait_for(lambda: len(inbox.kept) == 12)
