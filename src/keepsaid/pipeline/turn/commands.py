"""Commands in a chat: carried out before any model is asked, by the commit that settles their turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from keepsaid.domain import ids, memory, personality, prompt, turn
from keepsaid.domain.command import (
    COMMANDS,
    REFUSED,
    Command,
    CommandResult,
    ExecutedCommand,
    command_in,
    may_change,
)
from keepsaid.domain.effects import SetIncognito, SetPaused, SetPersonality
from keepsaid.domain.message import Lane, StoredMessage, Trust
from keepsaid.errors import KeepsaidError
from keepsaid.pipeline.tools import conversation, tasks
from keepsaid.pipeline.turn.memory_commands import Claims, FeedbackCommand, forget, refused
from keepsaid.pipeline.turn.saving_commands import SavingCommands
from keepsaid.pipeline.turn.why_command import describe_last
from keepsaid.ports import memory_maintenance, store, store_views
from keepsaid.text.normal import cut
from keepsaid.text.patterns import lazy
from keepsaid.values import frozen

_PAUSED = "Paused. Messages here are stored and wait; none is answered until /resume. Commands are still read."
_RESUMED = "Resumed. Messages that waited are answered now, in order."
_INCOGNITO = (
    "Incognito is on. What is said here is answered and kept in the inbox. It is not remembered, and it is never shown "
    "in other conversations. /incognito off ends this."
)
_REMEMBERING = (
    "Incognito is off. What was said during it stays out of memory, and the model no longer sees it. What is said from "
    "now on is remembered."
)
HELP = "\n".join(f"/{name}: {meaning}" for name, meaning in COMMANDS.items())
"""The answer to `/help`, the same on every channel."""

_SAID = {
    "start": "Write as you would to a person. What you say is kept, and comes to mind later. /help lists the commands.",
    "help": HELP,
}
_SHOWN_CHARS = 40
_ID = lazy(r"[a-z]{3}_\w+")
_SCOPES = {"--session": "session", "--person": "person", "--global": "global"}
_WHO = {
    "session": "In a group only the owner may set how I speak, and nobody whom I do not know may anywhere.",
    "person": "How I speak with you is set in a chat between the two of us, if I know you.",
    "global": "Only the owner may set how I speak with everybody.",
}


@frozen
class CommandBatchResult:
    """Results of the commands of a batch; `rest` is the batch without them."""

    rest: turn.ClaimedBatch
    results: tuple[CommandResult, ...] = ()
    executed: tuple[ExecutedCommand, ...] = ()

    def with_answer(self, outcome: turn.Outcome) -> turn.Outcome:
        """The outcome of a turn whose rest came to `outcome`."""
        if not self.executed:
            return outcome
        text = "\n\n".join(one.text for one in self.results)
        reply = "\n\n".join(filter(None, (text, outcome.reply)))
        effects = (*(effect for one in self.results for effect in one.effects), *outcome.effects)
        return replace(outcome, reply=reply, effects=effects, executed=self.executed, begins_anew=self.begins_anew)

    @property
    def begins_anew(self) -> bool:
        """Whether the lane's context ends before what the turn adds."""
        return any(one.begins_anew for one in self.results)


@frozen
class HomeReports:
    """Texts about a whole home, for its owner: its status, and the messages that wait."""

    status: Callable[[], Awaitable[str]]
    inbox: Callable[[], Awaitable[str]]


