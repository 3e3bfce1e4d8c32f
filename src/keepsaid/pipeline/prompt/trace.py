"""The trace: what a turn's context held and why, as it is stored for `why`."""

from __future__ import annotations

import json
from collections.abc import Sequence

from keepsaid.domain.memory import Candidate, Injection
from keepsaid.domain.prompt import Json, PrefixMark, Prompt, Repeated, marks_of, repeated
from keepsaid.domain.receipt import Place
from keepsaid.domain.scene import PromptInputs
from keepsaid.domain.trust import taint_of
from keepsaid.pipeline.prompt.attention import attention_shape
from keepsaid.ports.model import Tool
from keepsaid.text.normal import cut

_TEXT_CHARS_MAX = 300


def trace_of(scene: PromptInputs, prompt: Prompt, tools: Sequence[Tool] = (), factor: float = 1.0) -> dict[str, Json]:
    """The layers with their costs and cuts, the block as sent, and every candidate with its reason.

    Parts of the preparation that were not ready in time stand in `left_out`.

    `marks` are where each part ends and a digest of all bytes up to there, `at` the time the model was told,
    `factor` what the model's own counts of tokens were to the estimate, `taint` the least trust of all that is shown.
    """
    layers: list[Json] = [
        {"name": layer.name, "tokens": layer.tokens, "chars": len(layer.text), "cut": layer.cut}
        for layer in prompt.layers
    ]
    tail = scene.tail
    marks: list[Json] = [[mark.layer, mark.end, mark.digest] for mark in marks_of(prompt, offered(tools))]
    return {
        "layers": layers,
        "marks": marks,
        "lane": {"summary": tail.summary.version if tail.summary else 0, "floor": tail.floor, "version": tail.version},
        "factor": factor,
        "at": scene.turn.now_ms,
        "taint": taint_of(scene).as_json,
        **attention_shape(scene.attention, prompt.quoted),
        "memory": memory_shape(scene.injection),
        **({"left_out": list(scene.left_out)} if scene.left_out else {}),
    }


def offered(tools: Sequence[Tool]) -> str:
    """The tools on offer as one text: providers take them for the beginning of a prompt."""
    return "\n".join(f"{one.name}\0{one.description}\0{json.dumps(one.schema, default=dict)}" for one in tools)


def _field(trace: Json, name: str) -> Json:
    """A field of a trace; None for what holds no such field."""
    return trace.get(name) if isinstance(trace, dict) else None


def shown_at(trace: Json, now_ms: int) -> int:
    """The time an earlier attempt of the turn was told, so that a retry shows the same bytes; else the time it is."""
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


def _legs(places: Sequence[Place]) -> Json:
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
_SHOWN = ("layers", "marks", "lane", "factor", "taint")
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
    "summary": "another summary stands for the older messages",
    "session_summary": "another summary stands for the other threads",
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
