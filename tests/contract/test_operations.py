"""The operational store keeps its contract in memory and on SQLite, also in what no view shows."""

from __future__ import annotations

from dataclasses import replace

from tests.contract.kept import Kept

from keepsaid.domain.batch import TaskDraft
from keepsaid.domain.commits import (
    Fail,
    Failure,
    MarkReplyShown,
    Requeue,
    Resend,
    Settle,
    StepStart,
    TakeReplies,
    TurnCommit,
)
from keepsaid.domain.reply import Delivered
from keepsaid.domain.route import Action
from keepsaid.domain.session import Rest
from keepsaid.testing.builders import CHANNEL, consulted, lane_of, outcome, said, step, verdict
from keepsaid_testkit.contracts import operations as suite
from keepsaid_testkit.contracts.bodies import BodiesContract
from keepsaid_testkit.contracts.store_driver import StoreDriver


class TestIntake(suite.IntakeContract):
    """See the contract."""


class TestBodies(BodiesContract):
    """See the contract."""


class TestLaneRules(suite.LaneRulesContract):
    """Topic, reply, root, and the rules."""


class TestStrand(suite.StrandContract):
    """Lanes that are inferred."""


class TestLaneList(suite.LaneListContract):
    """What people are shown of lanes."""


class TestReplyLane(suite.ReplyLaneContract):
    """See the contract."""


class TestWindow(suite.WindowContract):
    """See the contract."""


class TestDue(suite.DueContract):
    """See the contract."""


class TestDispatch(suite.DispatchContract):
    """See the contract."""


class TestSpawn(suite.SpawnContract):
    """See the contract."""


class TestMerging(suite.MergingContract):
    """See the contract."""


class TestClaim(suite.ClaimContract):
    """See the contract."""


class TestLease(suite.LeaseContract):
    """See the contract."""


class TestTrial(suite.TrialContract):
    """See the contract."""


class TestSplit(suite.SplitContract):
    """See the contract."""


class TestSecondChance(suite.SecondChanceContract):
    """See the contract."""


class TestProcesses(suite.ProcessesContract):
    """See the contract."""


class TestSuspect(suite.SuspectContract):
    """See the contract."""


class TestFence(suite.FenceContract):
    """See the contract."""


class TestFail(suite.FailContract):
    """See the contract."""


class TestOutage(suite.OutageContract):
    """See the contract."""


class TestRequeue(suite.RequeueContract):
    """See the contract."""


class TestDrop(suite.DropContract):
    """See the contract."""


class TestInterrupt(suite.InterruptContract):
    """See the contract."""


class TestParked(suite.ParkedContract):
    """What waits for a person with the turn it had joined."""


class TestSteer(suite.SteerContract):
    """See the contract."""


class TestTrust(suite.TrustContract):
    """See the contract."""


class TestNews(suite.NewsContract):
    """What happens to memories."""


class TestStep(suite.StepContract):
    """See the contract."""


class TestTurn(suite.TurnContract):
    """See the contract."""


class TestTranscript(suite.TranscriptContract):
    """See the contract."""


class TestTail(suite.TailContract):
    """See the contract."""


class TestReminders(suite.RemindersContract):
    """See the contract."""


class TestSummary(suite.SummaryContract):
    """See the contract."""


class TestCopy(suite.CopyContract):
    """See the contract."""


class TestCut(suite.CutContract):
    """See the contract."""


class TestEpisodeWork(suite.EpisodeWorkContract):
    """See the contract."""


class TestSession(suite.SessionContract):
    """On both."""


class TestRest(suite.RestContract):
    """On both."""


class TestMark(suite.MarkContract):
    """On both."""


class TestSlot(suite.SlotContract):
    """See the contract."""


class TestTarget(suite.TargetContract):
    """See the contract."""


class TestPersonality(suite.PersonalityContract):
    """On both."""


class TestFeedback(suite.FeedbackContract):
    """On both."""


class TestStaging(suite.StagingContract):
    pass