@frozen
class Commands:
    """Carries out commands. `compact` summarises a lane and reports the result; `window` is the model's tokens."""

    lanes: store.Store
    personalities: store_views.PersonalityView
    compact: Callable[[Lane], Awaitable[str]]
    claims: Claims
    forgets: memory_maintenance.ForgetOperations
    saving: SavingCommands
    reports: HomeReports
    window: int = 0

    async def run_commands(self, claimed: turn.ClaimedBatch) -> CommandBatchResult:
        """Execute the commands of a batch; their changes take effect with the turn's commit only."""
        found = [(message, command) for message in claimed.messages if (command := command_in(message)) is not None]
        if not found:
            return CommandBatchResult(claimed)
        results, executed = [], []
        for message, command in found:
            results.append(result := await self._run_command(message, command))
            name = command.name if command.known else "unknown"
            executed.append(ExecutedCommand(message.id, name, result.outcome, len(command.arguments)))
        done = {message.id for message, _ in found}
        rest = tuple(message for message in claimed.messages if message.id not in done)
        around = claimed.around
        if any(effect == SetIncognito(True) for one in results for effect in one.effects):
            around = replace(around, incognito=True)
        return CommandBatchResult(replace(claimed, messages=rest, around=around), tuple(results), tuple(executed))

    async def _run_command(self, message: StoredMessage, command: Command) -> CommandResult:
        """Run what everybody may run here, and pass on what strangers in a group may not."""
        if not command.known:
            return CommandResult(f"There is no such command; did you mean /{command.name}? /help lists all.", "unknown")
        if command.misused:
            given = cut(command.arguments, _SHOWN_CHARS)
            if _ID.fullmatch(given):
                return CommandResult(f"There is no {given}. Copy an id whole, as lists show it.", REFUSED)
            what = f"/{command.name} does not take {given!r}.\n/{command.name}: {COMMANDS[command.name]}"
            return CommandResult(what, REFUSED)
        match command.name:
            case "context":
                return await self._context(message.lane)
            case "personality":
                return await self._personality(message, command.arguments)
            case "join":
                return await self.claims.join(message, command.arguments)
            case "widen":
                return await self.claims.widen(message, command.arguments)
            case "start" | "help":
                return CommandResult(_SAID[command.name])
        if not may_change(message):
            return refused("In a group only people known to me may do that.")
        return await self._run_for_known(message, command.name, command.arguments)

    async def _run_for_known(self, message: StoredMessage, name: str, arguments: str) -> CommandResult:
        match name:
            case "remember":
                if await self._is_incognito(message.lane):
                    return refused("Nothing said here is remembered: incognito is on. /incognito off ends it.")
                return await self.saving.remember(message, arguments)
            case "undo":
                return await self.saving.undo(message)
            case "wrong":
                return await FeedbackCommand(self.lanes).run(message, arguments)
            case "forget":
                return await forget(self.lanes, self.forgets, message, arguments)
            case "reset":
                return CommandResult(
                    "Conversation reset. Everything said so far is still stored and remembered.", begins_anew=True
                )
            case "compact":
                return CommandResult(await self.compact(message.lane))
        return await self._run_about_work(message, name, arguments)

    async def _run_about_work(self, message: StoredMessage, name: str, arguments: str) -> CommandResult:
        match name:
            case "incognito":
                return await self._incognito(message.lane, on=arguments.lower() != "off")
            case "pause" | "resume":
                return await self._pause(message.lane, on=name == "pause")
            case "tasks":
                return await tasks.show_tasks(self.lanes.tasks, message)
            case "approve" | "reject":
                return await tasks.judge_task(self.lanes.tasks, message, arguments, approved=name == "approve")
            case "schedules":
                return await conversation.show_schedules(self.lanes.schedules, message)
            case "status":
                return await _for_owner(message, self.reports.status)
            case "why":
                return await _for_owner(message, partial(describe_last, self.lanes, message.lane))
            case "inbox":
                return await _for_owner(message, self.reports.inbox)
        raise AssertionError(f"/{name} is listed, and nothing carries it out")

    async def _incognito(self, lane: Lane, *, on: bool) -> CommandResult:
        if not on and not await self._is_incognito(lane):
            return refused("Incognito is not on here.")
        return CommandResult(_INCOGNITO if on else _REMEMBERING, effects=(SetIncognito(on),))

    async def _pause(self, lane: Lane, *, on: bool) -> CommandResult:
        line = await self.lanes.line(lane)
        if on == (line is not None and line.paused):
            return refused("It is paused already; /resume ends that." if on else "This conversation is not paused.")
        return CommandResult(_PAUSED if on else _RESUMED, effects=(SetPaused(on),))

    async def _is_incognito(self, lane: Lane) -> bool:
        line = await self.lanes.line(lane)
        return line is not None and line.incognito

    async def _context(self, lane: Lane) -> CommandResult:
        number = await self.lanes.last_turn(lane, commands=False)
        story = None if number is None else await self.lanes.turn(number)
        shares = () if story is None else prompt.shares_of(story.trace)
        tail = await self.lanes.context(lane, 1)
        factor = 1.0 if story is None else prompt.factor_of(story.trace)
        none = "No turn here has asked a model yet."
        lines = [prompt.in_one_line(shares, self.window, factor) if shares else none]
        if tail.summary is not None:
            lines.append(f"A summary (version {tail.summary.version}) replaces the earlier messages in prompts.")
        return CommandResult("\n".join(lines))

    async def _personality(self, message: StoredMessage, arguments: str) -> CommandResult:
        verb, scope, text = _parted(arguments)
        origin, lane = message.inbound.origin, message.lane
        person = memory.person_of(origin)
        if verb == "show":
            scopes = personality.scopes_of(lane, person if origin.direct else "")
            inforce = personality.effective(scopes, await self.personalities.personalities(scopes))
            where = inforce.scope.partition(":")[0].replace("session", "in this conversation")
            return CommandResult(f"{inforce.text}\n\n({where})")
        if verb == "set" and not text:
            return refused("/personality set needs a text.")
        if len(text) > personality.PERSONALITY_CHARS_MAX:
            return refused(f"A personality may have {personality.PERSONALITY_CHARS_MAX:,} characters.")
        allowed = personality.settable(lane, (message,))
        if scope not in allowed:
            return refused(_WHO[scope])
        said = {"session": "in this conversation", "person": "with you", "global": "with everybody"}[scope]
        done = f"I speak so {said} from now on." if text else f"What was set {said} is taken back."
        return CommandResult(done, effects=(SetPersonality(allowed[scope], text, person),))


