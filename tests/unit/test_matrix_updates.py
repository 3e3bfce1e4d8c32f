"""Events of Matrix as messages: words, files, replies, threads, edits, mentions, and what is ignored."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.matrix_cast import ANN, BOB, ROOM

from keepsaid.adapters.channels.matrix.events import MatrixPlace, RelatedEvent
from keepsaid.adapters.channels.matrix.gap import since_joined
from keepsaid.adapters.channels.matrix.updates import MatrixUser, incoming_of
from keepsaid.domain.message import EDITED, REACTION, UNREADABLE, Attachment
from keepsaid.ports.channel import Incoming
from keepsaid.testing.providers.matrix_rooms import USER

PLACE, ME = MatrixPlace(ROOM, sender_name="Ann"), MatrixUser(USER, "D")


def event(content: dict[str, Any], kind: str = "m.room.message", sender: str = ANN, **more: Any) -> dict[str, Any]:
    return {"type": kind, "event_id": "$1", "sender": sender, "content": content, **more}


def read(content: dict[str, Any], kind: str = "m.room.message", target: RelatedEvent | None = None) -> Incoming:
    said = incoming_of(event(content, kind), PLACE, ME, target)
    assert said is not None
    return said


@pytest.mark.parametrize(
    ("content", "kind", "files"),
    [
        (
            {"msgtype": "m.image", "body": "look", "filename": "a.png", "url": "mxc://t:80/a_-1", "info": {"size": 9}},
            "m.room.message",
            [Attachment("a.png", "", "mxc://t:80/a_-1", 9)],
        ),
        (
            {"msgtype": "m.audio", "body": "a.ogg", "url": "mxc://[::1]/2", "info": {"mimetype": "audio/ogg"}},
            "m.room.message",
            [Attachment("a.ogg", "audio/ogg", "mxc://[::1]/2")],
        ),
        ({"body": "Cat", "url": "mxc://t/5"}, "m.sticker", [Attachment("Cat", "", "mxc://t/5")]),
        ({"msgtype": "m.file", "url": "mxc://t/6"}, "m.room.message", [Attachment("file", "", "mxc://t/6")]),
        (
            {"msgtype": "m.video", "body": "a", "url": "mxc://t/7", "info": {"size": -(1 << 60)}},
            "m.room.message",
            [Attachment("a", "", "mxc://t/7", 0)],
        ),
        (
            {"msgtype": "m.video", "body": "a", "url": "mxc://t/7", "info": {"size": 1 << 63}},
            "m.room.message",
            [Attachment("a", "", "mxc://t/7", (1 << 53) - 1)],
        ),
        ({"msgtype": "m.file", "body": "a", "file": {"url": "mxc://t/8"}}, "m.room.message", []),
        ({"msgtype": "m.file", "body": "a", "url": "mxc://t/../9"}, "m.room.message", []),
        ({"msgtype": "m.file", "body": "a", "url": "mxc://../9"}, "m.room.message", []),
        ({"msgtype": "m.file", "body": "a", "url": "https://t/9"}, "m.room.message", []),
        ({"msgtype": "m.text", "body": "a", "url": "mxc://t/9"}, "m.room.message", []),
    ],
)
def test_files_that_can_be_fetched(content: dict[str, Any], kind: str, files: list[Attachment]) -> None:
    """Of those that are encrypted, and of addresses that could lead elsewhere, there is only the name."""
    assert list(read(content, kind).files) == files
    edited = {**content, "m.new_content": content, "m.relates_to": {"rel_type": "m.replace", "event_id": "$0"}}
    if kind == "m.room.message":
        assert list(read(edited).files) == files


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"msgtype": "m.text", "body": "hi"}, "hi"),
        ({"msgtype": "m.emote", "body": "waves"}, "* waves"),
        (
            {
                "msgtype": "m.file",
                "body": "a.pdf",
                "info": {"mimetype": "application/pdf", "size": 2104},
                "url": "mxc://t/1",
            },
            "[file: a.pdf, application/pdf, 2,104 bytes, mxc://t/1]",
        ),
        (
            {"msgtype": "m.image", "body": "look at this", "filename": "a.png", "url": "mxc://t/2"},
            "look at this\n[photo: a.png, mxc://t/2]",
        ),
        ({"msgtype": "m.audio", "body": "a.ogg", "file": {"url": "mxc://t/3"}}, "[audio: a.ogg, mxc://t/3]"),
        ({"msgtype": "m.video", "body": "a.mp4", "info": None, "url": "mxc://t/4"}, "[video: a.mp4, mxc://t/4]"),
        ({"msgtype": "m.location", "body": "Here", "geo_uri": "geo:1,2"}, "Here\n[location: geo:1,2]"),
        ({"msgtype": "org.example.new", "body": "as clients show it"}, "as clients show it"),
    ],
)
def test_every_type_of_message_has_a_text(content: dict[str, Any], text: str) -> None:
    assert read(content).text == text


def test_stickers_and_polls_are_named() -> None:
    assert read({"body": "Cat", "url": "mxc://t/5"}, "m.sticker").text == "[sticker: Cat, mxc://t/5]"
    stable = {"question": {"m.text": [{"body": "Tea?"}]}, "answers": [{"m.text": [{"body": "Yes"}]}]}
    assert read({"m.poll.start": stable}, "m.poll.start").text == "[poll: Tea?, Yes]"
    name = "org.matrix.msc3381.poll.start"
    early = {"question": {"org.matrix.msc1767.text": "Tea?"}, "answers": [{"org.matrix.msc1767.text": "No"}]}
    assert read({name: early}, name).text == "[poll: Tea?, No]"


@pytest.mark.parametrize("form", ["m.server_notice", "m.key.verification.request"])
def test_notices_are_ignored(form: str) -> None:
    assert incoming_of(event({"msgtype": form, "body": "x"}), PLACE, ME) is None


@pytest.mark.parametrize("content", [{}, {"msgtype": "m.text", "body": "  "}, {"msgtype": "m.text"}])
def test_deleted_and_empty_messages_are_ignored(content: dict[str, Any]) -> None:
    assert incoming_of(event(content), PLACE, ME) is None


def test_other_events_and_own_ones_are_ignored() -> None:
    assert incoming_of(event({"membership": "join"}, "m.room.member"), PLACE, ME) is None
    assert incoming_of(event({"msgtype": "m.text", "body": "x"}, sender=USER), PLACE, ME) is None


@pytest.mark.parametrize("first", ["> <@bob:test> old words", "> * <@bob:test> waves"])
def test_a_reply_has_no_copy_of_what_it_answers(first: str) -> None:
    answer = {"m.in_reply_to": {"event_id": "$0"}}
    said = read({"msgtype": "m.text", "body": f"{first}\n> more\n\nnew words\n> kept", "m.relates_to": answer})
    assert (said.text, said.reply_to, said.topic) == ("new words\n> kept", "$0", None)


def test_words_that_somebody_quotes_are_kept() -> None:
    said = read({"msgtype": "m.text", "body": "> quoted\n\nyes", "m.relates_to": {"m.in_reply_to": {"event_id": "$0"}}})
    assert said.text == "> quoted\n\nyes"
    assert read({"msgtype": "m.text", "body": "> <@bob:test> said so"}).text == "> <@bob:test> said so"


def test_a_thread_is_a_topic_and_its_fallback_is_no_reply() -> None:
    thread = {"rel_type": "m.thread", "event_id": "$root", "m.in_reply_to": {"event_id": "$last"}}
    said = read({"msgtype": "m.text", "body": "x", "m.relates_to": {**thread, "is_falling_back": True}})
    assert (said.topic, said.reply_to) == ("$root", None)
    said = read({"msgtype": "m.text", "body": "x", "m.relates_to": thread})
    assert (said.topic, said.reply_to) == ("$root", "$last")


def test_an_edit_replaces_a_message_by_the_same_sender_only() -> None:
    new = {"msgtype": "m.text", "body": "new"}
    content = {"body": "* new", "m.new_content": new, "m.relates_to": {"rel_type": "m.replace", "event_id": "$0"}}
    said = read(content, target=RelatedEvent(ANN, "$root"))
    assert (said.event, said.text, said.provider_id, said.topic) == (EDITED, "new", "$0", "$root")
    assert said.external_id == "matrix:$1"
    assert read(content).topic is None
    assert incoming_of(event(content), PLACE, ME, RelatedEvent(BOB)) is None


def test_a_redaction_of_what_is_not_known_is_ignored() -> None:
    redaction = event({"redacts": "$0"}, "m.room.redaction")
    assert incoming_of(redaction, PLACE, ME) is None
    assert incoming_of(redaction, PLACE, ME, RelatedEvent(ANN, kind="m.room.member")) is None
    assert incoming_of(redaction, PLACE, ME, RelatedEvent(USER)) is None
    said = incoming_of(redaction, PLACE, ME, RelatedEvent(BOB, "$root"))
    assert said is not None
    assert (said.sender, said.text, said.provider_id) == (BOB, "[deleted]", "$0")


def test_a_reaction_is_an_event_of_its_message() -> None:
    said = read({"m.relates_to": {"rel_type": "m.annotation", "event_id": "$0", "key": "👍"}}, "m.reaction")
    assert (said.event, said.text, said.reply_to, said.provider_id) == (REACTION, "👍", "$0", None)


@pytest.mark.parametrize(
    ("content", "is_addressed"),
    [
        ({"m.mentions": {"user_ids": [USER]}}, True),
        ({"m.mentions": {"user_ids": [BOB]}, "formatted_body": f"https://matrix.to/#/{USER}"}, False),
        ({"m.mentions": {"room": True}}, False),
        ({"m.mentions": {"user_ids": 5}}, False),
        ({"formatted_body": f'<a href="https://matrix.to/#/{USER}">Bot</a>: hi'}, True),
        ({"formatted_body": '<a href="https://matrix.to/#/%40bot%3Atest">Bot</a>: hi'}, True),
        ({"formatted_body": f'<mx-reply><a href="https://matrix.to/#/{USER}">Bot</a></mx-reply>hi'}, False),
        ({"formatted_body": 5}, False),
        ({"body": f"{USER} hi"}, False),
    ],
)
def test_a_mention_is_a_field_of_the_event_and_no_text(content: dict[str, Any], is_addressed: bool) -> None:
    assert read({"msgtype": "m.text", "body": "hi", **content}).addressed is is_addressed


@pytest.mark.parametrize(
    "content",
    [
        {"msgtype": "m.text", "body": 5},
        {"msgtype": "m.text", "body": "x", "m.relates_to": 5},
        {"msgtype": "m.text", "body": "x", "m.relates_to": {"rel_type": "m.thread"}},
        {"msgtype": "m.text", "body": "x", "m.relates_to": {"rel_type": "m.replace", "event_id": "$0"}},
        {"msgtype": "m.text", "body": "x", "m.relates_to": {"m.in_reply_to": {"event_id": {}}}},
        {"msgtype": "m.file", "body": "x", "info": {"size": 1e300}},
        {"msgtype": [], "body": "x"},
    ],
)
def test_what_cannot_be_read_is_kept_as_it_came(content: dict[str, Any]) -> None:
    said = read(content)
    assert (said.event, said.external_id) == (UNREADABLE, "matrix:$1")
    assert said.payload


def test_what_was_said_before_the_invitation_is_left_out() -> None:
    def member(membership: str, before: str = "") -> dict[str, Any]:
        unsigned = {"prev_content": {"membership": before}} if before else {}
        return event({"membership": membership}, "m.room.member", state_key=USER, unsigned=unsigned)

    invited, joined, renamed = member("invite"), member("join", "invite"), member("join", "join")
    assert since_joined(["a", invited, "b", joined, "c"], USER) == [invited, "b", joined, "c"]
    assert since_joined(["a", joined, "b", renamed, "c"], USER) == [joined, "b", renamed, "c"]
    assert since_joined(["a", renamed, "b"], USER) == ["a", renamed, "b"]
