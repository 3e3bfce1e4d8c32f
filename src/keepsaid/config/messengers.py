"""Messengers that the agent listens on by a token, a key or a password of its own, and what each needs."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode

from pydantic import Field, SecretStr, field_validator

from keepsaid.config.section import ConfigSection

_LOCAL = r"^http://(127\.0\.0\.1|localhost)(:[0-9]+)?"
_URL = rf"^https://[!-~]+$|{_LOCAL}(/[!-~]*)?$"
_HOOK_URL = rf"^$|^https://[!-~]{{1,240}}/hooks/telegram$|{_LOCAL}/hooks/telegram$"
_TELEGRAM_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{10,100}")
_DISCORD_TOKEN = re.compile(r"([A-Za-z0-9_-]{4,60})\.[A-Za-z0-9_-]{4,20}\.[A-Za-z0-9_-]{10,120}")
"""Its first part is the id of the bot in Base64."""

_NOSTR_KEY = re.compile(r"nsec1[02-9ac-hj-np-z]{58}|[0-9a-f]{64}")
_RELAY = re.compile(r"wss://[!-~]{1,200}|ws://(127\.0\.0\.1|localhost)(:[0-9]+)?/?")
_MEDIA_SERVER = re.compile(r"https://[!-\"$->A-~]{1,200}|http://(127\.0\.0\.1|localhost)(:[0-9]{1,5})?/?")
"""Without a query, as paths follow."""

_SLACK_TOKEN = re.compile(r"(xoxb|xapp)-[A-Za-z0-9-]{8,250}")


def _checked(token: SecretStr | None, form: re.Pattern[str], otherwise: str) -> SecretStr | None:
    """A token, unless its text cannot be one: only the first request would show that. Raises ValueError."""
    if token is not None and form.fullmatch(token.get_secret_value()) is None:
        raise ValueError(otherwise)
    return token


def _names_a_bot(token: SecretStr | None) -> bool:
    """Whether the first part of a token of Discord is a number in Base64."""
    first = token.get_secret_value().partition(".")[0] if token is not None else ""
    try:
        return urlsafe_b64decode(first + "=" * (-len(first) % 4)).decode("ascii").isdecimal()
    except ValueError:
        return False


class TelegramConfig(ConfigSection):
    """The bot on Telegram that the agent talks by; its channel is `telegram`."""

    token: SecretStr | None = None
    """Token of the bot, as @BotFather gives it. With one, the bot listens and answers."""
    api_url: str = Field("https://api.telegram.org", pattern=_URL)
    """Where the Bot API is: Telegram's, or a server of your own."""

    webhook_url: str = Field("", pattern=_HOOK_URL)
    """The address of this server as Telegram sees it, with /hooks/telegram at its end, if Telegram is to post what is
    said. Without one the bot asks for it."""

    takeover: bool = False
    """Whether a webhook that another program set for the bot is replaced."""

    drafts: bool = True
    """Whether you see an answer in a direct chat while it is written; what counts is the message that follows."""

    @field_validator("token")
    @classmethod
    def validate_token(cls, token: SecretStr | None) -> SecretStr | None:
        """Refuse a text that cannot be a token."""
        return _checked(
            token, _TELEGRAM_TOKEN, "it cannot be a token of a bot; @BotFather gives one such as 123456789:AA..."
        )


class DiscordConfig(ConfigSection):
    """The bot on Discord that the agent talks by; its channel is `discord`."""

    token: SecretStr | None = None
    """Token of the bot, as the Developer Portal gives it. With one, the bot listens and answers."""
    api_url: str = Field("https://discord.com/api/v10", pattern=_URL)
    """Where Discord's API is."""

    content: bool = True
    """Whether the bot asks for the words of all messages (Message Content Intent). Without them it reads direct chats,
    and messages that mention it."""

    @field_validator("token")
    @classmethod
    def validate_token(cls, token: SecretStr | None) -> SecretStr | None:
        """Refuse a text that cannot be a token."""
        otherwise = "it cannot be a token of a bot; the Developer Portal shows one under Bot, Token"
        if _checked(token, _DISCORD_TOKEN, otherwise) is not None and not _names_a_bot(token):
            raise ValueError(otherwise)
        return token


class SlackConfig(ConfigSection):
    """The app on Slack that the agent talks by; its channel is `slack`."""

    bot_token: SecretStr | None = None
    """Token of the bot, xoxb-..., of the page OAuth & Permissions."""
    app_token: SecretStr | None = None
    """Token of the app, xapp-..., with the scope connections:write. With both tokens it listens by Socket Mode."""
    signing_secret: SecretStr | None = None
    """The app's signing secret, if Slack is to post what is said to /hooks/slack instead of Socket Mode."""
    api_url: str = Field("https://slack.com/api", pattern=_URL)
    """Where Slack's Web API is."""

    @field_validator("bot_token", "app_token")
    @classmethod
    def validate_tokens(cls, token: SecretStr | None) -> SecretStr | None:
        """Refuse a text that cannot be a token."""
        return _checked(
            token, _SLACK_TOKEN, "it cannot be a token of Slack: those begin with xoxb- (bot) or xapp- (app)"
        )

    @property
    def listens(self) -> bool:
        """Whether it has what it needs to hear and to answer."""
        return self.bot_token is not None and (self.app_token is not None or self.signing_secret is not None)


