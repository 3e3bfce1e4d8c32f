"""GitHub webhooks: checks the signature and reads payloads of any shape; any field may be missing or mistyped."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote_to_bytes

from keepsaid.domain.message import Content, Inbound, Origin, ProviderMarks, Trust
from keepsaid.domain.reply import Delivered, Sending, SendResult, StoredReply
from keepsaid.errors import Forged, HookClosed, InputError
from keepsaid.text import json_reader, normal

Payload = Mapping[str, object]

TEXT_CHARS_MAX = 20_000
_WORD_CHARS_MAX = 300
_COMMITS_MAX = 20
_CHECKS = ("check_run", "check_suite", "workflow_run", "workflow_job")
_OBJECTS = ("comment", "review", "issue", "pull_request", "discussion", "release", *_CHECKS)
_COMMENTS = {
    "pull_request_review_comment": "review_comment",
    "discussion_comment": "discussion_comment",
    "commit_comment": "commit_comment",
}
_WRITING = frozenset(("", "opened", "created", "edited", "submitted", "published", "answered"))


def event_name(event: str, payload: Payload) -> str:
    """The event as rules name it: `issues.opened`, `push`."""
    action = _word(payload, "action")
    return f"{event}.{action}" if action else event


def conversation(payload: Payload) -> str:
    """The place an event belongs to; `github:owner` without a repository, `github:?` without an owner."""
    repository = _object(payload, "repository")
    name = _word(repository, "full_name") or _word(repository, "name")
    return f"github:{name}{_thread(payload)}" if name else f"github:{_owner(payload) or '?'}"


def provider_id(event: str, payload: Payload) -> str | None:
    """What replies and edits refer to: `comment:12`, `issue:34`; the head commit of a push; None without one.

    GitHub counts the comments of reviews, discussions and commits apart from those of issues, so they are
    named apart.
    """
    for kind in _OBJECTS:
        if number := _word(_object(payload, kind), "id"):
            named = _COMMENTS.get(event, kind) if kind == "comment" else kind
            return f"{named}:{number}"
    commit = _word(_object(payload, "head_commit"), "id") or _word(payload, "after")
    return commit if commit.strip("0") else None


def sender(payload: Payload) -> tuple[str, str]:
    """Who did it: GitHub's number, which never changes, and the login, which may and identifies nobody."""
    person = _object(payload, "sender")
    return _word(person, "id") or "unknown", _word(person, "login")


def summary(event: str, payload: Payload) -> str:
    """What happened, for people and for search: one line, then title, particulars and what was written."""
    lines = (_headline(event, payload), _title(payload), *_particulars(payload), *_commits(payload), _body(payload))
    return normal.cut("\n".join(line for line in lines if line), TEXT_CHARS_MAX)


_MARKER = re.compile(r"<!-- keepsaid:[0-9a-z-]{1,60} -->\s{0,20}\Z", re.ASCII)


def marker(key: str) -> str:
    """The end of a comment that the agent posts, by the key of the reply; GitHub does not show it."""
    return f"<!-- keepsaid:{key} -->"


def is_own(payload: Payload) -> bool:
    """Whether an event is about a comment that the agent posted: answering it would never end."""
    body = _object(payload, "comment").get("body")
    return isinstance(body, str) and _MARKER.search(body[-_WORD_CHARS_MAX:]) is not None


def _object(source: Payload, *path: str) -> Payload:
    value: object = source
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _objects(source: Payload, name: str) -> Iterator[Payload]:
    values = source.get(name)
    for value in values if isinstance(values, list) else ():
        if isinstance(value, Mapping):
            yield value


def _word(source: Payload, name: str) -> str:
    value = source.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        return ""
    shown = (letter if letter.isprintable() else " " for letter in normal.normalise(value[: 2 * _WORD_CHARS_MAX]))
    return normal.cut(" ".join("".join(shown).split()), _WORD_CHARS_MAX)


def _prose(source: Payload, name: str) -> str:
    value = source.get(name)
    if not isinstance(value, str):
        return ""
    return normal.normalise(value[: TEXT_CHARS_MAX + 1]).replace("\r\n", "\n").strip()


def _number(source: Payload) -> int | None:
    value = source.get("number")
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _owner(payload: Payload) -> str:
    organization, account = _object(payload, "organization"), _object(payload, "installation", "account")
    return _word(organization, "login") or _word(account, "login") or _word(_object(payload, "enterprise"), "slug")


def _thread(payload: Payload) -> str:
    for kind in ("pull_request", "issue"):
        if number := _number(_object(payload, kind)):
            return f"#{number}"
    if number := _number(_object(payload, "discussion")):
        return f"/discussions#{number}"
    if tag := _word(_object(payload, "release"), "tag_name"):
        return f"@{tag}"
    for kind in _CHECKS:
        if check := _object(payload, kind):
            return _check_thread(check, _word(_object(payload, "repository"), "id"))
    ref = _word(payload, "ref").removeprefix("refs/heads/").removeprefix("refs/tags/")
    return f"@{ref}" if ref else ""


def _check_thread(check: Payload, repository_id: str) -> str:
    suite = _object(check, "check_suite")
    pulls = [*_objects(check, "pull_requests"), *_objects(suite, "pull_requests")]
    # Checks of a fork also list pull requests of its parent, whose numbers mean something else here.
    pulls.sort(key=lambda pull: _word(_object(pull, "base", "repo"), "id") != repository_id)
    for number in map(_number, pulls):
        if number:
            return f"#{number}"
    branch = _word(check, "head_branch") or _word(suite, "head_branch")
    return f"@{branch}" if branch else ""


def _headline(event: str, payload: Payload) -> str:
    _, name = sender(payload)
    did = f"{event} {_word(payload, 'action')}".replace("_", " ").strip()
    return f"{name or 'someone'}: {did}, {conversation(payload).removeprefix('github:')}"


