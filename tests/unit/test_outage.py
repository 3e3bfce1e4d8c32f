"""A model that does not answer, or not usably: what is waited out, asked again, and told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.turn_cast import a_tool, staged

from keepsaid.domain.process import VoidLeases
from keepsaid.pipeline.turn.run import TurnLimits
from keepsaid.testing.model_script import BAD_KEY, NO_QUOTA, RATE_LIMITED, Call, Garble, Hang, Say


async def test_an_outage_charges_nothing_and_is_waited_out() -> None:
    async with staged(replace(RATE_LIMITED, retry_after=7), Say("finally")) as stage:
        await stage.say()
        assert await stage.work() == "waiting"
        assert await stage.flow.claim(stage.leases, 1) == ()
        await stage.clock.advance(7_000)
        assert await stage.work() == "done"
        turn = await stage.turn()
    assert turn.batch.attempts == 0
    assert turn.batch.deferrals == 1


async def test_an_outage_is_named_while_it_lasts(caplog: pytest.LogCaptureFixture) -> None:
    async with staged(replace(RATE_LIMITED, retry_after=7), Say("finally")) as stage:
        await stage.say()
        assert await stage.work() == "waiting"
        batch = (await stage.turn()).batch
    assert batch.error == "openai/scripted asks for fewer requests"
    assert batch.ready_at == stage.clock.now_ms() + 7_000
    [warned] = [record for record in caplog.records if record.levelname == "WARNING"]
    assert warned.getMessage() == "turn waits: openai/scripted asks for fewer requests; trying again in 7 s"
    assert (vars(warned)["code"], vars(warned)["batch"]) == ("KS-MDL-OUTAGE", batch.id)


async def test_a_clock_set_back_does_not_shorten_the_wait_for_an_outage() -> None:
    async with staged(replace(RATE_LIMITED, retry_after=7), Say("finally")) as stage:
        await stage.say()
        stage.clock.jump(-3_600_000)
        assert await stage.work() == "waiting"
        assert await stage.flow.claim(stage.leases, 1) == ()
        await stage.clock.advance(7_000)
        assert await stage.work() == "done"


async def test_an_outage_that_does_not_end_is_told() -> None:
    async with staged(*[RATE_LIMITED] * 40) as stage:
        await stage.say()
        began, how = stage.clock.now_ms(), "waiting"
        while how == "waiting":
            await stage.clock.advance(60_000)
            how = await stage.work()
        assert how == "dead"
        assert stage.clock.now_ms() - began >= 900_000
        (notice,) = await stage.replies()
    assert "asks for fewer requests" in notice.draft.text


async def test_a_new_process_in_an_outage_makes_it_no_longer() -> None:
    async with staged(*[RATE_LIMITED] * 30, Say("finally")) as stage:
        await stage.say()
        for _ in range(30):
            assert await stage.work() == "waiting"
            await stage.store.apply(VoidLeases("the next", stage.clock.now_ms(), "", ()))
            await stage.clock.advance(1_000)
        assert await stage.work() == "done"


@pytest.mark.parametrize(("refusal", "words"), [(BAD_KEY, "refused the key"), (NO_QUOTA, "no credit left")])
async def test_a_refusal_that_only_a_person_can_mend_is_told_at_once(refusal: object, words: str) -> None:
    async with staged(refusal) as stage:
        await stage.say()
        assert await stage.work() == "dead"
        (notice,) = await stage.replies()
        assert len(stage.server.requests) == 1
    assert words in notice.draft.text
    assert "Your message is kept" in notice.draft.text


async def test_a_malformed_answer_is_asked_for_once_more() -> None:
    async with staged(Garble("not json"), Say("better")) as stage:
        await stage.say()
        assert await stage.work() == "done"


async def test_an_unreadable_answer_three_times_over_is_dead_and_told() -> None:
    async with staged(*[Garble("not json")] * 6) as stage:
        await stage.say()
        ends = []
        for _ in range(3):
            ends.append(await stage.work())
            await stage.clock.advance(60_000)
        assert ends == ["queued", "queued", "dead"]
        assert len(await stage.replies()) == 1


async def test_a_hanging_model_is_an_outage() -> None:
    async with staged(Hang(), limits=TurnLimits(call_s_max=0.2)) as stage:
        await stage.say()
        assert await stage.work() == "waiting"


async def test_a_model_that_never_stops_calling_is_stopped() -> None:
    async with staged(*[Call("look_up", {})] * 50, tools=(a_tool(lambda _: "more"),)) as stage:
        await stage.say()
        assert await stage.work() == "queued"
        turn = await stage.store.turn(stage.claimed.turn_id)
    assert turn is not None
    assert len(stage.server.requests) == stage.limits.steps_max
