"""Converse: a person at a terminal, with the answer printed while it is written."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory
from prompt_toolkit.patch_stdout import patch_stdout

from keepsaid.errors import InputError, KeepsaidError, StoreError
from keepsaid.interfaces.cli.commands import Command, obey
from keepsaid.interfaces.cli.escapes import VisibleStream, visible
from keepsaid.interfaces.cli.output import coloured, say
from keepsaid.interfaces.cli.session import session
from keepsaid.interfaces.cli.talk import Talk

_LATE_S = 1.0


async def converse(talk: Talk, conversation: str) -> None:
    """Ask, answer, ask again, until the person ends it."""
    prompt: PromptSession[str] = PromptSession(history=_history(session().home.typed_file))
    while True:
        await _show_unseen(talk)
        text = await _asked(prompt, talk)
        if text is None:
            return
        if not text.strip():
            continue
        command = Command.read(text)
        try:
            if isinstance(command, str):
                await _interruptible(_answer(talk, command))
            elif not await obey(command, conversation):
                return
        except (InputError, StoreError) as error:
            say(f"{error.what}. {error.safe} Try: {error.hint}")


async def _asked(prompt: PromptSession[str], talk: Talk) -> str | None:
    """The next line; replies that come late are shown above it. None at Ctrl-D."""
    late = asyncio.create_task(_watch(talk))
    try:
        with patch_stdout():
            return await prompt.prompt_async("you > ", handle_sigint=False)
    except EOFError:
        return None
    except KeyboardInterrupt:
        say("Ctrl-D or /quit ends the chat.")
        return ""
    finally:
        late.cancel()
        with suppress(asyncio.CancelledError):
            await late


async def _watch(talk: Talk) -> None:
    """Show late replies; what goes wrong is told of when something is next asked for, and costs no typed line."""
    with suppress(KeepsaidError):
        while True:
            await asyncio.sleep(_LATE_S)
            await _show_unseen(talk)


async def _show_unseen(talk: Talk) -> None:
    async for reply in talk.unseen():
        print(f"{_label('earlier >')} {visible(reply['text'])}", flush=True)
        await talk.seen(reply["id"])


async def _interruptible(work: Any) -> None:
    """Wait for work; Ctrl-C ends the waiting and nothing else."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise
        print("\n", end="")
        say("Not waiting any longer. The message stays; its reply is shown when it is there.")
    finally:
        loop.remove_signal_handler(signal.SIGINT)


async def _answer(talk: Talk, text: str) -> None:
    """Put the message, print the answer as it is written, and at last the stored reply where it differs."""
    message_id = await talk.put(text)
    written, stream = "", VisibleStream()
    async with aclosing(talk.answer(message_id)) as pieces:
        async for piece in pieces:
            if piece.kind == "delta":
                _write(stream.feed(piece.text), "" if written else "bot >")
                written += piece.text
            elif piece.kind == "waiting":
                _write(stream.end())
                say(f"{chr(10) if written else ''}waiting: {piece.text}")
                written = ""
            elif piece.kind == "settled":
                _write(stream.end())
                await _finish(talk, piece.data, written)


async def _finish(talk: Talk, story: dict[str, Any], written: str) -> None:
    if written:
        _write("\n")
    replies = story["replies"]
    for reply in replies:
        if reply["text"] != written:
            _write(f"{visible(reply['text'])}\n", "bot (as it was stored) >" if written else "bot >")
        await talk.seen(reply["id"])
    if not replies:
        reason = (story["batch"] or {}).get("reason", "")
        say(f"{story['id']} is {story['state']}, without a reply: {reason}")


def _write(shown: str, label: str = "") -> None:
    """Print text that was made visible already."""
    sys.stdout.write(f"{_label(label)} {shown}" if label else shown)
    sys.stdout.flush()


def _label(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if coloured() else text


def _history(file: Path) -> FileHistory:
    file.touch(mode=0o600)
    return FileHistory(str(file))
