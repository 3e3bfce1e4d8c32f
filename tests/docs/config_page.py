"""The page of every setting, made from the tree of settings."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from itertools import pairwise
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from tests.docs.markdown import lines_of, table

from keepsaid.config.channels import CHANNELS, ChannelConfig, OwnerIdentity
from keepsaid.config.conversations import RuleConfig
from keepsaid.config.keys import KeyConfig
from keepsaid.config.openai import ProxyConfig
from keepsaid.config.services import ExtensionConfig
from keepsaid.config.settings import ENV_PREFIX, Config

_HEAD = """\
# Configuration

Settings come from three places; a later one wins: the defaults below, `config.yaml` in the config
directory, environment variables. Only settings that you change need to be in the file.
[Change settings](../how-to/configure.md) shows the commands that read, check and change it.

- `${NAME}` anywhere in the file is replaced by that environment variable; an unset one is an error.
- `${file:PATH}` is replaced by the content of a file, without the space around it; a relative path starts at the
  config directory. A missing or empty file is an error. Give the file of a secret the mode 0600.
- The variable of a key is `KEEPSAID_` and its path joined with two underscores, in capitals. A list
  is written as JSON.
- An unknown key is ignored with a warning that names the nearest known one. So is a setting that its
  channel does not use.
- Rules and the agent change with `keepsaid config reload`, [while it
  runs](../operate.md#change-settings-while-it-runs). Keys follow the file by themselves, within a second. Everything
  else needs a restart. The identity files `SOUL.md`, `IDENTITY.md` and `USER.md` are read again when they change.

```yaml
owner:
  - {channel: http, sender: "u42"}
models:
  chat: anthropic/claude-sonnet-4-5
  api_key: ${ANTHROPIC_API_KEY}
memory:
  items_max: 10
log:
  level: warning
```

Other variables: `KEEPSAID_HOME` puts everything below one directory (see
[operating](../operate.md)); `OPENAI_API_KEY`, `ANTHROPIC_API_KEY` and `OLLAMA_HOST` are
read by `models.chat: auto`; `NO_COLOR` prints without colour.
"""

_OWNER = """\
The owner's identities besides the terminal: a list, empty by default. Their messages have the trust
`owner`, and what is said in one direct chat of the owner is visible in the others. As a
variable: `KEEPSAID_OWNER`, as JSON. Each item has:
"""

_CHANNELS = """\
One section for each channel, under its name. Any other name is a channel of your own: send messages
to it over HTTP with the operator's token, or with `keepsaid inbox send --channel`.
"""

_BUILT_IN = "The built-in channels are open from the start, and differ from these defaults:\n"

_EXTENSIONS = """\
One section for each extension, under its id ([extensions](../how-to/extensions.md)). Extensions in the folder
`extensions/` beside `config.yaml` are loaded unless disabled here. Those of installed packages are loaded
once they are named here.
"""

_WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false", SecretStr: "secret"}


_KEYS = """\
Agents and programs that are let in over [HTTP and MCP](agents.md), each as one sender, by the name of their key.
"""


def page() -> str:
    """The whole page."""
    fields = Config.model_fields
    parts = [_HEAD, "## Top level\n", _settings(Config, only=("agent",))]
    for name, field in fields.items():
        if name == "owner":
            parts += ["## owner\n", _OWNER, _settings(OwnerIdentity, variables=False)]
        elif name == "channels":
            parts += ["## channels\n", _CHANNELS, _settings(ChannelConfig, ("channels", "NAME"))]
            parts += [_BUILT_IN, _built_in()]
        elif name == "extensions":
            parts += ["## extensions\n", _EXTENSIONS, _settings(ExtensionConfig, ("extensions", "ID"))]
        elif name == "keys":
            parts += ["## keys\n", _KEYS, _settings(KeyConfig, ("keys", "NAME"))]
        elif name != "agent":
            parts += _section(name, field)
    return lines_of("\n".join(parts))


def _section(name: str, field: FieldInfo) -> Iterator[str]:
    section = field.annotation
    assert isinstance(section, type), f"{name} is no section"
    assert issubclass(section, BaseModel), f"{name} is no section"
    yield f"## {name}\n"
    yield f"{inspect.getdoc(section)}\n"
    yield _settings(section, (name,))
    if name == "routes":
        yield "### routes.rules\n"
        yield "How rules work: [routing rules](../how-to/routes.md). Each rule has:\n"
        yield _settings(RuleConfig, variables=False)
    if name == "openai":
        yield "### openai.proxies\n"
        yield "[Memory proxies](openai.md#memory-proxy) by name. Each has:\n"
        yield _settings(ProxyConfig, ("openai", "proxies", "NAME"))


def _settings(
    section: type[BaseModel], above: tuple[str, ...] = (), *, only: Collection[str] = (), variables: bool = True
) -> str:
    rows, meanings = [], _meanings(section)
    for name, field in section.model_fields.items():
        if only and name not in only:
            continue
        key = (*above, name)
        row = [f"`{'.'.join(key)}`", _type(field), _default(field), meanings[name]]
        rows.append([*row, f"`{ENV_PREFIX}{'__'.join(key)}`".upper()] if variables else row)
    headings = ["key", "type", "default", "meaning"]
    return table([*headings, "variable"] if variables else headings, rows)


def _meanings(section: type[BaseModel]) -> dict[str, str]:
    """What the text below each field says."""
    [body] = ast.parse(textwrap.dedent(inspect.getsource(section))).body
    assert isinstance(body, ast.ClassDef)
    return {
        field.target.id: " ".join(below.value.value.split())
        for field, below in pairwise(body.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


def _type(field: FieldInfo) -> str:
    words = _written(field.annotation)
    bounds = {type(bound).__name__: bound for bound in field.metadata}
    least, most = (_bound(bounds, names) for names in (("Ge", "Gt"), ("Le", "Lt")))
    if least and most:
        return f"{words}, {least} to {most}"
    return f"{words}, {least} or more" if least else words


def _bound(bounds: Mapping[str, Any], names: tuple[str, str]) -> str:
    inclusive, exclusive = (bounds.get(name) for name in names)
    if inclusive is not None:
        return f"{getattr(inclusive, names[0].lower()):,}"
    return (
        ""
        if exclusive is None
        else f"{'above' if names[1] == 'Gt' else 'below'} {getattr(exclusive, names[1].lower()):,}"
    )


def _written(kind: Any) -> str:
    """A type for people."""
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(_written(one) for one in get_args(kind) if one is not NoneType)
    if get_origin(kind) is Literal:
        return _choices(get_args(kind))
    if get_origin(kind) in (tuple, list):
        return f"list of {_plural(get_args(kind)[0])}"
    if get_origin(kind) is dict:
        return "keys and values"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _choices([one.value for one in kind])
    return _WORDS[kind]


def _plural(kind: Any) -> str:
    return "rules" if kind is RuleConfig else f"{_written(kind)}s"


def _choices(values: Any) -> str:
    *first, last = [f"`{value}`" for value in values]
    return f"{', '.join(first)} or {last}"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None or value in ("", (), {}):
        return "none"
    return f"`{_json(value)}`"


def _json(value: Any) -> str:
    plain = value.value if isinstance(value, Enum) else value
    return plain if isinstance(plain, str) else json.dumps(plain)


def _built_in() -> str:
    """The built-in channels by what differs; a channel that sets nothing has the default."""
    keys = list(dict.fromkeys(key for given in CHANNELS.values() for key in given))
    rows = [
        [f"`{name}`", *(_json(given[key]) if key in given else "" for key in keys)] for name, given in CHANNELS.items()
    ]
    return table(["channel", *(f"`{key}`" for key in keys)], rows)
