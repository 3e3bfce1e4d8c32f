"""Files of mails: parts of a mail are shown and read as the store keeps it, whatever becomes of the mail elsewhere."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from typing import Any

import pytest
from tests.unit.email_cast import ALICE, channel_of, read
from tests.unit.http_cast import Site, site
from tests.unit.test_files import file_rows, user_parts, words_of
from tests.unit.test_telegram import line_that_is, until

from keepsaid.adapters.channels.email.files import MailFiles
from keepsaid.domain.line import LineState
from keepsaid.domain.message import Attachment
from keepsaid.errors import FileRefused
from keepsaid.ports.channel import FileChannel
from keepsaid.testing.model_script import Call, Say, Script
from keepsaid.testing.model_server import ModelServer
from keepsaid.testing.providers.email_imap import ImapServer
from keepsaid.testing.providers.email_smtp import PASSWORD, USER, SmtpServer
from keepsaid.testing.providers.kept_files import PNG


def mail_with(text: str = "look at this", number: str = "a1@example.net") -> EmailMessage:
    """A mail of the owner, to which files can be attached."""
    mail = EmailMessage(SMTP)
    mail["From"], mail["To"], mail["Subject"], mail["Message-ID"] = ALICE, USER, "Hello", f"<{number}>"
    mail.set_content(text)
    return mail


def with_picture(text: str = "look at this", number: str = "a1@example.net") -> bytes:
    """A mail with a picture."""
    mail = mail_with(text, number)
    mail.add_attachment(PNG, maintype="image", subtype="png", filename="Größe.png")
    return mail.as_bytes()


@dataclass(frozen=True)
class Servers:
    """The servers of the mailbox, and the model."""

    imap: ImapServer
    smtp: SmtpServer
    model: ModelServer

    def home(self, **files: Any) -> dict[str, Any]:
        """The settings of the home that reads the mailbox."""
        email = {"address": USER, "password": PASSWORD, "tls": False, "require_dmarc": False}
        email |= {"imap_host": "127.0.0.1", "imap_port": self.imap.port}
        email |= {"smtp_host": "127.0.0.1", "smtp_port": self.smtp.port}
        owner = [{"channel": "email", "account": USER, "sender": ALICE}]
        models = {"chat": "openai/scripted", "base_url": self.model.url, "api_key": "k"}
        return {"email": email, "owner": owner, "models": models, "files": files}


@asynccontextmanager
async def servers(*steps: Any) -> AsyncIterator[Servers]:
    """The servers, whose model follows a script."""
    async with ImapServer() as imap, SmtpServer() as smtp, ModelServer(Script(*steps)) as model:
        yield Servers(imap, smtp, model)


@asynccontextmanager
async def reading(root: Path, at: Servers, *, answering: bool = True, **files: Any) -> AsyncIterator[Site]:
    """A home that has found the end of the folder: what comes now is new."""
    async with site(root, answering=answering, **at.home(**files)) as running:
        await line_that_is(running, LineState.UP)
        yield running


async def fetched(files: MailFiles, file: Attachment) -> bytes:
    return b"".join([piece async for piece in files.pieces(USER, file.ref)])


async def test_a_model_is_shown_an_attached_picture(tmp_path: Path) -> None:
    """The folder is not asked for it again, and no mail is marked."""
    async with servers(Say("a small dog")) as at, reading(tmp_path, at) as home:
        at.imap.deliver(with_picture("who is this? Grüße"))
        [request] = await at.model.wait_for(1)
        [picture] = [one for one in user_parts(request) if one["type"] == "image_url"]
        assert picture["image_url"]["url"] == f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
        assert "who is this? Grüße" in words_of(request)
        assert await file_rows(home, "kept") == [("Größe.png", "image/png", len(PNG), "")]
        await at.smtp.wait_for(lambda: len(at.smtp.sent) == 1)
        assert not at.imap.seen


async def test_an_inline_picture_is_one_that_came_with_the_mail(tmp_path: Path) -> None:
    """One that a page refers to by its Content-ID."""
    mail = EmailMessage(SMTP)
    mail["From"], mail["To"], mail["Message-ID"] = ALICE, USER, "<a1@example.net>"
    mail.set_content('<p>see below</p><img src="cid:one">', subtype="html")
    mail.add_related(PNG, "image", "png", cid="<one>", disposition="inline", filename="dog.png")
    async with servers(Say("a small dog")) as at, reading(tmp_path, at) as home:
        at.imap.deliver(mail.as_bytes())
        [request] = await at.model.wait_for(1)
        assert any(one["type"] == "image_url" for one in user_parts(request))
        assert await file_rows(home, "kept") == [("dog.png", "image/png", len(PNG), "")]


def test_a_picture_that_only_the_page_has_is_one_too() -> None:
    """Of a mail that says the same in words and as a page."""
    mail = mail_with("see below")
    mail.add_alternative('<p>see below</p><img src="cid:one">', subtype="html")
    page = list(mail.iter_parts())[1]
    assert isinstance(page, EmailMessage)
    page.add_related(PNG, "image", "png", cid="<one>", disposition="inline", filename="dog.png")
    message = read(mail.as_bytes()).message
    assert message.text == f"Subject: Hello\nsee below\n[file: dog.png, image/png, {len(PNG)} bytes]"
    assert [(one.name, one.size) for one in message.files] == [("dog.png", len(PNG))]


async def test_the_agent_reads_an_attached_text_and_an_attached_mail(tmp_path: Path) -> None:
    """By their handles; whatever their transfer encoding was."""
    mail = mail_with()
    mail.add_attachment(b"the c\xc3\xb6de is 4711\n" * 3, maintype="text", subtype="plain", filename="notes.txt")
    mail.add_attachment(mail_with("the key is below the mat", "inner@example.net"))
    async with servers(Say("I see two")) as at, reading(tmp_path, at) as home:
        at.imap.deliver(mail.as_bytes())
        await at.smtp.wait_for(lambda: len(at.smtp.sent) == 1)
        kept = await file_rows(home, "kept")
        assert [(row[0], row[1]) for row in kept] == [("notes.txt", "text/plain"), ("Hello", "message/rfc822")]
        words = words_of(at.model.requests[0])
        notes, inner = (part.partition(")")[0] for part in words.split("kept as ")[1:])
        at.model.script = Script(Call("read_file", {"file": notes}), Call("read_file", {"file": inner}), Say("4711"))
        at.imap.deliver(mail_with("read them", "a2@example.net").as_bytes())
        await at.smtp.wait_for(lambda: len(at.smtp.sent) == 2)
        results = [one["content"] for one in at.model.requests[-1].messages if one["role"] == "tool"]
        assert "the cöde is 4711" in results[0]
        assert "the key is below the mat" in results[1]


async def test_what_is_too_large_is_named_with_its_reason(tmp_path: Path) -> None:
    mail = mail_with()
    mail.add_attachment(bytes(3_000), maintype="application", subtype="zip", filename="big.zip")
    async with servers(Say("a pity")) as at, reading(tmp_path, at, bytes_max=2_000) as home:
        at.imap.deliver(mail.as_bytes())
        [request] = await at.model.wait_for(1)
        assert "big.zip (not kept: it is larger than 0.002 MB)" in words_of(request)
        assert await file_rows(home, "left") == [("big.zip", "application/zip", 3_000, "it is larger than 0.002 MB")]


async def test_a_picture_is_there_after_a_restart_although_its_mail_is_gone(tmp_path: Path) -> None:
    """The mail was deleted from the folder, which was numbered again, before anything was fetched."""
    async with servers(Say("a small dog")) as at:
        async with reading(tmp_path, at, answering=False) as home:
            uid = at.imap.deliver(with_picture())
            await until(home, "SELECT 1 FROM file WHERE state = 'waiting'")
        at.imap.delete(uid)
        at.imap.renumber()
        async with reading(tmp_path, at) as home:
            [request] = await at.model.wait_for(1)
            assert any(one["type"] == "image_url" for one in user_parts(request))
            assert await file_rows(home, "kept") == [("Größe.png", "image/png", len(PNG), "")]


async def test_of_programs_and_of_mails_that_are_not_read_nothing_is_fetched() -> None:
    automatic = with_picture().replace(b"Subject: Hello", b"Subject: Hello\r\nAuto-Submitted: auto-generated")
    assert read(automatic).message.event
    assert read(automatic).message.files == ()
    assert len(read(with_picture()).message.files) == 1


RAW = with_picture()


async def stored(channel: str, account: str, provider_id: str) -> bytes | None:
    """A store with one mail."""
    return RAW if (channel, account, provider_id) == ("email", USER, "a1@example.net") else None


async def test_a_part_is_read_from_the_mail_that_it_came_with() -> None:
    """Not from another with its id, nor where there is none."""
    [file] = read(RAW).message.files
    assert await fetched(MailFiles(stored), file) == PNG
    for raw, reason in (
        (with_picture("something else"), "its mail is not the one that it came with"),
        (with_picture(number="a2@example.net"), "its mail is not kept any more"),
    ):
        [other] = read(raw).message.files
        with pytest.raises(FileRefused, match=reason):
            await fetched(MailFiles(stored), other)
    with pytest.raises(FileRefused, match="its mail is not kept any more"):
        await fetched(MailFiles(), file)


async def test_a_part_that_is_not_there_is_refused() -> None:
    [file] = read(RAW).message.files
    number, digest, _ = json.loads(file.ref)
    with pytest.raises(FileRefused, match="it cannot be read from its mail"):
        await fetched(MailFiles(stored), Attachment("one", ref=json.dumps([number, digest, 99])))


async def test_files_of_another_account_are_refused() -> None:
    async with SmtpServer() as smtp:
        channel = channel_of(smtp)
        assert isinstance(channel, FileChannel)
        with pytest.raises(FileRefused, match=r"bob@example\.org is not set up here any more"):
            channel.fetch("bob@example.org", Attachment("one"))
