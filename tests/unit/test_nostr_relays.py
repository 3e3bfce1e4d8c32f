"""Relays of Nostr: they ask who reads, refuse, are down or send nonsense; the line says so and messages come in."""

from __future__ import annotations

import json

import pytest
from tests.unit.nostr_cast import AGENT, listening, pool_of
from tests.unit.test_nostr import person_of

from keepsaid.adapters.channels.nostr.setup import look_up
from keepsaid.domain.line import LineState
from keepsaid.errors import ChannelError
from keepsaid.testing.clock import FastClock, VirtualClock
from keepsaid.testing.listening import LineLog, MemoryInbox
from keepsaid.testing.providers.mischief import Mischief
from keepsaid.testing.providers.nostr import NostrRelayServer


async def test_relay_that_asks_who_reads_is_told_and_sends_what_it_stored() -> None:
    clock, inbox, shown = VirtualClock(), MemoryInbox(), LineLog()
    async with NostrRelayServer() as relay:
        async with listening(inbox, clock, relay.url):
            await inbox.wait_for(lambda: "first" in inbox.stored)
        relay.asks_auth = True
        await relay.store(person_of("ann", clock).write("missed", AGENT)[1])
        async with listening(inbox, clock, relay.url, shown=shown):
            await inbox.wait_for(lambda: inbox.texts == ["missed"])
            await relay.store(person_of("ann", clock).write("live", AGENT)[1])
            await inbox.wait_for(lambda: inbox.texts == ["missed", "live"])
        assert relay.proved == [AGENT]
        assert shown.shown[-1][:2] == (LineState.UP, "")


async def test_relay_that_does_not_accept_the_proof_refuses_the_line() -> None:
    clock, inbox, shown = VirtualClock(), MemoryInbox(), LineLog()
    async with NostrRelayServer() as relay:
        relay.asks_auth = True
        relay.refuses["AUTH"] = "restricted: not a member"
        async with listening(inbox, clock, relay.url, shown=shown):
            assert "restricted: not a member" in await shown.until_now(LineState.REFUSED)
            del relay.refuses["AUTH"]
            await clock.advance(60_000)
            await shown.until_now(LineState.UP)


@pytest.mark.parametrize(
    ("reason", "state"),
    [
        ("rate-limited: too many requests", LineState.THROTTLED),
        ("blocked: go away", LineState.REFUSED),
        ("restricted: paid relay", LineState.REFUSED),
        ("pow: difficulty 20", LineState.REFUSED),
        ("error: the database is down", LineState.DOWN),
        ("no prefix at all", LineState.DOWN),
    ],
)
async def test_reason_of_a_relay_becomes_the_state_of_the_line(reason: str, state: LineState) -> None:
    clock, inbox, shown = FastClock(1200), MemoryInbox(), LineLog()
    async with NostrRelayServer() as relay:
        relay.closes_with = reason
        async with listening(inbox, clock, relay.url, shown=shown):
            assert reason in await shown.until_now(state)
            relay.closes_with = ""
            await shown.until_now(LineState.UP)


async def test_line_is_up_while_one_relay_is_and_names_the_other() -> None:
    clock, inbox, shown = FastClock(30), MemoryInbox(), LineLog()
    async with (
        NostrRelayServer() as one,
        NostrRelayServer() as two,
        listening(inbox, clock, one.url, two.url, shown=shown),
    ):
        await one.wait_for(lambda: len(one.accepted) == 2)
        await two.wait_for(lambda: len(two.accepted) == 2)
        await two.close()
        await shown.until_reason(two.url)
        assert shown.states[-1] is LineState.UP
        await one.close()
        await shown.until_now(LineState.DOWN)
        await one.open()
        await two.open()
        await shown.until_now(LineState.UP)


