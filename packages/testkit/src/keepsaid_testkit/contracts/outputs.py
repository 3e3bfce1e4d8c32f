"""The contract of the outputs of runs: executed is one thing, delivered another."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.batch import Window
from keepsaid.domain.commits import Fail, Failure, Settle, TakeReplies, TurnCommit
from keepsaid.domain.compaction import CutContext, CutReason
from keepsaid.domain.context import POSTS_MAX, SchedulePost
from keepsaid.domain.effects import KeepTime
from keepsaid.domain.message import Trust
from keepsaid.domain.reply import Delivered, ReplyDraft
from keepsaid.domain.schedule import Fire, NewSchedule, Target, What
from keepsaid.domain.scheduling import (
    NOT_DONE,
    AddSchedule,
    BeginRun,
    EndRun,
    FireSchedules,
    Notice,
    RecoverRuns,
    SettleRun,
)
from keepsaid.domain.task import CancelTask, CreateTasks, NewTask, TaskFilter
from keepsaid.domain.timing import Every
from keepsaid.testing.builders import CHANNEL, lane_of, outcome, said
from keepsaid_testkit.contracts.schedules import OWNER, add, come, list_topics, run_of
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver


class OutputContract:
    """Executed is one thing, delivered another."""

    async def test_what_is_said_is_delivered_once_it_has_left(self, store: ContractStore) -> None:
        """And only then."""
        await add(store)
        key = await come(store)
        await store.apply(EndRun(key, "execute", 100, reply=ReplyDraft(70, "drink")))
        run = await run_of(store, key)
        assert (run.state, run.output, run.reply_id) == ("executed", "waiting", 70)
        assert await store.schedules.list_unsettled_outputs(10) == []
        [taken] = await store.apply(TakeReplies((CHANNEL,), "one", 9, 200))
        assert (taken.lane, taken.draft.text) == (lane_of(), "drink")
        await store.apply(Settle(70, taken.fence, Delivered.CONFIRMED, 210))
        [heard] = await store.schedules.list_unsettled_outputs(10)
        assert (heard.schedule_id, heard.due_at, heard.output, heard.reply) == (1, 100, "waiting", "sent")
        assert await store.apply(SettleRun(key, "deliver", 220)) == "active"
        assert await store.apply(SettleRun(key, "deliver", 220)) == ""
        assert (await run_of(store, key)).output == "delivered"
        assert await list_topics(store) == ["added", "fired", "executed", "delivered"]

    async def test_what_is_said_stands_between_the_turns_of_its_lane(self, store: ContractStore) -> None:
        """Where it was said, for as long as what stands before it; it is not a record, and so nobody's words."""
        road = StoreDriver(store, 1_000)
        await add(store)
        for n, at in enumerate((100, 200, 300)):
            await store.apply(
                EndRun(await come(store, at, next_at=at + 100), "execute", at, reply=ReplyDraft(70 + n, "drink"))
            )
            if n:
                await road.queue(said(f"yes {n}"), at)
                await road.answer(await road.claim_one(at), "good", at)
        tail = await store.context(lane_of(), 10)
        assert tail.posts == (SchedulePost(0, "drink"), SchedulePost(0, "drink"), SchedulePost(2, "drink"))
        assert tail.said_between == {0: ("drink", "drink"), 2: ("drink",)}
        assert [record.text for record in tail.recent.records] == ["yes 1", "good", "yes 2", "good"]
        assert (await store.context(lane_of("elsewhere"), 10)).posts == ()
        await store.apply(EndRun(await come(store, 400, next_at=500), "execute", 400, reply=ReplyDraft(80, "drink")))
        assert await store.apply(CutContext(lane_of(), tail.version, 4, CutReason.RESET, 450))
        assert (await store.context(lane_of(), 10)).posts == ()
        for n in range(POSTS_MAX + 1):
            at = 500 + n
            reply = ReplyDraft(90 + n, f"glass {n}")
            await store.apply(EndRun(await come(store, at, next_at=at + 1), "execute", at, reply=reply))
        posts = (await store.context(lane_of(), 10)).posts
        assert posts == tuple(SchedulePost(4, f"glass {n}") for n in range(1, POSTS_MAX + 1))

    async def test_a_lane_nobody_spoke_in_hears_what_is_said(self, store: ContractStore) -> None:
        """And goes on when somebody speaks there."""
        await add(store)
        await store.apply(EndRun(await come(store), "execute", 100, reply=ReplyDraft(70, "drink")))
        road = StoreDriver(store, 1_000)
        assert (await road.receive(said())).number == 1
        assert await road.route(lane_of(), 1)

    async def test_what_is_asked_is_under_way_until_it_is_answered(self, store: ContractStore) -> None:
        """The answer ends the run when it has left."""
        road = StoreDriver(store, 1_000)
        await add(store, what=What.ASK)
        key = await come(store)
        received = await road.receive(said("what is new?"), 100)
        assert await store.apply(EndRun(key, "execute", 100, message_id=received.id)) == "active"
        assert await store.apply(FireSchedules((Fire(1, 200, 300, 200),), 200)) == 0
        assert await store.schedules.list_unsettled_outputs(10) == []
        await road.route(received.lane, 200)
        assert await store.schedules.list_unsettled_outputs(10) == []
        reply_id = await road.answer(await road.claim_one(200), "nothing", 210)
        [heard] = await store.schedules.list_unsettled_outputs(10)
        assert (heard.output, heard.batch, heard.reply_id, heard.reply) == ("asked", "done", reply_id, "pending")
        assert await store.apply(SettleRun(key, "answer", 210, reply_id=reply_id)) == "active"
        await come(store, 300, next_at=400)
        [taken] = await store.apply(TakeReplies((CHANNEL,), "one", 9, 220))
        assert await store.schedules.list_unsettled_outputs(10) == []
        await store.apply(Settle(taken.id, taken.fence, Delivered.CONFIRMED, 230))
        [heard] = await store.schedules.list_unsettled_outputs(10)
        assert (heard.output, heard.reply) == ("waiting", "sent")
        assert await store.apply(SettleRun(key, "deliver", 240, reply_id=reply_id)) == "active"
        run = await run_of(store, key)
        assert (run.output, run.message_id, run.reply_id) == ("delivered", received.id, reply_id)

    async def test_what_cannot_be_answered_is_lost_and_counts(self, store: ContractStore) -> None:
        """The third time it disables the schedule."""
        road = StoreDriver(store, 1_000)
        await add(store, what=What.ASK)
        for n in range(3):
            at = 100 + 100 * n
            key = await come(store, at, next_at=at + 100)
            received = await road.receive(said(f"what is new? {n}"), at)
            await store.apply(EndRun(key, "execute", at, message_id=received.id))
            await road.route(received.lane, at)
            claimed = await road.claim_one(at)
            await store.apply(Fail(claimed.batch.id, claimed.batch.fence, Failure.BURY, "no model", at))
            [heard] = await store.schedules.list_unsettled_outputs(10)
            assert (heard.batch, heard.reason) == ("dead", "no model")
            notice = Notice(OWNER, ReplyDraft(900 + n, "it was disabled"))
            state = await store.apply(SettleRun(key, "lose", at, heard.reason, notice=notice))
            assert state == ("disabled" if n == 2 else "active")
        assert len(await store.unseen("terminal", "me")) == 1

    async def test_what_waits_in_its_window_is_not_lost(self, store: ContractStore) -> None:
        """Nothing is known of it yet."""
        road = StoreDriver(store, 1_000)
        await add(store, what=What.ASK)
        key = await come(store)
        received = await road.receive(said("what is new?"), 100, Window())
        await store.apply(EndRun(key, "execute", 100, message_id=received.id))
        assert await store.schedules.list_unsettled_outputs(10) == []
        assert await store.apply(SettleRun(key, "end", 200)) == "active"
        assert (await run_of(store, key)).output == "silent"

    async def test_the_owner_is_told_where_he_last_wrote(self, store: ContractStore) -> None:
        """In a direct chat; where he never did, in the lane that is named."""
        inbound = said()
        owner = replace(inbound.origin, trust=Trust.OWNER, direct=True)
        await StoreDriver(store, 500).receive(replace(inbound, origin=owner))
        await add(store, what=What.RUN)
        for n in range(3):
            at = 100 + 100 * n
            key = await come(store, at, next_at=at + 100)
            await store.apply(EndRun(key, "fail", at, "no", notice=Notice(OWNER, ReplyDraft(900 + n, "disabled"))))
        [reply] = await store.unseen(CHANNEL, "room")
        assert (reply.id, reply.draft.notice) == (902, True)
        assert await store.unseen("terminal", "me") == []

    async def test_a_time_makes_a_task_and_is_under_way_until_that_has_ended(self, store: ContractStore) -> None:
        """Also when the process dies; the times that come meanwhile are skipped."""
        await add(store, what=What.TASK)
        key, task = await come(store), NewTask(70, "tidy up", "schedule:1", outside=False)
        assert await store.apply(BeginRun(key, 100, task))
        assert not await store.apply(BeginRun(key, 100, replace(task, id=71)))
        [made] = await store.tasks.find(TaskFilter())
        assert (made.id, made.state, made.description, made.created_at) == (70, "pending", "tidy up", 100)
        assert await store.apply(RecoverRuns((), 150)) == 0
        assert await store.apply(FireSchedules((Fire(1, 200, 300, 200),), 200)) == 0
        assert await store.schedules.list_orphaned_runs(10) == []
        assert await store.apply(CancelTask(70, 210, "no"))
        [ended] = await store.schedules.list_orphaned_runs(10)
        assert (ended.schedule_id, ended.due_at, ended.state, ended.task_id) == (1, 100, "running", 70)
        assert await store.apply(EndRun(key, "interrupt", 220, "it was cancelled")) == "active"
        assert await store.schedules.list_orphaned_runs(10) == []
        assert await list_topics(store) == ["added", "fired", "skipped", "interrupted"]

    async def test_while_a_task_of_its_key_is_not_done_a_run_is_skipped(self, store: ContractStore) -> None:
        """Whoever made that."""
        await add(store, what=What.TASK)
        task = NewTask(70, "tidy up", "schedule:1")
        assert await store.apply(CreateTasks((task,), 50)) == ""
        key = await come(store)
        assert not await store.apply(BeginRun(key, 100, replace(task, id=71)))
        run = await run_of(store, key)
        assert (run.state, run.reason, run.task_id) == ("skipped", NOT_DONE, None)
        assert [one.id for one in await store.tasks.find(TaskFilter())] == [70]

    async def test_what_a_task_came_to_is_executed_then_delivered(self, store: ContractStore) -> None:
        """To the owner, in the lane that is named where he wrote in no direct chat."""
        tidying = NewSchedule(2, "command", "", Every(3_600_000), What.TASK, "tidy up")
        assert await store.apply(AddSchedule(tidying, 100, 0))
        told_him = ReplyDraft(80, "it is tidy")
        key = await come(store, number=2)
        assert await store.apply(BeginRun(key, 100, NewTask(70, "tidy up", "schedule:2")))
        assert await store.apply(EndRun(key, "execute", 200, notice=Notice(OWNER, told_him))) == "active"
        run = await run_of(store, key)
        assert (run.state, run.output, run.reply_id) == ("executed", "waiting", 80)
        [reply] = await store.unseen("terminal", "me")
        assert (reply.id, reply.draft.notice) == (80, True)
        [taken] = await store.apply(TakeReplies(("terminal",), "one", 9, 300))
        await store.apply(Settle(80, taken.fence, Delivered.CONFIRMED, 310))
        [heard] = await store.schedules.list_unsettled_outputs(10)
        assert (heard.due_at, heard.reply) == (100, "sent")
        assert await store.apply(SettleRun(key, "deliver", 320)) == "active"
        assert (await run_of(store, key)).output == "delivered"

    async def test_a_task_is_of_the_turn_that_asked_for_its_schedule(self, store: ContractStore) -> None:
        """It is shown and forgotten with the work of that turn, but restored with the run only."""
        road = StoreDriver(store, 1_000)
        await road.queue(said("tidy up every day"))
        claimed = await road.claim_one()
        asked = NewSchedule(7, "agent", "", Every(3_600_000), What.TASK, "tidy up", Target(lane_of()))
        end = replace(outcome(), effects=(KeepTime(asked, 100),))
        assert await store.apply(TurnCommit(claimed.turn_id, claimed.batch.id, claimed.batch.fence, end, None, 5))
        task = NewTask(70, "tidy up", "schedule:7", lane=lane_of(), depth=1)
        assert await store.apply(BeginRun(await come(store, number=7), 100, task))
        [made] = await store.tasks.find(TaskFilter(lane=lane_of()))
        assert (made.id, made.turn_id, made.depth) == (70, claimed.turn_id, 1)
        assert await store.apply(CancelTask(70, 110, "no"))
        assert await store.tasks.list_unreported_tasks(10) == []
