"""Abilities of channels: each messenger goes by what `keepsaid channel ls --json` shows of it, and sizes have units."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

from keepsaid.adapters.channels.discord import DiscordChannel
from keepsaid.adapters.channels.email.channel import EmailChannel
from keepsaid.adapters.channels.matrix.channel import MatrixChannel
from keepsaid.adapters.channels.nostr.channel import NostrChannel
from keepsaid.adapters.channels.pull import PullChannel
from keepsaid.adapters.channels.push import PushChannel
from keepsaid.adapters.channels.slack import SlackChannel
from keepsaid.adapters.channels.telegram import TelegramChannel
from keepsaid.app.channel_setup import ABILITIES, ACCOUNTS
from keepsaid.interfaces.channel_shapes import abilities_shape
from keepsaid.ports.channel import ChannelAbilities, ReactingChannel, abilities_of

MESSENGERS = (TelegramChannel, DiscordChannel, SlackChannel, NostrChannel, MatrixChannel, EmailChannel)


def test_every_messenger_declares_once_what_is_shown_of_it() -> None:
    assert {one.name: one.abilities for one in MESSENGERS} == dict(ABILITIES)
    assert ABILITIES.keys() == ACCOUNTS.keys()


@pytest.mark.parametrize("messenger", MESSENGERS)
def test_a_messenger_has_the_methods_of_what_it_declares(messenger: type) -> None:
    can = ABILITIES[messenger.name]  # type: ignore[attr-defined]
    assert issubclass(messenger, ReactingChannel) == can.reactions
    assert hasattr(messenger, "show_typing") == hasattr(messenger, "show_draft") == bool(can.typing_s)


def test_a_channel_that_declares_nothing_can_nothing() -> None:
    assert abilities_of(PushChannel("http", ())) == ChannelAbilities()


def test_who_pulls_replies_pulls_their_files() -> None:
    assert abilities_of(PullChannel("http")) == ChannelAbilities(uploads=20_000_000)


@pytest.mark.parametrize(("unit", "size"), [("chars", 2), ("utf16", 3), ("bytes", 5)])
def test_a_text_has_a_size_in_the_unit_of_the_medium(unit: str, size: int) -> None:
    assert ChannelAbilities(unit=unit).size_of("a👍") == size  # type: ignore[arg-type]


def test_a_key_that_holds_for_ever_is_null_in_json() -> None:
    shown = json.loads(json.dumps(abilities_shape(ABILITIES["nostr"]), allow_nan=False))
    assert (shown["keyed_s"], shown["unit"], shown["chars_max"], shown["edits"]) == (None, "bytes", 20_000, False)
    assert set(shown) == {one.name for one in fields(ChannelAbilities)}
