"""The rooms of Matrix: invitations, encrypted and direct rooms, and events that refer to earlier ones."""

from __future__ import annotations

from tests.unit.matrix_cast import ANN, BEGAN_MS, BOB, ROOM, contacted, listening, server

from keepsaid.domain.line import LineState
from keepsaid.domain.message import EDITED, REACTION, UNREADABLE
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.listening import LineLog, MemoryInbox
from keepsaid.testing.providers.matrix_rooms import USER, MatrixError


async def test_invitations_are_accepted_from_allowed_users_only() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        async with listening(matrix, inbox, allowed={ANN}):
            await contacted(inbox)
            matrix.room("!bob:test", BOB, joined=False)
            matrix.invite("!bob:test", BOB)
            matrix.room("!ann:test", ANN, joined=False)
            matrix.say("before the invitation", "!ann:test")
            matrix.invite("!ann:test", ANN)
            matrix.say("since the invitation", "!ann:test")
            await inbox.wait_for_count(1)
        assert matrix.rooms.membership("!bob:test") == "invite"
    assert inbox.texts == ["since the invitation"]
    assert inbox.last.direct


async def test_an_invitation_is_tried_again_also_after_a_restart() -> None:
    inbox, clock = MemoryInbox(), VirtualClock(BEGAN_MS)
    async with server() as matrix:
        async with listening(matrix, inbox, clock, allowed=lambda user: user == ANN):
            await contacted(inbox)
            matrix.join_refusals = [MatrixError(502, "M_UNKNOWN")]
            matrix.room(ROOM, ANN, joined=False)
            matrix.invite(ROOM, ANN)
            await inbox.wait_for(lambda: ROOM in inbox.stored.get("invites", ""))
            await matrix.wait_for(lambda: not matrix.join_refusals)
        async with listening(matrix, inbox, clock, allowed=lambda user: user == ANN):
            await inbox.wait_for(lambda: inbox.stored["invites"] == "")
        assert matrix.rooms.membership(ROOM) == "join"


async def test_an_invitation_that_is_refused_for_good_is_given_up() -> None:
    inbox = MemoryInbox()
    async with server() as matrix, listening(matrix, inbox, allowed={ANN}):
        await contacted(inbox)
        matrix.join_refusals = [MatrixError(429, "M_LIMIT_EXCEEDED", retry_after_ms=0), MatrixError(403, "M_FORBIDDEN")]
        matrix.room(ROOM, ANN, joined=False)
        matrix.invite(ROOM, ANN)
        await inbox.wait_for(lambda: ROOM in inbox.stored.get("invites", ""))
        for n in range(2):
            matrix.room(f"!{n}:test", ANN)
            await matrix.wait_for(lambda n=n: len(matrix.join_refusals) < 2 - n)  # type: ignore[misc]
        matrix.room("!more:test", ANN)
        await inbox.wait_for(lambda: inbox.stored["invites"] == "")


async def test_an_encrypted_room_is_named_and_its_messages_are_kept() -> None:
    inbox, shown = MemoryInbox(), LineLog()
    async with server() as matrix:
        matrix.room(ROOM, ANN, name="Vault", encryption="m.megolm.v1.aes-sha2")
        async with listening(matrix, inbox, shown=shown):
            await contacted(inbox)
            number = matrix.send("m.room.encrypted", ROOM, ANN, {"ciphertext": "AwgAEnACgAkLmt6qF84IK"})
            await inbox.wait_for_count(1)
        assert ROOM in inbox.stored["encrypted"]
        reason = await shown.until_now(LineState.UP)
        assert all(part in reason for part in ("Vault", "pip install", "matrix-e2ee"))
        async with listening(matrix, inbox, shown=shown):
            assert ROOM in await shown.until_now(LineState.UP)
    kept = inbox.last
    assert (kept.event, kept.text, kept.external_id) == (UNREADABLE, "encrypted", f"matrix:{number}")
    assert (kept.conversation, kept.sender) == (f"matrix:{ROOM}", ANN)
    assert kept.payload is not None
    assert b"AwgAEnACgAkLmt6qF84IK" in kept.payload


