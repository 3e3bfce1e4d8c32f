"""What a scripted model answers: reactions in order, then a default, or a function of what the model sees."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import ConfigDict, Field, TypeAdapter

from keepsaid.values import frozen

Json: TypeAlias = dict[str, Any]


@frozen
class ChatRequest:
    """A chat-completions request as the model saw it: the bytes, and what they say.

    `problem` says why the bytes are not a chat request; such a request has an empty `body`.
    """

    number: int
    headers: Mapping[str, str]
    raw: bytes
    body: Json
    problem: str = ""

    @classmethod
    def parse(cls, number: int, headers: Mapping[str, str], raw: bytes) -> ChatRequest:
        """Read the bytes of a request; never raises, see `problem`."""
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError) as error:
            return cls(number, headers, raw, {}, f"We could not parse the JSON body of your request: {error}")
        if not isinstance(body, dict):
            return cls(number, headers, raw, {}, "The JSON body must be an object.")
        for key in ("messages", "tools"):
            items = body.get(key) or []
            if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
                return cls(number, headers, raw, {}, f"{key!r} must be an array of objects.")
        if not body.get("messages"):
            return cls(number, headers, raw, {}, "Missing required parameter: 'messages'.")
        return cls(number, headers, raw, body)

    @property
    def model(self) -> str:
        """The name of the model asked for."""
        return str(self.body.get("model", ""))

    @property
    def messages(self) -> list[Json]:
        """The messages, oldest first, as they were sent."""
        return self.body.get("messages") or []

    @property
    def tools(self) -> list[Json]:
        """The tools offered, as they were sent."""
        return self.body.get("tools") or []

    @property
    def tool_names(self) -> list[str]:
        """The names of the tools offered, in order."""
        return [str(_object(tool.get("function")).get("name")) for tool in self.tools]

    @property
    def stream(self) -> bool:
        """Whether the answer is to be streamed."""
        return bool(self.body.get("stream"))

    @property
    def include_usage(self) -> bool:
        """Whether a streamed answer ends with its usage."""
        return bool(_object(self.body.get("stream_options")).get("include_usage"))

    def last(self, role: str) -> str:
        """The text of the last message of a role, or an empty text."""
        return next((text_of(m) for m in reversed(self.messages) if m.get("role") == role), "")


def text_of(message: Json) -> str:
    """The text of a message, whether its content is a text or a list of parts."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


class Reaction:
    """What the model does with one request; a value, made from JSON by its `kind`."""

    __slots__ = ()
    __pydantic_config__ = ConfigDict(extra="forbid")


@frozen
class Say(Reaction):
    """Answer with a text, after a delay; a stream brings it `chunk` characters at a time.

    All but the first come after a rest. `usage` is (prompt, completion) tokens; about four bytes a token when None.
    `finish` is why the model stopped, as the protocol calls it: `stop`, or `length` at the limit of its tokens.
    """

    text: str
    delay_s: float = 0.0
    chunk: int = 24
    usage: tuple[int, int] | None = None
    rest_after_s: float = 0.0
    finish: str = "stop"
    kind: Literal["say"] = field(default="say", kw_only=True, repr=False)


