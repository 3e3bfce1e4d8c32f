"""Listening to Matrix: cursors, first contact, gaps, invitations, encrypted rooms, and the state of the line."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.unit.matrix_cast import ANN, BEGAN_MS, BOB, ROOM, contacted, listening, server

from keepsaid.adapters.channels.matrix import api, listener
from keepsaid.adapters.channels.matrix.listener import MatrixListener
from keepsaid.domain.line import LineState
from keepsaid.domain.message import UNREADABLE
from keepsaid.testing.clock import FastClock, VirtualClock
from keepsaid.testing.listening import LineLog, MemoryInbox
from keepsaid.testing.providers.matrix_rooms import USER, MatrixError
from keepsaid.testing.providers.mischief import Mischief, one_after_the_other


async def test_first_contact_takes_no_history() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        matrix.room(ROOM, ANN)
        matrix.say("before")
        async with listening(matrix, inbox):
            await contacted(inbox)
            matrix.say("after")
            await inbox.wait_for_count(1)
    assert inbox.texts == ["after"]


async def test_a_message_has_its_place_and_its_sender() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        matrix.room(ROOM, ANN, BOB, name="Kitchen")
        async with listening(matrix, inbox):
            await contacted(inbox)
            number = matrix.say("hello")
            await inbox.wait_for_count(1)
    said = inbox.last
    assert (said.account, said.sender, said.name) == (USER, ANN, "Ann")
    assert (said.conversation, said.conversation_name) == (f"matrix:{ROOM}", "Kitchen")
    assert (said.external_id, said.provider_id) == (f"matrix:{number}", number)
    assert not said.direct
    assert said.payload is not None
    assert json.loads(said.payload)["content"]["body"] == "hello"


async def test_messages_and_next_batch_are_stored_together_and_read_on_from_there() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        matrix.room(ROOM, ANN)
        async with listening(matrix, inbox):
            await contacted(inbox)
            matrix.say("one")
            await inbox.wait_for_count(1)
        assert inbox.stored["since"] == f"s{matrix.rooms.at}"
        matrix.say("two")
        async with listening(matrix, inbox):
            await inbox.wait_for_count(2)
    assert inbox.texts == ["one", "two"]


async def test_a_refusing_disk_moves_no_cursor_and_loses_nothing() -> None:
    inbox, shown = MemoryInbox(), LineLog()
    refusals = [False, True, True]
    async with server() as matrix:
        matrix.room(ROOM, ANN)
        inbox.refuses = lambda: bool(refusals) and refusals.pop(0)
        async with listening(matrix, inbox, FastClock(360), shown):
            await contacted(inbox)
            before = inbox.stored["since"]
            matrix.say("kept at last")
            assert "the disk is full" in await shown.until_now(LineState.DOWN)
            assert inbox.stored["since"] == before
            await inbox.wait_for_count(1)
    assert inbox.texts == ["kept at last"]


async def test_an_idle_hour_takes_few_requests_and_writes_nothing() -> None:
    inbox = MemoryInbox()
    async with server(poll_scale=0.0005) as matrix:
        matrix.room(ROOM, ANN)
        clock = FastClock(3600)
        async with listening(matrix, inbox, clock):
            await contacted(inbox)
            puts = inbox.calls
            await matrix.wait_for(lambda: len(matrix.polls) > 60)
    timeouts = [int(one["timeout"]) for one in matrix.polls[1:60]]
    assert timeouts[0] == 30_000
    assert 3_600_000 / timeouts[-1] + 4 <= 80
    assert inbox.calls == puts


async def test_a_server_that_does_not_wait_is_not_polled_at_once() -> None:
    inbox, clock = MemoryInbox(), VirtualClock(BEGAN_MS)
    async with server(poll_scale=0.0) as matrix:
        matrix.room(ROOM, ANN)
        async with listening(matrix, inbox, clock):
            await contacted(inbox)
            await matrix.wait_for(lambda: len(matrix.polls) == 2)
            for _ in range(5):
                await clock.advance(100)
            assert len(matrix.polls) == 2
            await clock.advance(600)
            await matrix.wait_for(lambda: len(matrix.polls) == 3)


async def test_a_limited_timeline_is_filled_back_to_the_last_stored_event() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        matrix.room(ROOM, ANN)
        async with listening(matrix, inbox):
            await contacted(inbox)
            matrix.say("stored")
            await inbox.wait_for_count(1)
            for n in range(180):
                matrix.rooms.add(ROOM, "m.room.message", ANN, {"msgtype": "m.text", "body": f"{n}"})
            matrix.say("last")
            await inbox.wait_for_count(182)
    assert inbox.texts == ["stored", *(f"{n}" for n in range(180)), "last"]
    assert matrix.calls["messages"] == 1


async def test_a_gap_is_read_within_bounds_oldest_first(caplog: pytest.LogCaptureFixture) -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        for room in range(7):
            matrix.room(f"!r{room}:test", ANN)
        async with listening(matrix, inbox):
            await contacted(inbox)
        for n in range(130):
            for room in range(7):
                matrix.say(f"{n}", f"!r{room}:test")
        async with listening(matrix, inbox):
            await inbox.wait_for_count(500)
    rooms = [[one.text for one in inbox.kept.values() if one.conversation == f"matrix:!r{n}:test"] for n in range(7)]
    assert sorted(map(len, rooms)) == [0, 0, 100, 100, 100, 100, 100]
    assert all(texts == [f"{n}" for n in range(len(texts))] for texts in rooms)
    assert "missed are not read" in caplog.text


async def test_after_a_gap_what_is_older_than_a_day_is_left_out() -> None:
    inbox, now = MemoryInbox(), [BEGAN_MS]
    async with server() as matrix:
        matrix.rooms._now_ms = lambda: now[0]
        matrix.room(ROOM, ANN)
        async with listening(matrix, inbox):
            await contacted(inbox)
        matrix.say("old")
        now[0] += 30 * 3_600_000
        matrix.say("new")
        async with listening(matrix, inbox, VirtualClock(now[0])):
            await inbox.wait_for_count(1)
    assert inbox.texts == ["new"]


async def test_a_position_that_the_server_forgot_is_left_and_nothing_lost_or_repeated() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        matrix.room(ROOM, ANN)
        async with listening(matrix, inbox):
            await contacted(inbox)
            for n in range(150):
                matrix.say(f"{n}")
            await inbox.wait_for_count(150)
        matrix.say("two")
        matrix.oldest_since = matrix.rooms.at
        async with listening(matrix, inbox):
            await inbox.wait_for_count(151)
            await inbox.wait_for(lambda: inbox.stored["since"] == f"s{matrix.rooms.at}")
    assert inbox.texts == [*(f"{n}" for n in range(150)), "two"]


async def test_older_messages_that_the_server_does_not_show_hold_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    inbox = MemoryInbox()

    def hidden(_room: str, _query: object) -> dict[str, object]:
        raise MatrixError(403, "M_FORBIDDEN")

    async with server() as matrix:
        matrix.room(ROOM, ANN)
        monkeypatch.setattr(matrix, "_page", hidden)
        async with listening(matrix, inbox):
            await contacted(inbox)
            for n in range(150):
                matrix.rooms.add(ROOM, "m.room.message", ANN, {"msgtype": "m.text", "body": f"{n}"})
            matrix.say("last")
            await inbox.wait_for_count(100)
    assert inbox.texts == [*(f"{n}" for n in range(51, 150)), "last"]


async def test_an_answer_that_is_too_long_is_requested_in_smaller_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "_BYTES_MAX", 60_000)
    inbox = MemoryInbox()
    async with server() as matrix:
        matrix.room(ROOM, *(f"@user{n}:test" for n in range(800)))
        matrix.room("!other:test", ANN)
        async with listening(matrix, inbox):
            await contacted(inbox)
            for n in range(40):
                for room in (ROOM, "!other:test"):
                    matrix.rooms.add(room, "m.room.message", ANN, {"msgtype": "m.text", "body": f"{n} {'x' * 1_000}"})
            matrix.say("last")
            await inbox.wait_for_count(81)
    assert not inbox.last.direct or inbox.last.conversation != f"matrix:{ROOM}"
    kept = [one.text.split()[0] for one in inbox.kept.values() if one.conversation == f"matrix:{ROOM}"]
    assert kept == [*(f"{n}" for n in range(40)), "last"]


async def test_a_server_that_goes_silent_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "_LATE_S", -29.8)
    monkeypatch.setattr(MatrixListener, "_timeout_ms", lambda _self: 30_000)
    inbox, shown = MemoryInbox(), LineLog()
    async with server() as matrix:
        matrix.room(ROOM, ANN)
        async with listening(matrix, inbox, FastClock(3600), shown):
            await contacted(inbox)
            assert "Timeout" in await shown.until_now(LineState.DOWN)
            matrix.say("heard")
            await inbox.wait_for_count(1)


async def test_a_refused_token_is_shown_and_tried_again_for_ever() -> None:
    inbox, shown = MemoryInbox(), LineLog()
    async with server() as matrix:
        matrix.room(ROOM, ANN)
        good, matrix.token = matrix.token, "another"
        async with listening(matrix, inbox, FastClock(360), shown) as account:
            account.api._token = good
            assert "KS-CHN" in await shown.until_now(LineState.REFUSED)
            matrix.token = good
            await contacted(inbox)
            matrix.token = "revoked"
            matrix.say("while it is refused")
            assert good not in await shown.until_now(LineState.REFUSED)
            matrix.token = good
            await inbox.wait_for_count(1)


async def test_a_token_of_another_account_is_refused() -> None:
    inbox, shown = MemoryInbox(), LineLog()
    async with server() as matrix, listening(matrix, inbox, VirtualClock(BEGAN_MS), shown) as account:
        account.id = "@other:test"
        assert "another account" in await shown.until_now(LineState.REFUSED)


async def test_a_rate_limit_is_obeyed_whole() -> None:
    inbox, shown, clock = MemoryInbox(), LineLog(), VirtualClock(BEGAN_MS)
    mischief = one_after_the_other(Mischief.SLOW_DOWN, method="sync")
    async with server(mischief=mischief) as matrix, listening(matrix, inbox, clock, shown):
        await shown.until_now(LineState.THROTTLED)
        await clock.advance(999)
        assert matrix.calls["sync"] == 1
        await clock.advance(200)
        await contacted(inbox)


@pytest.mark.parametrize(
    "answer",
    [
        [],
        {},
        {"next_batch": 5},
        {"next_batch": ""},
        {"next_batch": None, "rooms": {"join": 5}},
    ],
)
async def test_an_answer_that_cannot_be_read_is_waited_out(answer: object) -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        matrix.room(ROOM, ANN)
        async with listening(matrix, inbox, FastClock(360)):
            await contacted(inbox)
            matrix.answers = [answer]
            matrix.say("one")
            matrix.say("two")
            await inbox.wait_for_count(2)
    assert inbox.texts == ["one", "two"]


@pytest.mark.parametrize(
    "room",
    [
        5,
        {"timeline": []},
        {"timeline": {"events": {}}},
        {"timeline": {"events": ["words", 5, None]}},
        {"timeline": {"events": [{"type": "m.room.message"}]}},
        {"timeline": {"events": [{"type": "m.room.message", "event_id": [], "sender": ANN, "content": {"body": "x"}}]}},
        {"timeline": {"events": [{"type": "m.room.message", "event_id": "$1", "sender": ANN, "content": {"body": 5}}]}},
        {"timeline": {"events": [{"type": "m.room.message", "event_id": "$1", "sender": ANN, "content": "\ud800"}]}},
    ],
)
async def test_a_room_or_an_event_that_cannot_be_read_is_kept_as_it_came(room: object) -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        matrix.room(ROOM, ANN)
        async with listening(matrix, inbox):
            await contacted(inbox)
            matrix.answers = [{"next_batch": f"s{matrix.rooms.at + 1}", "rooms": {"join": {ROOM: room}}}]
            matrix.say("wakes the poll")
            matrix.say("said after it")
            await inbox.wait_for(lambda: "said after it" in inbox.texts)
    kept = [one for one in inbox.kept.values() if one.event == UNREADABLE]
    assert kept
    assert all(one.payload for one in kept)


async def test_parts_of_a_sync_that_make_no_sense_are_passed_over() -> None:
    inbox = MemoryInbox()
    odd = {
        "account_data": {"events": [5, {"type": "m.direct", "content": {ANN: 5}}]},
        "rooms": {"invite": {ROOM: 5, "no room": {}}, "leave": 7, "join": {ROOM: {"state": 5, "summary": 5}}},
    }
    async with server() as matrix:
        matrix.room(ROOM, ANN)
        async with listening(matrix, inbox, allowed={ANN}):
            await contacted(inbox)
            matrix.answers = [{"next_batch": f"s{matrix.rooms.at}", **odd}]
            matrix.say("one")
            matrix.say("two")
            await inbox.wait_for_count(2)
    assert inbox.texts == ["one", "two"]


async def test_a_process_that_stops_at_any_point_leaves_no_gap() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        matrix.room(ROOM, ANN)
        async with listening(matrix, inbox):
            await contacted(inbox)
        for steps in range(0, 60, 3):
            matrix.say(f"{steps}")
            async with listening(matrix, inbox):
                for _ in range(steps):
                    await asyncio.sleep(0)
        async with listening(matrix, inbox):
            await inbox.wait_for_count(20)
    assert inbox.texts == [f"{steps}" for steps in range(0, 60, 3)]
