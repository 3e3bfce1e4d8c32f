"""The mailbox of the settings, looked up at its servers: whether both let it in, and what prevents answers."""

from __future__ import annotations

from collections.abc import Iterator

from keepsaid.adapters.channels.email.account import NAME, EmailAccount
from keepsaid.adapters.channels.email.imap import FolderState, ImapFolder, ImapLost, ImapRefused
from keepsaid.adapters.channels.email.smtp import LOGIN, SmtpRefused, SmtpSender, SmtpUnreachable
from keepsaid.adapters.channels.email.trust import MailTrust
from keepsaid.errors import ChannelError
from keepsaid.ports.channel import AccountReport


async def look_up(account: EmailAccount, folder: ImapFolder, smtp: SmtpSender, trust: MailTrust) -> AccountReport:
    """Log in at both servers and open the folder; nothing is sent or changed.

    Raises ChannelError if a server refuses the login or the folder, or does not answer.
    """
    try:
        state = await folder.open()
    except ImapRefused as error:
        setting = "email.folder" if error.is_folder else "email.user and email.password"
        raise ChannelError(f"the IMAP server answers: {error}", hint=f"see {setting}") from error
    except ImapLost as error:
        what = f"the IMAP server cannot be reached: {error}"
        raise ChannelError(what, hint="see that this machine is online, and email.imap_host") from error
    finally:
        await folder.close()
    try:
        await smtp.check()
    except SmtpRefused as error:
        hint = (
            "see email.password, email.smtp_user and email.smtp_password"
            if error.step == LOGIN
            else "see email.smtp_host"
        )
        raise ChannelError(f"the SMTP server answers: {error}", hint=hint) from error
    except SmtpUnreachable as error:
        what = f"the SMTP server cannot be reached: {error}"
        raise ChannelError(what, hint="see that this machine is online, and email.smtp_host") from error
    return AccountReport(NAME, account.address, account.address, tuple(_notes(state, trust)))


def _notes(state: FolderState, trust: MailTrust) -> Iterator[str]:
    if not state.idles:
        yield "the IMAP server has no IDLE: it is asked for mail once a minute"
    if not trust.checks:
        yield "From is not verified (email.require_dmarc is false): anybody can write as anybody"
    elif not trust.servers:
        yield "no sender can be verified, and all are strangers, until email.authserv_ids names your mail server"