@frozen
class Call(Reaction):
    """Call a tool; `arguments` as a text are sent as they are, so that they can be malformed."""

    name: str
    arguments: Json | str = field(default_factory=dict)
    text: str = ""
    delay_s: float = 0.0
    usage: tuple[int, int] | None = None
    kind: Literal["call"] = field(default="call", kw_only=True, repr=False)

    @property
    def raw_arguments(self) -> str:
        """The arguments as they are sent."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@frozen
class Calls(Reaction):
    """Call several tools at once; texts are joined, the longest delay and the first usage count."""

    calls: tuple[Call, ...]
    kind: Literal["calls"] = field(default="calls", kw_only=True, repr=False)


@frozen
class Empty(Reaction):
    """Answer with a choice that says nothing."""

    kind: Literal["empty"] = field(default="empty", kw_only=True, repr=False)


@frozen
class Refuse(Reaction):
    """Answer with an HTTP error; `retry_after` is in seconds, or a header text sent as it is."""

    status: int
    code: str = ""
    message: str = "The scripted model refused."
    retry_after: float | str | None = None
    kind: Literal["refuse"] = field(default="refuse", kw_only=True, repr=False)


@frozen
class Hang(Reaction):
    """Send nothing, forever or for some seconds, then close the connection without an answer."""

    seconds: float | None = None
    kind: Literal["hang"] = field(default="hang", kw_only=True, repr=False)


@frozen
class Stall(Reaction):
    """Stream the first characters of a text and hang; unstreamed, half of the body."""

    text: str
    after_chars: int = 0
    kind: Literal["stall"] = field(default="stall", kw_only=True, repr=False)


@frozen
class Cut(Reaction):
    """Stream the first characters of a text and reset the connection; unstreamed, half of the body."""

    text: str
    after_chars: int = 0
    kind: Literal["cut"] = field(default="cut", kw_only=True, repr=False)


@frozen
class Garble(Reaction):
    """Answer 200 with a body as it is, of the content type the request expects unless one is given."""

    body: str
    content_type: str = ""
    kind: Literal["garble"] = field(default="garble", kw_only=True, repr=False)


BAD_KEY = Refuse(401, "invalid_api_key", "Incorrect API key provided.")
NO_MODEL = Refuse(404, "model_not_found", "The model does not exist or you do not have access to it.")
TOO_LONG = Refuse(400, "context_length_exceeded", "This model's maximum context length is 8192 tokens.")
RATE_LIMITED = Refuse(429, "rate_limit_exceeded", "Rate limit reached for requests.", 1)
NO_QUOTA = Refuse(429, "insufficient_quota", "You exceeded your current quota.")
BROKEN = Refuse(500, "server_error", "The server had an error while processing your request.")
UNAVAILABLE = Refuse(503, "service_unavailable", "The engine is temporarily unavailable.")
OVERLOADED = Refuse(529, "overloaded_error", "Overloaded.")

Reactor: TypeAlias = Callable[[ChatRequest], Reaction]
Step: TypeAlias = Reaction | Reactor
_AnyReaction: TypeAlias = Annotated[
    Say | Call | Calls | Empty | Refuse | Hang | Stall | Cut | Garble, Field(discriminator="kind")
]


def echo(request: ChatRequest) -> Reaction:
    """Answer with what the user said last."""
    return Say(f"You said: {request.last('user')}")


@frozen
class _ScriptFile:
    reactions: tuple[_AnyReaction, ...] = ()
    default: _AnyReaction | None = None
    __pydantic_config__ = ConfigDict(extra="forbid")


_SCRIPT_FILE = TypeAdapter(_ScriptFile)


class Script:
    """Steps taken in order, one a request, and the step for every request after them."""

    def __init__(self, *steps: Step, default: Step = echo) -> None:
        self._steps = deque(steps)
        self._default = default

    @classmethod
    def from_json(cls, text: str | bytes, default: Step = echo) -> Self:
        """Read `{"reactions": [{"kind": "say", "text": "hi"}, ...], "default": {...}}`.

        Without a default in the text, it is `default`. Raises ValueError (pydantic's) for anything else.
        """
        file = _SCRIPT_FILE.validate_json(text)
        return cls(*file.reactions, default=file.default or default)

    def to_json(self) -> bytes:
        """The JSON form of what is left; a script with functions has none, and raises ValueError."""
        steps, default = tuple(self._steps), None if self._default is echo else self._default
        if not all(isinstance(step, Reaction) for step in (*steps, default or Empty())):
            raise ValueError("a script with functions has no JSON form")
        # Checked above: pydantic narrows each one by its own class.
        return _SCRIPT_FILE.dump_json(_ScriptFile(steps, default))  # type: ignore[arg-type]

    @property
    def left(self) -> int:
        """How many steps wait before the default."""
        return len(self._steps)

    def then(self, *steps: Step) -> Script:
        """Add steps after the ones waiting; returns the script itself."""
        self._steps.extend(steps)
        return self

    def react(self, request: ChatRequest) -> Reaction:
        """Take the next step."""
        step = self._steps.popleft() if self._steps else self._default
        return step if isinstance(step, Reaction) else step(request)


@frozen
class Answer:
    """A well-formed answer in the words of the protocol: a text, calls of tools, or both."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    delay_s: float = 0.0
    chunk: int = 24
    usage: tuple[int, int] | None = None
    rest_after_s: float = 0.0
    finish: str = "stop"

    @classmethod
    def of(cls, reaction: Reaction) -> Answer | None:
        """The answer a reaction gives, or None for a reaction that is a failure."""
        match reaction:
            case Say(text, delay_s, chunk, usage, rest_after_s, finish):
                return cls(text, (), delay_s, max(1, chunk), usage, rest_after_s, finish)
            case Call():
                return cls(reaction.text, (reaction,), reaction.delay_s, usage=reaction.usage)
            case Calls(calls):
                text = "".join(call.text for call in calls)
                delay_s = max((call.delay_s for call in calls), default=0.0)
                usage = next((call.usage for call in calls if call.usage), None)
                return cls(text, calls, delay_s, usage=usage)
            case Empty():
                return cls()
        return None

    @property
    def finish_reason(self) -> str:
        """Why the model stopped."""
        return "tool_calls" if self.calls else self.finish

    def completion(self, request: ChatRequest, created: int) -> bytes:
        """The body of an answer that is not streamed."""
        message: Json = {"role": "assistant", "content": None if self.calls and not self.text else self.text}
        if self.calls:
            message["tool_calls"] = [self._call(request, at) for at in range(len(self.calls))]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self.finish_reason}
        body = _envelope(request, created, "chat.completion", [choice])
        return _dumps(body | {"usage": self._usage(request)})

    def opening(self, request: ChatRequest, created: int) -> Iterator[bytes]:
        """The server-sent events that carry the role, the text and the calls."""
        deltas: list[Json] = [{"role": "assistant", "content": "" if self.text or not self.calls else None}]
        deltas += [{"content": part} for part in _parts(self.text, self.chunk)]
        for at, call in enumerate(self.calls):
            named = self._call(request, at)
            named["function"]["arguments"] = ""
            deltas.append({"tool_calls": [{"index": at, **named}]})
            deltas += [
                {"tool_calls": [{"index": at, "function": {"arguments": part}}]}
                for part in _parts(call.raw_arguments, self.chunk)
            ]
        for delta in deltas:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
            yield _event(_envelope(request, created, "chat.completion.chunk", [choice]))

    def ending(self, request: ChatRequest, created: int) -> Iterator[bytes]:
        """The server-sent events after the last word: why it stopped, the usage when asked for, the end."""
        choice = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": self.finish_reason}
        yield _event(_envelope(request, created, "chat.completion.chunk", [choice]))
        if request.include_usage:
            usage = _envelope(request, created, "chat.completion.chunk", [])
            yield _event(usage | {"usage": self._usage(request)})
        yield b"data: [DONE]\n\n"

    def _call(self, request: ChatRequest, at: int) -> Json:
        call = self.calls[at]
        function = {"name": call.name, "arguments": call.raw_arguments}
        return {"id": f"call_{request.number}_{at + 1}", "type": "function", "function": function}

    def _usage(self, request: ChatRequest) -> Json:
        said = len(self.text) + sum(len(call.name) + len(call.raw_arguments) for call in self.calls)
        prompt, completion = self.usage or (-(-len(request.raw) // 4), -(-said // 4))
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def error_body(refuse: Refuse) -> bytes:
    """The body of an HTTP error."""
    kinds = {"insufficient_quota": "insufficient_quota", "rate_limit_exceeded": "requests"}
    kind = kinds.get(refuse.code, "invalid_request_error" if refuse.status < 500 else "server_error")
    error = {"message": refuse.message, "type": kind, "param": None, "code": refuse.code or None}
    return _dumps({"error": error})


def _envelope(request: ChatRequest, created: int, kind: str, choices: list[Json]) -> Json:
    return {
        "id": f"chatcmpl-{request.number}",
        "object": kind,
        "created": created,
        "model": request.model,
        "choices": choices,
    }


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _parts(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def _event(value: Json) -> bytes:
    return b"data: %b\n\n" % _dumps(value)


def _dumps(value: Json) -> bytes:
    # Escaped to ASCII, so that a lone surrogate in a scripted text can be sent at all.
    return json.dumps(value, separators=(",", ":")).encode("ascii")
