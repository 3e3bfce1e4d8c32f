"""Every channel says whose its tokens are, and of those that its provider does not accept what to do; it shows none."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from keepsaid.app.channel_setup import ACCOUNTS, with_tokens
from keepsaid.config import Config
from keepsaid.errors import ChannelError, InputError
from keepsaid.ports.channel import AccountReport
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.providers import discord, email_smtp, matrix, slack, telegram
from keepsaid.testing.providers.email_imap import ImapServer
from keepsaid.testing.providers.matrix_rooms import USER
from keepsaid.testing.providers.nostr import NostrRelayServer
from keepsaid.testing.providers.nostr_people import NostrPerson, secret_of
from keepsaid.testing.sending_contract import leaked
from keepsaid.values import frozen

_OTHER_BOT = "4712:another-token-of-a-test"
_CLOCK = VirtualClock()


@frozen
class ProviderOfTest:
    """A scripted provider: the settings of the channel, its tokens, the id of its account, and how that is refused."""

    settings: dict[str, Any]
    tokens: tuple[str, ...]
    account: str
    revoke: Callable[[], None]


@asynccontextmanager
async def on_telegram() -> AsyncIterator[ProviderOfTest]:
    async with telegram.TelegramServer() as server:
        revoke = lambda: setattr(server, "token", "4711:new")  # noqa: E731 - shorter
        yield ProviderOfTest({"api_url": server.url}, (telegram.TOKEN,), telegram.TOKEN.partition(":")[0], revoke)


@asynccontextmanager
async def on_discord() -> AsyncIterator[ProviderOfTest]:
    async with discord.DiscordServer() as server:
        revoke = lambda: setattr(server, "token", "new")  # noqa: E731 - shorter
        yield ProviderOfTest({"api_url": server.api_url}, (discord.TOKEN,), discord.BOT, revoke)


@asynccontextmanager
async def on_slack() -> AsyncIterator[ProviderOfTest]:
    async with slack.SlackServer() as server:
        tokens = slack.APP_TOKEN, slack.BOT_TOKEN
        revoke = lambda: setattr(server, "bot_token", "new")  # noqa: E731 - shorter
        yield ProviderOfTest({"api_url": f"{server.url}/api"}, tokens, slack.ACCOUNT, revoke)


@asynccontextmanager
async def on_nostr() -> AsyncIterator[ProviderOfTest]:
    async with NostrRelayServer() as server:
        revoke = lambda: setattr(server, "closes_with", "blocked: not you")  # noqa: E731 - shorter
        agent = NostrPerson("agent", lambda: _CLOCK.now_ms() // 1_000)
        yield ProviderOfTest({"relays": [server.url]}, (secret_of("agent"),), agent.public, revoke)


@asynccontextmanager
async def on_matrix() -> AsyncIterator[ProviderOfTest]:
    async with matrix.MatrixServer() as server:
        revoke = lambda: setattr(server, "token", "new")  # noqa: E731 - shorter
        yield ProviderOfTest({"homeserver": server.url}, (matrix.TOKEN,), USER, revoke)


@asynccontextmanager
async def on_email() -> AsyncIterator[ProviderOfTest]:
    async with ImapServer() as imap, email_smtp.SmtpServer() as smtp:
        hosts = {"imap_host": "127.0.0.1", "imap_port": imap.port, "smtp_host": "127.0.0.1", "smtp_port": smtp.port}
        settings = {"address": email_smtp.USER, "tls": False, **hosts}
        yield ProviderOfTest(settings, (email_smtp.PASSWORD,), email_smtp.USER, imap.passwords.clear)


PROVIDERS: dict[str, Callable[[], AbstractAsyncContextManager[ProviderOfTest]]] = {
    "telegram": on_telegram,
    "discord": on_discord,
    "slack": on_slack,
    "nostr": on_nostr,
    "matrix": on_matrix,
    "email": on_email,
}

each_channel = pytest.mark.parametrize("name", PROVIDERS)


def test_every_channel_that_listens_by_a_token_is_here() -> None:
    assert set(PROVIDERS) == set(ACCOUNTS)


def config_of(name: str, provider: ProviderOfTest) -> Config:
    """The settings of a channel with the tokens of its account."""
    return with_tokens(Config.model_validate({name: provider.settings}), name, provider.tokens)


async def looked_up(name: str, provider: ProviderOfTest, tokens: tuple[str, ...]) -> AccountReport:
    """The account of some tokens. Raises InputError for a form that they cannot have, and ChannelError."""
    config = with_tokens(Config.model_validate({name: provider.settings}), name, tokens)
    return await ACCOUNTS[name].look_up(config)


@each_channel
async def test_the_account_of_a_token_is_named(name: str) -> None:
    async with PROVIDERS[name]() as provider:
        report = await ACCOUNTS[name].look_up(config_of(name, provider))
    assert (report.channel, report.account, bool(report.name)) == (name, provider.account, True)
    assert all(token not in str(report) for token in provider.tokens)


@each_channel
async def test_a_token_that_was_revoked_is_refused_with_what_to_do(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        async with PROVIDERS[name]() as provider:
            provider.revoke()
            with pytest.raises(ChannelError) as refusal:
                await ACCOUNTS[name].look_up(config_of(name, provider))
    error = refusal.value
    assert "cannot be reached" not in error.what
    assert error.hint != "keepsaid doctor"
    assert leaked(provider.tokens, error.as_json(), caplog) == []


@each_channel
async def test_a_provider_that_is_not_there_is_said_to_be_away(name: str, caplog: pytest.LogCaptureFixture) -> None:
    async with PROVIDERS[name]() as provider:
        config = config_of(name, provider)
    with caplog.at_level(logging.DEBUG), pytest.raises(ChannelError) as away:
        await ACCOUNTS[name].look_up(config)
    assert away.value.hint != "keepsaid doctor"
    assert leaked(provider.tokens, away.value.as_json(), caplog) == []


@each_channel
async def test_the_tokens_of_another_channel_are_refused(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Before anything is sent where their form tells, else by the provider."""
    others = [_OTHER_BOT, discord.TOKEN, slack.BOT_TOKEN, secret_of("agent"), matrix.TOKEN, slack.APP_TOKEN]
    with caplog.at_level(logging.DEBUG):
        async with PROVIDERS[name]() as provider:
            for other in (one for one in others if one not in provider.tokens):
                given = (other,) * len(provider.tokens)
                with pytest.raises((InputError, ChannelError)) as refusal:
                    await looked_up(name, provider, given)
                assert leaked([other], refusal.value.as_json(), caplog) == []


async def test_the_two_tokens_of_slack_are_not_exchanged() -> None:
    async with on_slack() as provider:
        with pytest.raises((InputError, ChannelError)):
            await looked_up("slack", provider, provider.tokens[::-1])
