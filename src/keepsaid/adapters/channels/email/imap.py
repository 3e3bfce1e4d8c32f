"""One folder of an IMAP server, read by IMAPClient in a thread of its own; only UID commands, and nothing is changed.

The folder is opened for reading alone and mails are fetched by `BODY.PEEK[]`, so that no flag changes.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from imaplib import IMAP4
from typing import Any, TypeVar

from keepsaid.adapters.channels.email.account import MailServer
from keepsaid.errors import ChannelError, installation
from keepsaid.values import frozen

_CONNECT_S, _READ_S, _CLOSE_S = 10.0, 30.0, 2.0
_DAY_MS = 86_400_000
_Result = TypeVar("_Result")
_BROKEN = (OSError, ValueError, LookupError, TypeError, AttributeError, AssertionError, EOFError)
"""What IMAPClient raises when a connection is lost, or an answer makes no sense."""


class ImapLost(Exception):
    """The connection is lost, or none came about."""


class ImapRefused(Exception):
    """The server refuses a command; `is_login` says that it refuses the login, `is_folder` the folder."""

    def __init__(self, what: str, *, is_login: bool = False, is_folder: bool = False) -> None:
        super().__init__(what)
        self.is_login = is_login
        self.is_folder = is_folder


@frozen
class FolderState:
    """A folder as it was opened: the UIDs of its mails mean something while `validity` is the same."""

    validity: int
    next_uid: int
    idles: bool


@frozen
class MailFacts:
    """A mail in a folder: its size in bytes, and when the server got it, milliseconds UTC (0 if it does not say)."""

    size: int
    received_ms: int


class ImapFolder:
    """A connection to one folder. Every method raises ImapLost and ImapRefused; after ImapLost `open` it again."""

    def __init__(self, server: MailServer, folder: str = "INBOX") -> None:
        self._server = server
        self.folder = folder
        self._thread: ThreadPoolExecutor | None = None
        self._client: Any = None
        self._mails = 0
        self._is_changed = False

    async def open(self) -> FolderState:
        """Connect, log in and open the folder. Raises ChannelError if IMAPClient is not installed."""
        await self.close()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="keepsaid-imap")
        return await self._run(self._connect)

    async def newer(self, uid: int) -> list[int]:
        """The UIDs above one, in order; a server answers `n:*` with its last mail even if that is not newer."""
        found = await self._run(lambda: self._client.search(["UID", f"{uid + 1}:*"]))
        return sorted(one for one in found if one > uid)

    async def since(self, ms: int) -> list[int]:
        """The UIDs of what came since the day before a time, in order: a server counts days by its own time zone."""
        day = datetime.fromtimestamp((ms - _DAY_MS) / 1_000, UTC).date()
        return sorted(await self._run(lambda: self._client.search(["SINCE", day])))

    async def facts(self, uids: Sequence[int]) -> dict[int, MailFacts]:
        """Size and time of mails; those that were deleted meanwhile are missing."""
        found = await self._fetch(uids, "RFC822.SIZE", "INTERNALDATE")
        return {uid: _facts(data) for uid, data in found.items() if b"RFC822.SIZE" in data}

    async def mails(self, uids: Sequence[int]) -> dict[int, bytes]:
        """Whole mails, as they came."""
        return _bodies(await self._fetch(uids, "BODY.PEEK[]"))

    async def heads(self, uids: Sequence[int]) -> dict[int, bytes]:
        """The headers of mails."""
        return _bodies(await self._fetch(uids, "BODY.PEEK[HEADER]"))

    async def idle(self, heard: Callable[[], None]) -> None:
        """Have the server say when something changes; `heard` is then called in the loop."""
        if await self._run(self._begin_idle):
            heard()
        try:
            asyncio.get_running_loop().add_reader(self._client.socket().fileno(), heard)
        except (OSError, ValueError) as error:
            raise ImapLost("the connection was lost") from error

    async def idle_done(self) -> bool:
        """End that; returns whether something changed."""
        with suppress(OSError, ValueError):
            asyncio.get_running_loop().remove_reader(self._client.socket().fileno())
        _, heard = await self._run(self._client.idle_done)
        return self._is_changed or any(len(one) > 1 and one[1] in (b"EXISTS", b"RECENT") for one in heard)

    async def close(self) -> None:
        """Close the connection, also while a command waits for its answer."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        if self._client is not None:
            with suppress(OSError, ValueError):
                asyncio.get_running_loop().remove_reader(self._client.socket().fileno())
            with suppress(OSError, ValueError, AttributeError):
                self._client.socket().shutdown(socket.SHUT_RDWR)
        closing = thread.submit(self._disconnect)
        thread.shutdown(wait=False)
        await asyncio.wait((asyncio.wrap_future(closing),), timeout=_CLOSE_S)

    async def _fetch(self, uids: Sequence[int], *items: str) -> Mapping[int, Mapping[bytes, Any]]:
        found: Mapping[int, Mapping[bytes, Any]] = await self._run(lambda: self._client.fetch(list(uids), list(items)))
        return {uid: data for uid, data in found.items() if uid in uids}

    async def _run(self, call: Callable[[], _Result]) -> _Result:
        """Make a call in the thread."""
        if self._thread is None:
            raise ImapLost("not connected")
        return await asyncio.wrap_future(self._thread.submit(_translated, call))

    def _connect(self) -> FolderState:
        try:
            from imapclient import IMAPClient, SocketTimeout  # type: ignore[import-untyped]  # noqa: PLC0415
        except ImportError as error:
            what = "e-mail needs the package IMAPClient"
            raise ChannelError(what, hint=installation("email")) from error
        server = self._server
        limits = SocketTimeout(connect=_CONNECT_S, read=_READ_S)
        is_direct, trusted = server.tls and not server.starttls, server.trusted() if server.tls else None
        self._client = client = IMAPClient(server.host, server.port, ssl=is_direct, ssl_context=trusted, timeout=limits)
        client.normalise_times = False
        # the library writes a command in pieces, each of which would wait for the acknowledgement of the one before
        client.socket().setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if server.starttls:
            self._encrypt(client, trusted)
        try:
            client.login(server.user, server.password)
        except IMAP4.abort:
            raise
        except UnicodeError:
            raise ImapRefused("user or password has letters beyond ASCII", is_login=True) from None
        except IMAP4.error as error:
            raise ImapRefused(_words(error), is_login=True) from error
        try:
            opened = client.select_folder(self.folder, readonly=True)
        except IMAP4.abort:
            raise
        except IMAP4.error as error:
            raise ImapRefused(_words(error), is_folder=True) from error
        self._mails, self._is_changed = int(opened.get(b"EXISTS", 0)), False
        next_uid = opened.get(b"UIDNEXT") or max(client.search(["UID", "1:*"]), default=0) + 1
        return FolderState(int(opened[b"UIDVALIDITY"]), int(next_uid), client.has_capability("IDLE"))

    @staticmethod
    def _encrypt(client: Any, trusted: ssl.SSLContext | None) -> None:
        """Begin TLS, before the login. Raises ChannelError where the server does not know how."""
        try:
            client.starttls(trusted)
        except IMAP4.abort:
            raise
        except IMAP4.error as error:
            what = f"the IMAP server does not begin TLS by STARTTLS: {_words(error)}"
            raise ChannelError(what, hint="keepsaid config set email.imap_port 993") from error

    def _begin_idle(self) -> bool:
        """Begin IDLE; returns whether something changed already.

        A server may announce a mail in its answer to any command, and then does not again (RFC 3501, 7); what it says
        right after the command is in a buffer, and wakes nobody.
        """
        client = self._client
        said = client._imap.untagged_responses  # noqa: SLF001 - IMAPClient drops what it did not ask for
        counts, self._is_changed = said.pop("EXISTS", []), bool(said.pop("EXPUNGE", []))
        if counts and int(counts[-1]) != self._mails:
            self._mails, self._is_changed = int(counts[-1]), True
        client.idle()
        connection = client.socket()
        connection.settimeout(0)
        try:
            return bool(client._imap.file.peek(1)) or self._is_changed  # noqa: SLF001 - there is no method for it
        except (BlockingIOError, ssl.SSLWantReadError):
            return self._is_changed
        finally:
            connection.settimeout(_READ_S)

    def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with suppress(*_BROKEN, IMAP4.error):
                client.shutdown()