class TestUse(suite.UseContract):
    """On both."""


class TestCalibration(suite.CalibrationContract):
    """On both."""


class TestTaking(suite.TakingContract):
    """See the contract."""


class TestSettling(suite.SettlingContract):
    """See the contract."""


class TestReplyParts(suite.ReplyPartsContract):
    """See the contract."""


class TestDead(suite.DeadContract):
    """See the contract."""


class TestPulling(suite.PullingContract):
    """See the contract."""


class TestStories(suite.StoriesContract):
    """See the contract."""


class TestPoints(suite.PointsContract):
    """See the contract."""


class TestPruning(suite.PruningContract):
    """See the contract."""


class TestPruned(suite.PrunedContract):
    """See the contract."""


class TestForgottenNames(suite.NamesContract):
    """Names go with what they name."""


class TestForgetting(suite.ForgettingContract):
    """What goes."""


class TestReach(suite.ReachContract):
    """What a wish reaches."""


class TestSubscribe(suite.SubscribeContract):
    """Who hears of what."""


class TestDelivery(suite.DeliveryContract):
    """What becomes of deliveries."""


class TestJournalView(suite.JournalViewContract):
    """What happened."""


class TestBacklog(suite.BacklogContract):
    """See the contract."""


def test_every_class_of_the_contract_runs_here() -> None:
    run_here = {base for one in globals().values() if isinstance(one, type) for base in one.__bases__}
    assert set(suite.CONTRACTS) <= run_here


async def test_a_task_takes_in_descriptions_and_counts(kept: Kept) -> None:
    road = StoreDriver(kept.store)
    spawn = verdict(Action.SPAWN, "review")
    for n, text in enumerate(("first", "second")):
        await road.receive(said(text))
        await road.receive(said(text))
        await road.route(lane_of(), 0, spawn, task=TaskDraft(900 + n, "pr-7", f"do the {text}"))
    assert kept.tasks() == [("pr-7", "pending", "do the first\ndo the second", 4)]


async def test_a_lane_has_a_session_that_more_than_five_records_mark(kept: Kept) -> None:
    road = StoreDriver(kept.store)
    seen = []
    await road.receive(said())
    for at in range(4):
        await road.settle(said(), at=at)
        seen += kept.sessions()
    first = seen[0][0]
    marks = [(None, ""), (None, ""), (7, "records"), (9, "records")]
    assert seen == [(first, "active", at, *mark) for at, mark in enumerate(marks)]
    await road.settle(said(room="den"), at=9)
    assert [session[1:] for session in kept.sessions()] == [("active", 3, 9, "records"), ("active", 9, None, "")]


async def test_results_of_tools_do_not_mark_a_session(kept: Kept) -> None:
    road = StoreDriver(kept.store)
    for _ in range(2):
        await road.queue(said())
        claimed = await road.claim_one()
        end = replace(outcome(), records=consulted())
        fence = claimed.batch.fence
        assert await kept.store.apply(TurnCommit(claimed.turn_id, claimed.batch.id, fence, end, None, 0))
        marks = [session[3] for session in kept.sessions()]
        assert marks == ([None] if claimed.batch.first == 1 else [8])


async def test_a_turn_is_told_and_what_it_was_reminded_of(kept: Kept) -> None:
    road = StoreDriver(kept.store)
    queued = await road.queue(said())
    claimed = await road.claim_one()
    end = outcome(chosen=(50, 40, 60))
    assert await kept.store.apply(TurnCommit(claimed.turn_id, queued.batch_id, claimed.batch.fence, end, None, 7))
    turn_id = claimed.turn_id
    assert kept.injections() == [(turn_id, 50), (turn_id, 40), (turn_id, 60)]
    payload = {"turn": turn_id, "batch": queued.batch_id, "replied": False}
    begun = {"session": turn_id, "reason": "first message", "first": 1}
    told = [("session.started", str(turn_id), begun, 7), ("turn.committed", str(turn_id), payload, 7)]
    assert [one for one in kept.journal() if one[0] in {"session.started", "turn.committed"}] == told


