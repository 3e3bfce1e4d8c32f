"""What a GitHub webhook says, whatever the shape of its payload: any field may be missing or of another type.

Places: `github:owner/repo#7` for an issue or pull request and all said about it, `/discussions#7` for a
discussion, `@v1.2` for a release, `@main` for what belongs to a branch or tag. A ref is written short, so that
the push to a branch, the checks of that branch, and the push and the release of a tag each share one place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from keepsaid.text.normal import cut, normalise

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
    return cut("\n".join(line for line in lines if line), TEXT_CHARS_MAX)


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
    shown = (letter if letter.isprintable() else " " for letter in normalise(value[: 2 * _WORD_CHARS_MAX]))
    return cut(" ".join("".join(shown).split()), _WORD_CHARS_MAX)


def _prose(source: Payload, name: str) -> str:
    value = source.get(name)
    if not isinstance(value, str):
        return ""
    return normalise(value[: TEXT_CHARS_MAX + 1]).replace("\r\n", "\n").strip()


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
                return cut(title, _WORD_CHARS_MAX)
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
        yield cut(f"{_word(commit, 'id')[:7]} {first}".strip(), _WORD_CHARS_MAX)
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