async def test_rooms_of_two_and_those_marked_direct_are_direct() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        matrix.room("!two:test", ANN)
        matrix.room("!three:test", ANN, BOB)
        matrix.room("!marked:test", ANN, BOB)
        matrix.rooms.mark_direct(ANN, "!marked:test")
        async with listening(matrix, inbox):
            await contacted(inbox)
            for room in ("!two:test", "!three:test", "!marked:test"):
                matrix.say(room, room)
            await inbox.wait_for_count(3)
            assert {one.text: one.direct for one in inbox.kept.values()} == {
                "!two:test": True,
                "!three:test": False,
                "!marked:test": True,
            }
            matrix.rooms.enter("!two:test", BOB)
            matrix.say("three now", "!two:test")
            matrix.rooms.mark_direct(ANN, "!three:test")
            matrix.say("direct now", "!three:test")
            await inbox.wait_for_count(5)
    assert {one.text: one.direct for one in inbox.kept.values()}["three now"] is False
    assert {one.text: one.direct for one in inbox.kept.values()}["direct now"] is True


async def test_own_messages_and_those_of_bots_are_no_messages() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        matrix.room(ROOM, ANN)
        async with listening(matrix, inbox):
            await contacted(inbox)
            matrix.say("mine", ROOM, USER)
            matrix.send("m.room.message", ROOM, ANN, {"msgtype": "m.notice", "body": "beep"})
            matrix.say("hers")
            await inbox.wait_for_count(2)
    assert [(one.text, one.by_bot) for one in inbox.kept.values()] == [("beep", True), ("hers", False)]


async def test_an_edit_a_reaction_and_a_deletion_find_their_message_and_thread_after_a_restart() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        matrix.room(ROOM, ANN, BOB)
        async with listening(matrix, inbox):
            await contacted(inbox)
            root = matrix.say("root")
            in_thread = matrix.say("first", **{"m.relates_to": {"rel_type": "m.thread", "event_id": root}})
            await inbox.wait_for_count(2)
        async with listening(matrix, inbox):
            matrix.edit(in_thread, "second")
            await inbox.wait_for_count(3)
            edited = inbox.last
            matrix.edit(in_thread, "forged", sender=BOB)
            like = {"rel_type": "m.annotation", "event_id": root, "key": "+1"}
            number = matrix.send("m.reaction", ROOM, BOB, {"m.relates_to": like})
            await inbox.wait_for_count(4)
            liked = inbox.last
            matrix.redact(number, sender=BOB)
            await inbox.wait_for_count(5)
            taken_back = inbox.last
            matrix.redact(in_thread, sender=BOB)
            await inbox.wait_for_count(6)
            deleted = inbox.last
    assert (edited.event, edited.text, edited.provider_id, edited.topic) == (EDITED, "second", in_thread, root)
    assert (liked.event, liked.text, liked.reply_to, liked.sender) == (REACTION, "+1", root, BOB)
    assert (taken_back.event, taken_back.text, taken_back.reply_to) == (REACTION, "", root)
    assert (deleted.event, deleted.text, deleted.provider_id) == (EDITED, "[deleted]", in_thread)
    assert (deleted.sender, deleted.topic) == (ANN, root)


async def test_messages_that_were_deleted_before_they_were_read_are_none() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        matrix.room(ROOM, ANN)
        async with listening(matrix, inbox):
            await contacted(inbox)
        matrix.redact(matrix.say("a mistake"))
        matrix.say("next")
        async with listening(matrix, inbox):
            await inbox.wait_for_count(1)
    assert inbox.texts == ["next"]


async def test_an_invitation_waits_until_its_sender_is_allowed() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        async with listening(matrix, inbox):
            await contacted(inbox)
            for n in range(55):
                matrix.room(f"!spam{n}:test", BOB, joined=False)
                matrix.invite(f"!spam{n}:test", BOB)
            matrix.room(ROOM, ANN, joined=False)
            matrix.invite(ROOM, ANN)
            await inbox.wait_for(lambda: ROOM in inbox.stored.get("invites", ""))
        assert len(inbox.stored["invites"].split()) == 50
        async with listening(matrix, inbox, allowed={ANN}):
            await matrix.wait_for(lambda: matrix.rooms.membership(ROOM) == "join")
            await inbox.wait_for(lambda: ROOM not in inbox.stored["invites"])
    assert matrix.rooms.membership("!spam54:test") == "invite"
