"""Checks of an extension: what `keepsaid ext check` asks of one, and the contract suite too."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import field
from pathlib import Path

from keepsaid.domain.message import Lane, lane_key
from keepsaid.domain.reply import ReplyDraft, SendResult, StoredReply
from keepsaid.errors import KeepsaidError
from keepsaid.extensions.discovery import FoundExtension
from keepsaid.extensions.lifecycle import PhaseLimits
from keepsaid.extensions.loaded import LoadedExtension
from keepsaid.ports.channel import Channel
from keepsaid.ports.extension import DescribedAgent
from keepsaid.ports.model import Tool
from keepsaid.testing.recording_runtime import RecordingRuntime, Settings
from keepsaid.values import frozen

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_SEND_S, _LISTEN_S, _QUIET_S = 30.0, 0.2, 2.0


class Amiss(Exception):
    """What an extension does not do."""


@frozen
class Trial:
    """An extension to be tried: where its data goes, its settings and those of others by id, and what is there too.

    `send_to` is the conversation to which its channels send one message; by default they send nothing.
    """

    found: FoundExtension
    data: Path
    settings: Settings = field(default_factory=dict)
    beside: Sequence[FoundExtension] = ()
    limits: PhaseLimits = PhaseLimits()
    send_to: str = ""

    @asynccontextmanager
    async def begun(self) -> AsyncIterator[tuple[LoadedExtension, RecordingRuntime]]:
        """The extension, let in; let out at the end. Raises Amiss when either cannot be done."""
        runtime = RecordingRuntime()
        found = [self.found, *(one for one in self.beside if one.id != self.found.id)]
        life = runtime.lifecycle(found, self.data, self.settings, self.limits)
        await life.begin()
        extension = life.guests[self.found.id]
        try:
            _check_standing(extension)
            yield extension, runtime
        finally:
            await life.end()
        _check_standing(extension)


def _check_standing(extension: LoadedExtension) -> None:
    if extension.fault is not None:
        raise Amiss(f"{extension.fault.phase}: {extension.fault.reason}")


def _expect(holds: object, otherwise: str) -> None:
    if not holds:
        raise Amiss(otherwise)


async def is_valid(trial: Trial) -> None:
    """Its manifest, or its source, says all that has to be known before it is run."""
    _expect(trial.found.manifest is not None, trial.found.problem)


async def is_let_in_and_out(trial: Trial) -> None:
    """It begins and ends within its time limits, and again after that."""
    for _ in range(2):
        async with trial.begun():
            pass


async def is_well(trial: Trial) -> None:
    """Asked for its health it says that it is well, within its time limit."""
    async with trial.begun() as (extension, _):
        health = extension.call("health")
        if not extension.active or health is None:
            return
        try:
            async with asyncio.timeout(trial.limits.health_s):
                _expect(await health(), "it says that it is not well")
        except TimeoutError:
            raise Amiss(f"health took longer than {trial.limits.health_s:g} s") from None


async def has_usable_tools(trial: Trial) -> None:
    """Each tool has a name, a description, a schema, a class and limits, and refuses arguments it does not know.

    The tools that its manifest names for its agent are there.
    """
    async with trial.begun() as (extension, _):
        if isinstance(agent := extension.provided.agent, DescribedAgent) and extension.manifest.agent is not None:
            there = {tool.name for tool in agent.tools()}
            missing = [name for name in extension.manifest.agent.tools if name not in there]
            _expect(
                not missing, f"its agent has no tool {', '.join(missing)}: neither it nor what it depends on brings one"
            )
        for tool in extension.provided.tools:
            await _check_tool(tool)


async def _check_tool(tool: Tool) -> None:
    _expect(_TOOL_NAME.fullmatch(tool.name), f"no model can call {tool.name!r}")
    _expect(tool.description.strip(), f"the tool {tool.name} does not say what it does")
    _expect(tool.schema.get("type") == "object", f"the schema of {tool.name} is not an object")
    _expect(json.dumps(dict(tool.schema)), f"the schema of {tool.name} is not JSON")
    _expect(tool.limit_s > 0, f"the tool {tool.name} has no time limit")
    try:
        await tool.run({"no_such_argument_": 1})
    except KeepsaidError:
        return
    raise Amiss(f"the tool {tool.name} takes arguments that it does not know")


async def is_a_channel_if_it_says_so(trial: Trial) -> None:
    """A channel has its name, and its listening ends at the stop. It sends only where the trial says to whom."""
    async with trial.begun() as (extension, runtime):
        for name, channel in extension.provided.channels.items():
            _expect(channel.name == name, f"the channel {name} calls itself {channel.name}")
            if trial.send_to:
                await _check_sending(channel, trial.send_to)
        if extension.provided.listen is not None:
            await _check_listening(extension)
        _expect(all(one.conversation and one.sender for _, one in runtime.received), "it hands over what nobody said")


async def _check_sending(channel: Channel, conversation: str) -> None:
    """A message that is to arrive is sent without an error."""
    lane = Lane(channel.name, "default", conversation, lane_key(conversation))
    draft = ReplyDraft(1, "This is a test message of: keepsaid ext check", notice=True)
    sending = asyncio.ensure_future(channel.send(StoredReply(1, lane, None, "sending", draft)))
    done, _ = await asyncio.wait((sending,), timeout=_SEND_S)
    sending.cancel()
    _expect(done, f"the channel {channel.name} hangs when it sends")
    if (error := sending.exception()) is not None:
        raise Amiss(f"the channel {channel.name} cannot send: {type(error).__name__}: {error}")
    _expect(isinstance(sending.result(), SendResult), f"the channel {channel.name} says nothing of what it sent")


async def _check_listening(extension: LoadedExtension) -> None:
    assert extension.provided.listen is not None, "it was just looked at"
    assert extension.context is not None, "what is active has a context"
    listening = asyncio.ensure_future(extension.provided.listen(extension.context.inbox))
    await asyncio.wait((listening,), timeout=_LISTEN_S)
    listening.cancel()
    done, _ = await asyncio.wait((listening,), timeout=_QUIET_S)
    _expect(done, "its listening does not end when it is cancelled")
    if not listening.cancelled() and (error := listening.exception()) is not None:
        raise Amiss(f"listening raises {type(error).__name__}: {error}")


CHECKS: Mapping[str, Callable[[Trial], Awaitable[None]]] = {
    "its manifest is valid": is_valid,
    "it starts and stops within its limits": is_let_in_and_out,
    "its health check passes": is_well,
    "every tool has a name, a description and a schema": has_usable_tools,
    "every channel has its name, and stops listening": is_a_channel_if_it_says_so,
}
"""What is asked, in order."""


async def checked(trial: Trial) -> dict[str, str]:
    """What each check came to, "" when all is well. After the first that fails none is made."""
    told: dict[str, str] = {}
    for name, check in CHECKS.items():
        try:
            await check(trial)
        except Amiss as error:
            told[name] = str(error)
            break
        told[name] = ""
    return told
