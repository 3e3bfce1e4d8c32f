"""matrix-nio does with the scripted homeserver as a normal bot does, and parses what it answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import nio
import pytest

from keepsaid.testing.providers.kept_files import PNG
from keepsaid.testing.providers.matrix import MatrixServer
from keepsaid.testing.providers.matrix_rooms import DEVICE, USER, MatrixError
from keepsaid.testing.providers.mischief import Mischief, one_after_the_other

ROOM, ANN = "!room:test", "@ann:test"


@asynccontextmanager
async def client_of(matrix: MatrixServer, token: str = "") -> AsyncIterator[Any]:
    """A client of the library with the token of the account."""
    client = nio.AsyncClient(matrix.url, USER)
    client.restore_login(USER, DEVICE, token or matrix.token)
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def in_a_room() -> AsyncIterator[tuple[MatrixServer, Any]]:
    """A homeserver with a room of Ann and the account, and a client that synced once."""
    async with MatrixServer() as matrix:
        matrix.room(ROOM, ANN, name="Kitchen")
        async with client_of(matrix) as client:
            assert isinstance(await client.sync(timeout=0), nio.SyncResponse)
            yield matrix, client


async def timeline_of(client: Any, room: str = ROOM) -> list[Any]:
    """The new events of a room."""
    response = await client.sync(timeout=10_000)
    assert isinstance(response, nio.SyncResponse), response
    return list(response.rooms.join[room].timeline.events)


async def test_account_logs_in() -> None:
    async with MatrixServer() as matrix, client_of(matrix) as client:
        me = await client.whoami()
        assert isinstance(me, nio.WhoamiResponse), me
        assert (me.user_id, me.device_id, me.is_guest) == (USER, DEVICE, False)


async def test_wrong_token_is_refused() -> None:
    async with MatrixServer() as matrix, client_of(matrix, "another") as client:
        refused = await client.whoami()
        assert (type(refused), refused.status_code) == (nio.WhoamiError, "M_UNKNOWN_TOKEN")
        refused = await client.sync(timeout=0)
        assert (type(refused), refused.status_code) == (nio.SyncError, "M_UNKNOWN_TOKEN")


async def test_rooms_and_members_are_known_after_a_first_sync() -> None:
    async with in_a_room() as (_, client):
        room = client.rooms[ROOM]
        assert (room.display_name, room.member_count, room.encrypted) == ("Kitchen", 2, False)
        assert room.user_name(ANN) == "Ann"
        assert (await client.joined_rooms()).rooms == [ROOM]
        members = await client.joined_members(ROOM)
        assert sorted((one.user_id, one.display_name) for one in members.members) == [(ANN, "Ann"), (USER, "Bot")]
        assert (await client.get_displayname(ANN)).displayname == "Ann"
        assert (await client.room_get_state_event(ROOM, "m.room.name")).content == {"name": "Kitchen"}
        missing = await client.room_get_state_event(ROOM, "m.room.topic")
        assert missing.status_code == "M_NOT_FOUND"


async def test_message_with_markup_in_a_thread_is_parsed() -> None:
    async with in_a_room() as (matrix, client):
        root = matrix.say("what?")
        relation = {"rel_type": "m.thread", "event_id": root, "m.in_reply_to": {"event_id": root}}
        html = {"format": "org.matrix.custom.html", "formatted_body": "<b>that</b>"}
        number = matrix.say("that", **html, **{"m.relates_to": relation})
        first, second = await timeline_of(client)
        assert isinstance(first, nio.RoomMessageText)
        assert (first.event_id, first.sender, first.body) == (root, ANN, "what?")
        assert isinstance(second, nio.RoomMessageText)
        assert (second.event_id, second.formatted_body) == (number, "<b>that</b>")
        assert second.source["content"]["m.relates_to"]["event_id"] == root
        assert second.server_timestamp > 1_600_000_000_000


async def test_edit_reaction_and_redaction_are_parsed() -> None:
    async with in_a_room() as (matrix, client):
        number = matrix.say("helo")
        matrix.edit(number, "hello")
        annotation = {"rel_type": "m.annotation", "event_id": number, "key": "👍"}
        matrix.send("m.reaction", ROOM, ANN, {"m.relates_to": annotation})
        said, edited, reaction = await timeline_of(client)
        assert said.body == "helo"
        assert edited.body == "* hello"
        assert edited.source["content"]["m.new_content"]["body"] == "hello"
        assert isinstance(reaction, nio.ReactionEvent)
        assert (reaction.reacts_to, reaction.key) == (number, "👍")
        deleted = matrix.redact(number)
        [redaction] = await timeline_of(client)
        assert isinstance(redaction, nio.RedactionEvent)
        assert (redaction.event_id, redaction.redacts) == (deleted, number)
        gone = (await client.room_get_event(ROOM, number)).event
        assert isinstance(gone, nio.RedactedEvent)
        assert (gone.event_id, gone.type, gone.redacter) == (number, "m.room.message", ANN)


async def test_picture_is_parsed() -> None:
    async with in_a_room() as (matrix, client):
        matrix.say("cat.png", msgtype="m.image", url="mxc://test/cat", info={"mimetype": "image/png", "size": 3})
        [picture] = await timeline_of(client)
        assert isinstance(picture, nio.RoomMessageImage)
        assert (picture.body, picture.url) == ("cat.png", "mxc://test/cat")


async def test_invitation_is_seen_and_accepted() -> None:
    async with in_a_room() as (matrix, client):
        matrix.room("!new:test", ANN, joined=False, name="New")
        matrix.invite("!new:test", ANN)
        await client.sync(timeout=10_000)
        invited = client.invited_rooms["!new:test"]
        assert (invited.inviter, invited.display_name) == (ANN, "New")
        joined = await client.join("!new:test")
        assert isinstance(joined, nio.JoinResponse), joined
        await client.sync(timeout=10_000)
        assert client.rooms["!new:test"].display_name == "New"
        refused = await client.join("!other:test")
        assert (type(refused), refused.status_code) == (nio.JoinError, "M_FORBIDDEN")


async def test_room_that_was_left_is_gone() -> None:
    async with in_a_room() as (matrix, client):
        matrix.rooms.enter(ROOM, USER, "leave")
        response = await client.sync(timeout=0)
        [left] = response.rooms.leave[ROOM].timeline.events
        assert isinstance(left, nio.RoomMemberEvent)
        assert (left.membership, left.prev_membership) == ("leave", "join")


async def test_encrypted_room_is_known_as_one() -> None:
    async with in_a_room() as (matrix, client):
        matrix.room("!secret:test", ANN, encryption="m.megolm.v1.aes-sha2")
        await client.sync(timeout=10_000)
        assert client.rooms["!secret:test"].encrypted


async def test_sent_message_is_kept_and_comes_back() -> None:
    async with in_a_room() as (matrix, client):
        root = matrix.say("what?")
        relation = {"rel_type": "m.thread", "event_id": root, "is_falling_back": True}
        content = {"msgtype": "m.text", "body": "that", "m.relates_to": relation}
        sent = await client.room_send(ROOM, "m.room.message", content, tx_id="k1.0")
        assert isinstance(sent, nio.RoomSendResponse), sent
        assert sent.room_id == ROOM
        again = await client.room_send(ROOM, "m.room.message", content, tx_id="k1.0")
        assert again.event_id == sent.event_id
        [kept] = matrix.sent
        assert (kept.number, kept.room, kept.txn, kept.body) == (sent.event_id, ROOM, "k1.0", "that")
        _, echo = await timeline_of(client)
        assert (echo.event_id, echo.sender, echo.transaction_id) == (sent.event_id, USER, "k1.0")


async def test_typing_is_shown() -> None:
    async with in_a_room() as (matrix, client):
        shown = await client.room_typing(ROOM, typing_state=True, timeout=20_000)
        assert isinstance(shown, nio.RoomTypingResponse), shown
        assert matrix.typing == [{"room": ROOM, "typing": True, "timeout": 20_000}]


async def test_gap_is_read_back() -> None:
    async with in_a_room() as (matrix, client):
        texts = [f"{n}" for n in range(7)]
        for text in texts:
            matrix.say(text)
        small = {"room": {"timeline": {"limit": 2}}}
        start = client.next_batch
        response = await client.sync(timeout=0, sync_filter=small)
        timeline = response.rooms.join[ROOM].timeline
        assert (timeline.limited, [one.body for one in timeline.events]) == (True, texts[5:])
        found, at = [], timeline.prev_batch
        while at is not None:
            page = await client.room_messages(ROOM, at, end=start, limit=2)
            assert isinstance(page, nio.RoomMessagesResponse), page
            found += [one.body for one in page.chunk]
            at = page.end
        assert found == texts[4::-1]


async def test_client_waits_when_it_is_rate_limited() -> None:
    async with in_a_room() as (matrix, client):
        matrix.mischief = one_after_the_other(Mischief.SLOW_DOWN, method="send")
        sent = await client.room_send(ROOM, "m.room.message", {"msgtype": "m.text", "body": "hi"})
        assert isinstance(sent, nio.RoomSendResponse), sent
        assert matrix.calls["send"] == 2
        assert [one.body for one in matrix.sent] == ["hi"]


@pytest.mark.parametrize("code", ["M_FORBIDDEN", "M_TOO_LARGE"])
async def test_refusals_are_those_the_library_knows(code: str) -> None:
    async with in_a_room() as (matrix, client):
        text = "x" * 70_000 if code == "M_TOO_LARGE" else "hi"
        if code == "M_FORBIDDEN":
            matrix.refusals[ROOM] = MatrixError(403, code, "not here")
        refused = await client.room_send(ROOM, "m.room.message", {"msgtype": "m.text", "body": text})
        assert (type(refused), refused.status_code) == (nio.RoomSendError, code)
        assert matrix.sent == []


async def test_file_is_downloaded() -> None:
    async with in_a_room() as (matrix, client):
        matrix.send_file(PNG, "cat.png", ROOM, msgtype="m.image")
        [picture] = await timeline_of(client)
        assert isinstance(picture, nio.RoomMessageImage)
        found = await client.download(picture.url)
        assert isinstance(found, nio.MemoryDownloadResponse), found
        assert found.body == PNG
