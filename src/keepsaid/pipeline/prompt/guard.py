"""The window guard: a prompt that would not fit its model loses its oldest messages (seed 001, Compactor check).

At 80 % of the window the oldest 30 % of a lane's messages are to be summarised in the background, at 85 % half of them.
At 95 % half of them are cut at once, without a model, and a marker stays. What a guard cuts is a commit under the
fence of the lane's context, as a summary is: never both take the same span.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from keepsaid.domain.compaction import CompactionTerms, CutContext, CutReason, ahead, due
from keepsaid.domain.context import TAIL_MAX, LaneTail
from keepsaid.domain.lane import Lane
from keepsaid.domain.prompt import Prompt
from keepsaid.domain.turn import ModelAnswer
from keepsaid.errors import ModelTooLong
from keepsaid.ports.model import Delta, Model, ModelRequest
from keepsaid.ports.runtime import Clock, Offload, inline
from keepsaid.ports.store import Store
from keepsaid.values import frozen

_CUT_SHARE = 0.5
_CUTS_MAX = 16


@frozen
class Windows:
    """How many tokens a model's window holds, by its name or else `tokens`, and from which shares on something is done.

    `limit_s` is how long a turn may be held up by a cut, in seconds.
    """

    tokens: int = 128_000
    by_model: Mapping[str, int] = field(default_factory=dict)
    background: float = 0.80
    aggressive: float = 0.85
    emergency: float = 0.95
    limit_s: float = 2.0

    def of(self, model: str) -> int:
        return self.by_model.get(model, self.tokens)

    def share(self, tokens: int, model: str) -> float:
        """The share of a lane's messages that is to be summarised when a prompt costs so many tokens."""
        full = tokens / self.of(model)
        if full >= self.aggressive:
            return 0.5
        return 0.3 if full >= self.background else 0.0


@frozen
class Guard:
    """Watches the prompts of all lanes; `name` tells who summarises that a lane is due, or a share of its messages."""

    store: Store
    clock: Clock
    name: Callable[[Lane, float], None]
    windows: Windows = Windows()
    terms: CompactionTerms = CompactionTerms()

    async def cut(self, lane: Lane, tail: LaneTail) -> LaneTail | None:
        """The lane without the older half of its messages; None when nothing could be cut in time.

        When another has moved the context meanwhile, what that left stands instead. Raises a StoreError.
        """
        last = ahead(tail, _CUT_SHARE)
        if last is None:
            return None
        try:
            async with asyncio.timeout(self.windows.limit_s):
                commit = CutContext(lane, tail.version, last, CutReason.GUARD, self.clock.now_ms())
                await self.store.apply(commit)
                cut = await self.store.context(lane, TAIL_MAX)
        except TimeoutError:
            return None
        return replace(cut, reminders=tail.reminders) if cut.version != tail.version else None

    async def after(self, lane: Lane, tail: LaneTail, spent: tuple[int, str], offload: Offload = inline) -> None:
        """After a turn: judge whether the lane it saw is to be summarised, by what was read and the turn's clock.

        `spent` is what its prompt cost in tokens, and the name of its model.
        """
        share = self.windows.share(*spent)
        now = self.clock.now_ms()
        if tail.next_at > now:
            return
        if share or await offload(tail.chars, partial(due, tail, self.terms, now)) is not None:
            self.name(lane, share)


@dataclass(slots=True, eq=False)
class Fitting:
    """The prompt of one turn, made again when messages are cut off it; a model that shortens what its provider refuses.

    `make` gives the prompt for a tail of the lane, `factor` is what the model's own counts are to the estimate.
    """

    guard: Guard
    lane: Lane
    model: Model
    make: Callable[[LaneTail], Prompt]
    tail: LaneTail
    factor: float = 1.0
    offload: Offload = inline
    _used: int = field(init=False)
    _retried: bool = field(default=False, init=False)
    _prompt: Prompt | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._used = self.tail.used

    @property
    def prompt(self) -> Prompt:
        """The prompt as it stands; `fit` has it made."""
        if self._prompt is None:
            self._prompt = self.make(self.tail)
        return self._prompt

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def tokens(self) -> int:
        """What the prompt costs: as estimated, or as the lane's last turn was charged, whichever is more."""
        return max(self._used, int(self.factor * sum(layer.tokens for layer in self.prompt.layers)))

    async def fit(self) -> Prompt:
        """The prompt, with so many messages cut off that it fits the window, if that can be had in time."""
        limit = self.guard.windows.emergency * self.guard.windows.of(self.name)
        self._prompt = await self._made(self.tail)
        for _ in range(_CUTS_MAX):
            if self.tokens < limit or not await self._shorter():
                break
        return self.prompt

    async def _shorter(self) -> bool:
        """Whether a cut changed the prompt."""
        cut = await self.guard.cut(self.lane, self.tail)
        if cut is None:
            return False
        before, self.tail, self._used = self.prompt, cut, 0
        self._prompt = await self._made(cut)
        return self._prompt != before

    async def _made(self, tail: LaneTail) -> Prompt:
        return await self.offload(tail.chars, partial(self.make, tail))

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        """One call; a prompt that the provider says is too long is cut and sent once more, once in a turn."""
        try:
            return await self.model.answer(replace(request, prompt=self.prompt), delta)
        except ModelTooLong:
            if self._retried or not await self._shorter():
                raise
            self._retried = True
            return await self.model.answer(replace(request, prompt=self.prompt), delta)

    async def settle(self) -> None:
        await self.guard.after(self.lane, self.tail, (self.tokens, self.name), self.offload)
