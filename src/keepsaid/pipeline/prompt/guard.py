"""The window guard cuts prompts that do not fit their model (seed 001); the trace records what they held, and why."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from keepsaid.domain import receipt, trust, turn
from keepsaid.domain.compaction import CompactionTerms, CutContext, CutReason, ahead, due
from keepsaid.domain.context import TAIL_MAX, LaneTail
from keepsaid.domain.memory import Candidate, Injection
from keepsaid.domain.message import Lane
from keepsaid.domain.prompt import Json, PrefixMark, Prompt, Repeated, marks_of, repeated
from keepsaid.domain.scene import PromptInputs
from keepsaid.errors import ModelTooLong
from keepsaid.pipeline.prompt.attention import attention_shape
from keepsaid.ports.model import Delta, Model, ModelRequest, Tool
from keepsaid.ports.runtime import Clock, Offload, inline
from keepsaid.ports.store import Store
from keepsaid.text.normal import cut, digest
from keepsaid.text.tokens import estimate_tokens
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
        """The share of a lane's messages to summarise, by the number of tokens of the prompt."""
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
        if (last := ahead(tail, _CUT_SHARE)) is None:
            return None
        try:
            async with asyncio.timeout(self.windows.limit_s):
                await self.store.apply(CutContext(lane, tail.version, last, CutReason.GUARD, self.clock.now_ms()))
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
        """The prompt, with the oldest messages cut off until it fits the window, if time allows."""
        limit = self.guard.windows.emergency * self.guard.windows.of(self.name)
        self._prompt = await self._made(self.tail)
        for _ in range(_CUTS_MAX):
            if self.tokens < limit or not await self._shorter():
                break
        return self.prompt

    async def _shorter(self) -> bool:
        """Whether a cut changed the prompt."""
        if (cut := await self.guard.cut(self.lane, self.tail)) is None:
            return False
        before, self.tail, self._used = self.prompt, cut, 0
        self._prompt = await self._made(cut)
        return self._prompt != before

    async def _made(self, tail: LaneTail) -> Prompt:
        return await self.offload(tail.chars, partial(self.make, tail))

    async def answer(self, request: ModelRequest, delta: Delta) -> turn.ModelAnswer:
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


_TEXT_CHARS_MAX = 300


def trace_of(scene: PromptInputs, prompt: Prompt, tools: Sequence[Tool] = (), factor: float = 1.0) -> dict[str, Json]:
    """The layers with their costs and cuts, the block as sent, and every candidate with its reason.

    Parts of the preparation that were not ready in time stand in `left_out`.

    `marks` are where each part ends and a digest of all bytes up to there, `at` the time the prompt shows,
    `factor` what the model's own counts of tokens were to the estimate, `taint` the least trust of all that is shown.
    `tools` are those on offer; they come before all layers and are never compacted.
    """
    layers: list[Json] = [
        {"name": layer.name, "tokens": layer.tokens, "chars": len(layer.text), "cut": layer.cut}
        for layer in prompt.layers
    ]
    tail, described = scene.tail, offered(tools)
    marks: list[Json] = [[mark.layer, mark.end, mark.digest] for mark in marks_of(prompt, described)]
    on_offer: Json = {"count": len(tools), "tokens": estimate_tokens(described), "chars": len(described)}
    return {
        "layers": layers,
        **({"tools": on_offer} if tools else {}),
        "marks": marks,
        "lane": {"summary": tail.summary.version if tail.summary else 0, "floor": tail.floor, "version": tail.version},
        "factor": factor,
        "at": scene.turn.now_ms,
        "taint": trust.taint_of(scene).as_json,
        **attention_shape(scene.attention, prompt.quoted),
        "memory": memory_shape(scene.injection),
        **({"left_out": list(scene.left_out)} if scene.left_out else {}),
        **({"client": digest(scene.standing.client).hex()} if scene.standing.client else {}),
    }


def offered(tools: Sequence[Tool]) -> str:
    """The tools on offer as one text: providers take them for the beginning of a prompt."""
    return "\n".join(f"{one.name}\0{one.description}\0{json.dumps(one.schema, default=dict)}" for one in tools)


def _field(trace: Json, name: str) -> Json:
    """A field of a trace; None for what holds no such field."""
    return trace.get(name) if isinstance(trace, dict) else None


def shown_at(trace: Json, now_ms: int) -> int:
    """The time that an earlier attempt of the turn showed, so that a retry has the same bytes; else the time now."""
    at = _field(trace, "at")
    return at if isinstance(at, int) else now_ms


def marks_in(trace: Json) -> tuple[PrefixMark, ...]:
    """The marks that a trace keeps of its prompt."""
    kept = _field(trace, "marks")
    found = (one for one in kept if isinstance(one, list) and len(one) == 3) if isinstance(kept, list) else ()
    return tuple(PrefixMark(str(layer), int(str(end)), str(digest)) for layer, end, digest in found)


