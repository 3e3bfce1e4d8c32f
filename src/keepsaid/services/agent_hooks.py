"""Hooks of coding agents: prompts and answers are recorded, and memory of the project is given back (spec: doors, c).

A hook calls no model and starts no process. Memory that is slow or broken leaves the agent without memory, and never
without its answer.
"""

from __future__ import annotations

import asyncio
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
from keepsaid.domain.project import in_project
from keepsaid.domain.recorded_talk import RECORDED_MAX
from keepsaid.errors import KeepsaidError, KeyConflict, NotAllowed
from keepsaid.ports.runtime import Redactor, masked_texts
from keepsaid.services import agent_files
from keepsaid.services.assistant import Assistant, Talk
from keepsaid.services.context import Reminding
from keepsaid.text.normal import cut, digest

_log = logging.getLogger("keepsaid.hooks")

START_CHARS_MAX, PROMPT_TOKENS_MAX = 2_000, 1_500
"""How much memory a hook gives: characters when a session starts, estimated tokens with a prompt."""

_QUERY_CHARS_MAX = 4_000
_WITHIN_S = 1.0
_SESSIONS_MAX, _SHOWN_MAX = 1_000, 500
_CUT = "\n…"


class HookSession:
    """A session as far as this process has seen it.

    `mark` is how far its transcript was read, `given` the hash of the text that it started with, `shown` the memories
    that stand in its context.
    """

    def __init__(self) -> None:
        self.mark = agent_files.TranscriptMark()
        self.given = b""
        self.shown: dict[int, None] = {}
        self.reading = asyncio.Lock()

    def note_shown(self, memories: Iterable[int]) -> None:
        """Note memories that the session was given, the newest 500."""
        self.shown |= dict.fromkeys(memories)
        for old in list(self.shown)[:-_SHOWN_MAX]:
            del self.shown[old]


class AgentHooks:
    """Answers the hooks of coding agents in the name of a sender, within the project of the agent's folder."""

    def __init__(self, assistant: Assistant, redactor: Redactor) -> None:
        self._assistant, self._redactor = assistant, redactor
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
            return await self._start(who, conversation, call, session)
        if call.event == HookEvent.PROMPT:
            return await self._prompt(who, conversation, call, (session, file))
        if call.event == HookEvent.TOOL:
            await self._tool(who, conversation, call)
        else:
            await self._answers(who, conversation, call, (session, file))
        return ""

    async def _start(self, who: Principal, conversation: str, call: HookCall, session: HookSession) -> str:
        """The bulletin and the summary. A session that goes on still has its text, and is not given it twice."""
        text = ""
        try:
            async with asyncio.timeout(_WITHIN_S):
                built = await self._assistant.contexts.standing(who, conversation)
            text = _cut_lines("\n\n".join(filter(None, (built.bulletin, built.summary))), START_CHARS_MAX)
        except (KeepsaidError, TimeoutError) as error:
            _missing("a session starts without memory", error)
        if call.source != "resume":  # what stood in its context is summarised, or gone
            session.shown.clear()
        given, session.given = session.given, digest(text)
        return "" if call.source == "resume" and given == session.given else text

    async def _prompt(
        self, who: Principal, conversation: str, call: HookCall, known: tuple[HookSession, Path | None]
    ) -> str:
        """Memory for a prompt, and the prompt's record."""
        text, found, (session, file) = public_text(call.prompt), "", known
        if not text:
            return ""
        try:
            async with asyncio.timeout(_WITHIN_S):
                lately = frozenset(session.shown)
                asked = Reminding(conversation, cut(text, _QUERY_CHARS_MAX), PROMPT_TOKENS_MAX, lately)
                injection = await self._assistant.contexts.remind(who, asked)
            found = injection.block
            session.note_shown(one.hit.memory.id for one in injection.candidates if one.chosen)
        except (KeepsaidError, TimeoutError) as error:
            _missing("a prompt goes without memory", error)
        key = prompt_key(call.prompt_id)
        if not call.prompt_id:
            given = file, call.session, session.mark, text
            key = await asyncio.to_thread(agent_files.next_prompt_key, *given)
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
