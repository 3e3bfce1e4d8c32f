"""The account of a channel that listens by a token: its settings, and the test of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from pydantic import SecretStr, ValidationError

from keepsaid.adapters.channels import abilities
from keepsaid.adapters.system.machine import SystemClock
from keepsaid.app.messengers import mailbox_of, nostr_pool, secret
from keepsaid.config import Config
from keepsaid.config.document import Key
from keepsaid.errors import InputError
from keepsaid.ports.channel import AccountReport, ChannelAbilities
from keepsaid.values import frozen


@frozen
class AccountToken:
    """A token of an account: its setting, what it is, and the file that may keep it."""

    setting: Key
    what: str
    file: str


@frozen
class ChannelAccount:
    """How a channel is given its account: by tokens; `look_up` asks the provider who the account is."""

    name: str
    tokens: tuple[AccountToken, ...]
    look_up: Callable[[Config], Coroutine[Any, Any, AccountReport]]

    @property
    def pausing(self) -> Key:
        """The setting that pauses the channel."""
        return ("channels", self.name, "enabled")


async def _telegram(config: Config) -> AccountReport:
    from keepsaid.adapters.channels.telegram_api import TelegramApi  # noqa: PLC0415 - it costs a start 60 ms
    from keepsaid.adapters.channels.telegram_line import bot_of  # noqa: PLC0415 - with it
    from keepsaid.adapters.channels.telegram_setup import look_up  # noqa: PLC0415 - with it

    settings = config.telegram
    token = secret(settings.token)
    return await look_up(TelegramApi(token, settings.api_url), bot_of(token), settings.webhook_url)


async def _discord(config: Config) -> AccountReport:
    from keepsaid.adapters.channels.discord_api import DiscordApi  # noqa: PLC0415 - it costs a start 60 ms
    from keepsaid.adapters.channels.discord_line import bot_of  # noqa: PLC0415 - with it
    from keepsaid.adapters.channels.discord_setup import look_up  # noqa: PLC0415 - with it

    token = secret(config.discord.token)
    return await look_up(DiscordApi(token, SystemClock(), config.discord.api_url), bot_of(token))


async def _slack(config: Config) -> AccountReport:
    from keepsaid.adapters.channels.slack_api import SlackApi  # noqa: PLC0415 - it costs a start 60 ms
    from keepsaid.adapters.channels.slack_setup import look_up  # noqa: PLC0415 - with it

    settings = config.slack
    return await look_up(SlackApi(secret(settings.bot_token), secret(settings.app_token), settings.api_url))


async def _nostr(config: Config) -> AccountReport:
    from keepsaid.adapters.channels.nostr.setup import look_up  # noqa: PLC0415 - it costs a start 60 ms

    return await look_up(await asyncio.to_thread(nostr_pool, config.nostr, SystemClock()))


def reads_encrypted_rooms() -> bool:
    """Whether the packages for encrypted rooms of Matrix are installed."""
    from keepsaid.adapters.channels.matrix.e2ee import has_library  # noqa: PLC0415 - it costs 60 ms

    return has_library()


async def _matrix(config: Config) -> AccountReport:
    from keepsaid.adapters.channels.matrix.api import MatrixApi  # noqa: PLC0415 - it costs a start 60 ms
    from keepsaid.adapters.channels.matrix.setup import look_up  # noqa: PLC0415 - with it

    return await look_up(
        MatrixApi(secret(config.matrix.token), config.matrix.homeserver), decrypts=reads_encrypted_rooms()
    )


async def _email(config: Config) -> AccountReport:
    from keepsaid.adapters.channels.email.setup import look_up  # noqa: PLC0415 - only e-mail needs it

    settings = config.email
    if not settings.listens:
        missing = [name for name in ("address", "imap_host", "smtp_host") if not getattr(settings, name)]
        hint = f"keepsaid config set email.{missing[0] if missing else 'address'} VALUE"
        raise InputError(f"a mailbox needs {' and '.join(f'email.{name}' for name in missing)}", hint=hint)
    box = mailbox_of(settings)
    return await look_up(box.account, box.folder, box.smtp, box.trust)


ACCOUNTS: Mapping[str, ChannelAccount] = {
    "telegram": ChannelAccount(
        "telegram",
        (AccountToken(("telegram", "token"), "the token of a bot, as @BotFather gives it", "telegram.token"),),
        _telegram,
    ),
    "discord": ChannelAccount(
        "discord",
        (AccountToken(("discord", "token"), "the token of a bot, of the Developer Portal", "discord.token"),),
        _discord,
    ),
    "slack": ChannelAccount(
        "slack",
        (
            AccountToken(("slack", "app_token"), "the token of the app, xapp-...", "slack-app.token"),
            AccountToken(("slack", "bot_token"), "the token of the bot, xoxb-...", "slack-bot.token"),
        ),
        _slack,
    ),
    "nostr": ChannelAccount(
        "nostr",
        (AccountToken(("nostr", "secret_key"), "the secret key of an account, nsec1...", "nostr.key"),),
        _nostr,
    ),
    "matrix": ChannelAccount(
        "matrix",
        (AccountToken(("matrix", "token"), "the access token of an account", "matrix.token"),),
        _matrix,
    ),
    "email": ChannelAccount(
        "email",
        (AccountToken(("email", "password"), "the password of the mailbox", "email.password"),),
        _email,
    ),
}
"""The channels that listen by a token."""


ABILITIES: Mapping[str, ChannelAbilities] = {
    "telegram": abilities.TELEGRAM,
    "discord": abilities.DISCORD,
    "slack": abilities.SLACK,
    "nostr": abilities.NOSTR,
    "matrix": abilities.MATRIX,
    "email": abilities.EMAIL,
}
"""What each of them can do."""


def with_tokens(config: Config, name: str, tokens: Sequence[str]) -> Config:
    """The settings with tokens, as they would be. Raises InputError for a text that cannot be one."""
    section = getattr(config, name)
    given = {one.setting[-1]: SecretStr(token) for one, token in zip(ACCOUNTS[name].tokens, tokens, strict=True)}
    try:
        changed = type(section).model_validate({**section.model_dump(), **given})
    except ValidationError as error:
        reason = str(error.errors(include_url=False, include_input=False)[0]["msg"]).removeprefix("Value error, ")
        raise InputError(f"this is not a token for {name}: {reason}", safe="Nothing was saved.") from None
    return config.model_copy(update={name: changed})
