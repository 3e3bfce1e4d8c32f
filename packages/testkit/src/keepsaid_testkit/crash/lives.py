"""The lives of a server: how long each lasts, and how it ends, as a seed decides.

Many are brief, one after another, as in a crash loop: whatever is in flight at their deaths is innocent, and must
not be given up.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial

from keepsaid.values import frozen
from keepsaid_testkit.crash.fork import Fork
from keepsaid_testkit.crash.stage import Sandbox

_LIFE_S = 240.0
_BRIEF = 0.5
_LOOP_S = 5.0
"""The most seconds that lives in a crash loop last."""

_SHARE_OF_LOOPS = 0.2


@frozen
class ServerLife:
    """A server's life.

    It lasts until it has listened (unless `early`), `turns` more turns are committed and then `messages` more
    messages acknowledged, and then for `seconds`; `killed` says that it ends by SIGKILL, else by SIGTERM.
    """

    early: bool = False
    turns: int = 0
    messages: int = 0
    seconds: float = 0.0
    killed: bool = True


def lives(seed: int, kills: int) -> Iterator[ServerLife]:
    """Lives until `kills` of them have ended violently; a few end gracefully in between."""
    chance = random.Random(f"lives:{seed}")  # noqa: S311 - repeatable, not secret
    left = kills
    while left:
        life = _brief(chance) if chance.random() < _BRIEF else _long(chance)
        left -= life.killed
        yield life


def _brief(chance: random.Random) -> ServerLife:
    if chance.random() < _SHARE_OF_LOOPS:
        return ServerLife(early=True, seconds=chance.uniform(0.0, _LOOP_S))
    if chance.random() < 0.4:
        return ServerLife(early=True, seconds=chance.uniform(0.0, 0.2))
    return ServerLife(messages=chance.randrange(1, 12), seconds=chance.choice((0.0, chance.uniform(0, 0.5))))


def _long(chance: random.Random) -> ServerLife:
    turns, messages = chance.randrange(1, 10), chance.randrange(20)
    return ServerLife(turns=turns, messages=messages, seconds=chance.uniform(0, 0.3), killed=chance.random() < 0.85)


def live(stage: Sandbox, server: Fork, life: ServerLife) -> None:
    """Let a server live its life."""
    if not life.early:
        stage.ready(server)
    if life.turns:
        stage.until(_grown(partial(stage.number, "committed"), life.turns), server, _LIFE_S, "turns are committed")
    if life.messages:
        stage.until(_grown(stage.acknowledged.count, life.messages), server, _LIFE_S, "messages are acknowledged")
    stage.let(server, life.seconds)
    if life.killed:
        server.kill()
    else:
        stage.stop(server)


def _grown(count: Callable[[], int | None], by: int) -> Callable[[], bool]:
    """Whether a count has grown since it could first be read."""
    first: int | None = None

    def grown() -> bool:
        nonlocal first
        now = count()
        if now is None:
            return False
        first = now if first is None else first
        return now >= first + by

    return grown
