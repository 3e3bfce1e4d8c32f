"""Rules and verdicts: judged per message, first match wins (seed 000, Routing); and how spawned work is done."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, field
from datetime import UTC, datetime
from enum import StrEnum
from fnmatch import fnmatchcase

from keepsaid.domain.message import AUTOMATIC, LOOP, REACTION, RESULT, STRANGER, SYSTEM, UNREADABLE, Lane, StoredMessage
from keepsaid.text.json_reader import Unreadable, read_json
from keepsaid.text.normal import cut, digest
from keepsaid.values import frozen


class TaskKind(StrEnum):
    """Who does a task: a worker sees the task alone, a branch a copy of its lane's history too (seed 001).

    A `call` is one tool call that a turn was refused: it is made as it stands once the owner has approved it. An
    `agent` is that of an extension.
    """

    WORKER = "worker"
    BRANCH = "branch"
    CALL = "call"
    AGENT = "agent"


class OnCrash(StrEnum):
    """The handling of a task that was running when the process died."""

    REQUEUE = "requeue"
    FAIL = "fail"
    REVIEW = "review"


class Notify(StrEnum):
    """Whether the owner is sent a message about the end of a task; it never enters a prompt (seed 000, Isolation)."""

    NONE = "none"
    ON_FAILURE = "on_failure"
    ALWAYS = "always"


@frozen
class WorkTerms:
    """The terms of a task.

    `order` is what the owner's rule asks for, with its places not filled in: the words that count as instructions where
    a description holds those of others. `skill` is a text of the agent's skills that the worker is given, `model` one
    beside the agent's own, `tools` those it may use (None: all that workers may). `timeout_s` 0 is the config's limit.
    A task without `on_crash` is run again, unless a call was under way that must not be repeated: then a person is
    asked. Its own errors are charged; the last of `attempts_max` fails it. With an `agent`, the agent of the extension
    with this id does the task. With `reply`, its result is sent to its conversation as a reply.
    """

    order: str = ""
    skill: str = ""
    model: str = ""
    tools: tuple[str, ...] | None = None
    timeout_s: int = 0
    notify: Notify = Notify.NONE
    on_crash: OnCrash | None = None
    attempts_max: int = 3
    agent: str = ""
    reply: bool = False


def encoded(terms: WorkTerms) -> str:
    """The terms as JSON, without what is as usual."""
    usual = asdict(WorkTerms())
    return json.dumps({name: value for name, value in asdict(terms).items() if value != usual[name]})


def decoded(text: str) -> WorkTerms:
    """Terms that were encoded."""
    kinds = {"tools": tuple, "notify": Notify, "on_crash": OnCrash}
    read = json.loads(text)
    return WorkTerms(**read | {name: kind(read[name]) for name, kind in kinds.items() if name in read})


COMMAND_RULE = "command (paused)"
"""The rule of batches that hold commands of a paused conversation: they can be claimed, and are joined with no talk."""

PAUSED = "this conversation is paused; /resume answers what waits here"
"""Why a message of a paused conversation waits."""


class Action(StrEnum):
    """What happens to a batch.

    `listen` is settled in the order of its lane, as `forward` is, but without a model: its messages are kept in the
    transcript and in memory, and nobody answers.
    """

    FORWARD = "forward"
    LISTEN = "listen"
    SPAWN = "spawn"
    DROP = "drop"


@frozen
class Verdict:
    """The decision about a message: what, by which rule in which version of the rules, and why."""

    action: Action
    rule: str
    version: str
    reason: str


@frozen
class Rule:
    """One line of the routing table.

    `match` maps a field (channel, account, sender, conversation, event, trust, `payload.a.b`) to
    patterns with `*`, `?` and `[...]`; every field must match, any pattern of a field will do.
    `task` is the description of spawned work, `reason` what the verdict says; both may hold places to fill in from the
    batch and its first message, such as `{{path.in.payload}}`, `{{count}}`, `{{senders}}`. `work` are the terms of the
    task.
    """

    name: str
    match: Mapping[str, tuple[str, ...]]
    action: Action
    priority: int | None = None
    task: str = ""
    reason: str = ""
    work: WorkTerms = WorkTerms()


@frozen
class Addressing:
    """The channels on which the agent answers only what is addressed to it, and the names that address it."""

    channels: frozenset[str] = frozenset()
    names: tuple[str, ...] = ()


class Edits(StrEnum):
    """What happens to an edit of a message that was answered or dropped before.

    `note` keeps it in the transcript and in memory without an answer; `answer` answers it; `ignore` drops it.
    """

    NOTE = "note"
    ANSWER = "answer"
    IGNORE = "ignore"


@frozen
class Answerable:
    """The conversations of a channel to which a reply can be sent, as a regular expression, and why not to others."""

    conversations: str
    otherwise: str


@frozen
class Routes:
    """The routing table: rules in order, and what happens to a message that none matches.

    `channel_defaults` overrides `default` for a channel: GitHub's events reach no prompt unless a rule says so.
    `addressing` says where only messages to the agent are answered; what a rule forwards is answered anywhere. What
    would be forwarded from a conversation that is not `answerable` is only kept: no model is asked in vain. On channels
    that are `guarded`, some senders are shut out: no rule decides for a lane as a whole. `edits` names the channels on
    which late edits are not answered.
    """

    rules: tuple[Rule, ...] = ()
    default: Action = Action.FORWARD
    channel_defaults: Mapping[str, Action] = field(default_factory=dict)
    addressing: Addressing = Addressing()
    answerable: Mapping[str, Answerable] = field(default_factory=dict)
    guarded: frozenset[str] = frozenset()
    edits: Mapping[str, Edits] = field(default_factory=dict)
    version: str = field(init=False, default="")
    """Twelve letters that change whenever a rule does."""

    def __post_init__(self) -> None:
        """Name the version."""
        lines = [
            repr((r.name, sorted(r.match.items()), r.action, r.priority, r.task, r.reason, encoded(r.work)))
            for r in self.rules
        ]
        addressed = (repr(sorted(self.addressing.channels)), *self.addressing.names) if self.addressing.channels else ()
        late = (repr(sorted(self.edits.items())),) if self.edits else ()
        defaults = self.default, repr(sorted(self.channel_defaults.items()))
        version = digest(*lines, *defaults, *addressed, *late).hex()[:12]
        object.__setattr__(self, "version", version)

    @property
    def reads_payload(self) -> bool:
        """Whether any rule looks inside the payload, so that it must be parsed."""
        return any(name.startswith("payload.") for rule in self.rules for name in rule.match)


_SHOWN_CHARS_MAX = 60

FIELDS = ("channel", "account", "sender", "conversation", "event", "trust", "text")
"""What a rule can match, beside `payload.` and a path."""

_OF_LANE = frozenset({"channel", "account", "conversation"})
"""Of these, those that all messages of a lane have in common."""

Fields = Mapping[str, object]


def payload_fields(message: StoredMessage) -> Fields:
    """The payload as a mapping; empty when it is not a JSON object."""
    try:
        parsed = read_json(message.inbound.content.payload)
    except Unreadable:
        return {}
    return parsed if isinstance(parsed, dict) else {}


_SHUT_OUT = {
    UNREADABLE: "it cannot be read; it is kept as it came",
    AUTOMATIC: "a program sent it, and no person waits for an answer",
    STRANGER: "who said it is not let in (keepsaid channel ls)",
    LOOP: "a bot and the agent answered each other too often; it is answered again in a minute",
}
"""Events of what no rule is asked about, and why it is dropped."""


def judge(routes: Routes, message: StoredMessage, payload: Fields) -> tuple[Verdict, Rule | None]:
    """The verdict on one message and the rule behind it; `payload` is its parsed payload, if any rule reads it.

    Rules are for what others say: what the agent's own side work came to goes to who asked for it.
    """
    if message.inbound.origin.sender == SYSTEM and message.inbound.content.event == RESULT:
        return Verdict(Action.FORWARD, SYSTEM, routes.version, "it tells what the agent's side work came to"), None
    if (reason := _SHUT_OUT.get(message.inbound.content.event)) is not None:
        return Verdict(Action.DROP, SYSTEM, routes.version, reason), None
    for rule in routes.rules:
        if next(_astray(rule, message, payload), None) is None:
            return _audible(routes, _by_rule(routes, rule), message.lane), rule
    if message.inbound.content.event == REACTION:
        return Verdict(Action.DROP, "default", routes.version, "it is a reaction, and no rule asks for it"), None
    return _audible(routes, _by_default(routes, message.inbound.origin.channel), message.lane), None


def foreseen(routes: Routes, lane: Lane) -> tuple[Verdict, Rule | None] | None:
    """The verdict on whatever is forwarded from a lane, if the lane decides it; None when messages must be read.

    Dropped and spawned messages are read too: each one is named or described.
    """
    if lane.channel in routes.guarded or lane.channel in routes.edits:
        return None
    for rule in routes.rules:
        if any(not _any_like(getattr(lane, name), rule.match[name]) for name in _OF_LANE if name in rule.match):
            continue
        decided = rule.match.keys() <= _OF_LANE and rule.action is Action.FORWARD and not has_places(rule.reason)
        decided = decided and not _unanswerable(routes, lane)
        return (_by_rule(routes, rule), rule) if decided else None
    verdict = _by_default(routes, lane.channel)
    is_read = lane.channel in routes.addressing.channels
    is_read = is_read or bool(_unanswerable(routes, lane))
    return (verdict, None) if verdict.action is Action.FORWARD and not is_read else None


def _unanswerable(routes: Routes, lane: Lane) -> str:
    """Why no reply can be sent to a lane; "" where one can."""
    terms = routes.answerable.get(lane.channel)
    return "" if terms is None or re.fullmatch(terms.conversations, lane.conversation) else terms.otherwise


def _audible(routes: Routes, verdict: Verdict, lane: Lane) -> Verdict:
    """A verdict, but to listen where it is to answer and no reply can be sent."""
    if verdict.action is not Action.FORWARD or not (why := _unanswerable(routes, lane)):
        return verdict
    return Verdict(Action.LISTEN, verdict.rule, verdict.version, f"{verdict.reason}; not answered: {why}")


def _by_rule(routes: Routes, rule: Rule) -> Verdict:
    return Verdict(rule.action, rule.name, routes.version, rule.reason or f'rule "{rule.name}" matched')


def _by_default(routes: Routes, channel: str) -> Verdict:
    own = channel in routes.channel_defaults
    action, key = routes.channel_defaults.get(channel, routes.default), f"channels.{channel}.unmatched"
    reason = f"no rule matched; {key if own else 'routes.default'} is {action}"
    return Verdict(action, "default", routes.version, reason)


def unmatched(rule: Rule, message: StoredMessage, payload: Fields) -> str | None:
    """Why a rule does not match a message, in words: its first field that does not; None when it matches."""
    for name, value in _astray(rule, message, payload):
        wanted = " or ".join(map(repr, rule.match[name]))
        found = "the message has none" if value is None else f"it is {cut(value, _SHOWN_CHARS_MAX)!r}"
        return f"{name} is not {wanted}: {found}"
    return None


def _astray(rule: Rule, message: StoredMessage, payload: Fields) -> Iterator[tuple[str, str | None]]:
    """The fields of a rule that the message does not match, with the message's values."""
    for name, patterns in rule.match.items():
        value = field_of(message, payload, name)
        if value is None or not _any_like(value, patterns):
            yield name, value


