"""Shapes: how stored things look as JSON, the same in HTTP, `--json` and the library."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from keepsaid.domain.batch import Batch
from keepsaid.domain.ids import show
from keepsaid.domain.memory import Memory
from keepsaid.domain.reply import Reply
from keepsaid.domain.views import Story, TurnStory

Shape = dict[str, Any]


def when(ms: int | None) -> str | None:
    """A time as RFC 3339, UTC, milliseconds."""
    if ms is None:
        return None
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def story_shape(story: Story) -> Shape:
    """A message and what became of it."""
    message, origin = story.message, story.message.inbound.origin
    return {
        "id": show("message", message.id),
        "state": story.state,
        "channel": origin.channel,
        "account": origin.account,
        "conversation": origin.conversation,
        "lane": message.lane.key,
        "number": message.number,
        "sender": origin.sender,
        "name": origin.name,
        "trust": str(origin.trust),
        "event": message.inbound.content.event,
        "external_id": message.inbound.marks.external_id,
        "text": message.text,
        "priority": message.inbound.priority,
        "received_at": when(message.received_at),
        "batch": batch_shape(story.batch) if story.batch else None,
        "turn": show("turn", story.turn_id) if story.turn_id else None,
        "task": show("task", story.task_id) if story.task_id else None,
        "replies": [reply_shape(reply) for reply in story.replies],
    }


def batch_shape(batch: Batch) -> Shape:
    """A batch and its verdict."""
    verdict = batch.verdict
    return {
        "id": show("batch", batch.id),
        "state": batch.state,
        "numbers": [batch.first, batch.last],
        "verdict": str(verdict.action),
        "rule": verdict.rule,
        "rules_version": verdict.version,
        "reason": verdict.reason,
        "attempts": batch.attempts,
        "created_at": when(batch.created_at),
    }


def reply_shape(reply: Reply) -> Shape:
    """A reply and where it stands."""
    return {
        "id": show("reply", reply.id),
        "state": reply.state,
        "text": reply.draft.text,
        "notice": reply.draft.notice,
        "turn": show("turn", reply.turn_id) if reply.turn_id else None,
        "attempts": reply.attempts,
        "possible_duplicate": reply.possible_duplicate,
        "created_at": when(reply.created_at),
    }


def memory_shape(memory: Memory) -> Shape:
    """A memory and where it came from."""
    new = memory.new
    return {
        "id": show("memory", memory.id),
        "kind": str(new.kind),
        "state": memory.state,
        "text": new.text,
        "speaker": new.speaker,
        "scope": new.scope,
        "trust": str(new.trust),
        "importance": new.importance,
        "said_at": when(new.said_at),
        "recorded_at": when(memory.recorded_at),
        "sources": [f"{source.kind}:{source.ref}" for source in new.sources],
    }


def turn_shape(turn: TurnStory) -> Shape:
    """A turn with its context, steps and receipts."""
    usage = turn.usage
    return {
        "id": show("turn", turn.turn_id),
        "state": turn.state,
        "reason": turn.reason,
        "lane": {"conversation": turn.batch.lane.conversation, "key": turn.batch.lane.key},
        "batch": batch_shape(turn.batch),
        "messages": [{"id": show("message", one.id), "text": one.text} for one in turn.messages],
        "context": turn.trace,
        "steps": [
            {"n": step.n, "kind": str(step.kind), "subject": step.subject, "state": step.state} for step in turn.steps
        ],
        "replies": [reply_shape(reply) for reply in turn.replies],
        "tokens": [usage.tokens_in, usage.tokens_out],
        "cost_usd": None if usage.cost_micros is None else usage.cost_micros / 1_000_000,
        "started_at": when(turn.started_at),
        "ended_at": when(turn.ended_at),
    }