def _title(payload: Payload) -> str:
    for kind in ("pull_request", "issue", "discussion", "release", *_CHECKS):
        about = _object(payload, kind)
        for name in ("title", "display_title", "name"):
            if title := " ".join(_prose(about, name).split()):
                return normal.cut(title, _WORD_CHARS_MAX)
    return ""


def _particulars(payload: Payload) -> Iterator[str]:
    named = (("label", "name"), ("assignee", "login"), ("milestone", "title"), ("requested_reviewer", "login"))
    for kind, name in named:
        if value := _word(_object(payload, kind), name):
            yield f"{kind.replace('_', ' ')}: {value}"
    if state := _word(_object(payload, "review"), "state"):
        yield f"review: {state}"
    for kind in _CHECKS:
        if conclusion := _word(_object(payload, kind), "conclusion"):
            yield f"conclusion: {conclusion}"
    for fact in ("forced", "deleted"):
        if payload.get(fact) is True:
            yield fact


def _commits(payload: Payload) -> Iterator[str]:
    commits = list(_objects(payload, "commits"))
    for commit in commits[:_COMMITS_MAX]:
        first, _, _ = _prose(commit, "message").partition("\n")
        yield normal.cut(f"{_word(commit, 'id')[:7]} {first}".strip(), _WORD_CHARS_MAX)
    if len(commits) > _COMMITS_MAX:
        yield f"and {len(commits) - _COMMITS_MAX} more commits"


def _body(payload: Payload) -> str:
    # A label on a long pull request must not repeat its text in every prompt, and what was deleted is not said again.
    if _word(payload, "action") not in _WRITING:
        return _prose(_object(payload, "check_run", "output"), "summary")
    for kind in ("comment", "review", "answer", "issue", "pull_request", "discussion", "release"):
        if about := _object(payload, kind):
            return _prose(about, "body")
    return ""


_SIGNATURE = re.compile(r"sha256=([0-9a-f]{64})", re.ASCII)
_HEADER_CHARS_MAX = 200
_PING = frozenset(("zen", "hook_id", "hook"))
_FORM = "application/x-www-form-urlencoded"


class GitHubHook:
    """The webhook of one secret; a channel and a hook.

    Without a secret it takes nothing. All of it is `external`: a signature proves that GitHub sent it, not
    that its author may be believed. Everything about one issue or pull request is one lane.
    """

    name = "github"
    sending = Sending.NONE

    def __init__(self, secret: str, account: str = "default", priority: int = 50) -> None:
        self._secret = secret.encode("utf-8", "surrogateescape") if secret.strip() else b""
        self._account = account
        self._priority = priority

    def read(self, headers: Mapping[str, str], body: bytes) -> Inbound | None:
        """The message in a delivery; None for a ping, and for what the agent's own comments cause.

        `headers` are lower-case. `external_id` is the delivery's GUID, which a redelivery repeats. The stored
        payload is the JSON document: the body as received, or what a form carries in `payload`. Raises
        HookClosed without a secret, Forged for any other signature than HMAC-SHA256 of the body, InputError
        for a body that is not a JSON object.
        """
        self._prove(headers.get("x-hub-signature-256", ""), body)
        if (event := _required(headers, "x-github-event")) == "ping":
            return None
        delivery = _required(headers, "x-github-delivery")
        document = _document(headers.get("content-type", ""), body)
        payload = _parsed(document)
        if payload.keys() >= _PING:
            return None  # the event's name is not signed: a replayed ping stays a ping
        if is_own(payload):
            return None
        login_id, login = sender(payload)
        return Inbound(
            Origin(self.name, self._account, conversation(payload), login_id, login, trust=Trust.EXTERNAL),
            Content(document, summary(event, payload), event_name(event, payload)),
            ProviderMarks(delivery, provider_id(event, payload)),
            priority=self._priority,
        )

    async def send(self, reply: StoredReply) -> SendResult:  # noqa: ARG002 - the port's signature
        return SendResult(Delivered.REFUSED, "GitHub has no way to reply: github.token is not set")

    async def close(self) -> None:
        """Do nothing: it holds no connection."""

    def _prove(self, signature: str, body: bytes) -> None:
        if not self._secret:
            raise HookClosed("The GitHub webhook is closed: no secret is configured")
        if (given := _SIGNATURE.fullmatch(signature)) is None:
            raise Forged("The webhook has no sha256 signature" if not signature else "The signature is malformed")
        if not hmac.compare_digest(given.group(1), hmac.digest(self._secret, body, "sha256").hex()):
            raise Forged("The signature does not belong to this body and secret")


def _required(headers: Mapping[str, str], name: str) -> str:
    if not (value := headers.get(name, "").strip()):
        raise InputError(f"The webhook has no {name} header")
    if len(value) > _HEADER_CHARS_MAX or not (value.isascii() and value.isprintable()):
        raise InputError(f"The webhook's {name} header cannot be read")
    return value


def _document(content_type: str, body: bytes) -> bytes:
    if content_type.partition(";")[0].strip().lower() != _FORM:
        return body
    fields = [field.removeprefix(b"payload=") for field in body.split(b"&") if field.startswith(b"payload=")]
    if len(fields) != 1:
        raise InputError("A webhook sent as a form needs one field named payload")
    return unquote_to_bytes(fields[0].replace(b"+", b" "))


def _parsed(document: bytes) -> Payload:
    try:
        payload = json_reader.read_json(document)
    except json_reader.Unreadable as error:
        raise InputError(f"The webhook's body is not readable JSON: {error}") from error
    if not isinstance(payload, dict):
        raise InputError("The webhook's body is not a JSON object")
    return payload