def _any_like(value: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(value, pattern) for pattern in patterns)


def field_of(message: StoredMessage, payload: Fields, name: str) -> str | None:
    """The value of a rule's field as text, or None when the message has none."""
    if name in FIELDS:
        holder = message.inbound.content if name in ("event", "text") else message.inbound.origin
        return str(getattr(holder, name))
    return _at(payload, name.removeprefix("payload."))


def _at(payload: Fields, path: str) -> str | None:
    value: object = payload
    for part in path.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and len(part) < 10 and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_PLACE = re.compile(r"\{\{\s*([\w.\-]+)\s*\}\}")
_VALUE_CHARS_MAX = 2_000
_REASON_CHARS_MAX = 500
_TEXT = "{{text}}"


def describe(template: str, messages: Sequence[StoredMessage], payload: Fields) -> str:
    """Render the description of spawned work from a batch and the payload of its first message.

    Unknown places stay as they are written, so that a typo shows.
    """
    return _filled(template or _TEXT, messages, payload)


def has_places(template: str) -> bool:
    """Whether a template holds anything to fill in."""
    return _PLACE.search(template) is not None


def reasoned(template: str, messages: Sequence[StoredMessage], payload: Fields) -> str:
    """Render the reason of a verdict as `describe` does, in one line of at most 500 characters."""
    return cut(" ".join(_filled(template, messages, payload).split()), _REASON_CHARS_MAX)


def _filled(template: str, messages: Sequence[StoredMessage], payload: Fields) -> str:
    first, known = messages[0], _of_batch(messages)

    def fill(place: re.Match[str]) -> str:
        name = place.group(1)
        value = known[name] if name in known else field_of(first, payload, name)
        return place.group(0) if value is None else cut(value, _VALUE_CHARS_MAX)

    return _PLACE.sub(fill, template)


def _of_batch(messages: Sequence[StoredMessage]) -> Mapping[str, str]:
    """What a template can say of the whole batch."""
    origins = [message.inbound.origin for message in messages]
    return {
        "count": str(len(messages)),
        "messages": "\n".join(message.text for message in messages),
        "senders": _each(origin.name or origin.sender for origin in origins),
        "events": _each(message.inbound.content.event for message in messages),
        "first_at": _time(messages[0].received_at),
        "last_at": _time(messages[-1].received_at),
    }


def _each(values: Iterable[str]) -> str:
    """The values, each once, in the order they first came."""
    return ", ".join(dict.fromkeys(value for value in values if value))


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms // 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
