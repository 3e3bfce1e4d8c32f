"""`keepsaid channel add`, `test`, `pause` and `rm`: the account that a channel listens by, and its settings."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keepsaid.config.edits import replace_file, with_setting, without_setting
from keepsaid.errors import ChannelError, InputError
from keepsaid.interfaces.channel_shapes import account_shape
from keepsaid.interfaces.cli import program, remote
from keepsaid.interfaces.cli.config_changes import config_text, write_config
from keepsaid.interfaces.cli.console import from_stdin, refused, say, session, show

if TYPE_CHECKING:
    from keepsaid.app.channel_setup import AccountToken, ChannelAccount
    from keepsaid.app.setup import ApiKey
    from keepsaid.ports.channel import AccountReport

Name = Annotated[str, typer.Argument(metavar="CHANNEL", help="A channel that listens by a token, such as telegram.")]
_LS = "keepsaid channel ls"


def add(
    name: Name,
    token_env: Annotated[
        list[str] | None, typer.Option(metavar="VARIABLE", help="Read the token from this variable, now and later.")
    ] = None,
    token_file: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Read the token from this file, now and later; - keeps one from stdin."),
    ] = None,
) -> None:
    """Set up a channel: ask its provider who the token belongs to, and save it if the provider knows it.

    On a terminal the token is asked for, and kept in a file beside the config that only you can read. It may be
    run again with a new token of the same account: conversations go on. Slack needs two tokens, of the app and
    of the bot: give the option twice, in this order.
    """
    account = _account(name)
    set_up(account, _tokens(account, token_env or (), token_file or ()))


def set_up(account: ChannelAccount, keys: Sequence[ApiKey]) -> AccountReport:
    """Save tokens that their provider knows, and say what comes next. Raises with nothing saved."""
    from keepsaid.app.channel_setup import with_tokens  # noqa: PLC0415 - `--help` needs none of it

    current = session()
    wanted = with_tokens(current.config(), account.name, [key.secret for key in keys])
    report = asyncio.run(account.look_up(wanted))
    home, wrote = current.home, []
    home.make()
    text = without_setting(config_text(home.config_file), account.pausing)
    for token, key in zip(account.tokens, keys, strict=True):
        if key.is_kept:
            replace_file(home.config / token.file, f"{key.secret}\n")
            wrote.append(home.config / token.file)
        text = with_setting(text, token.setting, key.written)
    write_config(account.tokens[0].setting, text)
    wrote.append(home.config_file)
    shape = {**account_shape(report), "wrote": [str(file) for file in wrote]}
    show(shape, *_lines(report), *(f"wrote    {file}" for file in wrote))
    begins = "restart it (keepsaid serve)" if remote.running(home) is not None else "keepsaid serve"
    say(f"Next:  {begins}, and write to {report.name}: it answers with a code, and says what to do with it.")
    return report


def offered(*, ask: bool) -> None:
    """Offer on a terminal to set up the first channel that listens by a token; if that fails, say how to try again."""
    from keepsaid.app import channel_setup, setup  # noqa: PLC0415 - `--help` needs none of it

    account, config = channel_setup.ACCOUNTS["telegram"], session().config()
    if not ask or account.name in config.accounts:
        return
    [token] = account.tokens
    what = f"To talk to it on Telegram, paste {token.what} (Enter for not now)"
    typed = str(typer.prompt(what, default="", show_default=False, hide_input=True, err=True))
    if not typed.strip():
        say(f"Later: keepsaid channel add {account.name}")
        return
    try:
        set_up(account, [setup.key_to_keep(typed, token.file)])
    except (ChannelError, InputError) as error:
        say(f"{error.what}. To try again: keepsaid channel add {account.name}")


def _account(name: str) -> ChannelAccount:
    from keepsaid.app.channel_setup import ACCOUNTS  # noqa: PLC0415 - `--help` needs none of it

    if (account := ACCOUNTS.get(name)) is None:
        known = ", ".join(ACCOUNTS)
        raise refused(f"{name!r} is not a channel that listens by a token (there are: {known})", _LS)
    return account


def _tokens(account: ChannelAccount, variables: Sequence[str], files: Sequence[str]) -> Sequence[ApiKey]:
    """The tokens of an account, from where the options say, or as they are typed."""
    if variables and files:
        raise typer.BadParameter("--token-env and --token-file exclude each other", param_hint="--token-file")
    given, wanted = [*variables, *files], account.tokens
    if not given and not sys.stdin.isatty():
        raise program.Misused("give --token-env or --token-file", hint="keepsaid channel add --help")
    if given and len(given) != len(wanted):
        needed = " and ".join(token.what for token in wanted)
        raise program.Misused(f"{account.name} needs {needed}", hint="keepsaid channel add --help")
    if variables:
        from keepsaid.app.setup import key_of_variable  # noqa: PLC0415 - `--help` needs none of it

        return [key_of_variable(one) for one in variables]
    return [_typed_or_read(token, file) for token, file in zip(wanted, files or [""] * len(wanted), strict=True)]


def _typed_or_read(token: AccountToken, file: str) -> ApiKey:
    """A token as it is typed, or what a file or stdin has."""
    from keepsaid.app import setup  # noqa: PLC0415 - `--help` needs none of it

    if file and file != "-":
        return setup.key_of_file(Path(file))
    typed = from_stdin() if file else str(typer.prompt(token.what.capitalize(), hide_input=True, err=True))
    return setup.key_to_keep(typed, token.file)


def _lines(report: AccountReport) -> Sequence[str]:
    return [
        f"account  {report.name} ({report.account}) on {report.channel}",
        *(f"note     {one}" for one in report.notes),
    ]


def tried(name: Name) -> None:
    """Ask the provider of a channel whether it knows the account, and what stands in its way. Nothing is sent."""
    account = _needed(name)
    report = asyncio.run(account.look_up(session().config()))
    show(account_shape(report), *_lines(report))


def _needed(name: str) -> ChannelAccount:
    """A channel that has a token. Raises InputError for any other."""
    account = _account(name)
    if name not in session().config().accounts:
        needed = " and ".join(".".join(token.setting) for token in account.tokens)
        raise refused(f"{needed} {'is' if len(account.tokens) == 1 else 'are'} not set", f"keepsaid channel add {name}")
    return account


def pause(
    name: Name,
    off: Annotated[bool, typer.Option("--off", help="End the pause.")] = False,
) -> None:
    """Listen and send on a channel no more, until `pause --off`. Replies wait; the provider keeps what it can."""
    account = _needed(name)
    text = config_text(session().home.config_file)
    changed = without_setting(text, account.pausing) if off else with_setting(text, account.pausing, value=False)
    write_config(account.pausing, changed)
    show({"channel": name, "paused": not off}, f"{name} is {'not paused any more' if off else 'paused'}")
    _advise()


def rm(name: Name) -> None:
    """Remove the token of a channel. What was said there stays, and whom you let in."""
    account = _needed(name)
    home = session().home
    text = config_text(home.config_file)
    for token in account.tokens:
        text = without_setting(text, token.setting)
    write_config(account.tokens[0].setting, text)
    for token in account.tokens:
        (home.config / token.file).unlink(missing_ok=True)
    show({"channel": name, "removed": True}, f"{name} has no token any more")
    _advise()


def _advise() -> None:
    if remote.running(session().home) is not None:
        say("a runtime is up: it goes on as before until it is started again")
