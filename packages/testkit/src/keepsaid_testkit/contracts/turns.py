"""The contract of turns: steps around every outside call, and all or nothing at the end."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.commits import Commit, EpisodesKept, Fail, Failure, Release, StepEnd, StepStart, TurnCommit
from keepsaid.domain.message import Lane, ProviderMarks, Trust
from keepsaid.domain.prompt import Json, Record, Role, ToolCall
from keepsaid.domain.redaction import Redaction, SecretMark
from keepsaid.domain.reply import ReplyDraft
from keepsaid.domain.states import IllegalMove
from keepsaid.domain.turn import NO_MODEL, ClaimedBatch, Recent, Step, StepKind, Usage
from keepsaid.domain.views import TurnStory
from keepsaid.testing.builders import consulted, lane_of, outcome, said, step
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver


def started(claimed: ClaimedBatch, of: Step, at: int = 0, trace: Json = None) -> StepStart:
    """The holder is about to make a call."""
    return StepStart(claimed.turn_id, claimed.batch.fence, of, at, trace)


def ended(claimed: ClaimedBatch, n: int, output: Json, at: int = 0) -> StepEnd:
    """The holder had an answer."""
    return StepEnd(claimed.turn_id, claimed.batch.fence, n, output, Usage(5, 2, 9), at)


def committed(claimed: ClaimedBatch, text: str = "yes", reply: ReplyDraft | None = None, at: int = 0) -> TurnCommit:
    """The holder settles the turn."""
    return TurnCommit(claimed.turn_id, claimed.batch.id, claimed.batch.fence, outcome(text), reply, at)


async def refusal(store: ContractStore, commit: Commit[bool]) -> IllegalMove | None:
    """Why the commit is not a legal move; None when it was applied."""
    try:
        await store.apply(commit)
    except IllegalMove as refused:
        return refused
    return None


async def turn_of(store: ContractStore, claimed: ClaimedBatch) -> TurnStory:
    """All that is recorded of a turn."""
    turn = await store.turn(claimed.turn_id)
    assert turn is not None
    return turn


class StepContract:
    """A call that was made is on record before it is made, and its result after."""

    async def test_a_step_is_recorded_before_and_after(self, store: ContractStore) -> None:
        """What a retry replays."""
        road = StoreDriver(store)
        await road.queue(said())
        claimed = await road.claim_one()
        tool = replace(step(2, StepKind.TOOL, "clock"), input_hash=b"i" * 16)
        assert await store.apply(started(claimed, step(1)))
        assert (await turn_of(store, claimed)).steps == (step(1),)
        output: Json = {"text": "wait – 👋", "calls": [["c1", "clock", "{}"]], "n": None}
        assert await store.apply(ended(claimed, 1, output))
        assert await store.apply(started(claimed, tool))
        done = replace(step(1), state="finished", output=output, usage=Usage(5, 2, 9))
        assert (await turn_of(store, claimed)).steps == (done, tool)
        assert await store.apply(Release(claimed.batch.id, claimed.batch.fence, 0))
        assert (await road.claim_one()).steps == (done, tool)

    async def test_what_is_finished_is_never_made_again(self, store: ContractStore) -> None:
        """And nothing of the refused start is kept."""
        road = StoreDriver(store)
        await road.queue(said())
        claimed = await road.claim_one()
        await store.apply(started(claimed, step(1), trace="first"))
        await store.apply(ended(claimed, 1, "noon"))
        before = await turn_of(store, claimed)
        assert await store.apply(started(claimed, step(1), trace="second")) is False
        assert await turn_of(store, claimed) == before

    async def test_what_has_no_result_is_made_again(self, store: ContractStore) -> None:
        """By the next attempt, with what it now sends."""
        road = StoreDriver(store)
        await road.queue(said())
        first = await road.claim_one()
        await store.apply(started(first, step(1)))
        await road.crash()
        again = await road.claim_one()
        other = replace(step(1), subject="other/model", input_hash=b"o" * 16)
        assert await store.apply(started(again, other))
        assert (await turn_of(store, again)).steps == (other,)
        assert await store.apply(ended(again, 1, "noon"))
        assert [one.output for one in (await turn_of(store, again)).steps] == ["noon"]

    async def test_a_step_has_one_result(self, store: ContractStore) -> None:
        """A second is not a legal move, and changes nothing."""
        road = StoreDriver(store)
        await road.queue(said())
        claimed = await road.claim_one()
        await store.apply(started(claimed, step(1)))
        await store.apply(ended(claimed, 1, "noon"))
        refused = await refusal(store, ended(claimed, 1, "midnight"))
        assert refused is not None
        assert (refused.kind, refused.state, refused.verb) == ("step", "finished", "finish")
        assert [one.output for one in (await turn_of(store, claimed)).steps] == ["noon"]

    async def test_what_was_never_started_has_no_result(self, store: ContractStore) -> None:
        """Refused."""
        road = StoreDriver(store)
        await road.queue(said())
        claimed = await road.claim_one()
        assert await store.apply(ended(claimed, 1, "noon")) is False
        assert (await turn_of(store, claimed)).steps == ()

    async def test_the_first_step_carries_the_trace(self, store: ContractStore) -> None:
        """So that an abandoned turn can be explained; later steps leave it alone."""
        road = StoreDriver(store)
        await road.queue(said())
        claimed = await road.claim_one()
        await store.apply(started(claimed, step(1), trace={"layers": ["policy"]}))
        await store.apply(started(claimed, step(2)))
        await store.apply(Fail(claimed.batch.id, claimed.batch.fence, Failure.BURY, "broken", 5))
        turn = await turn_of(store, claimed)
        assert (turn.state, turn.trace) == ("abandoned", {"layers": ["policy"]})


class TurnContract:
    """A turn's end is one commit."""

    async def test_it_settles_everything(self, store: ContractStore) -> None:
        """Batch, turn, transcript, reply, trace and episode work."""
        road = StoreDriver(store)
        first = await road.receive(said("one"), 1)
        last = await road.receive(said("two", marks=ProviderMarks(provider_id="p2")), 2)
        await road.route(lane_of(), 3)
        claimed = await road.claim_one(4)
        assert await store.apply(started(claimed, step(1), trace={"recalled": [5]}))
        end = outcome("answer", chosen=(5, 6))
        draft = ReplyDraft(900, "answer", url="https://example.org/in", reply_to="p2")
        commit = TurnCommit(claimed.turn_id, claimed.batch.id, claimed.batch.fence, end, draft, 8)
        assert await store.apply(commit) is True
        turn = await turn_of(store, claimed)
        assert (turn.state, turn.started_at, turn.ended_at, turn.reason) == ("committed", 4, 8, "")
        assert (turn.batch.state, turn.usage, turn.trace) == ("done", end.usage, {"recalled": [5]})
        assert [message.id for message in turn.messages] == [first.id, last.id]
        users = tuple(Record(Role.USER, text, speaker="Ann") for text in ("one", "two"))
        assert turn.records == (*users, *end.records)
        [reply] = turn.replies
        assert (reply.draft, reply.state, reply.turn_id) == (draft, "pending", claimed.turn_id)
        assert (reply.lane, reply.created_at, reply.attempts) == (lane_of(), 8, 0)
        story = await road.story(last.id)
        assert (story.state, story.turn_id, story.replies) == ("done", claimed.turn_id, turn.replies)
        [work] = await store.episode_work(10)
        assert (work.batch_id, work.turn_id) == (claimed.batch.id, claimed.turn_id)
        assert (work.messages, work.reply, work.replied_at) == (turn.messages, "answer", 8)
        assert work.model == end.model
        assert await store.next_ready() is None

    async def test_the_transcript_says_what_came_with_the_words(self, store: ContractStore) -> None:
        """Of a message without words too; only where its commit says so."""
        road = StoreDriver(store)
        first = await road.receive(said(""), 1)
        await road.receive(said("see above"), 2)
        await road.route(lane_of(), 3)
        claimed = await road.claim_one(4)
        end = replace(outcome("a plan"), attached=((first.id, "plan.pdf (application/pdf)"),))
        assert await store.apply(TurnCommit(claimed.turn_id, claimed.batch.id, claimed.batch.fence, end, None, 8))
        brought = Record(Role.USER, "", speaker="Ann", attached="plan.pdf (application/pdf)")
        users = (brought, Record(Role.USER, "see above", speaker="Ann"))
        tail = await store.context(lane_of(), 9)
        assert tail.recent.records[:2] == users
        assert (await store.span(lane_of(), 0, 9)).records == tail.recent.records
        assert (await turn_of(store, claimed)).records == tail.recent.records

    async def test_it_ends_the_call_that_settles_it(self, store: ContractStore) -> None:
        """The answer of the last call and the turn are kept together, or neither is."""
        road = StoreDriver(store)
        await road.queue(said())
        claimed = await road.claim_one()
        assert await store.apply(started(claimed, step(0)))
        unknown, known = (ended(claimed, n, {"text": "answer"}) for n in (1, 0))
        assert await store.apply(replace(committed(claimed), ending=unknown)) is False
        assert [one.state for one in (await turn_of(store, claimed)).steps] == ["started"]
        assert await store.apply(replace(committed(claimed), ending=known))
        turn = await turn_of(store, claimed)
        assert (turn.state, [(one.state, one.output) for one in turn.steps]) == (
            "committed",
            [("finished", {"text": "answer"})],
        )

    async def test_it_is_committed_once(self, store: ContractStore) -> None:
        """The second is refused and adds nothing."""
        road = StoreDriver(store)
        await road.queue(said())
        claimed = await road.claim_one()
        assert await store.apply(committed(claimed, reply=ReplyDraft(900, "yes")))
        before = (await turn_of(store, claimed), await store.context(lane_of(), 10), await store.overview())
        assert await store.apply(committed(claimed, reply=ReplyDraft(901, "yes"))) is False
        assert before == (await turn_of(store, claimed), await store.context(lane_of(), 10), await store.overview())

    async def test_it_may_answer_nothing(self, store: ContractStore) -> None:
        """No reply, but all the rest."""
        road = StoreDriver(store)
        await road.queue(said())
        claimed = await road.claim_one()
        assert await store.apply(committed(claimed))
        turn = await turn_of(store, claimed)
        assert (turn.state, turn.replies) == ("committed", ())
        assert (await store.overview()).replies == {}

    async def test_a_sender_without_a_name_speaks_as_its_id(self, store: ContractStore) -> None:
        """Somebody spoke."""
        road = StoreDriver(store)
        nameless = said()
        nameless = replace(nameless, origin=replace(nameless.origin, name=""))
        await road.settle(nameless)
        assert (await store.context(lane_of(), 9)).recent.records[0].speaker == "ann"

    async def test_an_abandoned_turn_leaves_the_transcript_alone(self, store: ContractStore) -> None:
        """And counts as settled."""
        road = StoreDriver(store)
        await road.queue(said())
        claimed = await road.claim_one()
        assert await store.last_turn(None) is None
        await store.apply(Fail(claimed.batch.id, claimed.batch.fence, Failure.BURY, "broken", 5))
        assert (await store.context(lane_of(), 10)).recent == Recent()
        assert (await turn_of(store, claimed)).records == ()
        assert await store.last_turn(None) == claimed.turn_id

    async def test_the_newest_settled_turn(self, store: ContractStore) -> None:
        """Of a lane, or of all; open turns do not count."""
        road = StoreDriver(store)
        turns = {}
        for room in ("a", "b", "a"):
            await road.queue(said(room=room))
            claimed = await road.claim_one()
            await road.answer(claimed)
            turns[room] = claimed.turn_id
        await road.queue(said(room="b"))
        await road.claim_one()
        assert await store.last_turn(lane_of("a")) == await store.last_turn(None) == turns["a"]
        assert await store.last_turn(lane_of("b")) == turns["b"]
        assert await store.last_turn(lane_of("elsewhere")) is None
        assert await store.turn(4_711) is None

    async def test_usage_adds_up(self, store: ContractStore) -> None:
        """Over all turns; a cost that nobody knows hides none that is known."""
        road = StoreDriver(store)
        for n, usage in enumerate((Usage(10, 5, 100), Usage(1, 2, None))):
            await road.queue(said(room=f"r{n}"))
            claimed = await road.claim_one()
            end = replace(outcome(), usage=usage)
            fence = claimed.batch.fence
            assert await store.apply(TurnCommit(claimed.turn_id, claimed.batch.id, fence, end, None, 0))
        assert (await store.overview()).usage == Usage(11, 7, 100)


