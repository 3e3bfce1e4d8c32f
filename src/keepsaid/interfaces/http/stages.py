"""Stages: what is told of a message as server-sent events, each once, also over several connections."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from keepsaid.domain.ids import show
from keepsaid.domain.views import Story
from keepsaid.interfaces.shapes import Shape, batch_shape, next_try, story_shape, when

RETRY_MS = 1_000
"""How soon a browser comes back when the connection ends without a word."""

SETTLED = ("done", "dropped", "review", "dead")
"""States of a message of which there is nothing more to tell, unless a person queues it again."""

_ORDER = ("received", "batched", "waiting", "settled")


@dataclass(frozen=True, slots=True)
class Stage:
    """One event; `id` names it over all connections: its kind, and which of several of that kind."""

    id: str
    data: Shape

    @property
    def kind(self) -> str:
        """The name of the event."""
        return self.id.partition("-")[0]

    @property
    def text(self) -> str:
        """It as it is sent."""
        return event(self.kind, self.data, self.id)


def event(kind: str, data: object, stage: str = "") -> str:
    """One server-sent event; without the id of a stage it does not count for who comes back."""
    named = f"id: {stage}\n" if stage else ""
    return f"event: {kind}\n{named}data: {json.dumps(data, ensure_ascii=False)}\n\n"


class Told:
    """What has been told to one reader, who may come back with the id of the last stage that arrived."""

    def __init__(self, last: str) -> None:
        self._ids = {last}
        kind = last.partition("-")[0]
        self._before = _ORDER[: _ORDER.index(kind)] if kind in _ORDER else ()

    def knows(self, stage: Stage) -> bool:
        """Whether the reader has it."""
        return stage.id in self._ids or (stage.kind in self._before and stage.kind != "waiting")

    def news(self, story: Story) -> Iterator[str]:
        """The stages the reader does not have, as they are sent."""
        for stage in _stages(story):
            if not self.knows(stage):
                self._ids.add(stage.id)
                yield stage.text

    def has_all(self, story: Story) -> bool:
        """Whether the message is settled and the reader knows."""
        return story.state in SETTLED and self.knows(_settled(story))

    def waits(self, story: Story, why: str) -> Iterator[str]:
        """That the answer takes longer, before the store says so."""
        stage = Stage(_waiting(story), {"text": why, "next_try_at": None})
        if not self.knows(stage):
            self._ids.add(stage.id)
            yield stage.text


def _stages(story: Story) -> Iterator[Stage]:
    message, batch = story.message, story.batch
    place: Shape = {"number": message.number, "conversation": message.lane.conversation, "lane": message.lane.key}
    yield Stage("received", {"id": show("message", message.id), **place, "received_at": when(message.received_at)})
    if batch is not None:
        yield Stage("batched", batch_shape(batch))
        again = next_try(batch)
        if again is not None and batch.error:
            data = {"text": f"{batch.error}; trying again at {when(again)}", "next_try_at": when(again)}
            yield Stage(_waiting(story), data)
    if story.state in SETTLED:
        yield _settled(story)


def _waiting(story: Story) -> str:
    return f"waiting-{story.batch.fence if story.batch else 0}"


def _settled(story: Story) -> Stage:
    """Its end, of which there may be several: a person can queue it again."""
    return Stage(f"settled-{story.state}-{story.batch.fence if story.batch else 0}", story_shape(story))
