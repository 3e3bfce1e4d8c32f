"""`keepsaid why --memory` and `--not`: the turns a memory came up in, and why one was not shown it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from keepsaid.domain.ids import read
from keepsaid.domain.ids import show as name
from keepsaid.domain.memory import Listener, Memory
from keepsaid.domain.receipt import Feedback, Use
from keepsaid.domain.views import TurnStory
from keepsaid.errors import InputError
from keepsaid.interfaces.cli.output import show, wrapped
from keepsaid.interfaces.cli.receipts import judged, shortened, uses
from keepsaid.interfaces.cli.session import session
from keepsaid.interfaces.shapes import USES_MAX, absent_shape, came_up_shape, when

if TYPE_CHECKING:
    from keepsaid.app.stores import Reading

_OWNER = Listener(None, everything=True)


def explain_memory(thing: str) -> None:
    """In which turns a memory was shown, opened or left out, and what was said of that."""
    number = _numbered(thing)

    async def looked_up(stores: Reading) -> tuple[Memory | None, Sequence[Use], Sequence[Feedback]]:
        known = await stores.memories.get(_OWNER, number)
        return known, await stores.views.uses(number, USES_MAX), await stores.views.feedback(number)

    nothing: tuple[Memory | None, Sequence[Use], Sequence[Feedback]] = (None, (), ())
    memory, found, feedback = session().read(looked_up, nothing)
    if memory is None:
        raise _unknown(thing)
    heading = f"CAME UP IN {len(found)} of the turns on record" if found else "CAME UP IN no turn on record"
    said = wrapped(judged(feedback))
    parts = (_headed(memory), *filter(None, (said,)), heading, *uses(found))
    show(came_up_shape(memory, found, feedback), *parts)


def explain_absence(turn: TurnStory, thing: str) -> None:
    """Why a turn was not shown a memory."""
    from keepsaid.interfaces.absence import absence, listened  # noqa: PLC0415 - the words of relevance cost time

    number = _numbered(thing)

    async def looked_up(stores: Reading) -> tuple[Memory | None, bool]:
        known = await stores.memories.get(_OWNER, number)
        heard = known is not None and await stores.memories.get(listened(turn), number) is not None
        return known, heard

    nothing: tuple[Memory | None, bool] = (None, False)
    memory, heard = session().read(looked_up, nothing)
    if memory is None:
        raise _unknown(thing)
    why = absence(turn, memory, heard=heard)
    told = [
        ("turn", f"{name('turn', turn.turn_id)}   {when(turn.started_at)}"),
        *(("said", shortened(one.text)) for one in turn.messages),
        (why.stage.replace("_", " "), why.why),
    ]
    show(absent_shape(turn, memory, why), _headed(memory), wrapped(told))


def _headed(memory: Memory) -> str:
    return shortened(f"{name('memory', memory.id)}  [{memory.new.kind}] {memory.text}")


def _numbered(thing: str) -> int:
    number = read("memory", thing)
    if number is None:
        raise _unknown(thing)
    return number


def _unknown(thing: str) -> InputError:
    return InputError(f"there is no memory {thing}", safe="Nothing was changed.", hint="keepsaid memory ls")
