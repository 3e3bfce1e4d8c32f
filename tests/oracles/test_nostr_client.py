"""nostr-sdk's own client does with the scripted relay as it does with any relay."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from keepsaid.testing.providers.mischief import Mischief, one_after_the_other
from keepsaid.testing.providers.nostr import NostrRelayServer
from keepsaid.testing.providers.nostr_people import NostrPerson, secret_of

AT_S = 1_750_000_000
TEXT, DIRECT, WRAP, INBOX_RELAYS = 1, 14, 1_059, 10_050


class SdkPerson:
    """Somebody with a key and a client of the library, which is connected to one relay."""

    def __init__(self, sdk: Any, name: str, relay: NostrRelayServer) -> None:
        self.sdk = sdk
        self.keys = sdk.Keys.parse(secret_of(name))
        self.public = str(self.keys.public_key().to_hex())
        self.url = sdk.RelayUrl.parse(relay.url)
        self.client = sdk.ClientBuilder().authenticator(sdk.SignerAuthenticator(self.keys)).build()

    def event(self, kind: int, text: str, *tags: list[str], at_s: int = AT_S) -> Any:
        """A signed event."""
        builder = self.sdk.EventBuilder(self.sdk.Kind(kind), text).tags([self.sdk.Tag.parse(one) for one in tags])
        return builder.custom_created_at(self.sdk.Timestamp.from_secs(at_s)).finalize(self.keys)

    def wrapped(self, text: str, receiver: str) -> Any:
        """A message of NIP-17 for somebody else."""
        builder = self.sdk.EventBuilder(self.sdk.Kind(DIRECT), text).tags([self.sdk.Tag.parse(["p", receiver])])
        rumor = builder.finalize_unsigned(self.keys.public_key())
        return self.sdk.nip59_make_gift_wrap(self.keys, self.sdk.PublicKey.parse(receiver), rumor)

    async def send(self, event: Any) -> str:
        """Publish an event; returns why the relay refused it, "" for one that it took."""
        output = await self.client.send_event(event, ok_timeout=timedelta(seconds=20))
        return "".join(output.failed.values())

    def query(self, kind: int) -> Any:
        """A filter by kind."""
        return self.sdk.Filter().kind(self.sdk.Kind(kind))

    async def fetch(self, *filters: Any) -> list[str]:
        """The contents of the events that match one of some filters, the newest first."""
        target = self.sdk.ReqTarget.manual({self.url: list(filters)})
        found = await self.client.fetch_events(target, timeout=timedelta(seconds=20))
        return [str(one.content()) for one in found]


@asynccontextmanager
async def connected(relay: NostrRelayServer, name: str) -> AsyncIterator[SdkPerson]:
    """A person whose client is connected."""
    sdk = importlib.import_module("nostr_sdk")
    # the library calls authenticators in a thread of its own
    sdk.uniffi_set_event_loop(asyncio.get_running_loop())
    person = SdkPerson(sdk, name, relay)
    await person.client.add_relay(person.url)
    await person.client.connect(and_wait=timedelta(seconds=20))
    try:
        yield person
    finally:
        await person.client.shutdown()


async def next_message(notifications: Any, kind: str) -> Any:
    """The next notification of a kind; raises TimeoutError."""
    async with asyncio.timeout(30):
        while True:
            found = await notifications.next()
            assert found is not None
            if getattr(found, f"is_{kind}")():
                return found


async def test_event_is_stored_and_found_by_each_filter() -> None:
    async with NostrRelayServer() as relay, connected(relay, "ann") as ann:
        root = ann.event(TEXT, "root")
        assert await ann.send(root) == ""
        assert await ann.send(ann.event(TEXT, "reply", ["e", root.id().to_hex()], at_s=AT_S + 10)) == ""
        assert [one["content"] for one in relay.accepted] == ["root", "reply"]
        assert await ann.fetch(ann.query(TEXT)) == ["reply", "root"]
        assert await ann.fetch(ann.sdk.Filter().id(root.id())) == ["root"]
        assert await ann.fetch(ann.sdk.Filter().event(root.id())) == ["reply"]
        assert await ann.fetch(ann.query(TEXT).author(ann.keys.public_key())) == ["reply", "root"]
        assert await ann.fetch(ann.query(TEXT).limit(1)) == ["reply"]
        since = ann.query(TEXT).since(ann.sdk.Timestamp.from_secs(AT_S + 1))
        assert await ann.fetch(since) == ["reply"]
        assert await ann.fetch(ann.query(TEXT).until(ann.sdk.Timestamp.from_secs(AT_S + 1))) == ["root"]
        assert await ann.fetch(ann.query(DIRECT)) == []


async def test_request_may_have_several_filters() -> None:
    async with NostrRelayServer() as relay, connected(relay, "ann") as ann:
        await ann.send(ann.event(TEXT, "text"))
        await ann.send(ann.event(INBOX_RELAYS, "relays", ["relay", relay.url], at_s=AT_S + 1))
        assert await ann.fetch(ann.query(TEXT), ann.query(INBOX_RELAYS)) == ["relays", "text"]


async def test_replaceable_event_replaces_the_former() -> None:
    async with NostrRelayServer() as relay, connected(relay, "ann") as ann:
        await ann.send(ann.event(INBOX_RELAYS, "first", ["relay", relay.url]))
        await ann.send(ann.event(INBOX_RELAYS, "second", ["relay", relay.url], at_s=AT_S + 1))
        assert await ann.fetch(ann.query(INBOX_RELAYS)) == ["second"]


async def test_message_of_another_comes_while_it_is_waited_for() -> None:
    async with NostrRelayServer() as relay, connected(relay, "ann") as ann, connected(relay, "bob") as bob:
        notifications = bob.client.notifications()
        query = bob.query(WRAP).pubkey(bob.keys.public_key())
        await bob.client.subscribe(bob.sdk.ReqTarget.manual({bob.url: [query]}))
        await relay.wait_for(lambda: relay.subscribed == 1)
        assert await ann.send(ann.wrapped("hello", bob.public)) == ""
        found = await next_message(notifications, "new_event")
        opened = bob.sdk.UnwrappedGift.from_gift_wrap(bob.keys, found.event)
        assert (opened.sender().to_hex(), opened.rumor().content()) == (ann.public, "hello")


async def test_message_of_the_library_is_one_that_people_of_tests_read_and_the_other_way_round() -> None:
    async with NostrRelayServer() as relay, connected(relay, "bob") as bob:
        ann = NostrPerson("ann", lambda: AT_S)
        await bob.send(bob.wrapped("from the library", ann.public))
        assert ann.read_texts(relay) == ["from the library"]
        await relay.store(ann.write("from a test", bob.public)[1])
        wraps = await bob.client.fetch_events(
            bob.sdk.ReqTarget.manual({bob.url: [bob.query(WRAP).pubkey(bob.keys.public_key())]}),
            timeout=timedelta(seconds=20),
        )
        opened = [bob.sdk.UnwrappedGift.from_gift_wrap(bob.keys, one).rumor().content() for one in wraps]
        assert opened == ["from a test"]


async def test_duplicate_is_confirmed() -> None:
    async with NostrRelayServer() as relay, connected(relay, "ann") as ann:
        event = ann.event(TEXT, "once")
        assert [await ann.send(event) for _ in range(2)] == ["", ""]
        assert [one.is_duplicate for one in relay.publications] == [False, True]
        assert len(relay.accepted) == 1


async def test_rate_limit_and_refusals_are_named() -> None:
    mischief = one_after_the_other(Mischief.SLOW_DOWN, method="EVENT")
    async with NostrRelayServer(mischief) as relay, connected(relay, "ann") as ann:
        event = ann.event(TEXT, "hello")
        assert "rate-limited" in await ann.send(event)
        assert relay.accepted == []
        assert await ann.send(event) == ""
        relay.refuses[TEXT] = "blocked: not here"
        assert "blocked" in await ann.send(ann.event(TEXT, "more"))


@pytest.mark.parametrize("publishes", [True, False])
async def test_client_proves_who_it_is_when_it_is_asked(publishes: bool) -> None:
    async with NostrRelayServer() as relay:
        relay.asks_auth = not publishes
        relay.wants_proof = publishes
        async with connected(relay, "bob") as bob:
            if publishes:
                assert await bob.send(bob.event(TEXT, "hello")) == ""
            else:
                await relay.store(NostrPerson("ann", lambda: AT_S).write("hello", bob.public)[1])
                assert len(await bob.fetch(bob.query(WRAP).pubkey(bob.keys.public_key()))) == 1
            assert set(relay.proved) == {bob.public}


async def test_notice_and_lost_connection_are_survived() -> None:
    async with NostrRelayServer() as relay, connected(relay, "bob") as bob:
        notifications = bob.client.notifications()
        await relay.notice("the relay closes soon")
        message = (await next_message(notifications, "message")).message.as_enum()
        assert message.message == "the relay closes soon"
        await bob.client.subscribe(bob.sdk.ReqTarget.manual({bob.url: [bob.query(TEXT)]}))
        await relay.wait_for(lambda: relay.subscribed == 1)
        relay.drop()
        await relay.wait_for(lambda: relay.opened == 2 and relay.subscribed == 1)
