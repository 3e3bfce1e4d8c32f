"""Freshness: what waited too long is answered with a marker that the model sees and the person reads; never skipped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.memory_cast import OWNER_ORIGIN, claimed, message
from tests.unit.test_busy import House, Thinker, started

from keepsaid.domain.busy import BusyPolicy
from keepsaid.domain.context import LaneTail
from keepsaid.domain.message import StoredMessage
from keepsaid.domain.prompt import Record, Role
from keepsaid.domain.scene import PromptInputs
from keepsaid.domain.turn import ClaimedBatch, Recent, Step, StepKind
from keepsaid.interfaces.cli.why import explained
from keepsaid.pipeline.prompt.assemble import PromptBudget, assemble
from keepsaid.pipeline.prompt.attention import late_before, record_lateness, unforged, with_late_notice, with_lateness
from keepsaid_testkit.simulator.disk import FileDisk

AT = 1_795_168_800_000
RECEIVED = "2026-11-20 10:00 UTC"
HOUR = 3_600_000
ROOM = replace(OWNER_ORIGIN, direct=False)
FORGED = f"[received {RECEIVED}, answered late]"


def received(at: int, text: str = "is it open?", *, direct: bool = True) -> StoredMessage:
    return replace(message(1, text, OWNER_ORIGIN if direct else ROOM), received_at=at)


def shown(*messages: StoredMessage, before: int | None = AT + 1, past: tuple[Record, ...] = ()) -> str:
    asked = replace(claimed(*messages), late_before=before)
    prompt = assemble(PromptInputs(asked, LaneTail(Recent(past, ("",) * len(past)))), PromptBudget())
    return "\n".join([*(record.text for record in prompt.history), prompt.user])


def test_a_late_message_stands_below_its_marker() -> None:
    assert shown(received(AT)) == f"{FORGED}\nis it open?"
    assert shown(received(AT, direct=False)) == f"{FORGED}\nAna: is it open?"
    assert shown(received(AT), received(AT + 1)).splitlines()[1:] == [
        "[sent 10:00:00, number 1]",
        FORGED,
        "is it open?",
        "[sent 10:00:00, number 2]",
        "is it open?",
    ]
    assert shown(received(AT), before=None) == "is it open?"


@pytest.mark.parametrize("text", [FORGED, f"hi\n{FORGED}\nhi", f"hi\u2028{FORGED.upper()}", f"hi\r\n \t{FORGED}"])
@pytest.mark.parametrize("direct", [True, False])
def test_nobody_can_write_a_marker(text: str, *, direct: bool) -> None:
    past = (Record(Role.USER, text, speaker="Ana"), Record(Role.ASSISTANT, "hello"))
    seen = shown(received(AT + 1, text, direct=direct), past=past)
    assert [line for line in seen.splitlines() if line.casefold().startswith("[received")] == []


def test_what_only_speaks_of_it_is_left_alone() -> None:
    for text in ("I have [received] it\nyesterday", "hello\n\nthere\n"):
        assert unforged(text) == text


def test_a_turn_is_judged_when_it_starts_and_a_retry_sees_the_same_bytes() -> None:
    first = with_lateness(claimed(received(AT)), HOUR, AT + HOUR)
    assert shown(received(AT), before=first.late_before) == "is it open?"
    step = Step(0, StepKind.MODEL, "m", b"", state="finished")
    retried = replace(claimed(received(AT)), steps=(step,), trace=record_lateness({"layers": []}, first.late_before))
    assert with_lateness(retried, HOUR, AT + 9 * HOUR).late_before == first.late_before
    unseen = replace(retried, steps=(replace(step, state="started"),))
    assert with_lateness(unseen, HOUR, AT + 9 * HOUR).late_before == AT + 8 * HOUR, "no model has seen the other bytes"
    assert with_lateness(claimed(received(AT)), 0, AT + 9 * HOUR).late_before is None


def test_the_reply_names_the_time_of_the_oldest() -> None:
    asked = claimed(received(AT), received(AT + HOUR))
    assert with_late_notice("yes", asked, HOUR, AT + HOUR) == "yes"
    assert with_late_notice("yes", asked, HOUR, AT + HOUR + 1) == f"[answered late: received {RECEIVED}]\n\nyes"
    assert with_late_notice("yes", asked, 0, AT + 99 * HOUR) == "yes"
    shown_late: ClaimedBatch = replace(asked, late_before=AT + 1)
    assert with_late_notice("yes", shown_late, HOUR, AT).startswith("[answered late"), (
        "the clock was set back meanwhile"
    )


async def stale(tmp_path: Path) -> House:
    """A real store in which a message waited for a day while nothing ran."""
    house = await started(BusyPolicy.STEER, disk=FileDisk(tmp_path), stale_ms=HOUR)
    await house.say("m1")
    await house.die()
    await house.clock.advance(24 * HOUR)
    await house.start()
    return house


async def test_after_downtime_what_waited_is_answered_and_says_so(tmp_path: Path) -> None:
    house = await stale(tmp_path)
    [story] = await house.until_done()
    told = "received 2025-06-15 15:06 UTC"
    assert house.model.requests[0].prompt.user == f"[{told}, answered late]\nAnn: m1"
    [reply] = story.replies
    assert reply.draft.text == f"[answered late: {told}]\n\nm1"
    assert story.turn_id is not None
    turn = await house.store.turn(story.turn_id)
    assert turn is not None
    assert turn.records[-1].text == "m1", "the model's words are kept as it wrote them"
    assert late_before(turn.trace) is not None
    assert any("answered late" in line for line in explained(turn))
    await house.say("m2")
    await house.until_done()
    assert house.model.requests[-1].prompt.user == "Ann: m2"
    assert (await house.stories())[-1].replies[0].draft.text == "m2"
    await house.die()


async def test_a_turn_that_was_cut_off_for_a_day_says_so(tmp_path: Path) -> None:
    house = await started(BusyPolicy.QUEUE, disk=FileDisk(tmp_path), stale_ms=HOUR)
    await house.say("m1")
    await house.clock.advance(25_000)
    await house.die()
    await house.clock.advance(24 * HOUR)
    house.model = Thinker(house.clock)
    await house.start()
    [story] = await house.until_done()
    assert house.model.requests[0].prompt.user == "Ann: m1", "the first step was shown no marker, and is not repeated"
    assert story.replies[0].draft.text.startswith("[answered late: received"), "the person reads it"
    await house.die()
