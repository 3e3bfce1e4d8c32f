"""The bot of a token, looked up at Slack: who it is, and what prevents it from receiving or sending."""

from __future__ import annotations

from collections.abc import Iterator

from keepsaid.adapters.channels.slack_api import SlackApi, SlackRefused, SlackUnreachable
from keepsaid.adapters.channels.slack_line import bot_of
from keepsaid.errors import ChannelError
from keepsaid.ports.channel import AccountReport

_BOT_TOKEN, _APP_TOKEN = "xoxb-", "xapp-"


async def look_up(api: SlackApi) -> AccountReport:
    """The account of the tokens, `T1:U1`; without a token of the app, events have to come by HTTP.

    Raises ChannelError if Slack refuses a token, or does not answer.
    """
    token = "slack.bot_token"  # noqa: S105 - the name of the setting
    try:
        bot = await bot_of(api)
        if api.has_app_token:
            token = "slack.app_token"  # noqa: S105 - the name of the setting
            await api.call("auth.test", {}, by_app=True)
    except SlackRefused as error:
        what = f"Slack refuses {token}: {error}" if error.is_bad_token else f"Slack answers: {error}"
        raise ChannelError(what, hint=f"copy it again from the settings of the app ({_prefix(token)}...)") from error
    except SlackUnreachable as error:
        what = f"Slack cannot be reached: {error}"
        raise ChannelError(what, hint="see that this machine is online, and slack.api_url") from error
    finally:
        await api.close()
    return AccountReport("slack", bot.account, f"@{bot.name}" if bot.name else bot.account, tuple(_notes(api)))


def _prefix(setting: str) -> str:
    return _APP_TOKEN if setting.endswith("app_token") else _BOT_TOKEN


def _notes(api: SlackApi) -> Iterator[str]:
    if not api.has_app_token:
        yield "without slack.app_token Slack has to post its events to /hooks/slack, with slack.signing_secret"
