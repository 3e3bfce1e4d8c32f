"""`keepsaid why`: one turn explained: what was said, what the model saw, what was recalled and why."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from keepsaid.domain import ids, message, prompt, views
from keepsaid.domain.memory import Memory
from keepsaid.domain.receipt import Feedback, FeedbackState, MemoryUse, Use
from keepsaid.errors import InputError
from keepsaid.interfaces import pictures, shapes
from keepsaid.interfaces.cli import chronicle, console, escapes, inbox, memory_changes, tasks
from keepsaid.interfaces.cli.console import id_of, one_line, refused, say, session, show, wrapped
from keepsaid.interfaces.cli.files import sent_lines
from keepsaid.pipeline.prompt import attention, guard
from keepsaid.pipeline.tools.conversation import questions_in
from keepsaid.services.explaining import absence, commanded, listened
from keepsaid.text.normal import cut

_SHOWN_MAX = 10
_WIDTH = 79
_INDENT = "    "
_HOW = {
    MemoryUse.INJECTED: "shown",
    MemoryUse.OPENED: "opened by the model",
    MemoryUse.LEFT_OUT: "left out",
    MemoryUse.BEYOND: "ranked behind",
}


def searched(memory: dict[str, Any]) -> list[tuple[str, str]]:
    """How long the turn waited for recall, how many each leg found and in what time, and what was missing.

    A leg takes longer than the turn waited where recall began as soon as the message was stored.
    """
    legs = (one for one in memory.get("searched") or [] if not one["why"])
    waited = memory.get("took_ms", 0)
    recall = [f"the turn waited {waited:g} ms"]
    recall += [f"{one['leg']} {one['found']} in {one['took_ms']:g} ms" for one in legs]
    recall += [f"nothing was recalled: {memory['skipped']}"] if memory.get("skipped") else []
    return [("recall", "   ".join(recall)), *(("missing", leg) for leg in memory.get("missing") or [])]


def memories(memory: dict[str, Any], *, everything: bool) -> Iterator[str]:
    """What was chosen, and what was left out and why."""
    candidates = memory.get("candidates") or []
    chosen = [one for one in candidates if one["chosen"]]
    left = [one for one in candidates if not one["chosen"]]
    behind = len(memory.get("beyond") or [])
    yield f"CHOSEN {len(chosen)}"
    yield from (_candidate(one) for one in chosen)
    causes = Counter(str(one.get("cause", "")) for one in left)
    grouped = "   ".join(filter(None, (f"{cause} {count}" for cause, count in causes.most_common())))
    yield f"LEFT OUT {len(left)}   {grouped}".rstrip() + (f"   (and {behind} that ranked behind)" if behind else "")
    shown = left if everything else left[:_SHOWN_MAX]
    yield from (_candidate(one) for one in shown)
    if len(shown) < len(left):
        yield f"  {len(left) - len(shown)} more: --all lists them"


def _candidate(one: dict[str, Any]) -> str:
    """A memory in three lines: its rank in each retriever, its text, its outcome."""
    legs = one.get("legs") or [[one["leg"], one["rank"], one["score"]]]
    places = "  ".join(f"{leg} #{rank} ({score:.3g})" for leg, rank, score, *_ in legs)
    value = f"  {one['value']:.3f}" if one.get("value") else ""
    text = shortened(f"{_INDENT}[{one['kind']}] {one['text']}")
    return f"  {ids.show('memory', one['id'])}{value}  {places}\n{text}\n{_INDENT}{one['reason']}{_measured(one)}"


def _measured(one: dict[str, Any]) -> str:
    """The numbers of a verdict, each beside the least that passes."""
    measured = one.get("measured") or []
    told = (f"{what} {value:.3g}" + (f", threshold {least:.3g}" if least else "") for what, value, least in measured)
    return f" ({', '.join(told)})" if measured else ""


def shortened(text: str) -> str:
    """A text on one line of eighty characters; what it begins with stays."""
    begins = text[: len(text) - len(text.lstrip())]
    return cut(begins + " ".join(escapes.visible(text).split()), min(console.columns(), _WIDTH))


def judged(feedback: Sequence[Feedback]) -> Iterator[tuple[str, str]]:
    """What people said of memories."""
    for said in feedback:
        about = f"{ids.show('memory', said.memory_id)} for {ids.show('turn', said.turn_id)}"
        told = f"{about}, said by {said.by} {ids.when(said.at)}"
        yield "wrong" if said.state is FeedbackState.WRONG else "withdrawn", told


def uses(found: Sequence[Use]) -> Iterator[str]:
    """The turns a memory came up in, newest first."""
    for use in found:
        one: dict[str, Any] = use.found if isinstance(use.found, dict) else {}
        why = one.get("reason") or (f"it was number {one['rank']}" if use.how is MemoryUse.BEYOND and one else "")
        yield f"  {ids.show('turn', use.turn_id)}  {ids.when(use.at)}  {_HOW[use.how]}"
        yield shortened(f"{_INDENT}{use.lane.channel} {use.lane.key}" + (f": {why}" if why else ""))


def explain_memory(thing: str) -> None:
    """In which turns a memory was shown, opened or left out, and what was said of that."""
    number = id_of("memory", thing, memory_changes.LIST)

    async def looked_up(stores: console.Stores) -> tuple[Memory, Sequence[Use], Sequence[Feedback]] | None:
        known = await stores.memories.get(memory_changes.OWNER, number)
        told = await stores.views.uses(number, shapes.USES_MAX), await stores.views.feedback(number)
        return None if known is None else (known, *told)

    memory, found, feedback = session().need(looked_up, f"there is no memory {thing}", memory_changes.LIST)
    heading = f"CAME UP IN {len(found)} of the turns on record" if found else "CAME UP IN no turn on record"
    said = [wrapped(judged(feedback))] if feedback else []
    show(
        shapes.came_up_shape(memory, int(time.time() * 1_000), found, feedback),
        _headed(memory),
        *said,
        heading,
        *uses(found),
    )


def explain_absence(turn: views.TurnStory, thing: str) -> None:
    """Why a turn was not shown a memory."""
    number = id_of("memory", thing, memory_changes.LIST)

    async def looked_up(stores: console.Stores) -> tuple[Memory, bool] | None:
        known = await stores.memories.get(memory_changes.OWNER, number)
        return None if known is None else (known, await stores.memories.get(listened(turn), number) is not None)

    memory, heard = session().need(looked_up, f"there is no memory {thing}", memory_changes.LIST)
    why = absence(turn, memory, heard=heard)
    told = [
        ("turn", f"{ids.show('turn', turn.turn_id)}   {ids.when(turn.started_at)}"),
        *(("said", shortened(one.text)) for one in turn.messages),
        (why.stage.replace("_", " "), why.why),
    ]
    show(shapes.absent_shape(turn, memory, int(time.time() * 1_000), why), _headed(memory), wrapped(told))


def _headed(memory: Memory) -> str:
    return shortened(f"{ids.show('memory', memory.id)}  [{memory.new.kind}] {memory.text}")


_SEARCHED_MAX = 1_000
_TASK = f"{ids.PREFIXES['task']}_"
_ENDED = {"fill": "answered", "clear": "cleared", "expire": "expired"}


def why(
    thing: Annotated[
        str | None, typer.Argument(metavar="TURN", help="A turn, message, batch or task; by default the last turn.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="List every memory that was left out.")] = False,
    svg: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also draw the context and the ranking of memories as SVG."),
    ] = None,
    memory: Annotated[
        str | None, typer.Option(help="Explain a memory instead: in which turns it was shown or left out.")
    ] = None,
    left_out: Annotated[
        str | None, typer.Option("--not", metavar="MEMORY", help="Explain why this memory was not recalled.")
    ] = None,
) -> None:
    """Explain one turn: what the model saw, and why.

    Every memory that came to mind is listed, chosen or left out, with its reason.
    """
    if memory is not None:
        explain_memory(memory)
        return
    if thing is not None and thing.startswith(_TASK):
        tasks.explain_task(thing)
        return
    if (turn := session().read(lambda stores: turn_named(stores, thing))) is None:
        raise InputError("no turn has ended yet: nothing was ever stored here", hint="keepsaid chat")
    if left_out is not None:
        explain_absence(turn, left_out)
        return
    if svg is not None:
        _drawn(turn, svg)
    show({"turn": shapes.turn_shape(turn)}, *explained(turn, everything=everything))


_EXPLAINED = ("turn", "message", "batch")


async def turn_named(stores: console.Stores, thing: str | None, lane: message.Lane | None = None) -> views.TurnStory:
    """The turn of a turn, message or batch id; without one, the newest, in a lane the newest that is not a command.

    Raises InputError when there is none.
    """
    number = (
        await stores.views.last_turn(lane, commands=lane is None) if thing is None else await _number(stores, thing)
    )
    turn = None if number is None else await stores.views.turn(number)
    if turn is None:
        is_id = thing is None or any(ids.read(kind, thing) is not None for kind in _EXPLAINED)
        named = f"no turn, and nothing a turn answered, has the id {thing}{chronicle.unless_pruned()}"
        named = named if is_id else f"{thing} is not the id of a turn, message, batch or task"
        hint = f"keepsaid inbox why {thing}" if thing is not None and is_id else "keepsaid inbox ls"
        raise refused("no turn has ended yet" if thing is None else named, hint)
    return turn


async def _number(stores: console.Stores, thing: str) -> int | None:
    """The turn's number; an id without prefix is tried as each of the three."""
    turn_id, message_id, batch_id = ids.read("turn", thing), ids.read("message", thing), ids.read("batch", thing)
    if turn_id is not None and await stores.views.turn(turn_id) is not None:
        return turn_id
    story = None if message_id is None else await stores.views.story(message_id)
    if story is not None:
        return story.turn_id
    if batch_id is None:
        return None
    newest = await stores.views.find(views.MessageFilter(limit=_SEARCHED_MAX))
    return next((story.turn_id for story in newest if story.batch and story.batch.id == batch_id), None)


