"""Files that go with mails: attached to the last mail with text, byte for byte; many of them go in further mails."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.email_cast import ACCOUNT, reply_of, server_of
from tests.unit.test_files_email import mail_with, reading, servers

from keepsaid.adapters.channels.email.attached import WITHOUT_WORDS
from keepsaid.adapters.channels.email.channel import EmailChannel
from keepsaid.adapters.channels.email.smtp import SmtpSender
from keepsaid.adapters.channels.email.threads import EmailThreads
from keepsaid.adapters.channels.pace import Rate, SendingPace
from keepsaid.domain.reply import Delivered, StoredReply
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.domain.turn_files import TurnFile
from keepsaid.errors import StoreError
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.listening import MemoryInbox
from keepsaid.testing.model_script import Call, Say
from keepsaid.testing.providers.email_smtp import SmtpServer
from keepsaid.testing.providers.kept_files import PNG

_ODD = b".\r\n..\n\r\n.\r\n\rFrom \x00\xff " + b"x" * 2_000 + b"\n.\n"
"""Bytes that a mail changes if they are not encoded."""


def channel_with(smtp: SmtpServer, kept: Mapping[int, bytes], inbox: MemoryInbox | None = None) -> EmailChannel:
    """The account as it sends, with the bytes of files by number."""

    async def source(file: TurnFile) -> bytes | None:
        return kept.get(file.number)

    threads, pace = EmailThreads(ACCOUNT.address, inbox or MemoryInbox()), SendingPace(VirtualClock(), *_FREE)
    return EmailChannel(ACCOUNT, SmtpSender(server_of(smtp)), threads, pace, uploads=source)


_FREE = (Rate(0.0), Rate(0.0))


def with_sizes(text: str, sizes: Sequence[int], kind: str = "text/plain", name: str = "") -> StoredReply:
    """A reply with files, which are called by their numbers."""
    files = [TurnFile(1, n, name or f"{n}.txt", kind, size, attached=True) for n, size in enumerate(sizes, 1)]
    return replace(reply_of(text), files=tuple(files))


async def test_the_agent_attaches_what_it_writes(tmp_path: Path) -> None:
    """To the mail of its answer, which can be read as before."""
    call = Call("attach_file", {"name": "Größe.md", "text": "# Notes\n\n.\nmilk"})
    async with servers(call, Say("here you are: **two**")) as at, reading(tmp_path, at):
        at.imap.deliver(mail_with("write it down").as_bytes())
        await at.smtp.wait_for(lambda: len(at.smtp.sent) == 1)
        [sent] = at.smtp.sent
        assert sent.text == "here you are: **two**"
        assert [(one.name, one.content) for one in sent.files] == [("Größe.md", b"# Notes\n\n.\nmilk")]
        assert sent.mail.get_content_type() == "multipart/mixed"
        page = sent.mail.get_body(("html",))
        assert page is not None
        assert "<strong>two</strong>" in page.get_content()
        assert str(sent.mail["In-Reply-To"]) == "<a1@example.net>"
        assert b"X-Keepsaid" not in sent.raw
        assert max(map(len, sent.raw.split(b"\r\n"))) <= 998


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("text/html", "text/html"),
        ("image/svg+xml", "image/svg+xml"),
        ("message/rfc822", "application/octet-stream"),
        ("multipart/mixed", "application/octet-stream"),
        ("text/plain; charset=x\r\nBcc: eve@example.net", "application/octet-stream"),
        ("", "application/octet-stream"),
    ],
)
async def test_any_bytes_arrive_as_they_are(kind: str, shown: str) -> None:
    async with SmtpServer() as smtp:
        reply = with_sizes(".\n..\nhere", [len(_ODD)], kind, 'a\r\nBcc: "eve"; \u202e独.txt')
        assert (await channel_with(smtp, {1: _ODD}).send(reply)).outcome is Delivered.CONFIRMED
        [sent] = smtp.sent
        assert sent.text == ".\n..\nhere"
        [file] = sent.files
        assert (file.kind, file.content) == (shown, _ODD)
        assert file.name == 'aBcc: "eve"; 独.txt'
        assert sent.mail["Bcc"] is None


async def test_an_empty_file_is_one() -> None:
    async with SmtpServer() as smtp:
        await channel_with(smtp, {1: b""}).send(with_sizes("here", [0]))
        assert [one.content for one in smtp.sent[0].files] == [b""]


async def test_files_of_more_than_15_mb_go_in_further_mails() -> None:
    """In their order, each mail with an id of its own, by which answers to it are found."""
    async with SmtpServer() as smtp:
        inbox = MemoryInbox()
        kept = {n: f"file {n}".encode() for n in range(1, 5)}
        reply = with_sizes("here", [9_000_000, 6_000_000, 1, 15_000_000])
        bodies = await channel_with(smtp, kept, inbox).split(reply)
        channel = channel_with(smtp, kept, inbox)
        for n, body in enumerate(bodies):
            await channel.send_part(reply, ReplyPart(reply.id, n, body))
        assert [one.text for one in smtp.sent] == ["here", WITHOUT_WORDS, WITHOUT_WORDS]
        assert [[file.content.decode() for file in one.files] for one in smtp.sent] == [
            ["file 1", "file 2"],
            ["file 3"],
            ["file 4"],
        ]
        assert [one.message_id for one in smtp.sent] == [f"k1.{n}@example.org" for n in range(3)]


async def test_a_long_text_has_its_files_at_its_end() -> None:
    async with SmtpServer() as smtp:
        await channel_with(smtp, {1: PNG}).send(with_sizes("word " * 70_000, [len(PNG)], "image/png"))
        assert [len(one.files) for one in smtp.sent] == [0, 1]


@pytest.mark.parametrize(
    ("tells", "why"),
    [
        (True, r"552 the mail has 42,\d{3} bytes, and the server takes 20,000"),
        (False, r"552 5\.3\.4 the mail is too large"),
    ],
    ids=["said before", "said after"],
)
async def test_words_replace_what_the_server_does_not_take(tells: bool, why: str) -> None:
    """The mail arrives without its files, under the same id. What a server says of sizes saves the transfer."""
    async with SmtpServer(bytes_max=20_000) as smtp:
        smtp.tells_size = tells
        result = await channel_with(smtp, {1: bytes(30_000)}).send(with_sizes("here you are", [30_000]))
        assert result.outcome is Delivered.CONFIRMED
        assert re.fullmatch(f"files were not sent: {why}", result.detail)
        [sent] = smtp.sent
        words = rf"here you are\n\[1\.txt could not be sent: the mail server answers {why}\]"
        assert re.fullmatch(words, sent.text)
        assert sent.files == []
        assert sent.message_id == "k1.0@example.org"
        assert smtp.calls["DATA"] == (1 if tells else 2)


async def test_a_server_that_takes_nothing_gets_it_once_more_without_files() -> None:
    async with SmtpServer() as smtp:
        smtp.refuses["CONTENT"] = "554 5.7.1 spam"
        result = await channel_with(smtp, {1: PNG}).send(with_sizes("here", [len(PNG)]))
        assert result.outcome is Delivered.DEAD
        assert smtp.calls["DATA"] == 2


async def test_nothing_is_sent_while_the_store_cannot_be_read() -> None:
    async def broken(_: TurnFile) -> bytes | None:
        raise StoreError("the disk is full")

    async with SmtpServer() as smtp:
        threads = EmailThreads(ACCOUNT.address, MemoryInbox())
        pace = SendingPace(VirtualClock(), *_FREE)
        channel = EmailChannel(ACCOUNT, SmtpSender(server_of(smtp)), threads, pace, uploads=broken)
        result = await channel.send(with_sizes("here", [1]))
        assert (result.outcome, result.detail) == (Delivered.RETRY, "not sent: the disk is full")
        assert not smtp.calls