class NostrConfig(ConfigSection):
    """The account on Nostr that the agent talks by, in private messages (NIP-17); its channel is `nostr`."""

    secret_key: SecretStr | None = None
    """Secret key of the account, nsec1... or 64 hexadecimal digits. With one, it listens and answers. Keep a copy:
    nobody can restore it."""
    relays: tuple[str, ...] = ("wss://nos.lol", "wss://relay.damus.io")
    """Relays on which the account reads its messages; it announces them to others."""
    lookup_relays: tuple[str, ...] = ("wss://purplepag.es",)
    """Relays that are also asked where people read their messages."""
    fallback_relays: tuple[str, ...] = ()
    """Relays for answers to people who announce none; without one such an answer is dead (NIP-17)."""
    name: str = Field("", max_length=100)
    """Name of the account, which is announced if nobody else did; none for an empty one."""
    media_servers: tuple[str, ...] = ()
    """Servers of files (Blossom) that keep the encrypted files of answers, such as https://blossom.example.org; without
    one no files go with answers."""
    legacy_dm: bool = False
    """Whether direct messages of kind 4 (NIP-04), which show who writes to whom, are read and answered too."""

    @field_validator("secret_key")
    @classmethod
    def validate_secret_key(cls, key: SecretStr | None) -> SecretStr | None:
        """Refuse a text that cannot be a secret key."""
        return _checked(key, _NOSTR_KEY, "it cannot be a secret key: those begin with nsec1, or have 64 digits")

    @field_validator("relays", "lookup_relays", "fallback_relays")
    @classmethod
    def validate_relays(cls, relays: tuple[str, ...]) -> tuple[str, ...]:
        """Refuse what is not the address of a relay."""
        if any(_RELAY.fullmatch(one) is None for one in relays):
            raise ValueError("the address of a relay begins with wss://")
        return relays

    @field_validator("media_servers")
    @classmethod
    def validate_media_servers(cls, servers: tuple[str, ...]) -> tuple[str, ...]:
        """Refuse what is not the address of a server of files."""
        if any(_MEDIA_SERVER.fullmatch(one) is None for one in servers):
            raise ValueError("the address of a server of files begins with https://")
        return servers


class MatrixConfig(ConfigSection):
    """The account on Matrix that the agent talks by, in encrypted rooms with an extra; its channel is `matrix`."""

    token: SecretStr | None = None
    """Access token of the account, of a login that nobody else uses. With one, it listens and answers."""
    homeserver: str = Field("https://matrix.org", pattern=_URL)
    """Address of the homeserver's client API."""
    invites: tuple[str, ...] = ()
    """Users whose invitations are accepted, such as @ann:example.org; yours and those in channels.matrix.allow are."""


class EmailConfig(ConfigSection):
    """The mailbox that the agent reads and answers; its channel is `email`."""

    address: str = Field("", pattern=r"^$|^[!-~]{1,64}@[a-z0-9.-]{1,253}$")
    """Its address, in lower case."""
    aliases: tuple[str, ...] = ()
    """Further addresses whose mail comes there."""
    name: str = Field("", max_length=100)
    """Name that stands before the address in answers."""
    password: SecretStr | None = None
    """Password of the mailbox. With one, and the address and both servers, the agent listens and answers."""
    user: str = ""
    """Name for the login, if it is not the address."""
    imap_host: str = ""
    """IMAP server, where mail is read."""
    imap_port: int = Field(993, ge=1, le=65_535)
    """Its port; at 143 TLS begins by STARTTLS."""
    smtp_host: str = ""
    """SMTP server, by which answers are sent."""
    smtp_port: int = Field(465, ge=1, le=65_535)
    """Its port; at 587 TLS begins by STARTTLS."""
    smtp_user: str = ""
    """Name for the login at the SMTP server, if it is another one."""
    smtp_password: SecretStr | None = None
    """Password at the SMTP server, if it is another one."""
    tls: bool = True
    """Whether both servers are reached by TLS; without it only servers on this machine are."""
    folder: str = "INBOX"
    """Folder that is read."""
    authserv_ids: tuple[str, ...] = ()
    """Names by which your mail server signs Authentication-Results, mostly its host name. Without one nobody's address
    is known to be theirs, and everybody is a stranger."""
    require_dmarc: bool = True
    """Whether a sender counts only if DMARC passed there."""

    @property
    def listens(self) -> bool:
        """Whether it has what it needs to read and to answer."""
        return bool(self.address and self.password and self.imap_host and self.smtp_host)