class TranscriptContract:
    """The record of a lane: what was said, in order."""

    async def test_it_grows_in_the_order_of_the_lane(self, store: ContractStore) -> None:
        """Other lanes have their own."""
        road = StoreDriver(store)
        for text in ("one", "two"):
            await road.settle(said(text), f"re {text}")
        await road.settle(said("aside", room="den"), "hm")
        recent = (await store.context(lane_of(), 10)).recent
        spoken = [(record.role, record.text) for record in recent.records]
        assert spoken == [
            (Role.USER, "one"),
            (Role.ASSISTANT, "re one"),
            (Role.USER, "two"),
            (Role.ASSISTANT, "re two"),
        ]

    async def test_the_tail_says_what_it_shows(self, store: ContractStore) -> None:
        """The messages and replies in it, so that memory does not show them again."""
        road = StoreDriver(store)
        turns = []
        for text in ("one", "two"):
            await road.queue(said(text))
            claimed = await road.claim_one()
            await road.answer(claimed)
            turns.append((claimed.messages[0].id, claimed.turn_id))
        assert (await store.context(lane_of(), 10)).recent.shown == {
            ref for message_id, turn_id in turns for ref in (f"message:{message_id}", f"reply:{turn_id}")
        }
        tail = (await store.context(lane_of(), 2)).recent
        assert tail.shown == {f"message:{turns[1][0]}", f"reply:{turns[1][1]}"}
        assert len(tail.records) == 2

    async def test_calls_come_back_whole_and_only_the_answer_is_a_reply(self, store: ContractStore) -> None:
        """Call and result stand where they stood."""
        road = StoreDriver(store)
        await road.queue(said())
        claimed = await road.claim_one()
        end = replace(outcome("it is noon"), records=consulted("it is noon"))
        fence = claimed.batch.fence
        assert await store.apply(TurnCommit(claimed.turn_id, claimed.batch.id, fence, end, None, 8))
        recent = (await store.context(lane_of(), 10)).recent
        assert recent.records[1:] == consulted("it is noon")
        assert recent.records[1].calls == (ToolCall("call-1", "clock", "{}"),)
        assert recent.shown == {f"message:{claimed.messages[0].id}", f"reply:{claimed.turn_id}"}
        [work] = await store.episode_work(10)
        assert (work.reply, work.replied_at) == ("it is noon", 8)

    async def test_a_result_never_without_its_call(self, store: ContractStore) -> None:
        """The tail begins after it."""
        road = StoreDriver(store)
        await road.queue(said())
        claimed = await road.claim_one()
        end = replace(outcome(), records=consulted())
        assert await store.apply(TurnCommit(claimed.turn_id, claimed.batch.id, claimed.batch.fence, end, None, 0))
        lengths = [len((await store.context(lane_of(), limit)).recent.records) for limit in (0, 1, 2, 3, 4, 5)]
        assert lengths == [0, 1, 1, 3, 4, 4]

    async def test_what_was_said_without_a_model_is_no_history(self, store: ContractStore) -> None:
        """The person's words are; and as many records come as were asked for."""
        road = StoreDriver(store)
        await road.settle(said("one"), "re one")
        await road.queue(said("two"))
        claimed = await road.claim_one()
        end = replace(outcome("no model is set"), model=NO_MODEL)
        assert await store.apply(TurnCommit(claimed.turn_id, claimed.batch.id, claimed.batch.fence, end, None, 0))
        recent = (await store.context(lane_of(), 3)).recent
        assert [record.text for record in recent.records] == ["one", "re one", "two"]
        assert f"reply:{claimed.turn_id}" not in recent.shown
        assert len((await turn_of(store, claimed)).records) == 2

    async def test_an_unknown_lane_has_said_nothing(self, store: ContractStore) -> None:
        """So has one without turns."""
        await StoreDriver(store).queue(said())
        assert (await store.context(lane_of(), 10)).recent == Recent()
        assert (await store.context(Lane("no", "such", "lane", "here"), 10)).recent == Recent()