def explained(turn: views.TurnStory, *, everything: bool = False) -> Iterator[str]:
    """The turn for people, part by part."""
    lane, verdict, reason = turn.batch.lane, turn.batch.verdict, f": {turn.reason}" if turn.reason else ""
    yield f"{ids.show('turn', turn.turn_id)} {turn.state}{chronicle.took(turn)}{reason}   {ids.when(turn.started_at)}"
    lines = [("lane", f"{lane.key}   {lane.channel}, conversation {lane.conversation}")]
    before = attention.late_before(turn.trace)
    for one in turn.messages:
        late = f"   answered late: received {ids.when(one.received_at)}" if before and one.received_at < before else ""
        lines.append(("said", f"{ids.show('message', one.id)}  {one_line(one.text)}{late}"))
        lines += [("in the lane", turn.placed[one.id])] if one.id in turn.placed else []
    lines += chronicle.gone(turn.batch)
    lines += [("verdict", f"{verdict.action} by rule {verdict.rule}: {verdict.reason}")]
    if turn.state == "open" and turn.batch.error:
        lines.append(("waits", inbox.waits(turn.batch)))
    trace: dict[str, Any] = turn.trace if isinstance(turn.trace, dict) else {}
    alone = commanded(turn)
    lines += [("context", f"none: {alone}")] if alone else [*_context(trace), *_prefix(turn)]
    lines += [("left out", part) for part in guard.left_out_of(trace)]
    changed = guard.changed_since(trace)
    lines += [("tried again", f"{changed} since the first attempt")] if changed else []
    yield wrapped(lines)
    if not alone:
        yield from memories(trace.get("memory") or {}, everything=everything)
    yield wrapped([*judged(turn.feedback), *_ended(turn)])


