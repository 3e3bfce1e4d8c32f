"""GitHub as a channel that answers: replies become comments of their issue or pull request."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from keepsaid.adapters.channels.github import GitHubHook, marker
from keepsaid.adapters.channels.github_api import ApiAnswer, ApiRequest, ApiUnreachable, GitHubApi, refused, unreachable
from keepsaid.domain.reply import GITHUB_ISSUE, Delivered, Sending, SendResult, StoredReply
from keepsaid.ports.runtime import Clock
from keepsaid.text.normal import cut

_ISSUE = re.compile(GITHUB_ISSUE)
_TEXT_CHARS_MAX = 60_000
"""GitHub takes 65,536 characters of a comment."""

_PAGE, _PAGES_MAX = 100, 30
_BEFORE_MS = 600_000
"""How far the clock of this machine may be ahead of GitHub's when a comment is looked for."""


class Issue(NamedTuple):
    """An issue or a pull request: `repository` is OWNER/NAME."""

    repository: str
    number: int

    @property
    def comments(self) -> str:
        """The path of its comments."""
        return f"/repos/{self.repository}/issues/{self.number}/comments"

    @property
    def pull(self) -> str:
        """The path of the pull request."""
        return f"/repos/{self.repository}/pulls/{self.number}"


def issue_of(conversation: str) -> Issue | None:
    """The issue or pull request of a conversation; None for any other conversation."""
    found = _ISSUE.fullmatch(conversation)
    return Issue(found[1], int(found[2])) if found else None


class GitHubChannel(GitHubHook):
    """The webhook of one secret, and comments by one token.

    A comment ends with a marker that GitHub does not show. What may have been posted is looked for by it before it is
    posted again.
    """

    sending = Sending.PUSH

    def __init__(self, secret: str, api: GitHubApi, clock: Clock, priority: int = 50) -> None:
        super().__init__(secret, priority=priority)
        self._api = api
        self._clock = clock

    async def send(self, reply: StoredReply) -> SendResult:
        """Post a reply once, unless its comment is found; never raises."""
        if (issue := issue_of(reply.lane.conversation)) is None:
            return SendResult(Delivered.REFUSED, "only issues and pull requests of GitHub can be answered")
        if reply.possible_duplicate and (known := await self._find(issue, reply)) is not None:
            return known
        text = f"{cut(reply.draft.text, _TEXT_CHARS_MAX)}\n\n{marker(reply.key)}"
        try:
            answer = await self._api.call(ApiRequest("POST", issue.comments, {"body": text}))
        except ApiUnreachable as error:
            return unreachable(error)
        if answer.status == 201:
            return SendResult(Delivered.CONFIRMED, provider_id=_id_of(answer.json))
        return self._refused(answer)

    async def close(self) -> None:
        await self._api.close()

    async def _find(self, issue: Issue, reply: StoredReply) -> SendResult | None:
        """The comment of an earlier try, or why it cannot be looked for; None where there is none."""
        since = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=max(0, reply.created_at - _BEFORE_MS))
        query = {"since": f"{since:%Y-%m-%dT%H:%M:%SZ}", "per_page": str(_PAGE)}
        for page in range(1, _PAGES_MAX + 1):
            try:
                answer = await self._api.call(ApiRequest("GET", issue.comments, query={**query, "page": str(page)}))
            except ApiUnreachable as error:
                return SendResult(Delivered.RETRY, f"not looked for yet: {error}", outage=True)
            if answer.status != 200:
                return self._not_found_out(answer)
            comments = answer.json if isinstance(answer.json, list) else []
            for one in comments:
                if isinstance(one, dict) and marker(reply.key) in str(one.get("body")):
                    return SendResult(Delivered.CONFIRMED, "found: an earlier try had arrived", _id_of(one))
            if len(comments) < _PAGE:
                return None
        return None

    def _not_found_out(self, answer: ApiAnswer) -> SendResult:
        """The result where comments cannot be listed: nothing is posted, and nothing new is in doubt."""
        found = self._refused(answer)
        if found.outcome is not Delivered.DOUBT:
            return found
        return SendResult(
            Delivered.RETRY, f"not looked for yet: {found.detail}", None, found.retry_after_ms, outage=True
        )

    def _refused(self, answer: ApiAnswer) -> SendResult:
        return refused(answer, self._clock.now_ms() / 1_000)


def _id_of(comment: object) -> str | None:
    """The id of a comment, as webhooks name it."""
    number = comment.get("id") if isinstance(comment, dict) else None
    return f"comment:{number}" if isinstance(number, int) else None
