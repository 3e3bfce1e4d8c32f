"""`keepsaid ext connect`: gives a coding agent memory, by hooks in its settings file and a key in keepsaid's own."""

from __future__ import annotations

import difflib
import json
import re
import secrets
import shlex
import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from keepsaid.domain.agent_hook import AGENTS
from keepsaid.errors import ConfigError
from keepsaid.interfaces.cli import agent_settings, program, remote
from keepsaid.interfaces.cli.console import check_choice, command_of, say, session, show

_MASK = "**********"
_PLUGIN = "opencode.js"
_BACKUP = "before-keepsaid"


@dataclass(frozen=True)
class ConnectOptions:
    """An agent, and how it is connected."""

    agent: Annotated[str, typer.Argument(metavar="AGENT", help="claude-code, codex or opencode.")]
    project: Annotated[
        bool, typer.Option("--project", help="Change the settings of the project in this folder, not your own.")
    ] = False
    tools: Annotated[bool, typer.Option("--tools", help="Record the calls of tools too, 2,000 bytes each.")] = False
    key: Annotated[
        str, typer.Option(metavar="NAME", help="The key in keepsaid's settings; by default the agent's name.")
    ] = ""
    remove: Annotated[bool, typer.Option("--remove", help="Take out what this command added.")] = False
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")] = False


@dataclass(frozen=True)
class _Change:
    """A file of the agent: its text now, and its text then, "" for no file."""

    file: Path
    before: str
    after: str


def _connect(options: ConnectOptions) -> None:
    """Connect a coding agent to memory: show what would change in its settings, ask, and write it.

    The agent's former settings are kept beside the file, and hooks of others stay. If keepsaid has no key for the
    agent, one is made, with the scopes read and write.
    """
    check_choice("AGENT", options.agent, AGENTS)
    if options.remove:
        _disconnect(options)
        return
    name, url = options.key or options.agent, _address()
    given, is_new = _token(name)
    change = _change(options, url, given)
    unchanged = change.after == change.before
    if not unchanged:
        _show(change, given)
        _ask(options, change.file)
    wrote = _write_ours(options.agent, name, (url, given), is_new=is_new)
    wrote += [] if unchanged else _write(change)
    state = "already has" if unchanged and not is_new else "has"
    shape = {"agent": options.agent, "key": name, "changed": not unchanged, "wrote": [str(one) for one in wrote]}
    show(shape, f"{options.agent} {state} memory, by the key {name}", *(f"wrote  {file}" for file in wrote))
    _advise(options)


def _disconnect(options: ConnectOptions) -> None:
    change = _change(options, "", "", remove=True)
    if change.after == change.before:
        shape = {"agent": options.agent, "changed": False, "wrote": []}
        show(shape, f"{change.file} holds nothing of keepsaid")
        return
    _show(change, _stored(options.agent).get("token", ""))
    _ask(options, change.file)
    wrote = _write(change)
    if not options.project:
        wrote += _remove_ours(options.agent)
    shape = {"agent": options.agent, "changed": True, "wrote": [str(one) for one in wrote]}
    show(shape, f"{options.agent} has no memory any more", *(f"wrote  {file}" for file in wrote))
    say("What was recorded stays. keepsaid memory people ls names its projects.")


def _address() -> str:
    """Where the hooks call. Raises ConfigError for a port that is another at each start."""
    server = session().config().server
    if not server.port:
        what = "server.port is 0, which is another port at each start; hooks need one that stays"
        raise ConfigError(what, hint="keepsaid config set server.port 7448")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(server.host, server.host)  # noqa: S104 - not bound here
    return f"http://[{host}]:{server.port}" if ":" in host else f"http://{host}:{server.port}"


def _token(name: str) -> tuple[str, bool]:
    """The token of a key, and whether it is new."""
    known = session().config().keys.get(name)
    return (known.token.get_secret_value(), False) if known is not None else (secrets.token_hex(16), True)


def _change(options: ConnectOptions, url: str, token: str, *, remove: bool = False) -> _Change:
    """The agent's file before and after. Raises ConfigError with nothing written."""
    agent, client = options.agent, _folder() / agent_settings.CLIENT
    folder = agent_settings.agent_folder(agent, project=options.project)
    if agent == "opencode":
        file = folder / "plugins" / "keepsaid.js"
        before, after = _text(file), _shipped(_PLUGIN).replace('"@SETTINGS@"', json.dumps(str(_stored_file(agent))))
        if before and "keepsaid" not in before:
            raise ConfigError(f"{file} is not of keepsaid", safe=f"{file} was not changed.", hint=f"mv {file} OTHER")
        return _Change(file, before, "" if remove else after)
    # a file that others read holds no token
    local = "settings.local.json" if options.project else "settings.json"
    file = folder / (local if agent == "claude-code" else "hooks.json")
    before = _text(file)
    if remove:
        after = agent_settings.without_hooks(before, agent, file)
        return _Change(file, before, after or ("{}\n" if _backup(file).exists() else ""))
    if agent == "claude-code":
        hooks = agent_settings.claude_hooks(url, token, client, tools=options.tools)
    else:
        hooks = agent_settings.codex_hooks(client, tools=options.tools)
    return _Change(file, before, agent_settings.with_hooks(before, hooks, agent, file))


