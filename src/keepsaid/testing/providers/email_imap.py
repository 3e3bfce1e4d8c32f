"""A scripted IMAP server with one folder: `async with ImapServer() as imap`. Mails come by `deliver`.

It speaks as much of RFC 3501 and RFC 2177 as a reader needs: LOGIN, EXAMINE, UID SEARCH, UID FETCH, IDLE and NOOP.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from ssl import SSLContext

from keepsaid.testing.providers.email_lines import ClientGoneError, LineConnection, LineServer
from keepsaid.testing.providers.email_smtp import PASSWORD, USER
from keepsaid.testing.providers.mischief import Mischief, MischiefMaker, harmless

_START_MS = 1_750_000_000_000
_DAY = "%d-%b-%Y"
_FETCHED = re.compile(r"BODY(\.PEEK)?\[(HEADER)?\]", re.IGNORECASE)


@dataclass
class FolderMail:
    """A mail in the folder; `received_ms` is when it came, milliseconds UTC."""

    uid: int
    raw: bytes
    received_ms: int


class ImapServer(LineServer):
    """An IMAP server for one account; an async context manager.

    `mischief` decides for each command what goes wrong. `seen` has the UIDs that a client marked as read, `refused`
    those that it is not given. Without `idles` the server has no IDLE; a `deaf` one accepts it, and notifies nobody of
    new mail. Without `names_next` it does not say which UID comes next. One
    that `hangs` takes commands and answers none. Commands are counted in `calls`.
    """

    def __init__(
        self, mischief: MischiefMaker = harmless, *, port: int = 0, now_ms: Callable[[], int] = lambda: _START_MS
    ) -> None:
        super().__init__(port)
        self.mischief = mischief
        self.mails: list[FolderMail] = []
        self.validity = 1
        self.next_uid = 1
        self.idles = True
        self.deaf = False
        self.names_next = True
        self.hangs = False
        self.folders = {"INBOX"}
        self.passwords = {PASSWORD}
        self.seen: set[int] = set()
        self.refused: set[int] = set()
        self.sizes: dict[int, int] = {}
        self.calls: dict[str, int] = {}
        self._now_ms = now_ms
        self._idling: dict[LineConnection, asyncio.Event] = {}

    @property
    def idling(self) -> int:
        """How many clients wait for news."""
        return len(self._idling)

    def deliver(self, raw: bytes, received_ms: int | None = None) -> int:
        """Put a mail into the folder, and notify who waits; returns its UID."""
        uid, self.next_uid = self.next_uid, self.next_uid + 1
        self.mails.append(FolderMail(uid, raw, self._now_ms() if received_ms is None else received_ms))
        if not self.deaf:
            for event in self._idling.values():
                event.set()
        return uid

    def delete(self, uid: int) -> None:
        """Delete a mail: the sequence numbers of all after it shift."""
        self.mails[:] = [one for one in self.mails if one.uid != uid]

    def renumber(self, first: int = 1) -> None:
        """Give all mails new UIDs, and the folder a new UIDVALIDITY, as after a restore."""
        self.validity += 1
        for uid, one in enumerate(self.mails, first):
            one.uid = uid
        self.next_uid = first + len(self.mails)

    async def talk(self, connection: LineConnection) -> None:
        """Serve one client."""
        await connection.write(b"* OK scripted IMAP4rev1\r\n")
        dialogue = _ImapDialogue(self, connection)
        try:
            while await dialogue.step():
                await self.tell()
        finally:
            self._idling.pop(connection, None)

    async def idle(self, connection: LineConnection, tag: str, known_uid: int) -> bool:
        """Notify a client of new mail until it says DONE; False where it says something else.

        `known_uid` is the UID that would have come next when the client saw the folder last.
        """
        event = self._idling[connection] = asyncio.Event()
        if self.next_uid > known_uid and not self.deaf:
            event.set()
        await connection.write(b"+ idling\r\n")
        await self.tell()
        done = asyncio.ensure_future(connection.line())
        try:
            while not done.done():
                news = asyncio.ensure_future(event.wait())
                await asyncio.wait((done, news), return_when=asyncio.FIRST_COMPLETED)
                news.cancel()
                if event.is_set():
                    event.clear()
                    await connection.write(b"* %d EXISTS\r\n" % len(self.mails))
        finally:
            del self._idling[connection]
            done.cancel()
            await asyncio.gather(done, return_exceptions=True)
        is_done = done.result().upper() == b"DONE"
        if self.hangs:
            await asyncio.Event().wait()
        await connection.write(f"{tag} {'OK' if is_done else 'BAD'} IDLE\r\n".encode())
        return is_done

    def act(self, command: str) -> Mischief:
        """What is done with a command, which is counted."""
        self.calls[command] = self.calls.get(command, 0) + 1
        return self.mischief(command, sum(self.calls.values()))


class _ImapDialogue:
    """One client: whether it is logged in, and has a folder open."""

    def __init__(self, server: ImapServer, connection: LineConnection) -> None:
        self._server = server
        self._connection = connection
        self._is_in = self._is_open = self._is_readonly = False
        self._encrypts_with = server.certificate
        self._known_uid = 0

    async def step(self) -> bool:
        """Answer one command; False where the connection ends."""
        line = await self._connection.line()
        if self._server.hangs:
            await asyncio.Event().wait()
        try:
            tag, *words = shlex.split(line.decode("latin-1"))
        except ValueError as error:
            raise ClientGoneError from error
        if not words:
            raise ClientGoneError
        command = " ".join(words[:2] if words[0].upper() == "UID" else words[:1]).upper()
        act = self._server.act(command)
        if act is not Mischief.ACCEPT and command not in ("LOGOUT", "CAPABILITY"):
            return await self._trouble(act, tag)
        if command == "IDLE" and self._is_open and self._server.idles:
            return await self._server.idle(self._connection, tag, self._known_uid)
        if self._encrypts_with is not None and command in ("STARTTLS", "LOGIN"):
            await self._begin_tls(self._encrypts_with, command, tag)
            return True
        answer = self._answer(command, words)
        if command == "UID FETCH" and isinstance(answer, list) and self._server.next_uid > self._known_uid:
            answer += [] if self._server.deaf else [b"* %d EXISTS\r\n" % len(self._server.mails)]
            self._known_uid = self._server.next_uid
        if command in ("SELECT", "EXAMINE", "UID SEARCH"):
            self._known_uid = self._server.next_uid
        if isinstance(answer, str):
            await self._connection.write(f"{tag} {answer}\r\n".encode())
        else:
            code = {"SELECT": "[READ-WRITE] ", "EXAMINE": "[READ-ONLY] "}.get(command, "")
            await self._connection.write(b"".join(answer) + f"{tag} OK {code}done\r\n".encode())
        return command != "LOGOUT"

    async def _begin_tls(self, certificate: SSLContext, command: str, tag: str) -> None:
        if command != "STARTTLS":
            await self._connection.write(f"{tag} NO [PRIVACYREQUIRED] begin TLS first\r\n".encode())
            return
        await self._connection.write(f"{tag} OK begin\r\n".encode())
        await self._connection.encrypt(certificate)
        self._encrypts_with = None

    async def _trouble(self, act: Mischief, tag: str) -> bool:
        if act in (Mischief.FAIL, Mischief.SLOW_DOWN):
            await self._connection.write(f"{tag} NO [UNAVAILABLE] try again later\r\n".encode())
            return True
        if act is Mischief.FAIL_AFTER:
            await self._connection.write(f"{tag} BAD internal error\r\n".encode())
            return True
        if act is Mischief.GARBLE:
            await self._connection.write(b"* 1 FETCH (UID 1 BODY[] {100}\r\n<html>")
        await self._connection.reset()
        return False

    def _answer(self, command: str, words: list[str]) -> str | list[bytes]:
        """The answer to a command: its last line, or what stands before an OK."""
        if command == "CAPABILITY":
            login = "" if self._encrypts_with is None else " STARTTLS LOGINDISABLED"
            return [f"* CAPABILITY IMAP4rev1{' IDLE' if self._server.idles else ''}{login}\r\n".encode()]
        if command == "LOGOUT":
            return [b"* BYE\r\n"]
        if command == "LOGIN":
            self._is_in = words[1] == USER and words[2] in self._server.passwords
            return [] if self._is_in else "NO [AUTHENTICATIONFAILED] the login is not accepted"
        if command in ("SELECT", "EXAMINE") and self._is_in:
            return self._open(words[1], is_readonly=command == "EXAMINE")
        if not self._is_open:
            return "BAD not now"
        if command == "CLOSE":
            self._is_open = False
            return []
        if command == "NOOP":
            return [b"* %d EXISTS\r\n" % len(self._server.mails)]
        if command == "UID SEARCH":
            found = " ".join(str(one.uid) for one in self._found(words[2:]))
            return [f"* SEARCH {found}".rstrip().encode() + b"\r\n"]
        if command == "UID FETCH":
            return self._fetched(words[2], " ".join(words[3:]))
        return "BAD not known"

    def _open(self, folder: str, *, is_readonly: bool) -> str | list[bytes]:
        if folder not in self._server.folders:
            return "NO [NONEXISTENT] no such folder"
        self._is_open, self._is_readonly = True, is_readonly
        server = self._server
        told = [
            b"* FLAGS (\\Seen)\r\n",
            b"* %d EXISTS\r\n* 0 RECENT\r\n" % len(server.mails),
            b"* OK [UIDVALIDITY %d] \r\n" % server.validity,
        ]
        return [*told, b"* OK [UIDNEXT %d] \r\n" % server.next_uid] if server.names_next else told

    def _found(self, criteria: list[str]) -> Iterator[FolderMail]:
        """The mails that a search finds; `n:*` always has the last one."""
        kind, value = criteria[0].upper(), criteria[-1]
        if kind in ("ALL", "UNSEEN"):
            hidden = self._server.seen if kind == "UNSEEN" else ()
            yield from (one for one in self._server.mails if one.uid not in hidden)
            return
        if kind == "SINCE":
            since = datetime.strptime(value, _DAY).replace(tzinfo=UTC).timestamp() * 1_000
            yield from (one for one in self._server.mails if one.received_ms >= since)
            return
        yield from self._in_set(value)

    def _in_set(self, value: str) -> Iterator[FolderMail]:
        last = max((one.uid for one in self._server.mails), default=0)
        wanted: set[int] = set()
        for piece in value.split(","):
            low, _, high = piece.partition(":")
            first, end = (last if one == "*" else int(one) for one in (low, high or low))
            first, end = min(first, end), max(first, end)
            wanted.update(one.uid for one in self._server.mails if first <= one.uid <= end)
        yield from (one for one in self._server.mails if one.uid in wanted)

    def _fetched(self, uids: str, items: str) -> str | list[bytes]:
        out: list[bytes] = []
        wanted = _FETCHED.search(items)
        asked = {one.uid for one in self._in_set(uids)}
        for number, one in enumerate(self._server.mails, 1):
            if one.uid not in asked:
                continue
            told = b"UID %d" % one.uid + self._facts(one, items.upper())
            if wanted is not None:
                if one.uid in self._server.refused and not wanted.group(2):
                    return "NO [SERVERBUG] the mail cannot be read"
                if not wanted.group(1) and not self._is_readonly:
                    self._server.seen.add(one.uid)
                body = one.raw.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if wanted.group(2) else one.raw
                section = b"BODY[HEADER]" if wanted.group(2) else b"BODY[]"
                told += b" %s {%d}\r\n%s" % (section, len(body), body)
            out.append(b"* %d FETCH (%s)\r\n" % (number, told))
        return out

    def _facts(self, one: FolderMail, items: str) -> bytes:
        """The items of a mail that are asked for, apart from its content."""
        told = b""
        if "FLAGS" in items:
            told += b" FLAGS (%s)" % (b"\\Seen" if one.uid in self._server.seen else b"")
        if "RFC822.SIZE" in items:
            told += b" RFC822.SIZE %d" % self._server.sizes.get(one.uid, len(one.raw))
        if "INTERNALDATE" in items:
            at = datetime.fromtimestamp(one.received_ms / 1_000, UTC).strftime("%d-%b-%Y %H:%M:%S +0000")
            told += b' INTERNALDATE "%s"' % at.encode()
        return told


def mail_from(sender: str, text: str, number: str, subject: str = "Hello", **headers: str) -> bytes:
    """A mail of a person to the agent; `number` is its Message-ID without angle brackets, "" for none.

    Names of more headers are written with `_` for `-`: `In_Reply_To="<1@x>"`.
    """
    mail = EmailMessage(SMTP.clone(max_line_length=900))
    mail["From"], mail["To"], mail["Subject"] = sender, headers.pop("To", USER), subject
    if number:
        mail["Message-ID"] = f"<{number}>"
    for name, value in headers.items():
        mail[name.replace("_", "-")] = value
    mail.set_content(text)
    return mail.as_bytes()
