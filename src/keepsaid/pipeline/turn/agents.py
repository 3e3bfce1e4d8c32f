"""Agents of extensions: each does its task step by step, on record, as a worker does (seed 002)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from keepsaid.domain import turn
from keepsaid.domain.message import Trust, Trusted
from keepsaid.domain.prompt import Json, Prompt
from keepsaid.domain.task import Task, TaskStory
from keepsaid.domain.trust import Taint
from keepsaid.errors import ExtensionError, ModelUnavailable, TaskImpossible
from keepsaid.pipeline.turn.authorization import CallGate
from keepsaid.pipeline.turn.run import Begun, OutsideCall, StepLog, TurnDeps, TurnLimits, ignore_tool, run_turn
from keepsaid.pipeline.turn.worker import RESULT_CHARS_MAX, WorkerDeps, WorkerResult, shown_to
from keepsaid.ports import extension
from keepsaid.ports.model import Tool
from keepsaid.text.normal import cut, digest, normalise

_ERROR_CHARS_MAX = 500
_HTTP_GET, _OF_SERVER = "http_get", "__"


async def run_agent(
    deps: WorkerDeps,
    agents: Callable[[], Mapping[str, extension.Agent]],
    story: TaskStory,
    named: Mapping[str, Task],
    steps: StepLog,
) -> WorkerResult:
    """Do the task of an extension's agent; raises TaskImpossible if there is none, and what a turn raises."""
    task = story.task
    if (agent := agents().get(task.terms.agent)) is None:
        raise TaskImpossible(f"the extension {task.terms.agent} is not loaded, or has no agent", hint="keepsaid ext ls")
    if isinstance(agent, extension.DescribedAgent):
        return await _follow(deps, agent, story, named, steps)
    return WorkerResult(await _invoke(agent, task, steps))


async def _follow(
    deps: WorkerDeps,
    agent: extension.DescribedAgent,
    story: TaskStory,
    named: Mapping[str, Task],
    steps: StepLog,
) -> WorkerResult:
    """Run the turn of a described agent."""
    task, chat = story.task, deps.model(agent.model)
    if chat.name == turn.NO_MODEL:
        raise ModelUnavailable("no model is set", hint="keepsaid init")
    limits = TurnLimits(agent.steps_max, agent.tokens_max, agent.time_s, tokens_in_max=deps.limits.tokens_in_max)
    gate = CallGate(Taint().showing(shown_to(story, named)), deps.asking(task) if deps.asking else None)
    prompt = Prompt(agent.instructions, (), "", task.description)
    try:
        async with asyncio.timeout(agent.time_s):
            tools = await _tools(deps, agent, story)
            ran = await run_turn(TurnDeps(chat, prompt, tools, limits, ignore_tool, None, gate), steps)
    except TimeoutError:
        raise TaskImpossible(f"its agent took longer than {agent.time_s:g} s") from None
    return WorkerResult(cut(ran.text, RESULT_CHARS_MAX), ran.waiting)


async def _tools(deps: WorkerDeps, agent: extension.DescribedAgent, story: TaskStory) -> Sequence[Tool]:
    """The tools of a described agent: near ones, and of the runtime's those that its manifest lists.

    These are tools of MCP servers, pages of listed hosts, and memory search, which reads as the owner or not at all.
    """
    near = agent.tools()
    taken = {tool.name for tool in near}
    asked = replace(story, task=replace(story.task, outside=not agent.reads_owner))
    ours = {tool.name: tool for tool in deps.tools() if tool.name == _HTTP_GET or _OF_SERVER in tool.name}
    ours |= {tool.name: tool for tool in await deps.own(asked)}
    return (*near, *(tool for name, tool in ours.items() if name in agent.names - taken))


async def _invoke(agent: extension.AgentProvider, task: Task, steps: StepLog) -> str:
    """Call the code of an agent; the call is a step that is never repeated if its outcome is unknown.

    A call that raised has an outcome: the next attempt makes another. Raises ExtensionError for it.
    """
    given = Trusted(task.description, Trust.EXTERNAL if task.outside else Trust.OWNER)
    subject = f"agent {task.terms.agent}"
    call = OutsideCall(turn.StepKind.TOOL, subject, digest(subject, given), repeatable=False)

    async def make(begun: Begun) -> tuple[Json, turn.Usage]:
        await begun()
        try:
            return cut(normalise(str(await agent.invoke(given))), RESULT_CHARS_MAX), turn.Usage()
        except Exception as error:  # noqa: BLE001  # guard: tool call - what an agent raises is charged to its task
            return {"error": cut(normalise(f"{type(error).__name__}: {error}"), _ERROR_CHARS_MAX)}, turn.Usage()

    while True:
        is_former = steps.replaying
        output = await steps.once(call, make)
        if not isinstance(output, dict):
            return str(output)
        if not is_former:
            raise ExtensionError(f"its agent failed ({output['error']})")
