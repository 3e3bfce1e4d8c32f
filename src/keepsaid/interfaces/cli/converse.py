"""The chat of a person at a terminal: reads lines, shows answers in order, and stops a turn on request."""

from __future__ import annotations

import asyncio
import secrets
import signal
import sys
import termios
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import aclosing, contextmanager, suppress
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory
from prompt_toolkit.patch_stdout import patch_stdout

from keepsaid.domain.command import read_command
from keepsaid.errors import InputError, KeepsaidError, NotRunning, StoreError
from keepsaid.interfaces.cli.console import say, session
from keepsaid.interfaces.cli.rendering import EARLIER, THINKING, AnswerView, late, print_message
from keepsaid.interfaces.cli.talk import (
    ARGUMENTS,
    HELP,
    ChatClient,
    SlashCommand,
    question_of,
    run_slash_command,
    say_unanswered,
)

Show = Callable[[str, str], None]
"""Prints a message behind its label."""

_LATE_S = 1.0
_NOT_WAITING = "No longer waiting; the reply is shown later. Ctrl-C again or /stop cancels it."


class CommandCompleter(Completer):
    """Completes the names of slash commands, and the words that may follow them."""

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """The ways to go on with what is typed, however completion was asked for; none for a message."""
        del complete_event
        return _completions(document.text_before_cursor)


def _completions(typed: str) -> Iterator[Completion]:
    name, space, argument = typed.partition(" ")
    if not typed.startswith("/"):
        return
    if space:
        for word in ARGUMENTS.get(name, ()):
            if word.startswith(argument):
                yield Completion(word, -len(argument))
        return
    for command, meaning in HELP.items():
        if command.startswith(name):
            yield Completion(command, -len(name), display_meta=meaning)


@contextmanager
def keeping_typed(terminal: int) -> Iterator[None]:
    """Keep what is typed meanwhile for the next prompt: it is not echoed over the answer, and survives Ctrl-C."""
    before = termios.tcgetattr(terminal)
    *flags, local, speed_in, speed_out, characters = before
    kept = [*flags, local & ~termios.ECHO | termios.NOFLSH, speed_in, speed_out, characters]
    termios.tcsetattr(terminal, termios.TCSANOW, kept)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)


async def converse(talk: ChatClient, conversation: str) -> None:
    """Ask, answer, ask again, until the person ends it."""
    await Conversation(talk, conversation).run()


