"""Bodies of the OpenAI protocol as one request: the lines of a conversation, instructions, and what came with them.

Chat completions and responses say the same in two forms (openai-python 3.57, `types/chat` and `types/responses`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from keepsaid.domain.client_history import HistoryLine, Side
from keepsaid.domain.client_tools import TOOLS_MAX, OfferedTool, ResultOfClient
from keepsaid.interfaces.http.openai.problems import BadParameter
from keepsaid.pipeline.prompt.client_parts import TOKENS_LEAST
from keepsaid.text.normal import cut, digest, kind_of
from keepsaid.values import frozen

Fields = Mapping[str, object]

MESSAGES_MAX = 5_000
_TOKENS_MOST = 10_000_000
_INSTRUCTING = ("system", "developer")
_RESULTS = ("tool", "function")
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w.+=-]+)*;base64,")
_FORMAT = re.compile(r"[A-Za-z0-9]{1,16}")
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NAMES = {"image": "picture", "audio": "recording", "video": "video"}


class SentPart(NamedTuple):
    """Something beside the words of a message; `content` is base64."""

    name: str
    kind: str
    content: str

    @property
    def as_field(self) -> Mapping[str, object]:
        """It as a field of a message."""
        return {"name": self.name, "type": self.kind, "content": self.content}


@frozen
class ChatBody:
    """What one call asks: `lines` of users and the assistant, oldest first, with what came with the last of them.

    `tools` are those of the client, `results` what they returned for the calls that its turn waits for; `parallel`
    says that several calls may come at once, `tokens_max` how many tokens an answer may have (0: any number). `ignored`
    are the parameters that have no effect here. `late_results` stand before the last message, where the client goes on
    without waiting for the answer to its results.
    """

    lines: tuple[HistoryLine, ...]
    instructions: str = ""
    parts: tuple[SentPart, ...] = ()
    stream: bool = False
    with_usage: bool = False
    tools: tuple[OfferedTool, ...] = ()
    results: tuple[ResultOfClient, ...] = ()
    ignored: tuple[str, ...] = ()
    parallel: bool = True
    tokens_max: int = 0
    late_results: tuple[ResultOfClient, ...] = ()


_CHAT = frozenset({
    "model", "messages", "stream", "stream_options", "user", "metadata", "store", "prompt_cache_key", "tools",
    "tool_choice", "parallel_tool_calls", "max_tokens", "max_completion_tokens",
})  # fmt: skip
_RESPONSE = frozenset({
    "model", "input", "instructions", "stream", "user", "metadata", "store", "conversation", "previous_response_id",
    "prompt_cache_key", "tools", "tool_choice", "parallel_tool_calls", "max_output_tokens",
})  # fmt: skip


def completion_request(fields: Fields) -> ChatBody:
    """The body of `POST /v1/chat/completions`. Raises BadParameter, naming the field that is wrong."""
    options = fields.get("stream_options") or {}
    if not isinstance(options, dict):
        raise BadParameter("stream_options must be an object", "stream_options")
    with_usage = options.get("include_usage") is True
    messages = _objects(fields.get("messages"), "messages")
    results = _results(messages, "tool_call_id", "content")
    lines, instructions, parts = _read(messages, "messages", is_answered=bool(results))
    tools, ignored = _offered(fields, is_answered=bool(results))
    made = ChatBody(lines, instructions, parts, _flag(fields, "stream"), with_usage, tools, results)
    tokens_max = _tokens(fields, "max_completion_tokens") or _tokens(fields, "max_tokens")
    late = _late_results(messages, "tool_call_id", "content")
    made = replace(made, parallel=_is_parallel(fields), tokens_max=tokens_max, late_results=late)
    return replace(made, ignored=(*_others(fields, _CHAT), *ignored))


def response_request(fields: Fields) -> ChatBody:
    """The body of `POST /v1/responses`. Raises BadParameter, naming the field that is wrong."""
    given = fields.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else _objects(given, "input")
    spoken = [item for item in items if item.get("type", "message") == "message"]
    acted = [item for item in items if item.get("type") != "reasoning"]
    results = _results(acted, "call_id", "output")
    lines, instructions, parts = _read(spoken, "input", is_answered=bool(results))
    above = fields.get("instructions")
    if above is not None and not isinstance(above, str):
        raise BadParameter(f"instructions must be text, not {kind_of(above)}", "instructions")
    whole = "\n\n".join(filter(None, (above or "", instructions)))
    tools, ignored = _offered(fields, is_answered=bool(results))
    made = ChatBody(lines, whole, parts, _flag(fields, "stream"), tools=tools, results=results)
    made = replace(made, parallel=_is_parallel(fields), tokens_max=_tokens(fields, "max_output_tokens"))
    made = replace(made, late_results=_late_results(acted, "call_id", "output"))
    return replace(made, ignored=(*_others(fields, _RESPONSE), *ignored))


def _read(
    messages: Sequence[Fields], where: str, *, is_answered: bool
) -> tuple[tuple[HistoryLine, ...], str, tuple[SentPart, ...]]:
    lines, instructions, latest = list[HistoryLine](), list[str](), list[SentPart]()
    for n, message in enumerate(messages):
        place, role = f"{where}[{n}]", message.get("role")
        text, parts = _content(message.get("content"), f"{place}.content")
        if role in _INSTRUCTING:
            instructions.append(text)
        elif role == "user":
            lines.append(HistoryLine(Side.USER, text, digest(*map(repr, parts)).hex() if parts else ""))
            latest += parts
        elif role == "assistant":
            latest.clear()
            if text.strip():
                lines.append(HistoryLine(Side.ASSISTANT, text))
        elif role not in _RESULTS:
            allowed = "system, developer, user, assistant or tool"
            raise BadParameter(f"{place}.role must be {allowed}, not {_quoted(role)}", f"{place}.role")
    while is_answered and lines and lines[-1].side is Side.ASSISTANT:
        lines.pop()  # what the model wrote beside its calls
    if not is_answered and (not lines or lines[-1].side is not Side.USER):
        raise BadParameter(f"the last of {where} must be what a user says", where)
    return tuple(lines), "\n\n".join(filter(None, instructions)), tuple(latest)


def _results(messages: Sequence[Fields], id_name: str, text_name: str) -> tuple[ResultOfClient, ...]:
    """What tools returned, at the end of a history."""
    found = list[ResultOfClient]()
    for message in reversed(messages):
        call_id = message.get(id_name)
        if not isinstance(call_id, str) or text_name not in message:
            if message.get("role") in _RESULTS or message.get("type") == "function_call_output":
                raise BadParameter(f"the result of a tool needs {id_name}, a text, and {text_name}", id_name)
            break
        text, _ = _content(message[text_name], f"{text_name} of the result of {cut(call_id, 80)!r}")
        found.append(ResultOfClient(call_id, text))
    return tuple(reversed(found))


def _late_results(messages: Sequence[Fields], id_name: str, text_name: str) -> tuple[ResultOfClient, ...]:
    """What tools returned before the last messages of the user, where no answer stands between."""
    end = len(messages)
    while end and messages[end - 1].get("role") == "user":
        end -= 1
    return _results(messages[:end], id_name, text_name) if end < len(messages) else ()


def _offered(fields: Fields, *, is_answered: bool) -> tuple[tuple[OfferedTool, ...], tuple[str, ...]]:
    """The functions that the model may ask for, and the names of what has no effect. Raises BadParameter.

    With the `tool_choice` none a new turn is offered no function; a turn that waits for results has its own already.
    """
    tools, ignored = _tools(fields)
    choice = fields.get("tool_choice")
    if choice == "none" and not is_answered:
        return (), ignored
    return tools, ignored if choice is None else ("tool_choice", *ignored)


def _tools(fields: Fields) -> tuple[tuple[OfferedTool, ...], tuple[str, ...]]:
    """The functions that a client offers, and the names of tools of other kinds. Raises BadParameter."""
    given = fields.get("tools") or []
    if not isinstance(given, list) or len(given) > TOOLS_MAX:
        raise BadParameter(f"tools must be a list of at most {TOOLS_MAX} objects", "tools")
    tools, ignored = list[OfferedTool](), list[str]()
    for n, tool in enumerate(given):
        kind = tool.get("type") if isinstance(tool, dict) else None
        if kind != "function":
            ignored.append(f"tools[{n}] ({_quoted(kind)})")
            continue
        named = tool.get("function", tool)
        name, schema = (named.get(one) for one in ("name", "parameters")) if isinstance(named, dict) else (None, None)
        if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
            raise BadParameter(f"tools[{n}] needs a name of 1 to 64 letters, digits, _ and -", f"tools[{n}].name")
        if schema is not None and not isinstance(schema, dict):
            raise BadParameter(f"the parameters of tools[{n}] must be an object", f"tools[{n}].parameters")
        says = named.get("description")
        tools.append(OfferedTool(name, says if isinstance(says, str) else "", schema or {"type": "object"}))
    return tuple(tools), tuple(ignored)


def _content(given: object, place: str) -> tuple[str, list[SentPart]]:
    """The words of a message, and what is beside them."""
    if given is None:
        return "", []
    if isinstance(given, str):
        return given, []
    if not isinstance(given, list):
        raise BadParameter(f"{place} must be text or a list of objects, not {kind_of(given)}", place)
    texts, parts = list[str](), list[SentPart]()
    for n, part in enumerate(_objects(given, place)):
        kind, text = part.get("type"), part.get("text", part.get("refusal"))
        if isinstance(text, str):
            texts.append(text)
        elif (found := _part(part, len(parts) + 1, f"{place}[{n}]")) is not None:
            parts.append(found)
        else:
            what = f"{place}[{n}] is not text, a picture, a recording or a file: its type is {_quoted(kind)}"
            raise BadParameter(what, f"{place}[{n}]")
    return "\n".join(texts), parts


def _part(part: Fields, number: int, place: str) -> SentPart | None:
    """A picture, a recording or a file; None for anything else. Raises BadParameter."""
    audio = part.get("input_audio")
    if isinstance(audio, dict):
        form, data = audio.get("format", "wav"), audio.get("data")
        if not isinstance(data, str) or not isinstance(form, str) or not _FORMAT.fullmatch(form):
            raise BadParameter(f"{place}.input_audio needs data in base64 and a format such as wav", place)
        return SentPart(f"recording-{number}.{form}", f"audio/{form}", data)
    inside = next((part[name] for name in ("image_url", "file") if name in part), part)
    inside = {"url": inside} if isinstance(inside, str) else inside
    if not isinstance(inside, dict):
        return None
    url = next((inside[name] for name in ("url", "file_data", "file_url") if isinstance(inside.get(name), str)), None)
    if url is None:
        return None
    name = inside.get("filename")
    found = _DATA_URL.match(url)
    if found is None:
        raise BadParameter(f"{place}: pictures and files are taken as data: URLs; no address is fetched", place)
    kind = found[1] or "application/octet-stream"
    family, _, form = kind.partition("/")
    called = name if isinstance(name, str) and name.strip() else f"{_NAMES.get(family, 'file')}-{number}.{form}"
    return SentPart(cut(called, 200), kind, url[found.end() :])


def _objects(given: object, place: str) -> Sequence[Fields]:
    if not isinstance(given, list) or not given or not all(isinstance(one, dict) for one in given):
        raise BadParameter(f"{place} must be a list of objects, and not empty", place)
    if len(given) > MESSAGES_MAX:
        raise BadParameter(f"{place} has {len(given):,} entries; {MESSAGES_MAX:,} are allowed", place)
    return given


def _flag(fields: Fields, name: str) -> bool:
    value = fields.get(name) or False
    if not isinstance(value, bool):
        raise BadParameter(f"{name} must be true or false", name)
    return value


def _tokens(fields: Fields, name: str) -> int:
    """How many tokens an answer may have; 0 where nothing is said. Raises BadParameter."""
    value = fields.get(name)
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise BadParameter(f"{name} must be a whole number of at least 1", name)
    return min(max(value, TOKENS_LEAST), _TOKENS_MOST)


def _is_parallel(fields: Fields) -> bool:
    return fields.get("parallel_tool_calls") is None or _flag(fields, "parallel_tool_calls")


def _others(fields: Fields, known: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(cut(name, 40) for name, value in fields.items() if name not in known and value is not None))


def _quoted(value: object) -> str:
    return repr(cut(value, 80)) if isinstance(value, str) else kind_of(value)
