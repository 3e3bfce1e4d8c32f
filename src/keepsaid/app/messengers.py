"""Messengers: the channels that listen by a token of their own, each made from its settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from keepsaid.adapters.channels.pace import Rate, SendingPace
from keepsaid.adapters.channels.uploads import UploadSource, no_uploads
from keepsaid.config import Config
from keepsaid.engine.lines import LineBoard
from keepsaid.errors import ChannelError
from keepsaid.ports import runtime
from keepsaid.ports.channel import Channel, Hook, InboundSink, LineKeeper, NoLine
from keepsaid.ports.extension import ListeningProvider
from keepsaid.ports.store_views import FileView
from keepsaid.values import frozen

if TYPE_CHECKING:
    from pydantic import SecretStr

    from keepsaid.adapters.channels.email.account import EmailAccount
    from keepsaid.adapters.channels.email.imap import ImapFolder
    from keepsaid.adapters.channels.email.smtp import SmtpSender
    from keepsaid.adapters.channels.email.trust import MailTrust
    from keepsaid.adapters.channels.nostr.pool import NostrPool
    from keepsaid.config.messengers import EmailConfig, NostrConfig


@frozen
class Messenger:
    """One of them: what sends for it, what receives, and the hook that its provider calls, if it is to."""

    channel: Channel
    listener: ListeningProvider
    hook: Hook | None = None


@frozen
class MessengerDeps:
    """What a messenger is made with, beside its settings; `files` reads what the store keeps of messages."""

    clock: runtime.Clock
    lines: LineBoard | None
    inbox: InboundSink
    files: FileView | None = None

    @property
    def uploads(self) -> UploadSource:
        """What reads the files that go with replies."""
        if (files := self.files) is None:
            return no_uploads
        return lambda file: files.turn_content(file.turn_id, file.number)

    def line(self, channel: str, account: str) -> LineKeeper:
        """What the state of an account's line is shown by."""
        return self.lines.keeper(channel, account) if self.lines is not None else NoLine()


NOT_KNOWN = "app"
"""The account of a line whose provider has not said yet who it is."""

_ACCOUNT = Rate(34.0, burst=10)
_CHAT, _GROUP = Rate(1_000.0, burst=3), Rate(3_000.0, burst=5)
"""How fast a bot of Telegram may send: in all, to one person, and to a group."""


def telegram_of(config: Config, deps: MessengerDeps) -> Messenger:
    """The bot of Telegram."""
    from keepsaid.adapters.channels.telegram import TelegramChannel  # noqa: PLC0415 - it costs a start 60 ms
    from keepsaid.adapters.channels.telegram_api import TelegramApi  # noqa: PLC0415 - with it
    from keepsaid.adapters.channels.telegram_hook import TelegramCalls, TelegramHook, secret_of  # noqa: PLC0415 - too
    from keepsaid.adapters.channels.telegram_line import TelegramAccount, TelegramLine, bot_of  # noqa: PLC0415 - too
    from keepsaid.adapters.channels.telegram_poll import TelegramPoll  # noqa: PLC0415 - too
    from keepsaid.adapters.channels.telegram_updates import CHAT  # noqa: PLC0415 - too

    settings = config.telegram
    token = secret(settings.token)
    number = bot_of(token)
    line = TelegramLine(deps.clock, deps.line("telegram", number))
    account = TelegramAccount(TelegramApi(token, settings.api_url), number, deps.inbox)
    pace = SendingPace(deps.clock, _ACCOUNT, _CHAT, _GROUP, f"{CHAT}-")
    channel = TelegramChannel(account, pace, deps.uploads, drafts=settings.drafts)
    if not settings.webhook_url:
        return Messenger(channel, TelegramPoll(account, line, takes_over=settings.takeover))
    key = secret_of(token)
    calls = TelegramCalls(account, line, settings.webhook_url, key, takes_over=settings.takeover)
    return Messenger(channel, calls, TelegramHook(account, key))


_DISCORD_ACCOUNT = Rate(25.0, burst=20)
_DISCORD_CHANNEL = Rate(1_000.0, burst=5)
"""How fast a bot of Discord may send: in all, and to a channel; Discord's own answers say more."""


def discord_of(config: Config, deps: MessengerDeps) -> Messenger:
    """The bot of Discord."""
    from keepsaid.adapters.channels.discord import DiscordChannel  # noqa: PLC0415 - it costs a start 60 ms
    from keepsaid.adapters.channels.discord_api import DiscordApi  # noqa: PLC0415 - with it
    from keepsaid.adapters.channels.discord_gateway import DiscordGateway  # noqa: PLC0415 - too
    from keepsaid.adapters.channels.discord_line import DiscordAccount, DiscordLine, bot_of  # noqa: PLC0415 - too
    from keepsaid.adapters.channels.discord_places import DiscordPlaces  # noqa: PLC0415 - too

    settings = config.discord
    token = secret(settings.token)
    api, number = DiscordApi(token, deps.clock, settings.api_url), bot_of(token)
    places = DiscordPlaces(api, number)
    pace = SendingPace(deps.clock, _DISCORD_ACCOUNT, _DISCORD_CHANNEL, _DISCORD_CHANNEL, "-")
    channel = DiscordChannel(api, pace, places, deps.clock, deps.uploads)
    line = DiscordLine(deps.clock, deps.line("discord", number))
    return Messenger(channel, DiscordGateway(DiscordAccount(api, number), places, line, content=settings.content))


