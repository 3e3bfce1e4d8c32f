"""The page of what extensions are written with: manifests, decorators, context and values, made from the code."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined
from tests.docs.markdown import lines_of, table

from keepsaid.domain import message, reply, scene, turn
from keepsaid.extensions import manifest
from keepsaid.ports import channel, extension

_HEAD = """\
# Reference of extensions

The keys of `manifest.yaml`, the decorators of a class in one file, the context, and the values that methods receive and
return; made from the code. How to write an extension: [extensions](../how-to/extensions.md).
"""
MEANINGS: Mapping[type[manifest.ManifestPart], Mapping[str, str]] = {
    manifest.Manifest: {
        "id": "its id: lower-case letters, digits, `-` and `_`, at most 40",
        "name": "its title in lists; the id if empty",
        "version": "its version, as text",
        "description": "one sentence for lists",
        "api": "version of this interface: 1",
        "entrypoint": "`module:Class`; may be left out if there is an `agent`",
        "depends_on": "ids of extensions that must be loaded; `context.get_extension(id)` returns these and no others",
        "provides": "its kinds, where its class does not show them",
        "config": "its settings by key (below); their values are set under `extensions.ID.config`",
        "secrets": "by name the environment variable that holds it, for `context.secret(name)`; or a list of variables",
        "channel": "defaults of `channels.ID`, such as `priority`, `trust`, `window_ms`",
        "reads": "what `context.read` and `context.recall` may read: `own` (messages of its channel), `owner` (as the "
        "owner in a direct chat), `CHANNEL:CONVERSATION`",
        "events": "its topics (below)",
        "schedules": "its schedules (below)",
        "agent": "an agent without code (below)",
    },
    manifest.Setting: {
        "type": "type of the value, in the words of JSON Schema",
        "description": "what it does, for `keepsaid ext show`",
        "default": "value if it is not set",
        "required": "without a value the extension is not loaded",
        "enum": "the values it may have",
        "minimum": "least number",
        "maximum": "greatest number",
    },
    manifest.EventsManifest: {
        "publishes": "topics that it publishes with `context.emit`, for people to read; nothing checks them",
        "subscribes": "its subscriptions (below)",
    },
    manifest.Subscription: {
        "topic": "a topic, or a pattern with `*` for one word",
        "handler": "`custom` calls the method; `notify_user` sends the payload's `text` to the owner; `invoke_agent` "
        "makes a task of the payload's `prompt` for its agent. Without that key both take the whole event",
        "method": "the method of a `custom` handler; it gets the event",
        "result": "of `invoke_agent`: the result stays with the task, or is also sent to the owner",
    },
    manifest.ScheduleEntry: {
        "name": "name of the schedule, once in a manifest",
        "cron": "five fields, in the time zone `schedules.timezone`; or",
        "every_s": "an interval in seconds",
        "task": "a task for its agent, at the trust of the owner; the owner gets the result",
        "method": "the method that is called; the owner gets the text that it returns",
    },
    manifest.AgentManifest: {
        "instructions": "its system prompt",
        "model": "a model beside the agent's own, as in `models.chat`; empty for the agent's own",
        "tools": "names of tools it may call: its own, those of extensions that it depends on, `SERVER__TOOL`, "
        "`http_get`, and with `reads: [owner]` `memory_search` and `memory_open`",
        "limits": "limits of one task (below)",
    },
    manifest.AgentLimits: {
        "steps_max": "model calls, 1 to 200",
        "tokens_max": "tokens of one answer, at least 16",
        "time_s": "seconds, at most 3,600",
    },
}
"""What each key of a manifest means; every key has an entry."""

_KEYS: Mapping[type[manifest.ManifestPart], str] = {
    manifest.Manifest: "manifest.yaml",
    manifest.Setting: "config.KEY",
    manifest.EventsManifest: "events",
    manifest.Subscription: "events.subscribes[]",
    manifest.ScheduleEntry: "schedules[]",
    manifest.AgentManifest: "agent",
    manifest.AgentLimits: "agent.limits",
}
_DECORATORS: tuple[Callable[..., Any], ...] = (
    manifest.extension,
    manifest.tool,
    manifest.context,
    manifest.on,
    manifest.schedule,
)
_TERMS: Mapping[Callable[..., Any], type] = {manifest.extension: manifest.Declared, manifest.tool: manifest.ToolTerms}
_VALUES = (
    channel.Incoming,
    reply.StoredReply,
    reply.ReplyDraft,
    reply.SendResult,
    turn.ClaimedBatch,
    message.StoredMessage,
    message.Inbound,
    message.Origin,
    message.ProviderMarks,
    message.Content,
    message.Lane,
    scene.Contribution,
    extension.RecalledText,
)


def page() -> str:
    """The whole page."""
    parts = [_HEAD, "## The manifest\n", "Keys that are not listed are refused.\n"]
    for model, key in _KEYS.items():
        parts += [f"### {key}\n", f"{_doc(model)}\n", _keys(model)]
    parts.append("## Decorators\n")
    parts.append(
        "Import them from `keepsaid.extensions`. Their arguments are literals: they are read before code runs.\n"
    )
    for one in _DECORATORS:
        parts += [f"### @{one.__name__}\n", f"{_doc(one)}\n", *_terms(one)]
    parts += ["## The context\n", "`initialize(context)` gets it.\n", _members(extension.ExtensionContext)]
    parts += ["## Values\n", "Frozen classes; a field without a default is always there.\n"]
    for value in _VALUES:
        parts += [f"### {value.__name__}\n", f"{_doc(value)}\n", _fields(value)]
    outcomes = ", ".join(f"`{one.name}`" for one in reply.Delivered)
    parts.append(f"`SendResult.outcome` is one of `Delivered`: {outcomes}. `RETRY` says that nothing arrived, `DOUBT`")
    parts.append("that it may have arrived, `DEAD` that it never can, `REFUSED` that this channel cannot deliver it.")
    return lines_of("\n".join(parts))


def _doc(one: Any) -> str:
    return inspect.cleandoc(one.__doc__ or "")


def _keys(model: type[manifest.ManifestPart]) -> str:
    rows = []
    for name, field in model.model_fields.items():
        default = "required" if field.is_required() else _default(field.get_default(call_default_factory=True))
        rows.append([f"`{name}`", _type(field.annotation), default, MEANINGS[model][name]])
    return table(["key", "type", "default", "meaning"], rows)


def _terms(decorator: Callable[..., Any]) -> Iterator[str]:
    if (terms := _TERMS.get(decorator)) is not None:
        hints = typing.get_type_hints(terms)
        yield table(["argument", "type"], [[f"`{name}`", _type(of)] for name, of in hints.items()])
    else:
        yield f"`@{decorator.__name__}{_signature(decorator)}`\n"


def _signature(function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))


def _members(protocol: type) -> str:
    rows = []
    for name, one in {**vars(protocol), **vars(protocol.__base__ or object)}.items():
        if name.startswith("_"):
            continue
        if isinstance(one, property):
            rows.append([f"`{name}`", _line(one)])
        elif inspect.isfunction(one):
            given = [part for part in inspect.signature(one).parameters if part != "self"]
            begins = "await " if inspect.iscoroutinefunction(one) else ""
            rows.append([f"`{begins}{name}({', '.join(given)})`", _line(one)])
    return table(["member", "meaning"], rows)


def _line(one: Any) -> str:
    return " ".join(_doc(one).split())


def _fields(value: type) -> str:
    hints = typing.get_type_hints(value)
    rows = [] if dataclasses.is_dataclass(value) else [[f"`{name}`", _type(of), "-"] for name, of in hints.items()]
    for field in dataclasses.fields(value) if dataclasses.is_dataclass(value) else ():
        made = field.default_factory is not dataclasses.MISSING
        default = "made" if made else "-" if field.default is dataclasses.MISSING else _default(field.default)
        rows.append([f"`{field.name}`", _type(hints[field.name]), default])
    return table(["field", "type", "default"], rows)


def _default(value: object) -> str:
    if value is None or value is PydanticUndefined:
        return "none"
    if isinstance(value, BaseModel) or value in ("", (), {}):
        return "empty"
    return f"`{value}`" if not dataclasses.is_dataclass(value) else "empty"


def _type(hint: Any) -> str:
    """A type in a few words."""
    origin, given = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Annotated, typing.Required):
        return _type(given[0])
    if origin is typing.Literal:
        return " or ".join(f"`{one}`" for one in given)
    if "ForwardRef" in str(hint):
        return "JSON"
    if hint is type(None):
        return "none"
    if given and type(None) in given:
        return " or ".join(_type(one) for one in given)
    if given:
        name = getattr(origin, "__name__", str(origin))
        inside = [one for one in given if one is not Ellipsis]
        if name in ("tuple", "Sequence", "list"):
            return f"list of {_type(inside[0])}"
        return f"{_type(inside[1])} by key" if name == "Mapping" else "object"
    return {"str": "text", "int": "whole number", "float": "number", "bool": "true or false", "Any": "any"}.get(
        getattr(hint, "__name__", str(hint)), f"`{getattr(hint, '__name__', hint)}`"
    )
