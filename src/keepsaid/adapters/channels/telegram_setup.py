"""The bot of a token, looked up at Telegram: who it is, and what stands in the way of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from keepsaid.adapters.channels.telegram_api import TelegramApi, TelegramRefused, TelegramUnreachable
from keepsaid.errors import ChannelError
from keepsaid.ports.channel import AccountReport
from keepsaid.text.normal import counted


async def look_up(api: TelegramApi, account: str, our_hook: str = "") -> AccountReport:
    """The account of a token; `our_hook` is where its webhook is to be, if it is to have one.

    Raises ChannelError if Telegram refuses the token, or does not answer.
    """
    try:
        me = await api.call("getMe", {})
        hook = await api.call("getWebhookInfo", {})
    except TelegramRefused as error:
        what = f"Telegram refuses the token: {error}" if error.code in (401, 404) else f"Telegram answers: {error}"
        raise ChannelError(what, hint="copy the token of @BotFather again: keepsaid channel add telegram") from error
    except TelegramUnreachable as error:
        what = f"Telegram cannot be reached: {error}"
        raise ChannelError(what, hint="see that this machine is online, and telegram.api_url") from error
    finally:
        await api.close()
    about, hooked = (one if isinstance(one, dict) else {} for one in (me, hook))
    name = f"@{about['username']}" if isinstance(about.get("username"), str) else account
    return AccountReport("telegram", account, name, tuple(_notes(about, hooked, our_hook)))


def _notes(about: Mapping[str, object], hook: Mapping[str, object], our_hook: str) -> Iterator[str]:
    if isinstance(url := hook.get("url"), str) and url not in ("", our_hook):
        host = urlsplit(url).hostname or "another server"
        yield f"a webhook sends its messages to {host}, and nothing comes here until telegram.takeover is true"
    if url and isinstance(failed := hook.get("last_error_message"), str) and failed:
        yield f"Telegram could not post to its webhook: {failed}"
    if about.get("can_join_groups") is False:
        yield "it cannot be added to groups (/setjoingroups of @BotFather)"
    elif about.get("can_read_all_group_messages") is False:
        yield "in groups it is shown what is addressed to it alone (/setprivacy of @BotFather)"
    if isinstance(waiting := hook.get("pending_update_count"), int) and waiting:
        yield f"{counted(waiting, 'update')} wait at Telegram"