_SLACK_CHANNEL = Rate(1_000.0, burst=3)
_SLACK_ACCOUNT = Rate(50.0, burst=20)
"""How fast an app of Slack may send: to a channel, and in all."""


def slack_of(config: Config, deps: MessengerDeps) -> Messenger:
    """The app of Slack: by Socket Mode where it has a token for it, else by the Events API."""
    from keepsaid.adapters.channels.slack import SlackChannel  # noqa: PLC0415 - it costs a start 60 ms
    from keepsaid.adapters.channels.slack_api import SlackApi  # noqa: PLC0415 - with it
    from keepsaid.adapters.channels.slack_events import SlackCalls, SlackHook  # noqa: PLC0415 - too
    from keepsaid.adapters.channels.slack_line import SlackAccount, SlackLine  # noqa: PLC0415 - too
    from keepsaid.adapters.channels.slack_sockets import SlackSockets  # noqa: PLC0415 - too

    settings = config.slack
    account = SlackAccount(SlackApi(secret(settings.bot_token), secret(settings.app_token), settings.api_url))
    line = SlackLine(deps.clock, deps.line("slack", NOT_KNOWN))
    pace = SendingPace(deps.clock, _SLACK_ACCOUNT, _SLACK_CHANNEL, _SLACK_CHANNEL, "-")
    hook = SlackHook(account, secret(settings.signing_secret), deps.clock) if settings.signing_secret else None
    listener = SlackSockets(account, line) if settings.app_token else SlackCalls(account, line)
    return Messenger(SlackChannel(account, pace, deps.uploads), listener, hook)


_NOSTR_CHAT = Rate(1_000.0, burst=5)
_NOSTR_ACCOUNT = Rate(100.0, burst=20)
"""How fast an account of Nostr may send: to a conversation, and in all; relays say more by their answers."""


def nostr_of(config: Config, deps: MessengerDeps) -> Messenger:
    """The account of Nostr. Raises ChannelError without the package that has its cryptography."""
    from keepsaid.adapters.channels.nostr.channel import NostrChannel  # noqa: PLC0415 - it costs a start 60 ms
    from keepsaid.adapters.channels.nostr.line import NostrLine  # noqa: PLC0415 - with it
    from keepsaid.adapters.channels.nostr.listener import NostrListener  # noqa: PLC0415 - too
    from keepsaid.adapters.channels.nostr.people import NostrPeople  # noqa: PLC0415 - too
    from keepsaid.adapters.channels.nostr.profile import NostrProfile  # noqa: PLC0415 - too
    from keepsaid.adapters.channels.nostr.uploading import NostrUploads  # noqa: PLC0415 - too

    settings = config.nostr
    pool = nostr_pool(settings, deps.clock)
    keys, people = pool.keys, NostrPeople(pool.keys.public, deps.inbox)
    line = NostrLine(deps.clock, deps.line("nostr", keys.public))
    profile = NostrProfile(keys, deps.clock, pool.own, pool, settings.name)
    listener = NostrListener(keys, line, people, profile, legacy=settings.legacy_dm)
    pace = SendingPace(deps.clock, _NOSTR_ACCOUNT, _NOSTR_CHAT)
    uploads = NostrUploads(pool, settings.media_servers, deps.uploads)
    return Messenger(NostrChannel(pool, people, pace, settings.fallback_relays, uploads=uploads), listener)


def nostr_pool(settings: NostrConfig, clock: runtime.Clock) -> NostrPool:
    """The relays of the account of Nostr. Raises ChannelError without the package that has its cryptography, and for a
    key that has the form of one and is none: it was mistyped.
    """
    from keepsaid.adapters.channels.nostr.keys import NostrKeys  # noqa: PLC0415 - 200 ms that only Nostr needs
    from keepsaid.adapters.channels.nostr.pool import NostrPool  # noqa: PLC0415 - with it

    try:
        keys = NostrKeys(secret(settings.secret_key))
    except ValueError:
        what = "nostr.secret_key has the form of a secret key, and is none: a character is wrong"
        raise ChannelError(what, hint="copy it again: keepsaid channel add nostr") from None
    return NostrPool(keys, clock, settings.relays, settings.lookup_relays, settings.fallback_relays)


_MATRIX_ROOM = Rate(1_000.0, burst=3)
_MATRIX_ACCOUNT = Rate(5_000.0, burst=8)
"""How fast an account of Matrix may send: to a room, and in all, as Synapse allows by default."""


