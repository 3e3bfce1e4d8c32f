"""Commands and questions: obeyed once, in no transcript, and answered by whoever was asked."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from keepsaid.domain.message import Lane
from keepsaid.domain.prompt import Role
from keepsaid.domain.slot import Expected, Slot, SlotState
from keepsaid.domain.views import Story
from keepsaid.ports.store import Store

_ALL = 100_000

Executed = tuple[str, str]
"""A turn that carried out a command, and the command's name."""


def is_command(story: Story) -> bool:
    """Whether somebody told the program something: in this world nothing else begins with a slash."""
    return story.message.text.startswith("/") and not story.message.inbound.content.event


def command_violations(executed: Iterable[Executed], stories: Iterable[Story]) -> Iterator[str]:
    """Commands that did not run exactly once, in the turn that settled them."""
    told = Counter(
        (str(story.turn_id), story.message.text[1:].split()[0])
        for story in stories
        if is_command(story) and story.state == "done"
    )
    done = Counter(executed)
    for turn, name in sorted(told | done):
        if told[turn, name] != done[turn, name]:
            yield f"/{name} was answered {told[turn, name]} times and done {done[turn, name]} times in turn {turn}"


async def question_violations(store: Store, stories: Sequence[Story]) -> list[str]:
    """Lanes with a command in the transcript, and questions with an answer by the wrong person or out of time."""
    by_lane: defaultdict[Lane, dict[str, Story]] = defaultdict(dict)
    for story in stories:
        by_lane[story.message.lane][f"message:{story.message.id}"] = story
    found = []
    for lane, heard in sorted(by_lane.items()):
        span = await store.span(lane, 0, _ALL)
        said = [record.text for record in span.records if record.role is Role.USER]
        found += [f"{lane}: a command is in the transcript: {text}" for text in said if text.startswith("/")]
        slots = await store.slots(lane, _ALL)
        found += [f"{lane}: {what}" for slot in slots for what in _slot_violations(slot, heard)]
        pending = Counter(slot.person for slot in slots if slot.state is SlotState.OPEN)
        found += [f"{lane}: {person} is asked {many} things at once" for person, many in pending.items() if many > 1]
    return found


async def questions(store: Store, lanes: Iterable[Lane]) -> list[str]:
    """How many questions stand how, in words."""
    states = Counter([str(slot.state) for lane in sorted(set(lanes)) for slot in await store.slots(lane, _ALL)])
    return [f"{many} questions are {state}" for state, many in sorted(states.items())]


def _slot_violations(slot: Slot, heard: dict[str, Story]) -> Iterator[str]:
    if slot.person not in {story.message.inbound.origin.sender for story in heard.values()}:
        yield f"{slot.person} is asked, who never spoke there"
    if slot.state is not SlotState.FILLED:
        return
    story = heard.get(slot.filled_by)
    if story is None:
        yield f"a question is answered by {slot.filled_by}, which was not said there"
        return
    message = story.message
    if message.inbound.origin.sender != slot.person or message.inbound.content.event or is_command(story):
        yield f"{slot.filled_by} answers what {slot.person} was asked"
    if not slot.opened_at <= message.received_at < slot.expires_at:
        yield f"{slot.filled_by} came too early or too late for its question"
    if slot.question.expected is Expected.TEXT and slot.value != message.text.strip():
        yield f"{slot.filled_by} is not what its question took down"