async def _for_owner(message: StoredMessage, report: Callable[[], Awaitable[str]]) -> CommandResult:
    origin = message.inbound.origin
    if origin.trust is not Trust.OWNER or not origin.direct:
        return refused("Only the owner may see that, in a chat between the two of us.")
    return CommandResult(await report())


def _parted(arguments: str) -> tuple[str, str, str]:
    """Verb, scope and text; without a verb it is shown, without a scope it is this conversation's."""
    verb, _, text = arguments.partition(" ") if " " in arguments else arguments.partition("\n")
    text, scope = text.strip(), "session"
    for option, name in _SCOPES.items():
        if text.split(maxsplit=1)[:1] == [option]:
            text, scope = text.removeprefix(option).strip(), name
        elif text.endswith(f" {option}"):
            text, scope = text.removesuffix(option).strip(), name
    return verb or "show", scope, text if verb == "set" else ""


_STOPPED = "I could not answer this: the program was stopped {deaths} times while it worked on it"

BURIED = (
    f"{_STOPPED}, the last times on this message alone. Your message is kept. It is tried once more, by itself, when "
    "the program has run for ten minutes without a crash; `keepsaid inbox requeue {batch}` tries it at once."
)
"""`{batch}` and `{deaths}` are filled in."""

BURIED_AGAIN = (
    f"{_STOPPED}, also when it was tried once more. Your message is kept, and not tried again by itself. "
    "`keepsaid inbox why {batch}` shows what happened, `keepsaid inbox requeue {batch}` tries it again."
)

PARKED = (
    f"{_STOPPED}. One of its calls must not be repeated, so your messages wait for a person. "
    "`keepsaid inbox why {batch}` shows the call, `keepsaid inbox requeue {batch}` answers them again."
)


def gave_up(batch_id: int, error: Exception) -> str:
    """What happened, whether the message is safe, and what to run."""
    name = ids.show("batch", batch_id)
    what = error.what if isinstance(error, KeepsaidError) else f"an unexpected {type(error).__name__}"
    hint = error.hint if isinstance(error, KeepsaidError) else "keepsaid data logs"
    return f"I could not answer this: {what}. Your message is kept. Run `{hint}`, then `keepsaid inbox requeue {name}`."