def matrix_of(config: Config, deps: MessengerDeps) -> Messenger:
    """The account of Matrix."""
    from keepsaid.adapters.channels.matrix.api import MatrixApi  # noqa: PLC0415 - it costs a start 60 ms
    from keepsaid.adapters.channels.matrix.channel import MatrixChannel  # noqa: PLC0415 - with it
    from keepsaid.adapters.channels.matrix.e2ee import MatrixCrypto, has_library  # noqa: PLC0415 - too
    from keepsaid.adapters.channels.matrix.line import MatrixAccount, MatrixLine  # noqa: PLC0415 - too
    from keepsaid.adapters.channels.matrix.listener import MatrixListener  # noqa: PLC0415 - too

    settings = config.matrix
    api = MatrixApi(secret(settings.token), settings.homeserver)
    account = MatrixAccount(api, crypto=MatrixCrypto(api, deps.clock, deps.inbox) if has_library() else None)
    line = MatrixLine(deps.clock, deps.line("matrix", NOT_KNOWN))
    owners = (one.sender for one in config.owner if one.channel == "matrix")
    named = config.channels["matrix"].allow if "matrix" in config.channels else ()
    allowed = frozenset((*owners, *named, *settings.invites))
    pace = SendingPace(deps.clock, _MATRIX_ACCOUNT, _MATRIX_ROOM)
    channel = MatrixChannel(account, pace, deps.clock, deps.uploads)
    return Messenger(channel, MatrixListener(account, line, allowed))


_THREAD = Rate(360_000.0, burst=10)
_MAILBOX = Rate(2_000.0, burst=5)
"""How fast a mailbox sends: ten answers an hour in a thread, so that two programs do not write to each other for ever,
and in all."""


def email_of(config: Config, deps: MessengerDeps) -> Messenger:
    """The mailbox. Raises ChannelError for a server on another machine without TLS."""
    from keepsaid.adapters.channels.email.channel import EmailChannel  # noqa: PLC0415 - only e-mail needs it
    from keepsaid.adapters.channels.email.files import MailFiles  # noqa: PLC0415 - with it
    from keepsaid.adapters.channels.email.line import EmailLine  # noqa: PLC0415 - too
    from keepsaid.adapters.channels.email.listener import EmailListener  # noqa: PLC0415 - too
    from keepsaid.adapters.channels.email.mailbox import MailboxReader  # noqa: PLC0415 - too
    from keepsaid.adapters.channels.email.threads import EmailThreads  # noqa: PLC0415 - too
    from keepsaid.adapters.channels.email.updates import MailReader  # noqa: PLC0415 - too

    box = mailbox_of(config.email)
    threads = EmailThreads(box.account.address, deps.inbox)
    reader = MailboxReader(box.account, MailReader(box.account, box.trust), threads, deps.clock)
    line = EmailLine(deps.clock, deps.line("email", box.account.address))
    files = MailFiles(deps.files.payload if deps.files is not None else None)
    pace = SendingPace(deps.clock, _MAILBOX, _THREAD)
    channel = EmailChannel(box.account, box.smtp, threads, pace, files, deps.uploads)
    return Messenger(channel, EmailListener(box.folder, reader, line))


@frozen
class Mailbox:
    """A mailbox as its settings describe it: its addresses, where it is read and sent from, and whom it believes."""

    account: EmailAccount
    folder: ImapFolder
    smtp: SmtpSender
    trust: MailTrust


def mailbox_of(settings: EmailConfig) -> Mailbox:
    """The mailbox of some settings. Raises ChannelError for a server on another machine without TLS."""
    from keepsaid.adapters.channels.email.account import EmailAccount, MailServer  # noqa: PLC0415 - only e-mail needs it
    from keepsaid.adapters.channels.email.imap import ImapFolder  # noqa: PLC0415 - with it
    from keepsaid.adapters.channels.email.smtp import SmtpSender  # noqa: PLC0415 - too
    from keepsaid.adapters.channels.email.trust import MailTrust  # noqa: PLC0415 - too

    user, password = settings.user or settings.address, secret(settings.password)
    reading = MailServer(settings.imap_host, settings.imap_port, user, password, tls=settings.tls)
    smtp_user, smtp_password = settings.smtp_user or user, secret(settings.smtp_password) or password
    sending = MailServer(settings.smtp_host, settings.smtp_port, smtp_user, smtp_password, tls=settings.tls)
    others, servers = (frozenset(map(str.lower, named)) for named in (settings.aliases, settings.authserv_ids))
    account = EmailAccount(settings.address.lower(), others, settings.name)
    trust = MailTrust(servers, checks=settings.require_dmarc)
    return Mailbox(account, ImapFolder(reading, settings.folder), SmtpSender(sending), trust)


def secret(value: SecretStr | None) -> str:
    """A token of the settings, "" for none."""
    return value.get_secret_value() if value is not None else ""


MESSENGERS: Mapping[str, Callable[[Config, MessengerDeps], Messenger]] = {
    "telegram": telegram_of,
    "discord": discord_of,
    "slack": slack_of,
    "nostr": nostr_of,
    "matrix": matrix_of,
    "email": email_of,
}
"""How each is made, by the name of its channel."""
