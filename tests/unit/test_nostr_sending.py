"""Nostr answers: a reply is encrypted once, each try publishes the same bytes, and one relay that says OK is enough."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from tests.unit.nostr_cast import AGENT, hear, listening, reply_of, sending
from tests.unit.test_nostr import now_s, person_of

from keepsaid.adapters.channels.nostr.channel import NostrChannel
from keepsaid.domain.reply import Delivered, SendResult, StoredReply
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.errors import StoreError
from keepsaid.ports.channel import MAY_SEND
from keepsaid.testing.clock import FastClock, VirtualClock
from keepsaid.testing.listening import MemoryInbox
from keepsaid.testing.providers.mischief import Mischief, one_after_the_other
from keepsaid.testing.providers.nostr import NostrRelayServer
from keepsaid.testing.providers.nostr_people import NostrPerson

_KEPT_AND_UNKNOWN = (Mischief.FAIL_AFTER, Mischief.RESET_AFTER, Mischief.GARBLE)


async def part_of(channel: NostrChannel, reply: StoredReply) -> ReplyPart:
    bodies = await channel.split(reply)
    assert len(bodies) == 1
    return ReplyPart(reply.id, 0, bodies[0])


class Scene:
    """An account that Ann wrote to; she reads on the relay `theirs`, and `own` knows that."""

    def __init__(self, own: NostrRelayServer, theirs: NostrRelayServer, inbox: MemoryInbox, clock: Any) -> None:
        self.own, self.theirs, self.inbox, self.clock = own, theirs, inbox, clock
        self.ann = person_of("ann", clock)
        self.conversation = ""

    async def meet(self, *relays: str) -> None:
        """Let Ann write, and name relays as those on which she reads: `theirs` by default."""
        self.conversation = await hear(self.inbox, self.clock, self.own, self.ann)
        await self.own.store(self.ann.relay_list(*(relays or (self.theirs.url,))))

    def sending(self, *more: str, fallback: tuple[str, ...] = ()) -> Any:
        return sending(self.inbox, self.clock, self.own.url, self.theirs.url, *more, fallback=fallback)


async def send_once(scene: Scene, text: str = "an answer") -> SendResult:
    """Send a reply of one part once."""
    async with scene.sending() as channel:
        reply = reply_of(text, scene.conversation)
        result = await channel.send_part(reply, await part_of(channel, reply))
        assert isinstance(result, SendResult)
        return result


async def test_reply_reaches_its_receiver_and_the_account_itself() -> None:
    async with NostrRelayServer() as own, NostrRelayServer() as theirs:
        scene = Scene(own, theirs, MemoryInbox(), VirtualClock())
        await scene.meet()
        async with scene.sending() as channel:
            reply = reply_of("an answer", scene.conversation, reply_to="ab" * 32)
            part = await part_of(channel, reply)
            result = await channel.send_part(reply, part)
            assert result.outcome is Delivered.CONFIRMED
            [rumor] = scene.ann.read(theirs)
            assert (rumor["content"], rumor["kind"], rumor["pubkey"]) == ("an answer", 14, AGENT)
            assert rumor["tags"] == [["p", scene.ann.public], ["e", "ab" * 32, "", "reply"]]
            assert result.provider_id == rumor["id"] == json.loads(part.body)["rumor"]
            agent = NostrPerson("agent", lambda: 0)
            await own.wait_for(lambda: "an answer" in agent.read_texts(own))


@pytest.mark.parametrize("act", _KEPT_AND_UNKNOWN)
async def test_each_try_publishes_the_same_bytes_and_a_duplicate_is_an_arrival(act: Mischief) -> None:
    async with NostrRelayServer(one_after_the_other(act, method="EVENT")) as theirs, NostrRelayServer() as own:
        scene = Scene(own, theirs, MemoryInbox(), VirtualClock())
        await scene.meet()
        async with scene.sending() as channel:
            reply = reply_of("an answer", scene.conversation)
            part = await part_of(channel, reply)
            assert (await channel.send_part(reply, part)).outcome is Delivered.DOUBT
        async with scene.sending() as channel:
            assert (await channel.send_part(reply, part)).outcome is Delivered.CONFIRMED
        first, second = theirs.publications
        assert first.event == second.event
        assert second.is_duplicate
        assert len(theirs.accepted) == 1


@pytest.mark.parametrize(
    ("act", "outcome"),
    [
        (Mischief.DROP, Delivered.DOUBT),
        (Mischief.FAIL, Delivered.DOUBT),
        (Mischief.SLOW_DOWN, Delivered.RETRY),
    ],
)
async def test_failed_try_is_repeated_later(act: Mischief, outcome: Delivered) -> None:
    async with NostrRelayServer(one_after_the_other(act, method="EVENT")) as theirs, NostrRelayServer() as own:
        scene = Scene(own, theirs, MemoryInbox(), VirtualClock())
        await scene.meet()
        result = await send_once(scene)
        assert result.outcome is outcome
        assert (result.retry_after_ms, result.outage) == (
            (30_000, True) if act is Mischief.SLOW_DOWN else (None, False)
        )
        assert (await send_once(scene)).outcome is Delivered.CONFIRMED


async def test_relay_that_does_not_answer_leaves_a_doubt() -> None:
    async with NostrRelayServer() as own, NostrRelayServer() as theirs:
        scene = Scene(own, theirs, MemoryInbox(), FastClock(60))
        await scene.meet()
        theirs.is_silent = True
        result = await send_once(scene)
        assert result.outcome is Delivered.DOUBT
        assert "does not answer" in result.detail


async def test_relay_that_cannot_be_reached_is_an_outage() -> None:
    async with NostrRelayServer() as own, NostrRelayServer() as theirs:
        scene = Scene(own, theirs, MemoryInbox(), VirtualClock())
        await scene.meet()
        await theirs.close()
        result = await send_once(scene)
        assert (result.outcome, result.outage) == (Delivered.RETRY, True)
        await own.close()
        result = await send_once(scene)
        assert (result.outcome, result.outage) == (Delivered.RETRY, True)
        assert "cannot be looked up" in result.detail


@pytest.mark.parametrize("reason", ["blocked: not here", "pow: 20 bits", "restricted: members only", "invalid: no"])
async def test_relays_that_all_refuse_end_the_reply_with_their_reason(reason: str) -> None:
    async with NostrRelayServer() as own, NostrRelayServer() as theirs:
        scene = Scene(own, theirs, MemoryInbox(), VirtualClock())
        await scene.meet()
        theirs.refuses[1_059] = reason
        result = await send_once(scene)
        assert result.outcome is Delivered.DEAD
        assert reason in result.detail


async def test_one_relay_that_says_ok_is_enough_and_the_others_get_it_later() -> None:
    clock = FastClock(30)
    async with NostrRelayServer() as own, NostrRelayServer() as theirs, NostrRelayServer() as other:
        scene = Scene(own, theirs, MemoryInbox(), clock)
        await scene.meet(theirs.url, other.url)
        await other.close()
        async with scene.sending(other.url) as channel:
            reply = reply_of("an answer", scene.conversation)
            assert (await channel.send_part(reply, await part_of(channel, reply))).outcome is Delivered.CONFIRMED
            await other.open()
            await other.wait_for(lambda: scene.ann.read_texts(other) == ["an answer"])


async def test_relay_that_lies_does_not_keep_the_message_from_another() -> None:
    async with NostrRelayServer() as own, NostrRelayServer() as theirs, NostrRelayServer() as other:
        scene = Scene(own, theirs, MemoryInbox(), VirtualClock())
        await scene.meet(theirs.url, other.url)
        theirs.lies = lambda _number: True
        async with scene.sending(other.url) as channel:
            reply = reply_of("an answer", scene.conversation)
            assert (await channel.send_part(reply, await part_of(channel, reply))).outcome is Delivered.CONFIRMED
            await other.wait_for(lambda: scene.ann.read_texts(other) == ["an answer"])


async def test_receiver_without_relays_is_not_deliverable_unless_fallback_is_set() -> None:
    async with NostrRelayServer() as own, NostrRelayServer() as theirs:
        scene = Scene(own, theirs, MemoryInbox(), VirtualClock())
        scene.conversation = await hear(scene.inbox, scene.clock, own, scene.ann)
        result = await send_once(scene)
        assert result.outcome is Delivered.DEAD
        assert result.detail.startswith("not_deliverable")
        async with scene.sending(fallback=(theirs.url,)) as channel:
            reply = reply_of("an answer", scene.conversation)
            assert (await channel.send_part(reply, await part_of(channel, reply))).outcome is Delivered.CONFIRMED
        assert scene.ann.read_texts(theirs) == ["an answer"]


@pytest.mark.parametrize(
    "url",
    ["ws://127.0.0.1:1", "wss://127.0.0.1", "wss://10.0.0.1", "wss://localhost", "wss://[::1]", "http://a.b", "x"],
)
async def test_relay_at_an_address_that_is_not_public_is_not_dialled(url: str) -> None:
    async with NostrRelayServer() as own, NostrRelayServer() as theirs:
        scene = Scene(own, theirs, MemoryInbox(), VirtualClock())
        await scene.meet(url)
        assert (await send_once(scene)).outcome is Delivered.DEAD


async def test_list_of_relays_by_somebody_else_is_not_used() -> None:
    async with NostrRelayServer() as own, NostrRelayServer() as theirs:
        scene = Scene(own, theirs, MemoryInbox(), VirtualClock())
        scene.conversation = await hear(scene.inbox, scene.clock, own, scene.ann)
        forged = person_of("eve", scene.clock).relay_list(theirs.url)
        await own.store({**forged, "pubkey": scene.ann.public})
        assert (await send_once(scene)).outcome is Delivered.DEAD


async def test_relay_that_asks_who_publishes_is_told() -> None:
    async with NostrRelayServer() as own, NostrRelayServer() as theirs:
        scene = Scene(own, theirs, MemoryInbox(), VirtualClock())
        await scene.meet()
        theirs.asks_auth = theirs.wants_proof = True
        assert (await send_once(scene)).outcome is Delivered.CONFIRMED
        assert theirs.proved == [AGENT]
        theirs.refuses["AUTH"] = "restricted: not you"
        result = await send_once(scene)
        assert (result.outcome, theirs.proved) == (Delivered.DEAD, [AGENT])


async def test_room_reaches_everybody_and_names_who_it_does_not_reach() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with NostrRelayServer() as own, NostrRelayServer() as theirs, NostrRelayServer() as other:
        ann, bob, cid = (person_of(name, clock) for name in ("ann", "bob", "cid"))
        async with listening(inbox, clock, own.url):
            await own.wait_for(lambda: own.subscribed > 0)
            await own.store(ann.write("hello", AGENT, bob.public, cid.public, tags=[["subject", "Plans"]])[1])
            await inbox.wait_for(lambda: len(inbox.kept) == 1)
        [said] = inbox.kept.values()
        assert not said.direct
        await own.store(ann.relay_list(theirs.url))
        await own.store(bob.relay_list(other.url))
        async with sending(inbox, clock, own.url, theirs.url, other.url) as channel:
            reply = reply_of("to all", said.conversation)
            part = await part_of(channel, reply)
            result = await channel.send_part(reply, part)
            assert result.outcome is Delivered.CONFIRMED
            assert "not_deliverable" in result.detail
            assert ann.read(theirs) == bob.read(other)
            assert {tag[1] for tag in ann.read(theirs)[0]["tags"]} == {ann.public, bob.public, cid.public}
            await other.close()
            assert (await channel.send_part(reply, part)).outcome is Delivered.RETRY
            late = reply_of("to all", said.conversation, tried_from=clock.due_ms() - 600_000)
            assert (await channel.send_part(late, part)).outcome is Delivered.CONFIRMED


async def test_room_that_is_too_large_is_refused_with_a_sentence() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with NostrRelayServer() as own:
        ann = person_of("ann", clock)
        crowd = [person_of(f"person {n}", clock).public for n in range(9)]
        async with listening(inbox, clock, own.url):
            await own.wait_for(lambda: own.subscribed > 0)
            await own.store(ann.write("hello", AGENT, *crowd)[1])
            await inbox.wait_for(lambda: inbox.texts == ["hello"])
        async with sending(inbox, clock, own.url) as channel:
            result = await channel.send(reply_of("no", next(iter(inbox.kept.values())).conversation))
        assert result.outcome is Delivered.DEAD
        assert "11 people are too many" in result.detail


@pytest.mark.parametrize("text", ["word " * 10_000, '"' * 25_000, "🙂" * 12_000, "a\x01" * 5_000])
async def test_long_text_is_split_into_events_below_64_kb(text: str) -> None:
    async with NostrRelayServer() as own, NostrRelayServer() as theirs:
        scene = Scene(own, theirs, MemoryInbox(), VirtualClock())
        await scene.meet()
        async with scene.sending() as channel:
            assert (await channel.send(reply_of(text, scene.conversation))).outcome is Delivered.CONFIRMED
        assert "".join(scene.ann.read_texts(theirs)) == text
        times = [rumor["created_at"] for rumor in scene.ann.read(theirs)]
        assert len(times) > 1
        assert times == sorted(set(times))
        assert all(len(json.dumps(event)) < 64_000 for event in theirs.accepted)


async def test_two_replies_within_a_second_have_two_times() -> None:
    async with NostrRelayServer() as own, NostrRelayServer() as theirs:
        scene = Scene(own, theirs, MemoryInbox(), VirtualClock())
        await scene.meet()
        async with scene.sending() as channel:
            for number in (1, 2):
                await channel.send(reply_of(f"answer {number}", scene.conversation, number=number))
        assert [rumor["created_at"] - now_s(scene.clock) for rumor in scene.ann.read(theirs)] == [0, 1]


async def test_legacy_message_is_answered_by_kind_4() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with NostrRelayServer() as own:
        ann = person_of("ann", clock)
        async with listening(inbox, clock, own.url, legacy=True):
            await own.wait_for(lambda: own.subscribed > 0)
            await own.store(ann.write_legacy("hello", AGENT))
            await inbox.wait_for(lambda: inbox.texts == ["hello"])
        await own.store(ann.relay_list(own.url))
        async with sending(inbox, clock, own.url) as channel:
            result = await channel.send(reply_of("hello Ann", next(iter(inbox.kept.values())).conversation))
        assert result.outcome is Delivered.CONFIRMED
        [event] = [one for one in own.accepted if one["kind"] == 4 and one["pubkey"] == AGENT]
        assert (event["id"], ann.read_texts(own)) == (result.provider_id, ["hello Ann"])


async def test_reply_to_an_unknown_conversation_is_dead_and_for_another_account_refused() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with NostrRelayServer() as own, sending(inbox, clock, own.url) as channel:
        assert (await channel.send(reply_of("x", "nostr:direct:unknown"))).outcome is Delivered.DEAD
        assert (await channel.send(reply_of("x", "nostr:note"))).outcome is Delivered.DEAD
        reply = reply_of("x", "nostr:direct:unknown")
        other = StoredReply(1, reply.lane._replace(account="f" * 64), 1, "sending", reply.draft)
        assert (await channel.send(other)).outcome is Delivered.REFUSED
        assert own.publications == []


async def test_store_that_refuses_delays_the_reply() -> None:
    class Broken(MemoryInbox):
        async def cursors(self, account: str) -> Mapping[str, str]:
            raise StoreError("the disk cannot be read")

    async with NostrRelayServer() as own, sending(Broken(), VirtualClock(), own.url) as channel:
        result = await channel.send(reply_of("x", "nostr:direct:unknown"))
    assert (result.outcome, result.outage) == (Delivered.RETRY, True)


async def test_relay_that_is_slow_gets_nothing_more_until_it_said() -> None:
    theirs_act = one_after_the_other(Mischief.SLOW_DOWN, method="EVENT")
    async with NostrRelayServer() as own, NostrRelayServer(theirs_act) as theirs:
        scene = Scene(own, theirs, MemoryInbox(), VirtualClock())
        await scene.meet()
        async with scene.sending() as channel:
            reply = reply_of("an answer", scene.conversation)
            part = await part_of(channel, reply)
            assert (await channel.send_part(reply, part)).outcome is Delivered.RETRY
            held = await channel.send_part(reply, part)
            assert (held.outcome, held.retry_after_ms, len(theirs.publications)) == (Delivered.RETRY, 30_000, 1)
            await scene.clock.advance(30_000)
            assert (await channel.send_part(reply, part)).outcome is Delivered.CONFIRMED


async def test_process_that_was_taken_for_dead_publishes_nothing() -> None:
    async with NostrRelayServer() as own, NostrRelayServer() as theirs:
        scene = Scene(own, theirs, MemoryInbox(), VirtualClock())
        await scene.meet()
        token = MAY_SEND.set(lambda: False)
        try:
            result = await send_once(scene)
        finally:
            MAY_SEND.reset(token)
        assert (result.outcome, result.outage) == (Delivered.RETRY, True)
        assert theirs.publications == []
