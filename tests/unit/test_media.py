"""Media: what each says of a message, read from objects as their own documentation shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from keepsaid.app.channels import MEDIA
from keepsaid.domain.message import EDITED, Attachment, IgnoredUpdate, MediaMessage
from keepsaid.errors import InputError

ANN = {"id": 7, "is_bot": False, "first_name": "Ann", "last_name": "Lee"}
GROUP = {"id": -1001, "type": "supergroup", "title": "Boats"}
A, B, C, D = (letter * 64 for letter in "abcd")


def posted(medium: str, source: Mapping[str, object]) -> MediaMessage:
    found = MEDIA[medium](source)
    assert isinstance(found, MediaMessage), found
    return found


def telegram(**fields: object) -> dict[str, object]:
    return {"message_id": 40, "date": 1, "chat": GROUP, "from": ANN, "text": "the mast", **fields}


def discord(**fields: object) -> dict[str, object]:
    author = {"id": "7", "username": "ann", "global_name": "Ann"}
    return {"id": "40", "type": 0, "channel_id": "9", "author": author, "content": "the mast", **fields}


def slack(**fields: object) -> dict[str, object]:
    return {
        "type": "message",
        "channel": "C9",
        "channel_type": "channel",
        "user": "U7",
        "text": "the mast",
        "ts": "4.5",
        **fields,
    }


def nostr(*tags: list[str], kind: int = 1, **fields: object) -> dict[str, object]:
    return {"id": D, "pubkey": A, "created_at": 1, "kind": kind, "tags": list(tags), "content": "the mast", **fields}


# Telegram


def test_telegram_a_message_of_a_group() -> None:
    found = posted("telegram", {"update_id": 1, "message": telegram()})
    expected = MediaMessage("telegram:chat:-1001", "7", "the mast", "40", "telegram:-1001:40", "Ann Lee")
    assert found == replace(expected, conversation_name="Boats")
    assert posted("telegram", telegram()) == found


def test_a_chat_has_the_title_that_its_medium_gives_it() -> None:
    assert posted("telegram", telegram(chat={"id": 7, "type": "private"})).conversation_name == ""
    assert posted("telegram", telegram(chat={**GROUP, "title": "Harbour crew"})).conversation_name == "Harbour crew"
    channel, guild = {"id": "9", "type": 0, "name": "general"}, {"id": "1", "name": "The Pier"}
    assert posted("discord", discord()).conversation_name == ""
    assert posted("discord", discord(channel=channel)).conversation_name == "general"
    assert posted("discord", discord(channel=channel, guild=guild)).conversation_name == "The Pier - general"
    thread = {"id": "12", "type": 11, "parent_id": "9", "name": "lost keys"}
    in_thread = discord(channel_id="12", channel=thread, guild=guild)
    assert posted("discord", in_thread).conversation_name == "The Pier", "the conversation is the channel"


def test_telegram_a_private_chat_is_direct() -> None:
    assert posted("telegram", telegram(chat={"id": 7, "type": "private"})).direct


def test_telegram_a_forum_topic_is_a_topic_and_its_first_message_no_target() -> None:
    begun = {"message_id": 33, "chat": GROUP, "forum_topic_created": {"name": "Sails"}}
    in_topic = telegram(message_thread_id=33, is_topic_message=True, reply_to_message=begun)
    assert (posted("telegram", in_topic).topic, posted("telegram", in_topic).reply_to) == ("33", None)
    bare = telegram(message_thread_id=33, is_topic_message=True, reply_to_message={"message_id": 33, "chat": GROUP})
    assert posted("telegram", bare).reply_to is None
    answer = telegram(message_thread_id=33, is_topic_message=True, reply_to_message={"message_id": 35, "chat": GROUP})
    assert (posted("telegram", answer).topic, posted("telegram", answer).reply_to) == ("33", "35")


def test_telegram_a_thread_of_replies_is_no_topic() -> None:
    reply = telegram(message_thread_id=33, reply_to_message={"message_id": 35, "chat": GROUP})
    assert (posted("telegram", reply).topic, posted("telegram", reply).reply_to) == (None, "35")


def test_telegram_who_speaks_for_a_channel_or_a_group_is_that() -> None:
    hidden = {"id": 1087968824, "is_bot": True, "first_name": "Group"}
    anonymous = posted("telegram", telegram(**{"from": hidden}, sender_chat=GROUP))
    assert (anonymous.sender, anonymous.name) == ("-1001", "Boats")
    post = {
        "message_id": 3,
        "chat": {"id": -5, "type": "channel"},
        "sender_chat": {"id": -5, "title": "News"},
        "text": "hi",
    }
    assert posted("telegram", {"update_id": 1, "channel_post": post}).sender == "-5"


def test_telegram_an_edit_is_a_delivery_of_its_own() -> None:
    edit = posted("telegram", {"update_id": 2, "edited_message": telegram(edit_date=9, text="the new mast")})
    assert (edit.provider_id, edit.delivery, edit.event) == ("40", "telegram:-1001:40:9", EDITED)


def test_telegram_what_is_attached_is_named() -> None:
    message = telegram(
        text=None,
        caption="look",
        photo=[{"file_id": "small", "file_size": 10}, {"file_id": "big", "file_size": 2_048}],
        document={"file_id": "D1", "file_name": "plan.pdf", "mime_type": "application/pdf", "file_size": 2_104},
        location={"latitude": 52.5, "longitude": 13.4},
        forward_origin={"type": "user", "sender_user": {"id": 8, "first_name": "Bob"}},
    )
    assert posted("telegram", message).text.splitlines() == [
        "[forwarded: from Bob]",
        "look",
        "[photo: 2,048 bytes, big]",
        "[document: plan.pdf, application/pdf, 2,104 bytes, D1]",
        "[location: 52.5, 13.4]",
    ]


# Discord


def test_discord_a_message_of_a_channel() -> None:
    found = posted("discord", discord(guild_id="1", member={"nick": "Captain"}))
    assert found == MediaMessage("discord:9", "7", "the mast", "40", "discord:40", "Captain")
    dispatched = {"op": 0, "t": "MESSAGE_CREATE", "d": discord(guild_id="1", member={"nick": "Captain"})}
    assert posted("discord", dispatched) == found


def test_discord_only_the_gateways_silence_or_the_channel_says_that_it_is_direct() -> None:
    assert posted("discord", {"t": "MESSAGE_CREATE", "d": discord()}).direct
    assert posted("discord", discord(channel={"id": "9", "type": 1})).direct
    assert not posted("discord", discord()).direct
    assert not posted("discord", discord(channel={"id": "9", "type": 3})).direct


def test_discord_a_thread_is_a_topic_of_its_channel() -> None:
    found = posted("discord", discord(channel_id="12", channel={"id": "12", "type": 11, "parent_id": "9"}))
    assert (found.conversation, found.topic) == ("discord:9", "12")
    assert posted("discord", discord(channel_id="12")).conversation == "discord:12"


@pytest.mark.parametrize(
    ("kind", "reference", "target"),
    [
        (19, {"message_id": "35", "channel_id": "9"}, "35"),
        (19, {"type": 0, "message_id": "35"}, "35"),
        (19, {"message_id": "35", "channel_id": "elsewhere"}, None),
        (0, {"type": 1, "message_id": "35", "channel_id": "9"}, None),
        (0, {"message_id": "35", "channel_id": "9"}, None),
        (19, {"channel_id": "9"}, None),
    ],
)
def test_discord_a_reply_is_one_by_its_type(kind: int, reference: dict[str, Any], target: str | None) -> None:
    assert posted("discord", discord(type=kind, message_reference=reference)).reply_to == target


def test_discord_names_stand_for_numbers_and_files_are_named() -> None:
    file = {"id": "1", "filename": "plan.pdf", "content_type": "application/pdf", "size": 2_104, "url": "https://x/p"}
    mentions = [{"id": "8", "username": "bob", "member": {"nick": "Bob"}}]
    found = posted("discord", discord(content="<@8> and <@!8>", mentions=mentions, attachments=[file]))
    assert found.text == "@Bob and @Bob\n[file: plan.pdf, application/pdf, 2,104 bytes, https://x/p]"


def test_discord_files_can_be_fetched_where_they_have_an_address() -> None:
    file = {"id": 1, "filename": "plan.pdf", "content_type": "application/pdf", "size": 2_104, "url": "https://x/p"}
    [found] = posted("discord", discord(attachments=[file, {"id": "2", "filename": "gone"}])).files
    assert (found.name, found.kind, found.size) == ("plan.pdf", "application/pdf", 2_104)
    assert json.loads(found.ref) == {"url": "https://x/p", "id": "1", "channel": "9", "message": "40"}


def test_discord_an_edit_is_a_delivery_of_its_own() -> None:
    edit = posted("discord", {"t": "MESSAGE_UPDATE", "d": discord(edited_timestamp="2026-01-01T00:00:00")})
    assert (edit.provider_id, edit.delivery, edit.event) == ("40", "discord:40:2026-01-01T00:00:00", EDITED)


# Slack


def test_slack_a_message_of_a_channel() -> None:
    found = posted(
        "slack", {"type": "event_callback", "event_id": "Ev1", "event": slack(user_profile={"real_name": "Ann"})}
    )
    assert found == MediaMessage("slack:C9", "U7", "the mast", "4.5", "slack:C9:4.5", "Ann")
    assert posted("slack", slack(channel_type="im")).direct


def test_slack_a_thread_is_a_topic_and_its_first_message_stands_in_the_channel() -> None:
    assert posted("slack", slack(thread_ts="3.1")).topic == "3.1"
    assert posted("slack", slack(thread_ts="4.5")).topic is None


def test_slack_words_are_shown_as_people_read_them() -> None:
    text = "<@U8|bob> see <https://x.org|the plan> &amp; <#C1|boats> <!here> a &lt; b <https://y.org>"
    assert (
        posted("slack", slack(text=text)).text == "@bob see the plan (https://x.org) & #boats @here a < b https://y.org"
    )


def test_slack_an_edit_carries_the_message_inside() -> None:
    inside = {"type": "message", "user": "U7", "text": "new", "ts": "4.5", "thread_ts": "3.1", "edited": {"ts": "9.0"}}
    changed = {"type": "message", "subtype": "message_changed", "channel": "C9", "message": inside, "ts": "9.1"}
    edit = posted("slack", changed)
    assert (edit.provider_id, edit.delivery, edit.topic, edit.event) == ("4.5", "slack:C9:4.5:9.0", "3.1", EDITED)


def test_slack_files_are_named() -> None:
    file = {"id": "F1", "name": "plan.pdf", "mimetype": "application/pdf", "size": 2_104}
    found = posted("slack", slack(subtype="file_share", text="", files=[file]))
    assert found.text == "[file: plan.pdf, application/pdf, 2,104 bytes, F1]"
    assert found.files == ()


@pytest.mark.parametrize(
    ("more", "ref"),
    [
        ({"url_private": "https://x/a", "url_private_download": "https://x/download/a"}, "https://x/download/a"),
        ({"url_private": "https://x/a"}, "https://x/a"),
        ({"url_private": "https://x/a", "mode": "external"}, None),
        ({"url_private": "https://x/a", "is_external": True}, None),
        ({"url_private": "https://x/a", "mode": "tombstone"}, None),
        ({"url_private": "https://x/a", "mode": "hidden_by_limit"}, None),
    ],
)
def test_slack_files_can_be_fetched_where_slack_has_them(more: dict[str, Any], ref: str | None) -> None:
    """What is at another provider, deleted or held back is only named."""
    file = {"id": "F1", "name": "plan.pdf", "mimetype": "application/pdf", "size": 2_104, **more}
    found = posted("slack", slack(subtype="file_share", files=[file])).files
    assert found == (() if ref is None else (Attachment("plan.pdf", "application/pdf", ref, 2_104),))


# Nostr


def test_nostr_a_note_begins_a_thread() -> None:
    assert posted("nostr", nostr()) == MediaMessage(f"nostr:{D}", A, "the mast", D, f"nostr:{D}", topic=D)


@pytest.mark.parametrize(
    ("tags", "root", "target"),
    [
        ([["e", B, "", "root"]], B, B),
        ([["e", B, "", "root"], ["e", C, "", "reply"]], B, C),
        ([["e", C, "", "reply"], ["p", A], ["e", B, "", "root"]], B, C),
        ([["e", C, "", "reply"]], C, C),
        ([["e", B, "", "mention"]], D, None),
        ([["e", B]], B, B),
        ([["e", B], ["e", A], ["e", C]], B, C),
        ([["e", A, "", "mention"], ["e", B], ["e", C, "wss://r"]], B, C),
        ([["e"], ["p", B]], D, None),
    ],
)
def test_nostr_markers_go_before_places(tags: list[list[str]], root: str, target: str | None) -> None:
    found = posted("nostr", nostr(*tags))
    assert (found.conversation, found.topic, found.reply_to) == (f"nostr:{root}", root, target)


def test_nostr_in_a_channel_the_root_is_the_conversation() -> None:
    first = posted("nostr", nostr(["e", B, "", "root"], kind=42))
    assert (first.conversation, first.topic, first.reply_to) == (f"nostr:channel:{B}", None, None)
    assert posted("nostr", nostr(["e", B, "", "root"], ["e", C, "", "reply"], kind=42)).reply_to == C


def test_nostr_a_comment_names_its_root_in_capitals() -> None:
    found = posted("nostr", nostr(["E", B], ["K", "30023"], ["e", C], kind=1111))
    assert (found.conversation, found.reply_to) == (f"nostr:{B}", C)


def test_nostr_a_direct_message_belongs_to_its_people_whoever_writes() -> None:
    there = posted("nostr", nostr(["p", B], kind=14))
    back = posted("nostr", nostr(["p", A], kind=14, pubkey=B))
    assert there.conversation == back.conversation
    assert there.direct
    assert not posted("nostr", nostr(["p", B], ["p", C], kind=14)).direct


# What is not a message, and what cannot be read


@pytest.mark.parametrize(
    ("medium", "source", "reason"),
    [
        ("telegram", {"update_id": 1, "callback_query": {}}, "the update holds no message"),
        ("telegram", telegram(text=None, new_chat_members=[ANN]), "the message has no words"),
        ("discord", {"t": "TYPING_START", "d": {}}, "TYPING_START is not a message"),
        ("discord", discord(type=7), "a notice of Discord's own (type 7)"),
        ("discord", discord(content=""), "the message has no words"),
        ("slack", {"type": "event_callback", "event": {"type": "reaction_added"}}, "reaction_added is not a message"),
        ("slack", slack(subtype="channel_join"), "a notice of Slack's own (channel_join)"),
        ("slack", slack(subtype="message_changed", message={"ts": "4.5"}), "only the preview"),
        ("nostr", nostr(kind=7), "an event of kind 7 is not a message"),
        ("nostr", nostr(content=" "), "the event has no words"),
    ],
)
def test_what_nobody_said_is_told_apart(medium: str, source: dict[str, object], reason: str) -> None:
    found = MEDIA[medium](source)
    assert isinstance(found, IgnoredUpdate)
    assert found.reason.startswith(reason)


@pytest.mark.parametrize(
    ("medium", "source", "sender"),
    [
        ("telegram", telegram(**{"from": {"id": 9, "is_bot": True, "first_name": "Bot"}}), "9"),
        ("discord", discord(author={"id": "1", "bot": True}), "1"),
        ("slack", slack(bot_id="B1", user=None, subtype="bot_message"), "B1"),
    ],
)
def test_what_a_bot_said_is_marked(medium: str, source: dict[str, object], sender: str) -> None:
    found = MEDIA[medium](source)
    assert isinstance(found, MediaMessage)
    assert (found.by_bot, found.sender) == (True, sender)


@pytest.mark.parametrize(
    ("medium", "source", "field"),
    [
        ("telegram", {}, "'chat' is missing"),
        ("telegram", {"update_id": 1, "message": {"message_id": 1, "chat": {}}}, "'message.chat.id' is missing"),
        ("telegram", {"update_id": 1, "message": telegram(chat=[])}, "'message.chat' must be an object"),
        ("telegram", telegram(text=7), "'text' must be text, not a number"),
        ("telegram", telegram(message_id=True), "'message_id' must be an id, not true or false"),
        ("telegram", telegram(photo=[7]), "'photo[0]' must be an object"),
        ("telegram", telegram(**{"from": None}), "'from' is missing"),
        ("telegram", telegram(reply_to_message={}), "'reply_to_message.message_id' is missing"),
        ("discord", {}, "'author' is missing"),
        ("discord", discord(author={"username": "ann"}), "'author.id' is missing"),
        ("discord", discord(mentions={}), "'mentions' must be a list"),
        ("discord", {"t": "MESSAGE_CREATE", "d": None}, "'author' is missing"),
        ("slack", slack(channel=None), "'channel' is missing"),
        ("slack", {"type": "event_callback"}, "'event' is missing"),
        ("slack", slack(subtype="message_changed"), "'message' is missing"),
        ("nostr", nostr(id="x"), "'id' must be 64 digits"),
        ("nostr", nostr(pubkey=None), "'pubkey' is missing"),
        ("nostr", {"id": A, "pubkey": A}, "'kind' is missing"),
        ("nostr", nostr(tags=["e"]), "'tags[0]' must be a list of texts"),
        ("nostr", nostr(kind=42), "'tags' must name the channel"),
    ],
)
def test_what_is_wrong_is_named(medium: str, source: dict[str, object], field: str) -> None:
    with pytest.raises(InputError) as told:
        MEDIA[medium](source)
    assert field in told.value.what
