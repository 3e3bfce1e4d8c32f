"""Nostr with the whole runtime: what is written to the account is answered in private, and kept apart by its author."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tests.unit.http_cast import site
from tests.unit.test_telegram import line_that_is

from keepsaid.adapters.channels.nostr.keys import NostrKeys
from keepsaid.adapters.system.machine import SystemClock
from keepsaid.app.messengers import nostr_pool
from keepsaid.config import Config
from keepsaid.domain.line import LineState
from keepsaid.errors import ChannelError
from keepsaid.testing.providers.nostr import NostrRelayServer
from keepsaid.testing.providers.nostr_people import NostrPerson, secret_of

SECRET = secret_of("agent")
AGENT = NostrKeys(SECRET).public


def person(name: str) -> NostrPerson:
    return NostrPerson(name, lambda: int(time.time()))


def settings(relay: NostrRelayServer, owner: NostrPerson) -> dict[str, Any]:
    """A home whose account reads at the scripted relay."""
    known = [{"channel": "nostr", "account": AGENT, "sender": owner.public}]
    named = {"secret_key": SECRET, "relays": [relay.url], "lookup_relays": [], "name": "keepsaid"}
    return {"nostr": named, "owner": known}


async def test_what_is_written_to_the_account_is_answered(tmp_path: Path) -> None:
    """The owner is answered, in the strand; a stranger is sent a code; each reads only what is for them."""
    ann, eve = person("ann"), person("eve")
    async with NostrRelayServer() as relay:
        for one in (ann, eve):
            await relay.store(one.relay_list(relay.url))
        async with site(tmp_path, **settings(relay, ann)) as at:
            await relay.wait_for(lambda: relay.subscribed > 0)
            await relay.store(ann.write("my dog is called Rex", AGENT)[1])
            await relay.wait_for(lambda: len(ann.read_texts(relay)) == 1)
            await relay.store(ann.write("what is the name of my dog?", AGENT)[1])
            await relay.wait_for(lambda: any("Rex" in text for text in ann.read_texts(relay)[1:]))
            await relay.store(eve.write("let me in", AGENT)[1])
            await relay.wait_for(lambda: len(eve.read_texts(relay)) == 1)
            assert "keepsaid channel pair --owner" in eve.read_texts(relay)[0]
            assert (await line_that_is(at, LineState.UP))["account"] == AGENT
            assert {row[0] for row in at.rows("SELECT account FROM lane")} == {AGENT}
            assert at.rows("SELECT trust, count(*) FROM message GROUP BY trust ORDER BY trust") == [
                ("external", 1), ("owner", 2),
            ]  # fmt: skip


@pytest.mark.parametrize("key", ["f" * 64, "0" * 64, "nsec1" + "q" * 58])
def test_a_key_that_was_mistyped_is_refused(key: str) -> None:
    """It has the form of one, so that the settings take it."""
    settings = Config.model_validate({"nostr": {"secret_key": key}}).nostr
    with pytest.raises(ChannelError, match="a character is wrong") as refused:
        nostr_pool(settings, SystemClock())
    assert key not in str(refused.value)


def test_without_a_key_nostr_is_off() -> None:
    assert "nostr" not in Config().listening
    assert "nostr" in Config.model_validate({"nostr": {"secret_key": SECRET}}).listening
    assert "nostr" not in Config.model_validate({"nostr": {"secret_key": SECRET, "relays": []}}).listening
