"""The contract of relaying: results of side work are delivered to their lane once, and their number is limited."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.batch import TaskDraft
from keepsaid.domain.commits import TurnCommit
from keepsaid.domain.effects import RelayTask
from keepsaid.domain.message import RESULT, SYSTEM, Content, Lane, ProviderMarks
from keepsaid.domain.relay import MarkTasksReported, UnreportedTasks
from keepsaid.domain.reply import ReplyDraft
from keepsaid.domain.route import Action
from keepsaid.domain.task import CancelTask, CreateTasks, EndTask, NewTask, Task, TaskEnd
from keepsaid.testing.builders import CHANNEL, ROOM, lane_of, outcome, said, verdict
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver
from keepsaid_testkit.contracts.tasks import TaskDriver


async def _begun(store: ContractStore, task_id: int, lane: Lane | None = None, turn_id: int | None = 7) -> Task:
    """A task that a turn made, at work."""
    new = NewTask(task_id, "name a river", lane=lane or lane_of(), turn_id=turn_id, depth=1)
    return await TaskDriver(store).begin(new)


async def _ended(store: ContractStore, *task_ids: int, lane: Lane | None = None, at: int = 10) -> None:
    """Tasks that turns made, and that came to something."""
    for task_id in task_ids:
        await TaskDriver(store).end(await _begun(store, task_id, lane), at=at)


async def _list_pending_results(store: ContractStore) -> list[tuple[str, tuple[int, ...], int]]:
    found = await store.tasks.list_unreported_tasks(100)
    return sorted((one.lane.conversation, tuple(task.id for task in one.tasks), one.rounds) for one in found)


class RelayContract:
    """The results to deliver, and those delivered."""

    async def test_a_lane_is_to_be_told_what_its_turns_made(self, store: ContractStore) -> None:
        """Completed or failed; not what was cancelled, what a person made, and never what a rule spawned."""
        desk, road = TaskDriver(store), StoreDriver(store, 100)
        await road.receive(said("hello", marks=ProviderMarks("a")))
        await road.route(lane_of(), 0, verdict(action=Action.SPAWN), task=TaskDraft(900, "k", "look at it"))
        [routed] = await desk.claim()
        assert routed.lane == lane_of()
        await desk.end(routed)
        await desk.end(await _begun(store, 1, turn_id=None))
        running = await _begun(store, 2)
        assert await _list_pending_results(store) == []
        assert [one.id for one in await store.tasks.list_open_tasks(lane_of(), 9)] == [2]
        assert await desk.end(running, TaskEnd.FAIL, "no river", at=10) == "failed"
        await _begun(store, 3)
        await store.apply(CancelTask(3, 5, "not wanted"))
        assert await store.tasks.list_open_tasks(lane_of(), 9) == []
        ended = await store.tasks.list_ended_tasks(lane_of(), 5, 9)
        assert [(one.id, one.state, one.ended_at) for one in ended] == [(2, "failed", 10), (3, "cancelled", 5)]
        assert [one.id for one in await store.tasks.list_ended_tasks(lane_of(), 6, 9)] == [2]
        assert [one.id for one in await store.tasks.list_ended_tasks(lane_of(), 0, 1)] == [2]
        assert await store.tasks.list_ended_tasks(lane_of("other"), 0, 9) == []
        [untold] = await store.tasks.list_unreported_tasks(9)
        assert [(one.id, one.state, one.reason) for one in untold.tasks] == [(2, "failed", "no river")]
        assert replace(untold, tasks=()) == UnreportedTasks(lane_of(), ())

    async def test_what_was_told_is_not_told_again(self, store: ContractStore) -> None:
        """Several at once are one round; the turn that is shown a result says so, and only of its own lane."""
        road = StoreDriver(store, 100)
        await road.queue(said("hello"), 1)
        await _ended(store, 1, 2)
        assert await _list_pending_results(store) == [(ROOM, (1, 2), 0)]
        assert await store.apply(MarkTasksReported((1, 2), 20)) == 2
        assert await store.apply(MarkTasksReported((1, 2), 21)) == 0
        assert await _list_pending_results(store) == []
        await _ended(store, 3, 4)
        [untold] = await store.tasks.list_unreported_tasks(9)
        assert (untold.rounds, [one.id for one in untold.tasks]) == (1, [3, 4])
        claimed = await road.claim_one(30)
        batch, end = claimed.batch, replace(outcome(), effects=(RelayTask(1), RelayTask(3), RelayTask(99)))
        assert await store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence, end, None, 31))
        [untold] = await store.tasks.list_unreported_tasks(9)
        assert [one.id for one in untold.tasks] == [4]

    async def test_a_person_begins_the_count_anew(self, store: ContractStore) -> None:
        """What the program itself says there does not."""
        road, there = StoreDriver(store, 100), lane_of("elsewhere")
        await road.receive(replace(said("hello"), reply_url="http://127.0.0.1/a"), 1)
        await road.receive(said("hello", "elsewhere"), 1)
        for number, at in ((1, 20), (2, 30)):
            await _ended(store, number)
            await store.apply(MarkTasksReported((number,), at))
        mine = said("a result")
        program = replace(mine, origin=replace(mine.origin, sender=SYSTEM), content=Content(b"{}", "a result", RESULT))
        await road.receive(program, 25)
        await _ended(store, 3)
        await _ended(store, 4, lane=there)
        found = {one.lane: (one.rounds, one.url, one.direct) for one in await store.tasks.list_unreported_tasks(9)}
        assert found == {lane_of(): (2, "http://127.0.0.1/a", False), there: (0, None, False)}
        direct = said("and now?")
        await road.receive(replace(direct, origin=replace(direct.origin, direct=True)), 40)
        found = {one.lane: (one.rounds, one.url, one.direct) for one in await store.tasks.list_unreported_tasks(9)}
        assert found[lane_of()] == (0, None, True)

    async def test_what_fails_with_another_is_told_too(self, store: ContractStore) -> None:
        """It has a reason."""
        await StoreDriver(store, 100).receive(said("hello"))
        task = await _begun(store, 1)
        later = NewTask(2, "and a bridge", lane=lane_of(), turn_id=7, after=(1,))
        assert await store.apply(CreateTasks((later,), 0)) == ""
        await store.apply(EndTask(task.id, task.fence, TaskEnd.FAIL, 9, "no river"))
        [untold] = await store.tasks.list_unreported_tasks(9)
        assert [(one.id, "no river" in one.reason) for one in untold.tasks] == [(1, True), (2, True)]

    async def test_the_answer_of_a_completed_task_goes_to_its_conversation(self, store: ContractStore) -> None:
        """Once, with the end of the task; one that failed, has another owner, or came from nowhere has none."""
        desk, here = TaskDriver(store), lane_of()
        await StoreDriver(store, 100).receive(said())
        task = await desk.begin(NewTask(1, "a", lane=here))
        answer = ReplyDraft(201, "all is well")
        assert await store.apply(EndTask(1, task.fence + 1, TaskEnd.COMPLETE, 8, "well", answer=answer)) == ""
        assert await store.unseen(CHANNEL, ROOM) == []
        for _ in range(2):
            await store.apply(EndTask(1, task.fence, TaskEnd.COMPLETE, 9, "well", answer=answer))
        task = await desk.begin(NewTask(2, "b", lane=here))
        await store.apply(EndTask(2, task.fence, TaskEnd.FAIL, 9, "ill", answer=ReplyDraft(202, "ill")))
        task = await desk.begin(NewTask(3, "c"))
        await store.apply(EndTask(3, task.fence, TaskEnd.COMPLETE, 9, "well", answer=ReplyDraft(203, "nowhere")))
        [told] = await store.unseen(CHANNEL, ROOM)
        assert (told.id, told.draft.text, told.draft.notice, told.lane) == (201, "all is well", False, here)
