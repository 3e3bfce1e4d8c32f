"""Settings files of coding agents: adds the hooks of keepsaid to a file, and takes them out again.

Hooks of others, and all other settings, stay as they are. A file that is not JSON is not written.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keepsaid.errors import ConfigError

CLIENT = "keepsaid_hook.py"
"""The name of the client for hooks that are commands."""

OFF_VARIABLE = "KEEPSAID_OFF"
_WAITS_S, _READS_S = 5, 10
"""Seconds that an agent waits: with a prompt; and for a command, or for a transcript to be read."""

Hooks = dict[str, list[dict[str, Any]]]
"""Groups of hooks by their events, as the settings files of Claude Code and Codex have them."""


def claude_hooks(url: str, token: str, client: Path, *, tools: bool) -> Hooks:
    """Return the hooks for Claude Code: HTTP, but for the start of a session, where it takes commands alone."""
    headers = {"Authorization": f"Bearer {token}", "X-Keepsaid-Off": f"${OFF_VARIABLE}"}
    call = {"type": "http", "url": f"{url}/v1/hooks/claude-code", "headers": headers, "allowedEnvVars": [OFF_VARIABLE]}
    hooks = {"SessionStart": [_group(_command(client, "claude-code"))]}
    hooks["UserPromptSubmit"] = [_group({**call, "timeout": _WAITS_S})]
    for event in ("PreCompact", "Stop", "SessionEnd"):
        hooks[event] = [_group({**call, "timeout": _READS_S})]
    if tools:
        hooks["PostToolUse"] = [{"matcher": "*", **_group({**call, "timeout": _WAITS_S})}]
    return hooks


def codex_hooks(client: Path, *, tools: bool) -> Hooks:
    """Return the hooks for Codex, which takes commands alone."""
    events = ["SessionStart", "UserPromptSubmit", "Stop", *(["PostToolUse"] if tools else [])]
    return {event: [_group(_command(client, "codex"))] for event in events}


def with_hooks(text: str, hooks: Hooks, agent: str, file: Path) -> str:
    """Return a settings file with hooks for an agent, in place of those that it had for it. Raises ConfigError."""
    settings = _settings(text, file)
    if _of_agent(settings, agent) == hooks:
        return text
    rest = _without(settings, agent)
    groups = rest.get("hooks", {})
    merged = {event: [*groups.get(event, []), *hooks.get(event, [])] for event in [*groups, *hooks]}
    return _written({**rest, "hooks": merged}, text)


def without_hooks(text: str, agent: str, file: Path) -> str:
    """Return a settings file without the hooks for an agent; "" if it has nothing else. Raises ConfigError."""
    settings = _settings(text, file)
    if not _of_agent(settings, agent):
        return text
    rest = _without(settings, agent)
    return _written(rest, text) if rest else ""


def _group(handler: Mapping[str, Any]) -> dict[str, Any]:
    return {"hooks": [dict(handler)]}


def _command(client: Path, agent: str) -> dict[str, Any]:
    python = "python3" if shutil.which("python3") else sys.executable
    return {"type": "command", "command": shlex.join([python, "-S", str(client), agent]), "timeout": _READS_S}


def _is_ours(handler: object, agent: str) -> bool:
    if not isinstance(handler, dict):
        return False
    url, command = str(handler.get("url", "")), str(handler.get("command", ""))
    return url.endswith(f"/v1/hooks/{agent}") or (CLIENT in command and command.endswith(f" {agent}"))


def _settings(text: str, file: Path) -> dict[str, Any]:
    safe, hint = f"{file} was not changed.", f"mend it: ${{EDITOR:-vi}} {shlex.quote(str(file))}"
    try:
        settings = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file} is not valid JSON: {error}", safe=safe, hint=hint) from None
    hooks = settings.get("hooks", {}) if isinstance(settings, dict) else None
    if not isinstance(hooks, dict) or not all(map(_is_groups, hooks.values())):
        what = f"{file} must hold an object, and in it `hooks` with a list of groups for each event"
        raise ConfigError(what, safe=safe, hint=hint)
    return dict(settings)


def _is_groups(groups: object) -> bool:
    if not isinstance(groups, list):
        return False
    return all(isinstance(one, dict) and isinstance(one.get("hooks", []), list) for one in groups)


def _of_agent(settings: Mapping[str, Any], agent: str) -> Hooks:
    """The groups that hold a hook of keepsaid, with these hooks alone."""
    found: Hooks = {}
    for event, groups in settings.get("hooks", {}).items():
        for group in groups:
            if ours := [one for one in group.get("hooks", []) if _is_ours(one, agent)]:
                found.setdefault(event, []).append({**group, "hooks": ours})
    return found


def _without(settings: Mapping[str, Any], agent: str) -> dict[str, Any]:
    """The settings without the hooks of keepsaid, and without what is empty then."""
    if not _of_agent(settings, agent):
        return dict(settings)
    rest: dict[str, Any] = {}
    for event, groups in settings["hooks"].items():
        if kept := [one for group in groups if (one := _rest_of(group, agent))]:
            rest[event] = kept
    return {name: rest if name == "hooks" else one for name, one in settings.items() if name != "hooks" or rest}


def _rest_of(group: dict[str, Any], agent: str) -> dict[str, Any] | None:
    handlers = group.get("hooks", [])
    others = [one for one in handlers if not _is_ours(one, agent)]
    if len(others) == len(handlers):
        return group
    return {**group, "hooks": others} if others else None


def _written(settings: Mapping[str, Any], before: str) -> str:
    """The settings as JSON, indented as the file was before."""
    found = re.match(r"\{\r?\n([ \t]+)", before)
    text = json.dumps(settings, indent=found[1] if found else 2, ensure_ascii=False)
    return text if before.strip() and not before.endswith("\n") else f"{text}\n"


def agent_folder(agent: str, *, project: bool) -> Path:
    """Return the folder with the settings of an agent: of its user, or of the project in the current folder."""
    if agent == "claude-code":
        return Path.cwd() / ".claude" if project else _named("CLAUDE_CONFIG_DIR", Path.home() / ".claude")
    if agent == "codex":
        return Path.cwd() / ".codex" if project else _named("CODEX_HOME", Path.home() / ".codex")
    return Path.cwd() / ".opencode" if project else _named("XDG_CONFIG_HOME", Path.home() / ".config") / "opencode"


def _named(variable: str, otherwise: Path) -> Path:
    return Path(os.environ[variable]).expanduser().absolute() if os.environ.get(variable) else otherwise
