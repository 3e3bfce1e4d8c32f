"""Outcomes: what the world outside got, and what memory holds; each check says what of its promise was broken."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from keepsaid_testkit.crash.evidence import EpisodeRow, Evidence, PostLine, ReplyRow
from keepsaid_testkit.crash.promises import by_place, held_by, spans
from keepsaid_testkit.crash.strands import group_messages_by_turn
from keepsaid_testkit.crash.working import MINE, WORK

_MARK = re.compile(r"\[(once|same|mine):([^\]\s]+)\]")
_UNREPEATABLE = ("once", MINE)
_CLOSED = "[gone]"
"""Stands in messages whose reply nobody takes."""


def check_replies(seen: Evidence) -> Iterator[str]:
    """Every committed turn has one reply, which repeats all that it answers; replies with a URL have arrived.

    One that only keeps what was said to another agent has none.
    """
    arrived = {post.reply for post in seen.posts}
    texts: dict[int | None, list[str]] = {}
    places = by_place(seen)
    turns: dict[int | None, int] = {turn.id: turn.batch for turn in seen.turns}
    for batch in seen.batches:
        texts.setdefault(turns.get(batch.steered, batch.id), []).extend(
            one.text for one in held_by(batch, places) if not one.is_command
        )
    closed = {batch_id for batch_id, said in texts.items() if any(_CLOSED in text for text in said)}
    replies = Counter(reply.batch for reply in seen.replies if not reply.notice)
    given_up = {batch.id for batch in seen.batches if batch.state in ("dead", "review")}
    kept = _kept(seen)
    for turn in seen.turns:
        if turn.state == "committed" and replies[turn.batch] != (turn.batch not in kept):
            yield f"answered: batch {turn.batch} has {replies[turn.batch]} replies"
    for reply in seen.replies:
        if reply.notice:
            if reply.batch not in given_up:
                yield f"answered: reply {reply.id} is a notice: {reply.text}"
        elif any(squeezed(text) not in squeezed(reply.text) for text in texts[reply.batch]):
            yield f"answered: reply {reply.id} does not answer all messages of its batch"
        if reply.url is not None:
            yield from _arrived(reply, reply.id in arrived, closed=reply.batch in closed)


def _kept(seen: Evidence) -> set[int]:
    """Batches that nobody answers."""
    return {batch.id for batch in seen.batches if batch.action == "listen"}


def check_notices(seen: Evidence) -> Iterator[str]:
    """Every batch that was given up has a notice; that of a turn is for all batches that had joined it."""
    turns: dict[int | None, int] = {turn.id: turn.batch for turn in seen.turns}
    of = {reply.batch for reply in seen.replies if reply.notice}
    for batch in seen.batches:
        if batch.state in ("dead", "review") and of.isdisjoint((batch.id, turns.get(batch.steered, batch.id))):
            yield f"answered: there is no notice about batch {batch.id}, which was given up"


def squeezed(text: str) -> str:
    """A text on one line: in a prompt with several speakers, lines are set in."""
    return " ".join(text.split())


def _arrived(reply: ReplyRow, arrived: bool, *, closed: bool) -> Iterator[str]:
    if closed:
        if reply.state not in ("dead", "not_deliverable"):
            yield f"answered: reply {reply.id} ends {reply.state}, and nobody took it"
        return
    if reply.state != "sent":
        yield f"answered: reply {reply.id} ends {reply.state}"
    if not arrived:
        yield f"answered: reply {reply.id} never arrived"


def check_deliveries(seen: Evidence) -> Iterator[str]:
    """Every reply that arrived was sent as it is in the outbox.

    Second copies are labelled; first copies arrive in order.
    """
    outbox = {reply.id: reply for reply in seen.replies}
    first: dict[int, PostLine] = {}
    latest: Counter[str] = Counter()
    for post in seen.posts:
        reply = outbox.get(post.reply)
        if reply is None:
            yield f"answered: a reply arrived that is not in the outbox: {post.reply}"
            continue
        if reply.state != "sent":
            yield f"answered: reply {reply.id} arrived and ends {reply.state}"
        if (post.text, post.conversation) != (reply.text, reply.conversation):
            yield f"answered: reply {reply.id} arrived otherwise than it was written"
        if post.reply in first:
            if not post.labelled:
                yield f"answered: reply {reply.id} arrived again without its label"
            continue
        first[post.reply] = post
        if reply.id < latest[reply.conversation]:
            yield f"order: reply {reply.id} arrived after a later one of {reply.conversation}"
        latest[reply.conversation] = max(latest[reply.conversation], reply.id)


def check_tool_effects(seen: Evidence) -> Iterator[str]:
    """A tool call that must not be repeated has at most one effect for each key.

    It has exactly one when its turn is committed. The tool that serves only the owner has one effect if the owner
    approved the call in time.
    """
    done = {(message.lane, message.number): message.text for message in seen.messages}
    places = {place for place, batch in spans(seen, "forward").items() if batch.state == "done"}
    settled = {(tool, key) for place in places for tool, key in _MARK.findall(done.get(place, "")) if tool != MINE}
    asked = {mark for text in done.values() for mark in _MARK.findall(text)}
    effects = Counter((effect.tool, effect.key) for effect in seen.effects)
    for (tool, key), times in effects.items():
        if tool in _UNREPEATABLE and times > 1:
            yield f"effects: {key} took effect {times} times"
        if (tool, key) not in asked and not key.startswith(WORK):
            yield f"effects: {tool} was done for {key}, which nobody asked for"
    for tool, key in sorted(settled - set(effects)):
        yield f"effects: {tool} was never done for {key}, which is answered"


def check_episodes(seen: Evidence) -> Iterator[str]:
    """Every message of a done batch and every answer to one is one episode.

    Dropped messages and commands are none. A message that was given up may be one.
    """
    episodes = Counter(seen.episodes)
    places, kept = spans(seen, "forward", "spawn", "listen"), _kept(seen)
    for message in seen.messages:
        times = episodes.pop(EpisodeRow("message", str(message.id)), 0)
        batch = places.get((message.lane, message.number))
        given_up = batch is not None and batch.state in ("dead", "review")
        if times != (batch is not None and not message.is_command) and not (given_up and times == 0):
            yield f"memory: message {message.id} is {times} episodes"
    settled = group_messages_by_turn(seen)
    for turn in seen.turns:
        times = episodes.pop(EpisodeRow("reply", str(turn.id)), 0)
        wanted = turn.batch not in kept and any(not message.is_command for message in settled.get(turn.id, ()))
        if times != wanted:
            yield f"memory: the reply of turn {turn.id} is {times} episodes"
    for task, (state, _) in seen.tasks.items():
        if episodes.pop(EpisodeRow("task", str(task)), 0) != (state == "completed"):
            yield f"memory: the result of task {task}, which is {state}, is not there as it should be"
    for episode in episodes:
        yield f"memory: an episode of {episode.kind} {episode.ref}, which is not stored"