async def test_every_move_of_a_session_is_told_with_its_reason(kept: Kept) -> None:
    road = StoreDriver(kept.store)
    await road.settle(said())
    await kept.store.apply(Rest(0, -1, 60_000, 60_000))
    await road.settle(said(), at=70_000)
    await road.settle(said(), at=2_000_000)
    await kept.store.apply(Rest(2_000_000, 2_000_000, 9_000_000, 9_000_000))
    first, second = (session[0] for session in kept.sessions())
    told = [(topic, *payload.values(), at) for topic, _, payload, at in kept.journal() if topic.startswith("session.")]
    assert told == [
        ("session.started", first, "first message", 1, 0),
        ("session.sleeping", first, "the lane is quiet", 60_000),
        ("session.woke", first, "a message came", 70_000),
        ("session.rotated", first, "inactivity", 1, 4, 2_000_000),
        ("session.started", second, "inactivity", 5, 2_000_000),
        ("session.sleeping", second, "the lane is quiet", 9_000_000),
        ("session.ended", second, "idle", 5, 6, 9_000_000),
    ]


async def test_a_batch_says_when_and_why_it_ended(kept: Kept) -> None:
    road, store = StoreDriver(kept.store), kept.store
    await road.queue(said(room="dropped"), 1, verdict(Action.DROP, "noise"))
    await road.receive(said(room="spawned"))
    await road.route(lane_of("spawned"), 2, verdict(Action.SPAWN, "work"), task=TaskDraft(900, "k", "do"))
    await road.settle(said(room="done"), at=3)
    queued = await road.queue(said(room="dead"))
    claimed = await road.claim_one()
    await store.apply(Fail(queued.batch_id, claimed.batch.fence, Failure.BURY, "it broke", 4))
    ends = [("dropped", 1, ""), ("done", 2, ""), ("done", 3, ""), ("dead", 4, "it broke")]
    assert kept.batches() == ends
    assert await store.apply(Requeue(queued.batch_id, 5, "again"))
    assert kept.batches() == [*ends[:3], ("queued", None, "")]
    await road.claim_one(5, owner="dead")
    await road.crash()
    [(state, ended_at, error)] = kept.batches()[3:]
    assert (state, ended_at, bool(error)) == ("queued", None, True)


async def test_tries_of_a_step_are_counted(kept: Kept) -> None:
    road = StoreDriver(kept.store)
    await road.queue(said())
    claimed = await road.claim_one()
    for n in (1, 2, 2, 2):
        start = StepStart(claimed.turn_id, claimed.batch.fence, step(n), 0)
        assert await kept.store.apply(start)
    assert kept.tries() == [(1, 1), (2, 3)]


async def test_a_reply_says_when_and_how_it_ended(kept: Kept) -> None:
    road, store = StoreDriver(kept.store), kept.store
    for what in (Delivered.CONFIRMED, Delivered.RETRY, Delivered.DOUBT):
        await road.settle(said(room=str(what)))
    for reply in await store.apply(TakeReplies((CHANNEL,), "one", 9, 0)):
        what = Delivered(reply.lane.conversation)
        provider_id = "p1" if what is Delivered.CONFIRMED else None
        assert await store.apply(Settle(reply.id, reply.fence, what, 6, f"said {what}", provider_id))
    shown = await road.settle(said(channel="pulled"))
    assert await store.apply(MarkReplyShown(shown, 7))
    sent, retried, doubted = ("sent", 6, "p1", "said confirm"), ("pending", None, None, "said retry"), "said doubt"
    assert kept.replies() == [sent, retried, ("unknown", None, None, doubted), ("sent", 7, None, "pulled")]
    assert await store.apply(Resend(frozenset((CHANNEL,)), 8)) == 1
    assert [row[:3] for row in kept.replies()][2] == ("dead", 8, None)
