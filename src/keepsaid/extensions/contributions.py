"""What loaded extensions add to a turn: tools, context and channels (seed 002)."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

from keepsaid.domain import message, turn
from keepsaid.domain.scene import Contribution
from keepsaid.extensions import discovery, loaded, loading, manifest, provided
from keepsaid.ports import channel, model, runtime
from keepsaid.ports.extension import StreamingProvider
from keepsaid.text.normal import normalise

_log = logging.getLogger("keepsaid.extensions")
_LIMIT_S = 0.5
"""How long each may take to add to a prompt."""

_CHARS_MAX = 20_000
_MISSES_MAX = 3
_LEFT_OUT_MS = 600_000
"""How long a text is left out that took too long three times."""

_Text = Callable[[], Awaitable[Sequence[Contribution]]]


class ExtensionContributions:
    """Tools and prompt contributions of the extensions that are active when a turn begins.

    `noted` is called when the notes of an extension changed.
    """

    def __init__(
        self,
        active: Callable[[], Sequence[loaded.LoadedExtension]],
        clock: runtime.Clock,
        noted: Callable[[], None],
        limit_s: float = _LIMIT_S,
    ) -> None:
        self.active = active
        self._clock = clock
        self._noted = noted
        self._limit_s = limit_s

    def tools(self, claimed: turn.ClaimedBatch) -> tuple[Sequence[model.Tool], Sequence[model.Tool]]:
        """The tools of built-in extensions, and those of the others; of two with one name the first stays."""
        core: dict[str, model.Tool] = {}
        others: dict[str, model.Tool] = {}
        for extension in self.active():
            known = core if extension.found.source is discovery.ExtensionSource.BUILT_IN else others
            for tool in (*extension.provided.tools, *_of_turn(extension, claimed)):
                known.setdefault(tool.name, tool)
        return tuple(core.values()), tuple(tool for name, tool in others.items() if name not in core)

    def lasting(self) -> Sequence[model.Tool]:
        """Tools that belong to no turn, so that a worker may use them too."""
        known = {tool.name: tool for extension in reversed(self.active()) for tool in extension.provided.tools}
        return tuple(known.values())

    async def contribute(self, claimed: turn.ClaimedBatch) -> tuple[Contribution, ...]:
        """What each adds; a text that fails or takes too long is named instead, and silences no other."""
        asked = [
            self._ask(extension, name, say) for extension in self.active() for name, say in _texts(extension, claimed)
        ]
        return tuple(one for several in await asyncio.gather(*asked) for one in several)

    async def _ask(self, extension: loaded.LoadedExtension, name: str, say: _Text) -> Sequence[Contribution]:
        misses, now = extension.misses.setdefault(name, loaded.Misses()), self._clock.monotonic_ms()
        if misses.until_ms > now:
            return (Contribution(extension.id, "", missing="it took too long three times"),)
        added: list[Contribution] = []

        async def ask() -> None:
            added.extend(await say())

        fault = await loading.run_phase(loaded.Phase.PROVIDE, ask, self._limit_s)
        hung = fault is not None and fault.reason == loading.too_long(self._limit_s)
        self._count(extension, name, misses, hung=hung)
        if fault is None:
            return added
        _log.warning("%s of the extension %s adds nothing to a prompt: %s", name, extension.id, fault.reason)
        reason = fault.reason.partition(":")[0]  # the words of the error may quote the message
        return (Contribution(extension.id, "", missing=reason),)

    def _count(self, extension: loaded.LoadedExtension, name: str, misses: loaded.Misses, *, hung: bool) -> None:
        """Count how often a text took too long in a row; after three times it is left out for a while, then asked."""
        misses.count = misses.count + 1 if hung else 0
        if misses.count >= _MISSES_MAX:
            misses.until_ms = self._clock.monotonic_ms() + _LEFT_OUT_MS
            lasts = f"{_LEFT_OUT_MS // 60_000} min"
            extension.notes[name] = f"{name} took too long three times; prompts do without it for {lasts} at a time"
            self._noted()
        elif extension.notes.pop(name, None) is not None:
            self._noted()


def _texts(extension: loaded.LoadedExtension, claimed: turn.ClaimedBatch) -> Iterator[tuple[str, _Text]]:
    """What an extension can add to a prompt, each by the name of its method."""
    for mark, say in extension.provided.says:

        async def said(mark: manifest.ContextMark = mark, say: provided.Say = say) -> Sequence[Contribution]:
            text = await say(claimed)
            shown = normalise(str(text or ""))[:_CHARS_MAX]
            return (Contribution(extension.id, shown, mark.priority, trust=mark.trust),) if text else ()

        yield getattr(say, "__name__", "context"), said
    if (contributor := extension.provided.contributor) is not None:
        yield "contribute", lambda: contributor.contribute(claimed)


def _of_turn(extension: loaded.LoadedExtension, claimed: turn.ClaimedBatch) -> Iterator[model.Tool]:
    if extension.provided.turn_tools is None:
        return
    try:
        yield from extension.provided.turn_tools.tools(claimed)
    except Exception as error:  # noqa: BLE001  # guard: extension - without its tools the turn goes on
        _log.warning("the extension %s has no tools for a turn (%s)", extension.id, type(error).__name__)


_PIECES_MAX = 256
_PIECE_S = 5.0
_SILENT_S = 300.0
"""After this time without progress of a lane, its stream is closed."""


class Streams:
    """Tells those who wait for a message, and the channel it came by."""

    def __init__(self, others: channel.Progresses, active: Callable[[], Sequence[loaded.LoadedExtension]]) -> None:
        self._others = others
        self._active = active
        self._shown: dict[message.Lane, tuple[asyncio.Queue[str], asyncio.Task[None]]] = {}

    def tell(self, messages: Sequence[message.StoredMessage], progress: channel.TurnProgress) -> None:
        self._others.tell(messages, progress)
        if progress.kind in ("began", "waiting"):
            return
        streaming = {one.id: one.provided.streaming for one in self._active() if one.provided.streaming is not None}
        if not streaming:
            return
        for lane in {said.lane: None for said in messages}:
            if lane.channel in streaming:
                self._show(streaming[lane.channel], lane, progress.text if progress.kind == "delta" else "")

    def _show(self, provider: StreamingProvider, lane: message.Lane, piece: str) -> None:
        if lane not in self._shown:
            queue: asyncio.Queue[str] = asyncio.Queue(_PIECES_MAX)
            self._shown[lane] = queue, asyncio.create_task(self._pump(provider, lane, queue), name="stream")
        queue, _ = self._shown[lane]
        if not queue.full():
            queue.put_nowait(piece)

    async def _pump(self, provider: StreamingProvider, lane: message.Lane, queue: asyncio.Queue[str]) -> None:
        """Show what comes, until an answer is settled and nothing more has come."""
        try:
            while True:
                async with asyncio.timeout(_SILENT_S):
                    piece = await queue.get()
                async with asyncio.timeout(_PIECE_S):
                    await provider.stream(lane, piece)
                if not piece and queue.empty():
                    return
        except Exception as error:  # noqa: BLE001  # guard: extension - what it did not show comes with the answer
            _log.warning("the channel %s shows no pieces (%s)", lane.channel, type(error).__name__)
        finally:
            del self._shown[lane]


_LISTENING, _WELL_MS = "listen", 10_000
"""The note that listening fails, which goes once it went on for this time."""

_AGAIN_MS, _AGAIN_MS_MAX = 1_000, 60_000
_LONG_MS = 60_000
"""A channel that listened for this time before it failed restarts after the shortest wait."""


class Listeners:
    """One coroutine a channel that listens; `noted` is called when the note that one fails came or went."""

    def __init__(self, clock: runtime.Clock, noted: Callable[[], None]) -> None:
        self._clock = clock
        self._noted = noted
        self._listening: dict[str, asyncio.Task[None]] = {}

    def begin(self, extension: loaded.LoadedExtension) -> None:
        assert extension.context is not None, "what is active has a context"
        work = self._listen(extension, extension.context.inbox)
        self._listening[extension.id] = asyncio.create_task(work, name=f"listen-{extension.id}")

    async def end(self, id_: str | None = None, patience_s: float = 2.0) -> None:
        """Let one, or all, listen no more; one that does not heed is left behind."""
        ids = [id_] if id_ else list(self._listening)
        ended = [self._listening.pop(one) for one in ids if one in self._listening]
        for task in ended:
            task.cancel()
        if ended:
            await asyncio.wait(ended, timeout=patience_s)

    async def _listen(self, extension: loaded.LoadedExtension, inbox: channel.InboundSink) -> None:
        wait_ms, failures = _AGAIN_MS, 0
        while extension.active and extension.provided.listen is not None:
            began, why = self._clock.monotonic_ms(), "it ended"
            try:
                await self._run(extension, extension.provided.listen(inbox))
                _log.warning("the channel of %s stopped listening", extension.id)
            except (Exception, SystemExit) as error:  # noqa: BLE001  # guard: extension - the channel restarts
                why = f"{type(error).__name__}{_raised_at(error, extension.found.place)}"  # no words: they may quote
                _log.warning("the channel of %s failed (%s)", extension.id, why, exc_info=error)
            if self._clock.monotonic_ms() - began > _LONG_MS:
                wait_ms, failures = _AGAIN_MS, 0
            failures += 1
            if failures >= _MISSES_MAX:
                extension.notes[_LISTENING] = f"listening failed {failures} times in a row ({why}); it is tried again"
                self._noted()
            await self._clock.wait(asyncio.Event(), wait_ms)
            wait_ms = min(2 * wait_ms, _AGAIN_MS_MAX)

    async def _run(self, extension: loaded.LoadedExtension, listening: Awaitable[None]) -> None:
        """Listen; once that went well for a while, the note that it fails goes."""
        ended = asyncio.Event()
        task = asyncio.ensure_future(listening)
        task.add_done_callback(lambda _: ended.set())
        try:
            if _LISTENING in extension.notes:
                await self._clock.wait(ended, _WELL_MS)
                if not task.done():
                    del extension.notes[_LISTENING]
                    self._noted()
            await task
        finally:
            task.cancel()


def _raised_at(error: BaseException, place: Path) -> str:
    """The file and the line of an extension where an error was raised, or came through."""
    frames = traceback.extract_tb(error.__traceback__)
    folder = place if place.is_dir() else place.parent
    own = [one for one in frames if Path(one.filename).is_relative_to(folder)] or frames
    return f" at {Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""