def _drawn(turn: views.TurnStory, file: Path) -> None:
    """Write the context as a bar, and below it how the memories were ranked, where there were any."""
    if not (shares := prompt.shares_of(turn.trace)):
        alone = commanded(turn)
        what = f"{ids.show('turn', turn.turn_id)} recorded no context to draw" + (f": {alone}" if alone else "")
        raise refused(what, "keepsaid why")
    title = f"{ids.show('turn', turn.turn_id)}   {turn.batch.lane.conversation} {turn.batch.lane.key}"
    picture = pictures.context_bar(title, shares, session().config().compaction.window_tokens)
    memory = turn.trace.get("memory") if isinstance(turn.trace, dict) else None
    candidates: Any = memory.get("candidates") if isinstance(memory, dict) else None
    if candidates:
        picture = pictures.one_page(picture, pictures.rank_shift(title, candidates))
    try:
        file.write_text(picture, "utf-8")
    except OSError as error:
        raise refused(f"{file} cannot be written ({error.strerror})") from error
    say(f"drawn in {file}")


def _context(trace: dict[str, Any]) -> list[tuple[str, str]]:
    shares, memory = prompt.shares_of(trace), trace.get("memory") or {}
    if not shares:
        return [("context", "not recorded: the turn ended before its first step")]
    shown = [f"{one.name} {one.tokens:,}" + (f" ({one.cut})" if one.cut else "") for one in shares]
    total = int(sum(one.tokens for one in shares) * trace.get("factor", 1.0) + 0.5)
    return [("context", f"{' | '.join(shown)}   about {total:,} tokens"), *_focus(trace), *searched(memory)]


