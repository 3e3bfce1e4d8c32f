"""The contract of branches: what one leaves behind is there with its end, or not at all (design: section 4.4)."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.commits import TurnCommit
from keepsaid.domain.effects import MakeTask, OfBranch
from keepsaid.domain.forgetting import ForgetTargets, RequestForgetting, ScrubForgotten
from keepsaid.domain.message import ProviderMarks, Trust
from keepsaid.domain.route import TaskKind
from keepsaid.domain.task import DEPTH_MAX, TOO_DEEP, ClaimTasks, EndTask, NewTask, ResultsKept, Task, TaskEnd
from keepsaid.testing.builders import consulted, lane_of, outcome, said
from keepsaid_testkit.contracts.notes import CONFIRM, SAVE
from keepsaid_testkit.contracts.store_driver import LEASE_MS, ContractStore, StoreDriver
from keepsaid_testkit.contracts.tasks import TaskDriver


async def _thinking(store: ContractStore, task_id: int, turn_id: int, depth: int = 1) -> Task:
    """A branch of a turn, at work."""
    new = NewTask(task_id, "think", kind=TaskKind.BRANCH, lane=lane_of(), turn_id=turn_id, depth=depth, outside=False)
    assert await TaskDriver(store).make(new) == ""
    [task] = await store.apply(ClaimTasks("one", 1, 0, LEASE_MS, TaskKind.BRANCH))
    return task


async def _concluded(store: ContractStore, task: Task, *effects: OfBranch, how: TaskEnd = TaskEnd.COMPLETE) -> str:
    return await store.apply(EndTask(task.id, task.fence, how, 9, "it is the Tiber", effects=effects))


async def _settled(store: ContractStore, *inbound: str) -> int:
    """A lane in which a person was answered; returns the turn."""
    road = StoreDriver(store, 100)
    for text in inbound:
        await road.queue(said(text), 1)
    claimed = await road.claim_one(2)
    await road.answer(claimed, at=3)
    return claimed.turn_id


class BranchContract:
    """Work that a branch wants done, and deeds of memory."""

    async def test_its_work_is_made_with_its_end(self, store: ContractStore) -> None:
        """A level deeper, in the lane and of the turn that it is of; told there when it ends, as the branch is."""
        turn_id = await _settled(store, "which river?")
        branch = await _thinking(store, 1, turn_id)
        first = MakeTask(2, "measure the Tiber", "tiber", outside=False)
        second = MakeTask(3, "draw it", after=(2,), outside=False)
        assert await _concluded(store, replace(branch, fence=9), first) == ""
        assert await TaskDriver(store).states() == {1: "running"}
        assert await _concluded(store, branch, first, second) == "completed"
        assert await TaskDriver(store).states() == {1: "completed", 2: "pending", 3: "blocked"}
        made = await TaskDriver(store).now(2)
        assert (made.key, made.kind, made.description, made.outside) == (
            "tiber",
            TaskKind.WORKER,
            "measure the Tiber",
            False,
        )
        assert (made.lane, made.turn_id, made.depth, made.created_at) == (lane_of(), turn_id, 2, 9)
        told = await TaskDriver(store).list_topics()
        assert told == ["task.created", "task.started", "task.created", "task.created", "task.completed"]
        [worker] = await TaskDriver(store).claim(10)
        await TaskDriver(store).end(worker, at=11)
        [untold] = await store.tasks.list_unreported_tasks(9)
        assert [one.id for one in untold.tasks] == [1, 2]

    async def test_one_that_comes_to_nothing_leaves_nothing(self, store: ContractStore) -> None:
        """Failed, parked, to be tried again."""
        turn_id = await _settled(store, "which river?")
        for number, how in enumerate((TaskEnd.FAIL, TaskEnd.PARK, TaskEnd.RETRY), 1):
            branch = await _thinking(store, number, turn_id)
            await _concluded(store, branch, MakeTask(10 + number, "measure"), SAVE, how=how)
        assert await TaskDriver(store).states() == {1: "failed", 2: "needs_review", 3: "pending"}
        assert await store.tasks.results(9) == []

    async def test_work_is_not_made_too_deep(self, store: ContractStore) -> None:
        """It is there to be seen, failed; what the branch came to is kept."""
        turn_id = await _settled(store, "which river?")
        branch = await _thinking(store, 1, turn_id, DEPTH_MAX)
        assert await _concluded(store, branch, MakeTask(2, "deeper", kind=TaskKind.BRANCH)) == "completed"
        deep = await TaskDriver(store).now(2)
        assert (deep.state, deep.reason, deep.ended_at) == ("failed", TOO_DEEP, 9)
        assert (await TaskDriver(store).list_topics()).count("task.failed") == 1

    async def test_what_it_asked_of_memory_is_there_until_it_is_done(self, store: ContractStore) -> None:
        """With the messages of its turn, and nothing of another's; also where it came to no words."""
        turn_id = await _settled(store, "which river?", "and which bridge?")
        branch = await _thinking(store, 1, turn_id)
        assert await _concluded(store, branch, SAVE, CONFIRM) == "completed"
        other = await _thinking(store, 2, turn_id)
        await _concluded(store, other)
        silent = await _thinking(store, 3, turn_id)
        assert await store.apply(EndTask(3, silent.fence, TaskEnd.COMPLETE, 9, effects=(SAVE,))) == "completed"
        first, second, third = await store.tasks.results(9)
        assert second.staged_requests is None
        assert first.staged_requests is not None
        assert third.staged_requests is not None
        assert (first.staged_requests.by, first.staged_requests.turn_id, first.staged_requests.requests) == (
            "task:1",
            turn_id,
            (SAVE, CONFIRM),
        )
        assert [one.text for one in first.staged_requests.messages] == ["which river?", "and which bridge?"]
        assert (first.staged_requests.external, third.staged_requests.requests) == (False, (SAVE,))
        assert await store.apply(ResultsKept((1, 2))) == 2
        [left] = await store.tasks.results(9)
        assert left.staged_requests == third.staged_requests
        await store.apply(ResultsKept((3,)))
        assert await store.tasks.results(9) == []

    async def test_it_says_whether_outsiders_were_heard(self, store: ContractStore) -> None:
        """A stranger in its lane, at any time; or what a tool brought there since the session of its turn began."""
        turn_id = await _settled(store, "which river?")
        await _concluded(store, await _thinking(store, 1, turn_id), SAVE)
        assert await self.read_external_flags(store) == [False]
        stranger = said("do as I say", marks=ProviderMarks("x"))
        await StoreDriver(store, 500).receive(
            replace(stranger, origin=replace(stranger.origin, trust=Trust.EXTERNAL)), 20
        )
        assert await self.read_external_flags(store) == [True]

    async def test_what_a_tool_brought_is_from_outside(self, store: ContractStore) -> None:
        """As for the turns of the lane."""
        road = StoreDriver(store, 100)
        await road.queue(said("what time is it?"), 1)
        claimed = await road.claim_one(2)
        batch, end = claimed.batch, replace(outcome(), records=consulted())
        assert await store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence, end, None, 3))
        await _concluded(store, await _thinking(store, 1, claimed.turn_id), SAVE)
        assert await self.read_external_flags(store) == [True]

    async def read_external_flags(self, store: ContractStore) -> list[bool]:
        """The `external` flag of each task result that has requests to memory.

        The flag says whether a message from outside was in the context.
        """
        return [one.staged_requests.external for one in await store.tasks.results(9) if one.staged_requests is not None]

    async def test_it_is_forgotten_with_its_turn(self, store: ContractStore) -> None:
        """Its words and its deeds, and the work it wanted done."""
        turn_id = await _settled(store, "which river?")
        branch = await _thinking(store, 1, turn_id)
        await _concluded(store, branch, MakeTask(2, "measure the Tiber"), SAVE)
        assert await store.apply(RequestForgetting(50, "a message", "owner", ForgetTargets(turns=(turn_id,)), 20))
        await store.apply(ScrubForgotten(50, 21))
        assert await store.tasks.results(9) == []
        assert {
            (one.description, one.result) for one in [await TaskDriver(store).now(1), await TaskDriver(store).now(2)]
        } == {("", "")}
        assert (await TaskDriver(store).now(2)).state == "cancelled"
