"""A scripted SMTP server: `async with SmtpServer() as smtp`. What it took is in `sent`.

It takes mails as RFC 5321 says, one recipient at a time, and refuses what the script refuses.
"""

from __future__ import annotations

import base64
import email
import re
from email.message import EmailMessage
from email.policy import default
from ssl import SSLContext

from keepsaid.testing.providers.email_lines import LineConnection, LineServer
from keepsaid.testing.providers.forms import UploadedFile
from keepsaid.testing.providers.mischief import Mischief, MischiefMaker, harmless
from keepsaid.values import frozen

USER, PASSWORD = "agent@example.org", "scripted-password"

_PATH = re.compile(rb"<([^<>]*)>")


@frozen
class SentMail:
    """A mail that the server took: its envelope, and its bytes as they came."""

    sender: str
    recipient: str
    raw: bytes

    @property
    def mail(self) -> EmailMessage:
        """The mail, parsed."""
        parsed = email.message_from_bytes(self.raw, policy=default)
        assert isinstance(parsed, EmailMessage)
        return parsed

    @property
    def message_id(self) -> str:
        """Its Message-ID, without angle brackets."""
        return str(self.mail["Message-ID"]).strip("<> ")

    @property
    def text(self) -> str:
        """Its plain text, with what stands between its files."""
        own = (part for part in self._parts() if part.get_content_type() == "text/plain" and not part.is_attachment())
        return "\n".join(str(part.get_content()).replace("\r\n", "\n").strip() for part in own)

    @property
    def files(self) -> list[UploadedFile]:
        """What is attached to it, in order."""
        attached = [part for part in self._parts() if part.is_attachment()]
        return [
            UploadedFile(part.get_filename("?"), part.get_content_type(), content)
            for part in attached
            if isinstance(content := part.get_payload(decode=True), bytes)
        ]

    def _parts(self) -> list[EmailMessage]:
        return [part for part in self.mail.walk() if isinstance(part, EmailMessage)]


class SmtpServer(LineServer):
    """An SMTP server for one account; an async context manager.

    `mischief` decides for each command what goes wrong; `refuses` maps a step (`AUTH`, `MAIL`, `DATA`, `CONTENT`) or a
    recipient to the answer that it gets. A mail of more than `bytes_max` is refused, and with
    `tells_size` the server names the limit beforehand (RFC 1870). Commands are counted in `calls`.
    """

    def __init__(self, mischief: MischiefMaker = harmless, *, port: int = 0, bytes_max: int = 26_214_400) -> None:
        super().__init__(port)
        self.mischief = mischief
        self.bytes_max = bytes_max
        self.tells_size = True
        self.refuses: dict[str, str] = {}
        self.sent: list[SentMail] = []
        self.calls: dict[str, int] = {}

    async def talk(self, connection: LineConnection) -> None:
        """Serve one client."""
        if (greeting := self.refuses.get("GREETING")) is not None:
            await connection.write(f"{greeting}\r\n".encode())
            return
        await connection.write(b"220 scripted ESMTP\r\n")
        dialogue = _SmtpDialogue(self, connection)
        while await dialogue.step():
            await self.tell()

    def act(self, command: str) -> Mischief:
        """What is done with a command, which is counted."""
        self.calls[command] = self.calls.get(command, 0) + 1
        return self.mischief(command, sum(self.calls.values()))


class _SmtpDialogue:
    """What one client said so far."""

    def __init__(self, server: SmtpServer, connection: LineConnection) -> None:
        self._server = server
        self._connection = connection
        self._is_in = False
        self._encrypts_with = server.certificate
        self._sender = self._recipient = ""

    async def step(self) -> bool:
        """Answer one command; False where the dialogue ends."""
        line = await self._connection.line()
        command = line.split(b" ")[0].decode("ascii", "replace").upper()
        if command == "QUIT":
            await self._say("221 bye")
            return False
        act = self._server.act(command)
        if not act.does or (act is not Mischief.ACCEPT and command != "DATA"):
            return await self._trouble(act)
        if command == "DATA":
            return await self._data(act)
        if self._encrypts_with is not None and command not in ("EHLO", "HELO"):
            await self._begin_tls(self._encrypts_with, command)
        else:
            await self._say(self._answer(command, line))
        return True

    async def _begin_tls(self, certificate: SSLContext, command: str) -> None:
        if command != "STARTTLS":
            await self._say("530 5.7.0 must issue a STARTTLS command first")
            return
        await self._say("220 go ahead")
        await self._connection.encrypt(certificate)
        self._encrypts_with = None

    async def _trouble(self, act: Mischief) -> bool:
        if act in (Mischief.FAIL, Mischief.FAIL_AFTER):
            await self._say("451 try again later")
            return True
        if act is Mischief.SLOW_DOWN:
            await self._say("421 too many connections")
        elif act is Mischief.GARBLE:
            await self._say("<html>gateway</html>")
        else:
            await self._connection.reset()
        return False

    def _answer(self, command: str, line: bytes) -> str:
        if (refusal := self._server.refuses.get(command)) is not None:
            return refusal
        if command in ("EHLO", "HELO"):
            size = f"250-SIZE {self._server.bytes_max}\r\n" if self._server.tells_size else ""
            login = "AUTH PLAIN" if self._encrypts_with is None else "STARTTLS"
            return f"250-scripted\r\n{size}250-{login}\r\n250 8BITMIME"
        if command == "AUTH":
            told = base64.b64decode(line.split(b" ")[2]).split(b"\0")
            self._is_in = told[1:] == [USER.encode(), PASSWORD.encode()]
            return "235 welcome" if self._is_in else "535 5.7.8 the login is not accepted"
        if not self._is_in:
            return "530 5.7.0 log in first"
        if command in ("RSET", "NOOP"):
            self._recipient = self._recipient if command == "NOOP" else ""
            return "250 ok"
        if command not in ("MAIL", "RCPT"):
            return "502 5.5.1 not known"
        path = _PATH.search(line)
        address = path.group(1).decode("ascii", "replace") if path else ""
        if command == "MAIL":
            self._sender, self._recipient = address, ""
            return "250 ok"
        if self._recipient:
            return "452 4.5.3 one recipient at a time"
        if (refusal := self._server.refuses.get(address)) is None:
            self._recipient = address
        return refusal or "250 ok"

    async def _data(self, act: Mischief) -> bool:
        """Take the content; without its last line nothing is taken."""
        if (refusal := self._server.refuses.get("DATA")) is not None:
            await self._say(refusal)
            return True
        if not self._recipient:
            await self._say("503 5.5.1 nobody is to get it")
            return True
        await self._say("354 go on")
        content = []
        while (line := await self._connection.line()) != b".":
            content.append(line[1:] if line.startswith(b".") else line)
        if (refusal := self._server.refuses.get("CONTENT")) is not None:
            await self._say(refusal)
            return True
        raw = b"\r\n".join(content) + b"\r\n"
        if len(raw) > self._server.bytes_max:
            await self._say("552 5.3.4 the mail is too large")
            return True
        self._server.sent.append(SentMail(self._sender, self._recipient, raw))
        self._recipient = ""
        if act in (Mischief.RESET_AFTER, Mischief.FAIL_AFTER):
            await self._connection.reset()
            return False
        await self._say("<html>gateway</html>" if act is Mischief.GARBLE else "250 2.0.0 taken")
        return True

    async def _say(self, answer: str) -> None:
        await self._connection.write(f"{answer}\r\n".encode())