def _show(change: _Change, token: str) -> None:
    old, new = (_masked(text, token).splitlines() for text in (change.before, change.after))
    for line in difflib.unified_diff(old, new, str(change.file), str(change.file), lineterm=""):
        say(line)


def _masked(text: str, token: str) -> str:
    """The text without the token, and without any that an earlier key left."""
    plain = text.replace(token, _MASK) if token else text
    return re.sub(r"Bearer \w+", f"Bearer {_MASK}", plain)


def _ask(options: ConnectOptions, file: Path) -> None:
    if options.yes:
        return
    if not sys.stdin.isatty():
        hint = f"keepsaid ext connect {options.agent} --yes"
        raise program.Misused("nobody can be asked whether to write this: give --yes", hint=hint)
    if not typer.confirm(f"Write {file}?", err=True):
        raise typer.Abort


def _write_ours(agent: str, name: str, access: tuple[str, str], *, is_new: bool) -> list[Path]:
    """Write the key, the client and what the client reads, where they are not there yet."""
    from keepsaid.config.edits import replace_file, with_setting  # noqa: PLC0415 - `--help` needs none of it
    from keepsaid.interfaces.cli.config_changes import config_text, write_config  # noqa: PLC0415

    home, wrote = session().home, list[Path]()
    (url, token), stored = access, _stored(agent)
    if is_new:
        text = with_setting(config_text(home.config_file), ("keys", name, "token"), token)
        text = with_setting(text, ("keys", name, "scopes"), ["read", "write"])
        if agent == "claude-code":
            folder = agent_settings.agent_folder(agent, project=False) / "projects"
            text = with_setting(text, ("keys", name, "transcripts"), str(folder))
        write_config(("keys", name), text)
        wrote.append(home.config_file)
    made = name if is_new else stored.get("made_key", "")
    ours = {_stored_file(agent): json.dumps({"url": url, "token": token, "made_key": made}, indent=2) + "\n"}
    if agent != "opencode":
        ours[_folder() / agent_settings.CLIENT] = _shipped(agent_settings.CLIENT)
    home.make()
    _folder().mkdir(mode=0o700, exist_ok=True)
    for file, content in ours.items():
        if _text(file) != content:
            replace_file(file, content)
            wrote.append(file)
    return wrote


def _remove_ours(agent: str) -> list[Path]:
    """Remove the key that `connect` made, and the files that no agent needs any more."""
    from keepsaid.config.edits import without_setting  # noqa: PLC0415 - `--help` needs none of it
    from keepsaid.interfaces.cli.config_changes import config_text, write_config  # noqa: PLC0415

    home, wrote, made = session().home, list[Path](), _stored(agent).get("made_key", "")
    if made and made in session().config().keys:
        write_config(("keys", made), without_setting(config_text(home.config_file), ("keys", made)))
        wrote.append(home.config_file)
    _stored_file(agent).unlink(missing_ok=True)
    if not any(_stored_file(one).exists() for one in AGENTS if one != "opencode"):
        (_folder() / agent_settings.CLIENT).unlink(missing_ok=True)
    return wrote


def _write(change: _Change) -> list[Path]:
    """Write the agent's file, and keep the former one beside it, unless keepsaid wrote all of it."""
    from keepsaid.config.edits import replace_file  # noqa: PLC0415 - `--help` needs none of it

    file = change.file
    if change.before and change.after:
        replace_file(_backup(file), change.before)
    if change.after:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, change.after)
    else:
        file.unlink(missing_ok=True)
    return [file]


def _advise(options: ConnectOptions) -> None:
    if remote.running(session().home) is None:
        say("Next:  keepsaid serve")
    if options.agent == "codex":
        say("Codex asks you to trust new hooks: enter /hooks there.")


def _backup(file: Path) -> Path:
    return file.with_name(f"{file.name}.{_BACKUP}")


def _folder() -> Path:
    return session().home.config / "hooks"


def _stored_file(agent: str) -> Path:
    return _folder() / f"{agent}.json"


def _stored(agent: str) -> dict[str, str]:
    """Address, token and the name of the key that was made, as an earlier call wrote them."""
    try:
        found = json.loads(_text(_stored_file(agent)) or "{}")
    except ValueError:
        return {}
    return {name: str(one) for name, one in found.items()} if isinstance(found, dict) else {}


def _text(file: Path) -> str:
    """The text of a file, "" for none. Raises ConfigError for one that cannot be read."""
    try:
        return file.read_bytes().decode("utf-8") if file.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        hint = f"ls -l {shlex.quote(str(file))}"
        raise ConfigError(f"{file} cannot be read ({error})", safe=f"{file} was not changed.", hint=hint) from error


def _shipped(name: str) -> str:
    return (resources.files("keepsaid.interfaces.cli") / "agents" / name).read_text("utf-8")


connect = command_of(ConnectOptions, _connect)
connect.__name__ = "connect"
