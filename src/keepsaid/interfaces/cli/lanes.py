"""`keepsaid inbox lanes`: lists and shows lanes, their sessions, questions and summaries; resets and compacts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from keepsaid.domain import compaction, context, strand
from keepsaid.domain.ids import show, when
from keepsaid.domain.message import Lane
from keepsaid.errors import InputError
from keepsaid.interfaces.cli import console, remote
from keepsaid.interfaces.shapes import Shape, fields_of, lane_shape, times_of
from keepsaid.text.normal import counted
from keepsaid.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from keepsaid.domain.session import Session
    from keepsaid.domain.slot import Slot
    from keepsaid.domain.views import LaneLine
    from keepsaid.ports.store_views import BufferView

_OPENED = {
    "topic": "its messages name this topic",
    "reply": "its first message replies to one that is not known here",
    "root": "its messages name no topic and reply to nothing",
}


async def opened_because(views: BufferView, lane: Lane) -> str:
    """Why there is this lane; of a strand, why its first message began one."""
    if (first := strand.strand_begun_by(lane)) is None:
        return _OPENED.get(lane.key.partition(":")[0], "it was named so")
    story = await views.story(first)
    return show("message", first) + (", pruned since" if story is None else f": {story.placed}")


_SESSIONS = ("SESSION", "BEGAN", "WHY", "ENDED", "WHY", "RECORDS", "TO COLLECT")
_QUESTIONS = ("QUESTION", "TYPE", "ASKED", "EXPIRES")


def _session_row(one: Session) -> tuple[str, ...]:
    began, ended = when(one.started_at) or "-", when(one.ended_at) or "-"
    records = f"{one.first}-{one.last}" if one.last >= one.first else "-"
    mark = "-" if one.invalidated_at is None else f"to {one.invalidated_at} ({one.invalidated_reason})"
    return one.state, began, one.started_reason, ended, one.ended_reason or "-", records, mark


def session_shape(one: Session) -> Shape:
    """A session in JSON."""
    return {
        "state": one.state,
        "started_at": when(one.started_at),
        "started_reason": one.started_reason,
        **times_of(one, "active_at", "ended_at"),
        "ended_reason": one.ended_reason or None,
        "records": {"first": one.first, "last": one.last} if one.last >= one.first else None,
        "waits_for_collection": one.invalidated_at is not None,
        "collect_up_to": one.invalidated_at,
        "collect_reason": one.invalidated_reason or None,
    }


def _slot_row(one: Slot) -> tuple[str, ...]:
    options = f": {', '.join(one.question.options)}" if one.question.options else ""
    return one.question.text, f"{one.question.expected}{options}", one.person, when(one.expires_at) or "-"


def slot_shape(one: Slot) -> Shape:
    """A question in JSON."""
    question = one.question
    shape = {"question": question.text, "expected": str(question.expected), "options": list(question.options)}
    return {**shape, "person": one.person, **times_of(one, "opened_at", "expires_at")}


T = TypeVar("T")
app = typer.Typer(help="Inspect lanes, the strands of a conversation.", rich_markup_mode=None)
_LANES_MAX = 10_000
_SHOWN_MAX = 10
_SLOTS_MAX = 100
Named = Annotated[
    str,
    typer.Argument(
        metavar="LANE", help="Conversation, key, or both, as `inbox lanes ls` shows them; or how it begins."
    ),
]


@app.command("ls")
def ls(limit: console.Limit = 20) -> None:
    """List lanes, most recently active first."""

    async def listed(stores: console.Stores) -> list[tuple[LaneLine, int]]:
        lines = await stores.views.lanes(limit)
        return [(line, _tokens(await stores.views.context(line.lane, context.TAIL_MAX))) for line in lines]

    found = console.session().read(listed) or []
    headings = ("CHANNEL", "CONVERSATION", "LANE", "LAST", "WAITING", "SESSION", "SUMMARY", "TOKENS")
    shape = {"lanes": [_line_shape(*one) for one in found]}
    console.show_rows(shape, headings, (_row(*one) for one in found), "no lane yet")


def _row(line: LaneLine, tokens: int) -> tuple[str, ...]:
    lane, last = line.lane, console.age(line.last_at) if line.last_at else "-"
    counts = str(line.waiting), line.session, str(line.summary or "-"), f"{tokens:,}"
    return lane.channel, lane.conversation, lane.key, last, *counts


def _line_shape(line: LaneLine, tokens: int) -> Shape:
    last_at = when(line.last_at) if line.last_at else None
    counts = {**fields_of(line, "waiting", "session"), "summary": line.summary or None, "records": line.records}
    modes = fields_of(line, "paused", "incognito")
    return {"lane": lane_shape(line.lane), "last_at": last_at, **counts, "tokens": tokens, **modes}


def _tokens(tail: context.LaneTail) -> int:
    """Estimated tokens of what a turn would be shown of a lane."""
    return estimate_tokens(tail.standing_for) + compaction.tokens(tail.recent.records)


async def lane_named(stores: console.Stores, thing: str) -> Lane:
    """The lane that a name means: the whole of one, else the only one that begins so. Raises InputError."""
    known = [line.lane for line in await stores.views.lanes(_LANES_MAX)]
    wanted = thing.strip()
    named = [lane for lane in known if wanted in _names(lane)]
    named = named or [lane for lane in known if any(name.startswith(wanted) for name in _names(lane))]
    if len(named) == 1:
        return named[0]
    if not named:
        raise console.refused(f"there is no lane {thing}", "keepsaid inbox lanes ls")
    told = ", ".join(f"{lane.channel} {lane.conversation} {lane.key}" for lane in named[:3])
    what = f"{thing} names {len(named)} lanes: {told}" + (" and others" if len(named) > 3 else "")
    raise console.refused(what, 'keepsaid inbox lanes show "CHANNEL CONVERSATION LANE"')


def _names(lane: Lane) -> tuple[str, ...]:
    place = f"{lane.conversation} {lane.key}"
    return lane.key, lane.conversation, place, f"{lane.channel} {place}", f"{lane.channel} {lane.account} {place}"


def _read(thing: str, work: Callable[[console.Stores], Awaitable[T]]) -> T:
    """What `work` reads of a lane. Raises InputError where nothing was ever stored."""
    return console.session().need(work, f"there is no lane {thing}: {console.NOTHING}", "keepsaid chat")


@app.command("show")
def show_one(
    thing: Named,
    sessions: Annotated[
        int, typer.Option("--sessions", min=1, max=1_000, help="How many sessions, newest first.")
    ] = 10,
) -> None:
    """Show one lane: sessions, open questions, summary, and its most recent records."""

    async def read(stores: console.Stores) -> tuple[Lane, context.LaneTail, Sequence[Session], Sequence[Slot], str]:
        views, lane = stores.views, await lane_named(stores, thing)
        newest, why = await views.sessions(lane, sessions), await opened_because(views, lane)
        return lane, await views.context(lane, context.TAIL_MAX), newest, await views.slots(lane, _SLOTS_MAX), why

    lane, tail, found, slots, why = _read(thing, read)
    open_slots = [slot for slot in slots if slot.state == "open"]
    records = tail.recent.records
    shape = {
        "lane": lane_shape(lane),
        "opened_because": why,
        "session": session_shape(found[0]) if found else None,
        "sessions": [session_shape(one) for one in found],
        "slots": [slot_shape(one) for one in open_slots],
        "summary": _summary_shape(tail.summary) if tail.summary else None,
        "version": tail.version,
        "tokens": _tokens(tail),
        "tail": [{"role": str(one.role), "speaker": one.speaker, "text": one.text} for one in records],
    }
    lines = [("opened", why), ("session", _session_line(found[0]) if found else "none yet")]
    stands = f"version {tail.summary.version}, records up to {tail.summary.last}" if tail.summary else "none"
    shown = f"{counted(len(records), 'record')}, about {_tokens(tail):,} tokens with the summary"
    lines += [("summary", stands), ("shown", shown)]
    if tail.left_out:
        lines.append(("left out", f"{counted(tail.left_out, 'message')} for want of room"))
    lines += [("", f"{one.speaker or one.role}: {console.one_line(one.text)}") for one in records[-_SHOWN_MAX:]]
    parts: list[str | console.Table] = [f"{lane.conversation} {lane.key}   {lane.channel}", console.facts(lines)]
    if open_slots:
        parts += ["", console.Table(_QUESTIONS, tuple(map(_slot_row, open_slots)))]
    if found:
        parts += ["", console.Table(_SESSIONS, tuple(map(_session_row, found)))]
    console.show(shape, *parts)


def _session_line(one: Session) -> str:
    began = f"{when(one.started_at)} ({one.started_reason})"
    if one.ended_at is None:
        return f"{one.state} since {began}"
    return f"none now; the last ended {when(one.ended_at)} by {one.ended_reason} and began {began}"


def _summary_shape(one: context.Summary) -> Shape:
    made = {"made": str(one.made), "model": one.model, "created_at": when(one.created_at)}
    return {**fields_of(one, "version", "first", "last"), **made, "text": one.text}


@app.command("summary")
def summary(
    thing: Named,
    version: Annotated[int | None, typer.Option(min=1, help="An older version; by default the newest.")] = None,
) -> None:
    """Show a lane's summary and its versions."""

    async def read(stores: console.Stores) -> tuple[Lane, Sequence[context.Summary]]:
        lane = await lane_named(stores, thing)
        return lane, await stores.views.summaries(lane)

    lane, versions = _read(thing, read)
    if (wanted := next((one for one in versions if version in (None, one.version)), None)) is None:
        has = f"has versions {', '.join(str(one.version) for one in versions)}" if versions else "has no summary yet"
        raise InputError(f"{lane.conversation} {lane.key} {has}", hint=f'keepsaid inbox lanes show "{thing}"')
    versioned = {"summary": _summary_shape(wanted), "versions": [one.version for one in versions]}
    made = f"by {wanted.model}" if wanted.model else f"{wanted.made}"
    heading = f"version {wanted.version}, {made}, {when(wanted.created_at)}, records {wanted.first} to {wanted.last}"
    console.show({"lane": lane_shape(lane), **versioned}, heading, "", wanted.text)


@app.command("reset")
def reset(thing: Named) -> None:
    """Reset a lane: the model no longer sees what was said so far; everything stays stored."""
    lane = _read(thing, lambda stores: lane_named(stores, thing))
    left = remote.post("/v1/lanes/reset", lane_shape(lane))[0]["records"]
    if left < 0:
        raise console.refused("the lane moved meanwhile", f'keepsaid inbox lanes reset "{thing}"')
    told = f"{lane.conversation} {lane.key}  is reset; {counted(left, 'record')} left its context"
    console.show({"lane": lane_shape(lane), "records": left}, told)


@app.command("compact")
def compact(
    thing: Named,
    now: Annotated[
        bool, typer.Option("--now", help="Summarise all but the newest messages, whether due or not.")
    ] = False,
) -> None:
    """Summarise the older part of a lane, if that is due."""
    lane = _read(thing, lambda stores: lane_named(stores, thing))
    told = remote.post("/v1/lanes/compact", {**lane_shape(lane), "now": now})[0]["told"]
    console.show({"lane": lane_shape(lane), "told": told}, f"{lane.conversation} {lane.key}  {told}")
