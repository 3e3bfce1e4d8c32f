"""The route for hooks of coding agents: their JSON in, and what the agent is to be given in the form of its hooks.

The fields are those that Claude Code and Codex send, read in October 2026 (code.claude.com/docs/en/hooks,
developers.openai.com/codex/hooks); the plugin for OpenCode sends the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from keepsaid.app.instance import Instance
from keepsaid.domain.agent_hook import (
    AGENTS,
    HookCall,
    HookEvent,
    HookLine,
    prompt_key,
    public_text,
    session_name,
    tool_text,
)
from keepsaid.domain.principal import Principal, Scope
from keepsaid.interfaces.http.calls import OwnerCall, OwnerRoute, check_takes_in
from keepsaid.interfaces.http.responses import BadRequest, NotFound
from keepsaid.interfaces.shapes import Shape
from keepsaid.text.normal import cut

OFF = "X-Keepsaid-Off"
"""The header that carries KEEPSAID_OFF of the agent's environment."""

_BODY_MAX = 20_000_000
_LINES_MAX = 2_000
_ON = ("", "0", "false", "no", "off")
_GIVING = (HookEvent.START, HookEvent.PROMPT)


async def answer_hook(instance: Instance, call: OwnerCall) -> Shape:
    """Do what a hook's event asks for; memory for the agent in `hookSpecificOutput`, or an empty object."""
    check_takes_in(instance)
    agent = call.request.path_params["agent"]
    if agent not in AGENTS:
        raise NotFound(f"there are no hooks of {cut(agent, 80)!r}; known: {', '.join(AGENTS)}")
    if is_off(call.request.headers.get(OFF, "")):
        return {}
    if call.fields.get("hook_event_name") == HookEvent.TOOL:  # its output may be large
        hook = await asyncio.to_thread(hook_call, agent, call.fields)
    else:
        hook = hook_call(agent, call.fields)
    text = await instance.services.hooks.answer(call.who, hook, _transcripts(instance, call.who))
    if not text or hook.event not in _GIVING:
        return {}
    return {"hookSpecificOutput": {"hookEventName": hook.event, "additionalContext": text}}


def is_off(value: str) -> bool:
    """Whether the value of KEEPSAID_OFF turns the hooks off. The name of a variable, which was left in, does not."""
    return value.strip().lower() not in _ON and not value.startswith("$")


def hook_call(agent: str, fields: Mapping[str, object]) -> HookCall:
    """Read the call of a hook; raises BadRequest where its session or its event is missing."""
    session, event = (_text(fields, name) for name in ("session_id", "hook_event_name"))
    if not session or not event:
        raise BadRequest("a hook needs session_id and hook_event_name", hint="see docs/use/reference/coding-agents.md")
    tool = event == HookEvent.TOOL
    output = next((fields[name] for name in ("tool_response", "tool_output") if name in fields), "") if tool else ""
    return HookCall(
        agent,
        event,
        session_name(session),
        _text(fields, "cwd"),
        _text(fields, "source"),
        _text(fields, "prompt"),
        _text(fields, "prompt_id") or _text(fields, "turn_id"),
        _text(fields, "transcript_path"),
        _text(fields, "last_assistant_message"),
        cut(_text(fields, "tool_name"), 100),
        _text(fields, "tool_use_id"),
        tool_text(fields.get("tool_input", ""), output) if tool else "",
        _lines(fields.get("messages")),
    )


def _lines(given: object) -> tuple[HookLine, ...]:
    """The messages that an agent without a transcript sends: `role`, `text` and `id` each."""
    found = []
    for one in (given if isinstance(given, list) else [])[:_LINES_MAX]:
        if isinstance(one, dict) and (text := public_text(_text(one, "text"))) and (name := _text(one, "id")):
            answer = one.get("role") == "assistant"
            found.append(HookLine(text, answer, name if answer else prompt_key(name)))
    return tuple(found)


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _transcripts(instance: Instance, who: Principal) -> Path | None:
    """The folder of transcripts that a key may have read."""
    key = instance.keys.by_name.get(who.name)
    return Path(key.transcripts) if key is not None and key.transcripts and not who.everything else None


ROUTES = (OwnerRoute("POST", "/v1/hooks/{agent}", answer_hook, _BODY_MAX, long=True, scopes=(Scope.READ, Scope.WRITE)),)
