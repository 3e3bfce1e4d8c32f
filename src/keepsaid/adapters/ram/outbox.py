"""The outbox: replies in order per conversation, each taken, sent and settled under a fence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from keepsaid.adapters.ram.intake import name_target
from keepsaid.adapters.ram.state import OPEN_REPLIES, BatchRow, Place, ReplyRow, State
from keepsaid.domain.commits import Decide, Doubt, Resend, Settle, Shown, TakeReplies
from keepsaid.domain.fact import replied
from keepsaid.domain.message import Trust
from keepsaid.domain.reply import IN_DOUBT, SENT_AGAIN, Reply, ReplyDraft, accepted, address
from keepsaid.domain.states import move


def keep_reply(state: State, batch: BatchRow, draft: ReplyDraft, made: tuple[int | None, int]) -> None:
    """Put a reply in the outbox of its batch's conversation; `made` is by which turn, if any, and when."""
    turn_id, at = made
    reply = ReplyRow(draft, batch.lane.lane, batch.id, turn_id, at, at)
    state.replies[draft.id] = state.unsettled[draft.id] = reply
    batch.replies.append(reply)


def keep_for_owner(state: State, draft: ReplyDraft, at: int, about_task: int | None = None) -> bool:
    """Put a notice in the outbox of where the owner last wrote in a direct chat; False when he never did.

    One that is about a task is forgotten and removed with it.
    """
    for _, message in sorted(state.messages.items(), reverse=True):
        origin = message.inbound.origin
        if origin.trust is Trust.OWNER and origin.direct:
            reply = ReplyRow(replace(draft, notice=True), message.lane, 0, None, at, at, about_task=about_task)
            state.replies[draft.id] = state.unsettled[draft.id] = reply
            return True
    return False


def keep_notices(
    state: State, batches: Sequence[BatchRow], draft: ReplyDraft, reply_ids: Iterator[int], at: int
) -> None:
    """Tell the people of a batch's conversation what became of it, where its newest URL wants the reply.

    The others among `batches` had joined it: they are told as well where they want their replies elsewhere.
    """
    told = {_keep_notice(state, batches[0], draft, at)}
    for batch in batches[1:]:
        url, _ = address(batch.messages)
        if url not in told and (reply_id := next(reply_ids, None)) is not None:
            told.add(_keep_notice(state, batch, ReplyDraft(reply_id, draft.text), at))


def _keep_notice(state: State, batch: BatchRow, draft: ReplyDraft, at: int) -> str | None:
    url, reply_to = address(batch.messages)
    placed = replace(draft, notice=True, url=draft.url or url, reply_to=draft.reply_to or reply_to)
    keep_reply(state, batch, placed, (None, at))
    return placed.url


def first_to_push(state: State, channels: tuple[str, ...]) -> Iterator[ReplyRow]:
    """The first unsettled reply of each conversation, among those of the channels and those with a URL."""
    places: set[Place] = set()
    for reply_id in sorted(state.unsettled):
        reply = state.unsettled[reply_id]
        pushed = reply.draft.url is not None or reply.lane.channel in channels
        if pushed and reply.place not in places:
            places.add(reply.place)
            yield reply


def take(state: State, commit: TakeReplies) -> tuple[Reply, ...]:
    """Take the first unsettled reply of each conversation that is due."""
    firsts = first_to_push(state, commit.channels)
    due = [reply for reply in firsts if reply.state == "pending" and reply.next_at <= commit.at]
    due.sort(key=lambda reply: (reply.next_at, reply.draft.id))
    taken = due[: max(0, commit.limit)]
    for reply in taken:
        _go(state, reply, "take", commit.at)
        reply.owner = commit.owner
        reply.fence += 1
        reply.attempts += 1
    return tuple(reply.value for reply in taken)


def _go(state: State, reply: ReplyRow, verb: str, at: int) -> None:
    reply.state = move("reply", reply.state, verb)
    if reply.state in OPEN_REPLIES:
        state.unsettled[reply.draft.id] = reply
    else:
        state.unsettled.pop(reply.draft.id, None)
    state.told(at, replied(reply.draft.id, reply.state, (reply.turn_id, reply.batch_id), reply.attempts))


def settle(state: State, commit: Settle) -> bool:
    """Record what came of a try."""
    reply = state.replies.get(commit.reply_id)
    if reply is None or reply.state != "sending" or reply.fence != commit.fence:
        return False
    _go(state, reply, commit.outcome, commit.at)
    reply.detail = commit.detail
    reply.next_at = max(reply.next_at, commit.retry_at)
    reply.ended_at = None if reply.state in OPEN_REPLIES else commit.at
    if commit.provider_id is not None:
        reply.provider_id = commit.provider_id
        name_target(state, reply.lane, commit.provider_id, (1, reply.draft.id))
    return True


def doubt(state: State, commit: Doubt) -> int:
    """Replies whose sender died are unknown: they may have arrived; the try is not charged to them."""
    cut_short = [r for r in state.unsettled.values() if r.state == "sending" and r.owner != commit.owner]
    for reply in cut_short:
        reply.attempts -= 1
        _go(state, reply, "doubt", commit.at)
        reply.detail = "the process died while sending it"
    for reply in state.unsettled.values():
        reply.next_at = min(reply.next_at, commit.at)
    return len(cut_short)


def resend(state: State, commit: Resend) -> int:
    """Queue unknown replies whose time has come again, marked, or bury them."""
    unknown = [r for r in state.unsettled.values() if r.state == "unknown" and r.next_at <= commit.at]
    for reply in unknown:
        if reply.lane.channel in commit.given_up:
            _go(state, reply, "bury", commit.at)
            reply.detail, reply.ended_at = IN_DOUBT, commit.at
        else:
            _go(state, reply, "resend", commit.at)
            reply.possible_duplicate, reply.detail = True, SENT_AGAIN
            reply.next_at = commit.at
    return len(unknown)


def shown(state: State, commit: Shown) -> bool:
    """A reply was pulled."""
    reply = state.replies.get(commit.reply_id)
    if reply is None or reply.state != "pending":
        return False
    _go(state, reply, "show", commit.at)
    reply.detail, reply.ended_at = "pulled", commit.at
    if commit.provider_id is not None:
        reply.provider_id = commit.provider_id
        name_target(state, reply.lane, commit.provider_id, (1, reply.draft.id))
    return True


def decide(state: State, commit: Decide) -> bool:
    """A dead reply goes again, or is given up for good."""
    reply = state.replies.get(commit.reply_id)
    if reply is None or reply.state != "dead":
        return False
    if commit.again:
        _go(state, reply, "requeue", commit.at)
        reply.attempts, reply.next_at, reply.detail, reply.ended_at = 0, commit.at, "", None
        reply.possible_duplicate = True
    else:
        _go(state, reply, "refuse", commit.at)
        reply.detail, reply.ended_at = accepted(reply.detail), commit.at
    return True