def _translated(call: Callable[[], _Result]) -> _Result:
    """Make a call; raises ImapLost and ImapRefused for what it raises."""
    try:
        return call()
    except IMAP4.abort as error:
        raise ImapLost(_words(error) or "the connection was lost") from error
    except IMAP4.error as error:
        raise ImapRefused(_words(error)) from error
    except ssl.SSLError as error:
        raise ImapLost(f"TLS failed: {error.reason or type(error).__name__}") from error
    except TimeoutError as error:
        raise ImapLost("the server does not answer") from error
    except _BROKEN as error:
        raise ImapLost(str(error)[:200] or type(error).__name__) from error


def _words(error: Exception) -> str:
    """What a server said, in a line."""
    return " ".join(str(error).split())[:200]


def _facts(data: Mapping[bytes, Any]) -> MailFacts:
    at = data.get(b"INTERNALDATE")
    size = data[b"RFC822.SIZE"]
    received = int(at.timestamp() * 1_000) if isinstance(at, datetime) else 0
    return MailFacts(size if isinstance(size, int) else 0, received)


def _bodies(found: Mapping[int, Mapping[bytes, Any]]) -> dict[int, bytes]:
    """The content of each mail; a server may repeat the section in its own case."""
    return {
        uid: body
        for uid, data in found.items()
        for name, body in data.items()
        if name.upper().startswith(b"BODY[") and isinstance(body, bytes)
    }
