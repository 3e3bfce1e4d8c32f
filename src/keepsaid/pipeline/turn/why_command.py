"""(short: one command) The command `/why`: what the last answer of a conversation rests on, in a few lines."""

from __future__ import annotations

from collections.abc import Iterator

from keepsaid.domain.ids import show
from keepsaid.domain.message import Lane
from keepsaid.domain.receipt import chosen_in
from keepsaid.domain.turn import StepKind
from keepsaid.domain.views import TurnStory
from keepsaid.ports.store import Store
from keepsaid.text.normal import counted, cut

_MEMORIES_MAX, _CHARS_MAX = 8, 120
NOTHING = "No message here was answered yet."


async def describe_last(lanes: Store, lane: Lane) -> str:
    """Why the last message of a lane was answered so: by which rule, from which memories, and with which tools."""
    number = await lanes.last_turn(lane, commands=False)
    story = None if number is None else await lanes.turn(number)
    return NOTHING if story is None else "\n".join(_lines(story))


def _lines(story: TurnStory) -> Iterator[str]:
    verdict, shown = story.batch.verdict, chosen_in(story.trace)
    yield f"The last message here: {verdict.action}, because {verdict.reason}."
    yield f"{counted(len(shown), 'memory', 'memories')} came to mind{':' if shown else '.'}"
    for one in shown[:_MEMORIES_MAX]:
        yield f"- {cut(' '.join(str(one['text']).split()), _CHARS_MAX)} ({show('memory', int(str(one['id'])))})"
    if len(shown) > _MEMORIES_MAX:
        yield f"- and {len(shown) - _MEMORIES_MAX} more"
    if tools := list(dict.fromkeys(step.subject for step in story.steps if step.kind is StepKind.TOOL)):
        yield f"Tools that were called: {', '.join(tools)}."
    yield f"A memory that is wrong: /wrong. All of it: keepsaid inbox why {show('turn', story.turn_id)}"
