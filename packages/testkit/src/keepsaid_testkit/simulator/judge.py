"""The judge: the promises in plain Python, held against what the providers saw and what is stored."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise

from keepsaid.domain.message import Lane
from keepsaid.domain.reply import StoredReply
from keepsaid.domain.route import Action
from keepsaid.domain.views import Story
from keepsaid_testkit.simulator.ledger import ModelCall, RunRecord
from keepsaid_testkit.simulator.machine import BY_HAND
from keepsaid_testkit.simulator.model import word_of, words_of
from keepsaid_testkit.simulator.strands import is_command

_AT_ONCE_MS = 100
"""Replies of two lanes that are written so close together have no order."""

_ENDED = ("completed", "failed", "needs_review")
"""How tasks that rules made may stand at the end: nobody cancels any."""

_VISIBLE = ("dropped", "dead", "review")


class Judge:
    """Says what was promised and not kept."""

    def __init__(self, seen: RunRecord, stories: Sequence[Story], episodes: int, results: int) -> None:
        self._seen = seen
        self._stories = sorted(stories, key=lambda story: (story.message.lane, story.message.number))
        self._episodes = episodes
        self._results = results
        self._by_word: defaultdict[str, list[Story]] = defaultdict(list)
        for story in stories:
            self._by_word[word_of(story.message)].append(story)

    def verdict(self) -> list[str]:
        """Every breach, in words; none is what is promised."""
        return [
            *self._seen.broken,
            *self._kept(),
            *self._once(),
            *self._answered(),
            *self._in_order(),
            *self._delivered(),
            *self._remembered(),
            *self._careful(),
        ]

    def _kept(self) -> Iterator[str]:
        for sent in self._seen.sent.values():
            stories = self._by_word.get(sent.word, [])
            if len(stories) > 1:
                yield f"{sent.word} is stored {len(stories)} times"
            if sent.acked is None:
                continue
            if not stories:
                yield f"{sent.word} was acknowledged and is lost"
                continue
            message, receipt = stories[0].message, sent.receipt
            if receipt is not None and (message.id, message.lane, message.number) != receipt[1:]:
                yield f"{sent.word} is not where its receipt says"
            if message.inbound.content != sent.inbound.content:
                yield f"{sent.word} was altered"

    def _once(self) -> Iterator[str]:
        """One reply or a silent turn, one task, or a visible verdict; of what joined a turn its end tells."""
        told = {story.turn_id for story in self._stories if any(reply.draft.notice for reply in story.replies)}
        for story in self._stories:
            word, batch = word_of(story.message), story.batch
            if batch is None or (story.state != "done" and story.state not in _VISIBLE):
                yield f"{word} is stuck: {story.state}"
                continue
            answers = [reply for reply in story.replies if not reply.draft.notice]
            if story.state != "done":
                if answers:
                    yield f"{word} is {story.state} and was answered"
                noticed = any(reply.draft.notice for reply in story.replies)
                if story.state != "dropped" and not noticed and (story.turn_id is None or story.turn_id not in told):
                    yield f"{word} is {story.state} and there is no notice"
            elif batch.verdict.action is Action.SPAWN:
                if story.task is None or answers:
                    yield f"{word} was spawned without a task, or answered"
                elif story.task.state not in _ENDED:
                    yield f"the task of {word} is {story.task.state}"
            elif len(answers) != (0 if story.silent else 1):
                yield f"{word} is done with {len(answers)} answers"

    def _answered(self) -> Iterator[str]:
        """What people read: each message is named by the answers of one reply at most."""
        by_word: defaultdict[str, set[int]] = defaultdict(set)
        texts: defaultdict[int, set[str]] = defaultdict(set)
        for one in self._seen.shown:
            texts[one.reply_id].add(one.text)
            for word in () if one.notice else words_of(one.text):
                by_word[word].add(one.reply_id)
        for word, replies in by_word.items():
            if len(replies) > 1:
                yield f"{word} was answered by {len(replies)} replies"
        for reply_id, said in texts.items():
            if len(said) > 1:
                yield f"reply {reply_id} came with {len(said)} texts"

    def _in_order(self) -> Iterator[str]:
        lanes: defaultdict[Lane, list[Story]] = defaultdict(list)
        for story in self._stories:
            lanes[story.message.lane].append(story)
        for lane, stories in lanes.items():
            if [story.message.number for story in stories] != list(range(1, len(stories) + 1)):
                yield f"the numbers of {lane} have gaps"
            yield from self._arrivals(stories)
            if not self._two_clocks:
                yield from self._answers(lane, stories)
        for one, other in combinations((one for one in self._seen.asked if not one.worker), 2):
            raced = one.life in self._seen.raced
            if one.word != other.word and not raced and _overlap(one, other) and self._lane(one) == self._lane(other):
                yield f"two turns of a lane at once: {one.word} and {other.word}"

    def _lane(self, asked: ModelCall) -> Lane | str:
        stories = self._by_word.get(asked.word)
        return stories[0].message.lane if stories else asked.word

    def _arrivals(self, stories: Sequence[Story]) -> Iterator[str]:
        words = (word_of(story.message) for story in stories)
        sent = [self._seen.sent[word] for word in words if word in self._seen.sent]  # but for what the program says
        for place, later in enumerate(sent):
            for earlier in sent[:place]:
                if later.acked is not None and later.acked < earlier.began:
                    yield f"{earlier.word} was sent after {later.word} was kept, and stands before it"

    def _answers(self, lane: Lane, stories: Sequence[Story]) -> Iterator[str]:
        """First showings name the lane's messages in order, but for those a person had tried again."""
        again = {word_of(story.message) for story in stories if self._was_requeued(story)}
        place = {word_of(story.message): story.message.number for story in stories}
        known: set[int] = set()
        numbers: list[int] = []
        for one in self._seen.shown:
            if one.reply_id not in known and not one.notice and one.reply_id not in self._seen.given_up:
                known.add(one.reply_id)
                numbers += [place[word] for word in words_of(one.text) if word in place and word not in again]
        if numbers != sorted(numbers):
            yield f"{lane} was answered out of order: {numbers}"

    def _was_requeued(self, story: Story) -> bool:
        batch = story.batch
        return batch is not None and (batch.id in self._seen.requeued or batch.verdict.reason == BY_HAND)

    def _delivered(self) -> Iterator[str]:
        times = Counter(one.reply_id for one in self._seen.shown)
        unmarked = Counter(one.reply_id for one in self._seen.shown if not one.marked)
        for reply in self._replies():
            if not times[reply.id] and reply.id not in self._seen.given_up:
                yield f"reply {reply.id} never arrived: {reply.state} {reply.detail}"
            if unmarked[reply.id] > 1:
                yield f"reply {reply.id} arrived {unmarked[reply.id]} times unmarked"
        if not self._two_clocks:
            yield from self._departures()

    @property
    def _two_clocks(self) -> bool:
        """Two processes at once with different times: their ids, and so their replies, have no common order."""
        return bool(self._seen.raced) and self._seen.jumped

    def _departures(self) -> Iterator[str]:
        firsts: dict[tuple[str, str], list[int]] = defaultdict(list)
        for one in self._seen.shown:
            arrived = firsts[one.channel, one.conversation]
            if one.reply_id not in arrived and one.reply_id not in self._seen.given_up:
                arrived.append(one.reply_id)
        for place, ids in firsts.items():
            for before, after in pairwise(ids):
                if self._seen.written[before] > self._seen.written[after] + _AT_ONCE_MS:
                    yield f"in {place} reply {before} came before {after}, which was written earlier"

    def _replies(self) -> Iterable[StoredReply]:
        return {reply.id: reply for story in self._stories for reply in story.replies}.values()

    def _remembered(self) -> Iterator[str]:
        done = [story for story in self._stories if story.state == "done" and not is_command(story)]
        told = [reply for story in done for reply in story.replies if not reply.draft.notice]
        # a reply that names no message holds results of commands, beside which the model was silent
        answers = {reply.id for reply in told if words_of(reply.draft.text)}
        if self._episodes != len(done) + len(answers) + self._results:
            said = f"{len(done)} messages, {len(answers)} answers and {self._results} results"
            yield f"{self._episodes} episodes of {said}"

    def _careful(self) -> Iterator[str]:
        requeued = [story.message for story in self._stories if self._was_requeued(story)]
        again = {word for one in requeued for word in (word_of(one), *words_of(one.text))}
        # A turn is known by its words, and one that a command restarted has the same.
        told = {story.turn_id for story in self._stories if is_command(story)}
        told_beside = {word_of(story.message) for story in self._stories if story.turn_id in told}
        for (tool, word), times in self._seen.effects.items():
            if tool == "pay" and times > 1 and word not in again:
                yield f"the unsafe tool took effect {times} times for {word}"
        # A process that has lost its lease may still be asking; its answer is refused.
        for word in () if self._seen.raced else self._seen.resampled:
            if word not in again | told_beside:
                yield f"{word}: an answer whose calls were made was asked for again"


def _overlap(one: ModelCall, other: ModelCall) -> bool:
    """Whether two calls of one process ran at once; what another process does is the fences' to sort out."""
    if one.life != other.life:
        return False
    first, second = sorted((one, other), key=lambda asked: asked.began)
    return first.ended is not None and first.ended > second.began