def memory_shape(injection: Injection) -> Json:
    """All that is kept of what came to mind: at most what each leg may give, and a hundred that ranked behind."""
    return {
        "block": injection.block,
        "skipped": injection.skipped,
        "missing": list(injection.missing),
        "took_ms": round(injection.took_ms, 2),
        "searched": [
            {"leg": one.leg, "found": one.found, "took_ms": round(one.took_ms, 2), "why": one.why}
            for one in injection.searched
        ],
        "candidates": [_candidate(rank, one) for rank, one in enumerate(injection.candidates, 1)],
        "beyond": [
            {"id": one.memory_id, "rank": one.rank, "value": round(one.value, 5), "legs": _legs(one.places)}
            for one in injection.beyond
        ],
    }


def _candidate(rank: int, candidate: Candidate) -> Json:
    hit = candidate.hit
    return {
        "id": hit.memory.id,
        "kind": str(hit.memory.new.kind),
        "text": cut(hit.memory.text, _TEXT_CHARS_MAX),
        "leg": hit.leg,
        "rank": hit.rank,
        "score": round(hit.score, 4),
        "value": round(hit.value, 5),
        "legs": _legs(hit.places),
        "place": rank,
        "chosen": candidate.chosen,
        "cause": str(candidate.cause),
        "reason": candidate.reason,
        "measured": [[one.name, round(one.value, 4), one.least] for one in candidate.measured],
    }


def _legs(places: Sequence[receipt.Place]) -> Json:
    """Rank and score of each leg; of the graph leg also the path: relation, and memory or name, of each step."""
    legs: list[Json] = []
    for place in places:
        path: list[Json] = [[step.relation, step.memory_id or step.name] for step in place.path]
        legs.append([place.leg, place.rank, round(place.score, 4), *([path] if path else [])])
    return legs


def recorded(trace: Json) -> Injection | None:
    """The injection an earlier attempt of the turn was given, so that a retry shows the model the same bytes."""
    memory = _field(trace, "memory")
    if not isinstance(memory, dict):
        return None
    block = memory.get("block")
    return Injection(block if isinstance(block, str) else "", skipped="as recorded by an earlier attempt")


def chosen(trace: Json) -> tuple[int, ...]:
    """The ids of the memories a trace says the model was shown, in order; of a retried turn too."""
    candidates = _field(_field(trace, "memory"), "candidates")
    found = candidates if isinstance(candidates, list) else []
    ids = (one["id"] for one in found if isinstance(one, dict) and one["chosen"])
    return tuple(memory_id for memory_id in ids if isinstance(memory_id, int))


LEFT_OUT = "left_out"
_SHOWN = ("layers", "tools", "marks", "lane", "factor", "taint")
_ELSE = "something that holds for this turn alone changed"


def merge_retry_trace(recorded: Json, now: dict[str, Json]) -> Json:
    """Return the trace of an attempt: as recorded while the prompt is the same, else with its changes and why.

    Recalled memories, focus and quotes are shown again as in the first attempt.
    """
    if not isinstance(recorded, dict):
        return now
    found = compared(recorded, now)
    if found is None or recorded.get("marks") == now["marks"]:
        return recorded
    kept = {key: value for key, value in recorded.items() if key != LEFT_OUT}
    shown = {key: now[key] for key in (*_SHOWN, LEFT_OUT) if key in now}
    return {**kept, **shown, "changed": found[1] or _ELSE}


def left_out_of(trace: Json) -> tuple[str, ...]:
    """The parts that were left out of a prompt because they were not ready in time: `memory took longer than 5 s`."""
    parts = _field(trace, LEFT_OUT)
    return tuple(map(str, parts)) if isinstance(parts, list) else ()


def changed_since(trace: Json) -> str:
    """What of the prompt changed between two attempts of the turn, in words; "" for nothing."""
    changed = _field(trace, "changed")
    return changed if isinstance(changed, str) else ""


_BROKEN = {
    "tools": "other tools are on offer",
    "policy": "the policy is another one",
    "identity": "the identity files changed",
    "personality": "the personality changed",
    "skills": "the skills changed",
    "workers": "the worker capabilities changed",
    "conversation": "the conversation is described otherwise",
    "bulletin": "the bulletin changed",
    "client": "the client sent other instructions",
    "summary": "the summary of the older messages changed",
    "session_summary": "the summary of the other threads changed",
    "memory": "memory stands before the recent messages (context.order)",
    "recent": "the recent messages were cut to their budget",
}


_CUT = "older messages were cut off, by the window guard or a reset"


def compared(before: Json, after: Json) -> tuple[Repeated, str] | None:
    """What the later of two traces repeats of the earlier one's prompt, and why not everything; None without marks."""
    old, new = marks_in(before), marks_in(after)
    if not old or not new:
        return None
    found = repeated(old, new)
    if found.broken in ("summary", "recent") and _floor(after) > _floor(before):
        return found, _CUT
    return found, _BROKEN.get(found.broken, found.broken and f"{found.broken} changed")


def _floor(trace: Json) -> int:
    floor = _field(_field(trace, "lane"), "floor")
    return floor if isinstance(floor, int) else 0
