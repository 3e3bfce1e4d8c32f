"""The bot of a token, looked up at Discord: who it is, and what stands in the way of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from keepsaid.adapters.channels.discord_api import DiscordApi, DiscordRefused, DiscordUnreachable
from keepsaid.errors import ChannelError
from keepsaid.ports.channel import AccountReport

_CONTENT_FLAGS = 1 << 18 | 1 << 19
"""Flags of an application with the intent MESSAGE CONTENT, granted by Discord or switched on for few servers."""


async def look_up(api: DiscordApi, account: str) -> AccountReport:
    """The account of a token. Raises ChannelError if Discord refuses the token, or does not answer."""
    try:
        me = await api.get("/users/@me")
        application = await api.get("/applications/@me")
        guilds = await api.get("/users/@me/guilds?limit=1")
    except DiscordRefused as error:
        what = f"Discord refuses the token: {error}" if error.status == 401 else f"Discord answers: {error}"
        hint = "copy the bot's token of the developer portal again: keepsaid channel add discord"
        raise ChannelError(what, hint=hint) from error
    except DiscordUnreachable as error:
        what = f"Discord cannot be reached: {error}"
        raise ChannelError(what, hint="see that this machine is online, and discord.api_url") from error
    finally:
        await api.close()
    about, applied = (one if isinstance(one, dict) else {} for one in (me, application))
    if str(about.get("id")) != account:
        raise ChannelError("the token is that of another bot", hint="keepsaid channel add discord")
    name = about.get("username")
    notes = tuple(_notes(applied, guilds))
    return AccountReport("discord", account, name if isinstance(name, str) else account, notes)


def _notes(application: Mapping[str, object], guilds: object) -> Iterator[str]:
    flags = application.get("flags")
    if not isinstance(flags, int) or not flags & _CONTENT_FLAGS:
        yield (
            "the intent MESSAGE CONTENT is off: Discord lets the bot in without discord.content alone, and then shows "
            "it the text of direct messages and of mentions only (developer portal, Bot)"
        )
    if guilds == []:
        yield "it is in no server yet: nobody can write to it (developer portal, OAuth2, URL generator)"
