"""Hooks of coding agents: prompts and answers are recorded, and memory of the project is given back (spec: doors, c).

A hook calls no model and starts no process. Memory that is slow or broken leaves the agent without memory, and never
without its answer.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from keepsaid.domain.agent_hook import (
    TOOL_BYTES_MAX,
    HookCall,
    HookEvent,
    HookLine,
    answer_key,
    cut_bytes,
    prompt_key,
    public_text,
)
from keepsaid.domain.principal import Principal, Scope
from keepsaid.domain.process import Note
from keepsaid.domain.project import in_project
from keepsaid.domain.recorded_talk import RECORDED_MAX
from keepsaid.errors import KeepsaidError, KeyConflict, NotAllowed
from keepsaid.ports.runtime import Clock, Redactor, masked_texts
from keepsaid.ports.store_views import Notes
from keepsaid.services import agent_files
from keepsaid.services.assistant import Assistant, Talk
from keepsaid.services.context import Reminding
from keepsaid.text.normal import cut, digest
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.hooks")

START_CHARS_MAX, PROMPT_TOKENS_MAX = 2_000, 1_500
"""How much memory a hook gives: characters when a session starts, estimated tokens with a prompt."""

_QUERY_CHARS_MAX = 4_000
_WITHIN_S = 1.0
_SESSIONS_MAX, _SHOWN_MAX = 1_000, 500

GIVEN_MS = 7 * 86_400_000
"""So long it is kept what a session was given, milliseconds after the last change."""

_CUT = "\n…"


class HookSession:
    """A session as far as this process has seen it: `mark` is how far its transcript was read."""

    def __init__(self) -> None:
        self.mark = agent_files.TranscriptMark()
        self.reading = asyncio.Lock()


@frozen
class SessionMemory:
    """What stands in the context of a session: the hash of the text that it started with, and memories by id.

    It is a note on disk, so that it outlives the process and serves others at the same store. It names the person, so
    that forgetting a person takes it too; it holds no text.
    """

    start: str = ""
    memories: tuple[int, ...] = ()

    def shown(self, memories: Iterable[int]) -> SessionMemory:
        """The same with memories that were given now; the newest 500 count."""
        every = tuple(dict.fromkeys((*self.memories, *memories)))
        return replace(self, memories=every[-_SHOWN_MAX:])

    def as_text(self, person: str) -> str:
        """The text of the note."""
        return json.dumps({"person": person, "start": self.start, "memories": self.memories})


def session_memory_in(text: str | None) -> SessionMemory:
    """What a note says; nothing where there is none."""
    if not text:
        return SessionMemory()
    fields = json.loads(text)
    return SessionMemory(fields["start"], tuple(fields["memories"]))


class SessionNotes:
    """The notes of what sessions were given, which are kept for a week after the last one."""

    def __init__(self, notes: Notes, clock: Clock) -> None:
        self._notes, self._clock = notes, clock

    async def read(self, who: Principal, conversation: str) -> SessionMemory:
        """What a session was given. Raises a StoreError."""
        return session_memory_in(await self._notes.note(_note_name(who, conversation), self._clock.now_ms()))

    async def keep(self, who: Principal, conversation: str, given: SessionMemory) -> None:
        """Note what a session was given. Raises a StoreError."""
        now = self._clock.now_ms()
        name, text = _note_name(who, conversation), given.as_text(who.person)
        await self._notes.apply(Note(name, text, now + GIVEN_MS, now))


def _note_name(who: Principal, conversation: str) -> str:
    return f"hook-session:{digest(who.name, who.sender, conversation).hex()}"


class AgentHooks:
    """Answers the hooks of coding agents in the name of a sender, within the project of the agent's folder."""

    def __init__(self, assistant: Assistant, redactor: Redactor, given: SessionNotes) -> None:
        self._assistant, self._redactor, self._given = assistant, redactor, given
        self._sessions: OrderedDict[tuple[str, str], HookSession] = OrderedDict()

    async def answer(self, who: Principal, call: HookCall, transcripts: Path | None) -> str:
        """Do what an event asks for, and return the text that the agent is to be given; "" for none.

        A transcript is read only below the folder `transcripts`. Raises NotAllowed for a key without both scopes.
        """
        for scope in (Scope.READ, Scope.WRITE):
            if not who.may(scope):
                raise NotAllowed(f"the key {who.name} does not open this: it needs the scope {scope}")
        if call.event not in list(HookEvent):
            return ""
        place = await asyncio.to_thread(agent_files.workplace, call.folder)
        if place.off:
            return ""
        file = None
        if transcripts is None:
            call = replace(call, transcript="")
        elif call.transcript:
            file = await asyncio.to_thread(agent_files.transcript_file, call.transcript, transcripts)
        return await self._answered(in_project(who, place.project), call.conversation(place.project), call, file)

    async def _answered(self, who: Principal, conversation: str, call: HookCall, file: Path | None) -> str:
        session = self._session(who, conversation)
        if call.event == HookEvent.START:
            return await self._start(who, conversation, call)
        if call.event == HookEvent.PROMPT:
            return await self._prompt(who, conversation, call, (session, file))
        if call.event == HookEvent.TOOL:
            await self._tool(who, conversation, call)
        else:
            await self._answers(who, conversation, call, (session, file))
        return ""

    async def _start(self, who: Principal, conversation: str, call: HookCall) -> str:
        """The bulletin and the summary. A session that goes on still has its text, and is not given it twice."""
        text, is_resumed = "", call.source == "resume"
        try:
            async with asyncio.timeout(_WITHIN_S):
                built = await self._assistant.contexts.standing(who, conversation)
                text = _cut_lines("\n\n".join(filter(None, (built.bulletin, built.summary))), START_CHARS_MAX)
                before = await self._given.read(who, conversation)
                # of another start, what stood in its context is summarised, or gone
                now = replace(before if is_resumed else SessionMemory(), start=digest(text).hex())
                if now != before:
                    await self._given.keep(who, conversation, now)
                if is_resumed and now.start == before.start:
                    text = ""
        except (KeepsaidError, TimeoutError) as error:
            _missing("a session starts without memory", error)
        return text

    async def _prompt(
        self, who: Principal, conversation: str, call: HookCall, known: tuple[HookSession, Path | None]
    ) -> str:
        """Memory for a prompt, and the prompt's record."""
        text, found, (session, file) = public_text(call.prompt), "", known
        if not text:
            return ""
        try:
            async with asyncio.timeout(_WITHIN_S):
                given = await self._given.read(who, conversation)
                lately = frozenset(given.memories)
                asked = Reminding(conversation, cut(text, _QUERY_CHARS_MAX), PROMPT_TOKENS_MAX, lately)
                injection = await self._assistant.contexts.remind(who, asked)
                found = injection.block
                now = given.shown(one.hit.memory.id for one in injection.candidates if one.chosen)
                if now != given:
                    await self._given.keep(who, conversation, now)
        except (KeepsaidError, TimeoutError) as error:
            _missing("a prompt goes without memory", error)
        key = prompt_key(call.prompt_id)
        if not call.prompt_id:
            named = file, call.session, session.mark, text
            key = await asyncio.to_thread(agent_files.next_prompt_key, *named)
        await self._talk(who, conversation, [Talk(text, key=key)], wait=False)
        return found

    async def _tool(self, who: Principal, conversation: str, call: HookCall) -> None:
        [masked] = await masked_texts(self._redactor, [f"{call.tool}: {call.output}"])
        text = cut_bytes(masked.text, TOOL_BYTES_MAX)
        key = f"tool:{call.tool_id}" if call.tool_id else f"tool:{digest(call.prompt_id, text).hex()}"
        await self._talk(who, conversation, [Talk(text, key=key, external=True)], wait=False)

    async def _answers(
        self, who: Principal, conversation: str, call: HookCall, known: tuple[HookSession, Path | None]
    ) -> None:
        """Record what was said since the last time: of the transcript, else of the call itself."""
        session, file = known
        if file is None:
            lines = [*call.lines]
            if call.answer and not lines:
                lines.append(_last_answer(call))
            await self._record(who, conversation, lines)
            return
        async with session.reading:
            try:
                part = await asyncio.to_thread(agent_files.read_transcript, file, call.session, session.mark)
            except OSError as error:
                _log.warning("a transcript cannot be read (%s)", error.strerror)
                return
            if await self._record(who, conversation, part.lines):
                session.mark = part.mark

    async def _record(self, who: Principal, conversation: str, lines: Sequence[HookLine]) -> bool:
        """Record prompts and answers; returns whether all are stored."""
        said = [Talk(line.text, line.answer, line.key) for line in lines if line.text.strip()]
        return all(
            [await self._talk(who, conversation, said[n : n + RECORDED_MAX]) for n in range(0, len(said), RECORDED_MAX)]
        )

    async def _talk(self, who: Principal, conversation: str, said: Sequence[Talk], *, wait: bool = True) -> bool:
        try:
            await self._assistant.record(who, conversation, said, wait=wait)
        except KeyConflict:
            pass  # the transcript has a prompt in other words than the hook; the first ones are kept
        except KeepsaidError as error:
            _missing("a session goes on without being recorded", error)
            return False
        return True

    def _session(self, who: Principal, conversation: str) -> HookSession:
        name = (who.name, conversation)
        found = self._sessions.setdefault(name, HookSession())
        self._sessions.move_to_end(name)
        while len(self._sessions) > _SESSIONS_MAX:
            self._sessions.popitem(last=False)
        return found


def _last_answer(call: HookCall) -> HookLine:
    """The last answer of a call; where a transcript is not written yet, its key is the one that the line will have."""
    text = public_text(call.answer)
    key = answer_key(text, 1) if call.transcript else f"answer:{call.prompt_id or digest(call.answer).hex()}"
    return HookLine(text, answer=True, key=key)


def _cut_lines(text: str, chars_max: int) -> str:
    """Whole lines of a text, in `chars_max` characters at most."""
    if len(text) <= chars_max:
        return text
    head = text[: chars_max - len(_CUT)]
    return (head.rpartition("\n")[0] or head) + _CUT


def _missing(what: str, error: Exception) -> None:
    why = error.code if isinstance(error, KeepsaidError) else "too slow"
    _log.warning("%s (%s)", what, why, extra={"code": why})