class EpisodeWorkContract:
    """What memory has not taken yet."""

    async def test_oldest_first_and_no_more_than_asked_for(self, store: ContractStore) -> None:
        """Of all conversations, or of one."""
        road = StoreDriver(store)
        for room in ("a", "b", "a"):
            await road.settle(said(room=room))
        work = await store.episode_work(10)
        assert [one.batch_id for one in work] == sorted(one.batch_id for one in work)
        assert [one.messages[0].lane.conversation for one in work] == ["a", "b", "a"]
        assert list(await store.episode_work(2)) == list(work[:2])
        assert list(await store.episode_work(10, "a")) == [work[0], work[2]]
        assert list(await store.episode_work(1, "b")) == [work[1]]
        assert (await store.overview()).episodes_due == 3

    async def test_a_reply_is_as_trusted_as_all_that_was_said_before_it(self, store: ContractStore) -> None:
        """External words taint what is answered after them in their lane, and nothing before or elsewhere."""
        road = StoreDriver(store)
        stranger = said("stranger")
        stranger = replace(stranger, origin=replace(stranger.origin, trust=Trust.EXTERNAL))
        await road.settle(said("before"))
        await road.settle(stranger)
        await road.settle(said("after"))
        await road.settle(said("aside", room="den"))
        work = {one.messages[0].text: one.external for one in await store.episode_work(10)}
        assert work == {"before": False, "stranger": True, "after": True, "aside": False}

    async def test_a_turn_without_an_answer_leaves_its_messages(self, store: ContractStore) -> None:
        """There is no reply to remember."""
        road = StoreDriver(store)
        await road.queue(said())
        claimed = await road.claim_one()
        end = replace(outcome(""), records=())
        assert await store.apply(TurnCommit(claimed.turn_id, claimed.batch.id, claimed.batch.fence, end, None, 8))
        [work] = await store.episode_work(10)
        assert (work.turn_id, work.messages, work.reply) == (claimed.turn_id, claimed.messages, "")

    async def test_it_leaves_where_secrets_stand(self, store: ContractStore) -> None:
        """The text stays as it was received; the marks are kept beside it, the last found, and go with it."""
        road = StoreDriver(store)
        await road.settle(said())
        [work] = await store.episode_work(10)
        [message] = work.messages
        assert await store.marks(message.id) == ()
        marks = (SecretMark(0, 2, "password"), SecretMark(3, 4, "own secret"))
        for found in (marks[:1], marks):
            await store.apply(EpisodesKept((work.batch_id,), (Redaction(message.id, found), Redaction(4_711, found))))
        assert await store.marks(message.id) == marks
        assert await store.marks(4_711) == ()
        story = await store.story(message.id)
        assert story is not None
        assert story.message == message

    async def test_it_ends_when_memory_has_it(self, store: ContractStore) -> None:
        """Once; what is not there is not counted."""
        road = StoreDriver(store)
        for room in ("a", "b"):
            await road.settle(said(room=room))
        first, second = await store.episode_work(10)
        assert await store.apply(EpisodesKept((first.batch_id, 4_711))) == 1
        assert await store.apply(EpisodesKept((first.batch_id,))) == 0
        assert list(await store.episode_work(10)) == [second]
        assert (await store.overview()).episodes_due == 1
