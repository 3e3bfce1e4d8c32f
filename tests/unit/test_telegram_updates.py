"""Telegram's updates as messages: who is named in one, and whether more of it is to come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.http_cast import site
from tests.unit.test_telegram import settings, texts, until

from keepsaid.adapters.channels.telegram_updates import Bot, incoming_of
from keepsaid.domain.batch import Window
from keepsaid.testing.providers.telegram import BOT, TelegramServer

_BOT = Bot("4711", BOT)


def said(text: str, **fields: Any) -> dict[str, Any]:
    """An update with a message in a group."""
    place = {"id": -50, "type": "supergroup", "title": "The room"}
    person = {"id": 8, "is_bot": False, "first_name": "Ann"}
    message = {"message_id": 3, "from": person, "chat": place, "date": 1, "text": text}
    return {"update_id": 1, "message": message | fields}


def entity(kind: str, offset: int, length: int, **fields: Any) -> list[dict[str, Any]]:
    return [{"type": kind, "offset": offset, "length": length} | fields]


@pytest.mark.parametrize(
    ("text", "fields", "is_addressed"),
    [
        ("hello there", {}, False),
        ("@scripted_bot hello", {"entities": entity("mention", 0, 13)}, True),
        ("😀 @Scripted_Bot", {"entities": entity("mention", 3, 13)}, True),
        ("@somebody hello", {"entities": entity("mention", 0, 9)}, False),
        ("a code block: @scripted_bot", {}, False),
        ("Robot, hello", {"entities": entity("text_mention", 0, 5, user={"id": 4711})}, True),
        ("Ann, hello", {"entities": entity("text_mention", 0, 3, user={"id": 8})}, False),
        ("/help@scripted_bot", {"entities": entity("bot_command", 0, 18)}, True),
        ("yes", {"reply_to_message": {"message_id": 2, "from": {"id": 4711, "is_bot": True}}}, True),
        ("yes", {"reply_to_message": {"message_id": 2, "from": {"id": 8}}}, False),
        ("odd", {"entities": [7, {"type": "mention"}, {"type": "mention", "offset": 900, "length": 5}]}, False),
    ],
)
def test_the_medium_says_who_is_addressed(text: str, fields: dict[str, Any], *, is_addressed: bool) -> None:
    incoming = incoming_of(said(text, **fields), _BOT)
    assert incoming is not None
    assert incoming.addressed is is_addressed


def test_a_caption_can_address_too_and_a_command_for_another_bot_is_not_read() -> None:
    picture = said("", caption="@scripted_bot look", caption_entities=entity("mention", 0, 13))
    incoming = incoming_of(picture, _BOT)
    assert incoming is not None
    assert incoming.addressed
    assert incoming_of(said("/status@other_bot", entities=entity("bot_command", 0, 17)), _BOT) is None


@pytest.mark.parametrize(
    ("text", "fields", "more_ms"),
    [
        ("hello", {}, 0),
        ("", {"caption": "my cats", "photo": [{"file_id": "p", "file_size": 1}], "media_group_id": "album"}, 1_000),
        ("x" * 3_999, {}, 0),
        ("x" * 4_000, {}, 1_500),
        ("😀" * 2_000, {}, 1_500),
    ],
)
def test_the_rest_of_an_album_or_of_a_cut_text_is_waited_for(text: str, fields: dict[str, Any], more_ms: int) -> None:
    incoming = incoming_of(said(text, **fields), _BOT)
    assert incoming is not None
    assert incoming.more_ms == more_ms


def test_a_window_is_held_open_as_far_as_it_may() -> None:
    """From the last part on, and never beyond the longest that a lane collects."""
    window = Window(window_ms=500, wait_ms_max=5_000)
    assert window.held_open(0) == window
    assert window.held_open(1_000).due_at(oldest=0, newest=300) == 1_300
    assert window.held_open(1_000).due_at(oldest=0, newest=4_900) == 5_000
    assert Window(quiet_ms=3_000).held_open(1_000) == Window(quiet_ms=3_000)


def reaction(*emoji: str, **fields: Any) -> dict[str, Any]:
    """An update by which somebody gives a message an emoji, or takes it back."""
    given = [{"type": "emoji", "emoji": one} for one in emoji]
    told = {"chat": {"id": 7, "type": "private"}, "message_id": 3, "user": {"id": 7, "first_name": "Ann"}, "date": 5}
    return {"update_id": 2, "message_reaction": told | {"old_reaction": [], "new_reaction": given} | fields}


def test_a_reaction_names_its_message() -> None:
    incoming = incoming_of(reaction("👍", "🎉"), _BOT)
    assert incoming is not None
    assert (incoming.text, incoming.event, incoming.reply_to, incoming.provider_id) == ("👍 🎉", "reaction", "3", None)
    assert incoming.external_id == "telegram:7:3:5:7"
    back = incoming_of(reaction(date=6), _BOT)
    assert back is not None
    assert (back.text, back.external_id) == ("", "telegram:7:3:6:7")
    odd = incoming_of(reaction("👍", user=None), _BOT)
    assert odd is not None
    assert odd.event == "unreadable"


async def test_a_reaction_is_kept_and_starts_no_turn(tmp_path: Path) -> None:
    """Unless a rule asks for it."""
    task = {"name": "thanks", "match": {"event": "reaction", "text": "🎉"}, "action": "forward"}
    async with TelegramServer() as telegram, site(tmp_path, **settings(telegram, routes={"rules": [task]})) as at:
        telegram.update(**reaction("👍"))
        [(reason,)] = await until(at, "SELECT reason FROM batch WHERE state = 'dropped'")
        assert reason == "it is a reaction, and no rule asks for it"
        telegram.update(**reaction("🎉", date=6))
        await telegram.wait_for(lambda: len(texts(telegram)) == 1)
