"""The line of a mailbox: why no mail comes in, and how long until the next try."""

from __future__ import annotations

import sys

import pytest
from tests.unit.email_cast import ALICE, channel_of, folder_of, idling, listening, reply_of, server_of

from keepsaid.adapters.channels.email import imap as imap_adapter
from keepsaid.adapters.channels.email.imap import ImapFolder, ImapLost
from keepsaid.domain.line import LineState
from keepsaid.domain.reply import Delivered
from keepsaid.testing.clock import FastClock, VirtualClock
from keepsaid.testing.listening import LineLog, MemoryInbox, never
from keepsaid.testing.providers.email_imap import ImapServer, mail_from
from keepsaid.testing.providers.email_smtp import PASSWORD, SmtpServer
from keepsaid.testing.providers.mischief import Mischief, one_after_the_other


async def test_a_login_that_is_refused_is_tried_once_a_minute() -> None:
    clock, inbox, shown = VirtualClock(), MemoryInbox(), LineLog()
    async with ImapServer() as imap:
        imap.passwords = {"another"}
        async with listening(imap, inbox, clock, shown):
            reason = await shown.until_now(LineState.REFUSED)
            assert "KS-CHN: email.user or email.password is not accepted" in reason
            assert PASSWORD not in reason
            await clock.advance(59_000)
            assert imap.calls["LOGIN"] == 1
            imap.passwords = {PASSWORD}
            await clock.advance(1_000)
            await idling(imap)
            await shown.until_now(LineState.UP)
            assert imap.calls["LOGIN"] == 2


async def test_a_folder_that_is_not_there_is_named() -> None:
    clock, inbox, shown = VirtualClock(), MemoryInbox(), LineLog()
    async with ImapServer() as imap, listening(imap, inbox, clock, shown, folder_of(imap, "Agent")):
        assert "KS-CHN: email.folder cannot be opened" in await shown.until_now(LineState.REFUSED)


async def test_a_server_that_is_gone_is_dialled_until_it_is_back() -> None:
    clock, inbox, shown = FastClock(4000), MemoryInbox(), LineLog()
    async with ImapServer() as imap, listening(imap, inbox, clock, shown):
        await idling(imap)
        await imap.stop()
        await shown.until_now(LineState.DOWN)
        imap.deliver(mail_from(ALICE, "hello", "m1@example.net"))
        await imap.start()
        await inbox.wait_for(lambda: len(inbox.kept) == 1)
        await shown.until_now(LineState.UP)


@pytest.mark.parametrize("act", [one for one in Mischief if one is not Mischief.ACCEPT])
@pytest.mark.parametrize("method", ["EXAMINE", "UID SEARCH", "IDLE"])
async def test_any_command_may_go_wrong(method: str, act: Mischief) -> None:
    clock, inbox, shown = FastClock(4000), MemoryInbox(), LineLog()
    async with ImapServer(one_after_the_other(act, act, method=method)) as imap:
        async with listening(imap, inbox, clock, shown):
            await idling(imap)
            imap.deliver(mail_from(ALICE, "hello", "m1@example.net"))
            await inbox.wait_for(lambda: len(inbox.kept) == 1)
            await shown.until_now(LineState.UP)
        assert imap.calls[method] >= 3


async def test_a_disk_that_refuses_is_waited_out() -> None:
    clock, inbox, shown = FastClock(4000), MemoryInbox(), LineLog()
    inbox.refuses = lambda: True
    async with ImapServer() as imap, listening(imap, inbox, clock, shown):
        assert "the disk is full" in await shown.until_now(LineState.DOWN)
        inbox.refuses = never
        await shown.until_now(LineState.UP)


async def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, inbox, shown = VirtualClock(), MemoryInbox(), LineLog()
    monkeypatch.setitem(sys.modules, "imapclient", None)
    monkeypatch.setitem(sys.modules, "aiosmtplib", None)
    async with ImapServer() as imap, SmtpServer() as smtp, listening(imap, inbox, clock, shown):
        assert "keepsaid[email]" in await shown.until_now(LineState.REFUSED)
        result = await channel_of(smtp).send(reply_of("yes"))
        assert result.outcome is Delivered.RETRY
        assert "keepsaid[email]" in result.detail


async def test_a_folder_that_is_closed_answers_no_more() -> None:
    async with ImapServer() as imap:
        folder = folder_of(imap)
        await folder.open()
        await folder.close()
        with pytest.raises(ImapLost):
            await folder.newer(0)
        await folder.close()
        tls = ImapFolder(server_of(imap, tls=True))
        with pytest.raises(ImapLost, match="TLS"):
            await tls.open()
        await tls.close()
        assert imap.calls["LOGIN"] == 1


async def test_a_password_beyond_ascii_is_refused_and_not_shown() -> None:
    clock, inbox, shown = VirtualClock(), MemoryInbox(), LineLog()
    async with ImapServer() as imap:
        folder = ImapFolder(server_of(imap, "gehäim"))
        async with listening(imap, inbox, clock, shown, folder):
            reason = await shown.until_now(LineState.REFUSED)
            assert "beyond ASCII" in reason
            assert "ä" not in reason


async def test_a_server_that_answers_no_more_is_dialled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection looks open: the end of IDLE, once a minute, shows that it is not."""
    monkeypatch.setattr(imap_adapter, "_READ_S", 0.2)
    clock, inbox, shown = FastClock(1000), MemoryInbox(), LineLog()
    async with ImapServer() as imap, listening(imap, inbox, clock, shown):
        await idling(imap)
        imap.deaf = imap.hangs = True
        imap.deliver(mail_from(ALICE, "hello", "m1@example.net"))
        assert "does not answer" in await shown.until_now(LineState.DOWN)
        imap.hangs = False
        await inbox.wait_for(lambda: len(inbox.kept) == 1)
        await shown.until_now(LineState.UP)