@pytest.mark.parametrize(
    "frame",
    [
        "}not json{",
        "[" * 50_000,
        "{}",
        "[]",
        "null",
        b"\xff\xfe",
        '["EVENT"]',
        '["EVENT", "keepsaid-live", 5]',
        '["EVENT", "keepsaid-live", {}]',
        '["EVENT", "keepsaid-live", {"id": "x", "kind": 1059, "content": null, "tags": [[]]}]',
        '["EVENT", 3, {}]',
        '["EOSE", "keepsaid-live"]',
        '["EOSE", "other"]',
        '["CLOSED", "other", "blocked: x"]',
        '["OK", "x", true, ""]',
        '["OK", 1, 1]',
        '["AUTH"]',
        '["AUTH", "another challenge"]',
        '["AUTH", "\\ud800"]',
        '["EVENT", "keepsaid-live", {"id": "x", "tags": ' + "[" * 900 + "]" * 900 + "}]",
        '["NOTICE", "hello"]',
        '["WHAT", "is", "this"]',
        json.dumps(["EVENT", "keepsaid-live", {"content": "x" * 900_000}]),
    ],
)
async def test_nonsense_of_a_relay_is_passed_over(frame: str | bytes) -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with NostrRelayServer() as relay, listening(inbox, clock, relay.url):
        await relay.wait_for(lambda: len(relay.accepted) == 2)
        await relay.send_raw(frame)
        await relay.store(person_of("ann", clock).write("hello", AGENT)[1])
        await inbox.wait_for(lambda: inbox.texts == ["hello"])
        assert relay.opened == 1


async def test_relay_that_takes_no_announcement_is_read_from() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with NostrRelayServer() as relay:
        relay.refuses |= {0: "blocked: no profiles", 10_050: "blocked: no lists"}
        async with listening(inbox, clock, relay.url):
            await relay.wait_for(lambda: relay.calls.get("EVENT", 0) == 1)
            await relay.store(person_of("ann", clock).write("hello", AGENT)[1])
            await inbox.wait_for(lambda: inbox.texts == ["hello"])
        assert relay.opened == 1


async def test_account_is_looked_up_with_a_note_on_its_key() -> None:
    clock = VirtualClock()
    async with NostrRelayServer() as relay, NostrRelayServer() as other:
        await other.close()
        report = await look_up(pool_of(clock, relay.url, other.url))
        assert (report.channel, report.account) == ("nostr", AGENT)
        assert report.name.startswith("npub1")
        assert any(other.url in note for note in report.notes)
        assert any("copy of the secret key" in note for note in report.notes)


async def test_account_without_a_relay_that_lets_it_read_is_an_error() -> None:
    clock = VirtualClock()
    async with NostrRelayServer() as relay:
        relay.closes_with = "blocked: not you"
        with pytest.raises(ChannelError, match="blocked: not you"):
            await look_up(pool_of(clock, relay.url))
    with pytest.raises(ChannelError, match="at least one relay"):
        await look_up(pool_of(clock))


async def test_what_is_sent_during_the_catch_up_is_stored_in_its_order() -> None:
    """The time of a wrap is made up: the second of two messages may be in an older page, and the first in none."""
    clock, inbox = VirtualClock(), MemoryInbox()
    ann, at = person_of("ann", clock), clock.now_ms() // 1_000
    wraps = sorted((ann.write("before", AGENT, at_s=at)[1] for _ in range(9)), key=lambda one: int(one["created_at"]))
    until = int(wraps[4]["created_at"])

    def sent(text: str, after_s: int, *, older: bool) -> dict[str, object]:
        """A wrap with a time before or after that of the message that is stored already."""
        while True:
            wrap = ann.write(text, AGENT, at_s=at + after_s)[1]
            if (int(wrap["created_at"]) <= until) is older:
                return wrap

    async with NostrRelayServer() as relay:
        async with listening(inbox, clock, relay.url):
            await inbox.wait_for(lambda: "first" in inbox.stored)
            await relay.store(wraps[4])
            await inbox.wait_for(lambda: inbox.texts == ["before"])
        asked = relay.calls["REQ"]
        meanwhile = [sent("one", 1, older=False), sent("two", 2, older=True)]

        def send_during_the_second(method: str, number: int) -> Mischief:
            if method == "REQ" and number == asked + 2:
                relay.accepted.extend(meanwhile)
            return Mischief.ACCEPT

        relay.mischief = send_during_the_second
        async with listening(inbox, clock, relay.url):
            await inbox.wait_for(lambda: len(inbox.texts) == 3)
        assert inbox.texts == ["before", "one", "two"]