def _prefix(turn: views.TurnStory) -> list[tuple[str, str]]:
    if (found := guard.compared(turn.before, turn.trace)) is None:
        return []
    one, why = found
    said = f"{one.share:.0%} of the previous prompt can be cached, {one.bytes:,} of {one.whole:,} bytes"
    part = f"{one.stable_share:.0%} of the part before its status, because {why}"
    return [("prefix", f"{said}; {part if why else 'all of the part before its status'}")]


def _focus(trace: dict[str, Any]) -> list[tuple[str, str]]:
    """What the newest message was taken to be about, and the questions that were settled."""
    focus, lines = trace.get("focus"), []
    if focus:
        whose = f" of {focus['speaker']}" if focus["speaker"] else ""
        lines.append(("focus", f"{focus['kind']} {_ref(focus['ref'])}{whose}".rstrip() + f": {focus['reason']}"))
    for slot in trace.get("slots") or []:
        asked = f"{one_line(slot['question'])} ({slot['expected']}), asked in {ids.show('turn', slot['turn'])}"
        lines.append(("slot", f"{asked}   {_ENDED[slot['verb']]}: {one_line(slot['value'] or slot['reason'])}"))
    return lines


def _ref(ref: str) -> str:
    """A message or the reply of a turn, named as everywhere else."""
    what, _, number = ref.partition(":")
    if what == "message":
        return ids.show("message", int(number))
    return f"our reply in {ids.show('turn', int(number))}" if what == "reply" else "a notice of ours" if what else ""


def _ended(turn: views.TurnStory) -> list[tuple[str, str]]:
    lines = [("step", f"{step.n}  {step.kind} {step.subject}  {step.state}") for step in turn.steps]
    lines += [("asked", one_line(question)) for question in questions_in(turn.records)]
    for reply in turn.replies:
        kind = "notice" if reply.draft.notice else "reply"
        stands = f"{ids.show('reply', reply.id)} is {inbox.standing(reply)}, attempts {reply.attempts}"
        lines += [(kind, one_line(reply.draft.text)), *sent_lines(reply), ("delivery", stands)]
    usage = turn.usage
    cost = "not known" if usage.cost_micros is None else f"${usage.cost_micros / 1_000_000:.4f}"
    lines.append(("tokens", f"in {usage.tokens_in:,}   out {usage.tokens_out:,}   cost {cost}"))
    return lines
