"""Files of Slack: downloads with the token of the bot; the login page that Slack answers instead is not the file."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial

from keepsaid.adapters.channels.downloads import AnswerStart, FileDownloads
from keepsaid.domain.message import Attachment
from keepsaid.errors import FileRefused, FileUnavailable

_PROVIDER = "Slack"
_HOSTS = ("files.slack.com",)
_HTML = "text/html"
_WRITTEN_AS_HTML = frozenset({_HTML, "application/xhtml+xml", "application/vnd.slack-docs"})
"""Media types of files that Slack hands out as HTML, such as its canvases."""

_LOGIN = "Slack asks for a login instead: the token of the bot lacks the scope files:read"


class SlackFiles:
    """Downloads what came with messages, from the servers of Slack and the one at `url` alone."""

    def __init__(self, token: str, url: str) -> None:
        self._token = token
        self._downloads = FileDownloads(_PROVIDER, url, _HOSTS)

    async def fetch(self, file: Attachment) -> AsyncGenerator[bytes, None]:
        """The bytes of a file. Raises FileRefused and FileUnavailable, neither with the token in its words."""
        headers = {"Authorization": f"Bearer {self._token}", "User-Agent": "keepsaid"}
        async with aclosing(self._downloads.pieces(file.ref, headers, partial(_check, file.kind))) as pieces:
            async for piece in pieces:
                yield piece

    def check(self, url: str) -> None:
        """Raise FileRefused for an address that is not one of Slack."""
        self._downloads.check(url)

    async def close(self) -> None:
        """Close the connections."""
        await self._downloads.close()


def _check(kind: str, start: AnswerStart) -> None:
    """Raise FileRefused for a login page, to which Slack may also redirect, and FileUnavailable for a bad token."""
    is_page = start.status == 200 and start.kind == _HTML and kind.lower() not in _WRITTEN_AS_HTML
    if is_page or 300 <= start.status < 400:
        raise FileRefused(f"{_LOGIN} (it answered {start.status})")
    if start.status == 401:
        raise FileUnavailable(f"{_PROVIDER} does not accept slack.bot_token")