class Conversation:
    """One chat: what the person still waits for, and what was shown."""

    def __init__(self, talk: ChatClient, conversation: str) -> None:
        typed = session().here.typed_file
        typed.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        typed.touch(mode=0o600)
        self._prompt: PromptSession[str] = PromptSession(
            history=FileHistory(str(typed)), completer=CommandCompleter(), complete_while_typing=True
        )
        self._talk = talk
        self._conversation = conversation
        self._unanswered: list[str] = []

    async def run(self) -> None:
        """Read and answer lines until the end of input or /quit."""
        while True:
            try:
                await self._show_unseen()
                if (text := await self._read_line()) is None:
                    return
                if text.strip() and not await self._carry_out(SlashCommand.parse(text)):
                    return
            except NotRunning as gone:
                say(f"{gone.what}. {gone.safe}")
                await self._talk.take_over()
            except (InputError, StoreError) as error:
                ends = "" if error.what.endswith("?") else "."
                say(f"{error.what}{ends} {error.safe} Try: {error.hint}")

    async def _carry_out(self, line: SlashCommand | str) -> bool:
        """Send a message or run a command; False if the chat is to end."""
        if isinstance(line, str):
            await self._interruptible(self._answer(line))
            return True
        if line.name == "/stop":
            await self._stop()
            return True
        return await run_slash_command(line, self._conversation)

    async def _read_line(self) -> str | None:
        """Read the next line of the person; None at Ctrl-D. Late replies are printed above the prompt."""
        late = asyncio.create_task(self._watch())
        try:
            with patch_stdout(raw=True):  # replies are made visible before, labels have styles
                return await self._prompt.prompt_async("you > ", handle_sigint=False)
        except EOFError:
            return None
        except KeyboardInterrupt:
            if self._unanswered:
                await self._stop()
            else:
                say("Ctrl-D or /quit ends the chat.")
            return ""
        finally:
            late.cancel()
            with suppress(asyncio.CancelledError):
                await late

    async def _watch(self) -> None:
        """Show late replies; an error is shown when something is next asked for, and costs no typed line."""
        with suppress(KeepsaidError):
            while True:
                await asyncio.sleep(_LATE_S)
                await self._show_unseen()

    async def _show_unseen(self, show: Show = print_message, besides: Collection[str] = ()) -> None:
        """Show replies that nobody has seen, in order, except those with the ids `besides`."""
        async for reply in self._talk.unseen():
            if reply["id"] not in besides:
                label = late(reply["created_at"])
                if label.startswith(EARLIER) and (question := await question_of(reply)):
                    show(f"you, {EARLIER} >", question)
                show(label, reply["text"])
                await self._talk.seen(reply["id"])

    async def _stop(self) -> None:
        """Cancel the turns of the messages that this chat sent and does not wait for, the newest first."""
        stopped = 0
        while self._unanswered:
            stopped += await self._talk.stop(self._unanswered.pop())
        many = "" if stopped == 1 else f" {stopped} messages"
        say(f"Stopped{many}; there will be no reply." if stopped else "Nothing of this chat is being answered.")

    async def _interruptible(self, work: Awaitable[None]) -> None:
        """Wait for work; Ctrl-C ends the waiting and nothing else."""
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, task.cancel)
        try:
            with keeping_typed(sys.stdin.fileno()):
                await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            say(_NOT_WAITING if self._unanswered else "Not waiting any longer.")
        finally:
            loop.remove_signal_handler(signal.SIGINT)

    async def _answer(self, text: str) -> None:
        """Send the message and show its answer, also if the program that answers is replaced meanwhile."""
        key = f"cli-{secrets.token_hex(12)}"
        message_id = await self._talk.kept_on(lambda: self._talk.put(text, key))
        if read_command(text) is None:
            self._unanswered.append(message_id)
        await self._talk.kept_on(lambda: self._follow(message_id))
        if message_id in self._unanswered:
            self._unanswered.remove(message_id)

    async def _follow(self, message_id: str) -> None:
        view, written = AnswerView(), ""
        try:
            async with aclosing(self._talk.answer(message_id)) as pieces:
                async for piece in pieces:
                    if piece.kind in ("delta", "settled") and not written:
                        await self._show_missed(view, message_id)
                    if piece.kind == "delta":
                        view.write(piece.text)
                        written += piece.text
                    elif piece.kind == "tool":
                        view.doing(piece.text or THINKING)
                    elif piece.kind == "waiting":
                        view.say(f"waiting: {piece.text}")
                        written = ""
                    elif piece.kind == "settled":
                        view.end()
                        await self._finish(piece.data, written)
        finally:
            view.end()

    async def _show_missed(self, view: AnswerView, message_id: str) -> None:
        """Show the replies to earlier messages before the answer to this one."""
        if await self._talk.any_unseen():
            own = {reply["id"] for reply in (await self._talk.story(message_id))["replies"]}
            await self._show_unseen(view.message, own)

    async def _finish(self, story: dict[str, Any], written: str) -> None:
        for reply in story["replies"]:
            if reply["text"] != written:
                print_message("bot (as it was stored) >" if written else "bot >", reply["text"])
            await self._talk.seen(reply["id"])
        asked = read_command(str(story.get("text", "")))
        # the reply to /remember says so itself
        for memory in story.get("remembered") or () if asked is None else ():
            replaced = f" (replaces {', '.join(memory['replaces'])})" if memory["replaces"] else ""
            say(f"      remembered: [{memory['kind']}] {memory['text']}{replaced}   undo: /undo")
        say_unanswered(story)
