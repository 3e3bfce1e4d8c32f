"""`keepsaid channel`: channels with their accounts, and who may talk there."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepsaid.domain.pairing import Access, AccessRule, Pairing
from keepsaid.interfaces.channel_shapes import abilities_shape, pairing_shape
from keepsaid.interfaces.cli import channel_accounts, console, remote
from keepsaid.text.normal import counted

if TYPE_CHECKING:
    from keepsaid.config import Config
    from keepsaid.domain.line import Line

app = typer.Typer(help="Set up the channels that listen, and say who may talk there.", rich_markup_mode=None)
_ROWS_MAX = 1_000
Who = Annotated[str, typer.Argument(metavar="WHO", help="The code that they were sent, or CHANNEL:ACCOUNT:SENDER.")]
Answer = Annotated[
    bool | None,
    typer.Option("--answer/--no-answer", help="Answer what they said before; by default a terminal is asked."),
]


@app.command("ls")
def ls(limit: console.Limit = 100) -> None:
    """List channels, how they are connected, who may talk there, and who was sent a code or let in."""
    from keepsaid.app.stores import host_status  # noqa: PLC0415 - `--help` needs none of it

    session = console.session()
    config = session.config()
    lines = host_status(session.home, config).lines
    rules = config.access_rules()
    channels = [_channel(config, name, rules.get(name), lines) for name in (*config.channels, *_unnamed(config))]

    async def found(stores: console.Stores) -> tuple[Sequence[Pairing], int]:
        return await stores.views.pairings.everybody(limit), stores.clock.now_ms()

    people, at = session.read(found) or ((), 0)
    shapes = [pairing_shape(one, at) for one in people]
    tables = [console.Table(("CHANNEL", "ACCOUNT", "STATE", "WHO MAY TALK"), tuple(map(_row, channels)))]
    if shapes:
        tables.append(console.Table(("WHO", "CALLED", "STATE", "CODE"), tuple(map(_person, shapes))))
    console.show({"channels": channels, "people": shapes}, *tables)
    if any(one["state"] == "pending" for one in shapes):
        console.say("let somebody in: keepsaid channel approve CODE; with pair --owner it is you")
    console.say_more(len(people), limit)


def _unnamed(config: Config) -> Iterator[str]:
    """Channels that listen by a token, and that the config does not name."""
    yield from (name for name in config.listening if name not in config.channels)


def _channel(config: Config, name: str, rule: AccessRule | None, lines: Sequence[Line]) -> dict[str, Any]:
    from keepsaid.app.channel_setup import ABILITIES  # noqa: PLC0415 - `--help` needs none of it

    settings = config.channels.get(name)
    line = next((one for one in lines if one.channel == name), None)
    state = "paused" if settings is not None and not settings.enabled else line.state.value if line else "-"
    account, reason = (line.account, line.reason) if line else (None, "")
    shape = {"channel": name, "account": account, "state": state, "reason": reason, "access": _access(rule)}
    return {**shape, "abilities": abilities_shape(ABILITIES[name]) if name in ABILITIES else None}


def _access(rule: AccessRule | None) -> str:
    """Who may talk, in words."""
    if rule is None:
        return "anyone"
    listed = f" ({counted(len(rule.allow), 'id')} in allow)" if rule.allow else ""
    usual = Access.LISTED if rule.direct is Access.PAIRED else rule.direct
    return f"{rule.direct}{'' if rule.group is usual else f', in groups {rule.group}'}{listed}"


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    state = f"{one['state']}: {one['reason']}" if one["reason"] else one["state"]
    return one["channel"], one["account"] or "-", state, one["access"]


def _person(one: dict[str, Any]) -> tuple[str, ...]:
    return one["who"], one["name"] or "-", one["state"], one["code"] or "-"


@app.command("approve")
def approve(who: Who, answer: Answer = None) -> None:
    """Let somebody in who was sent a code. What they say from now on is answered."""
    _let_in(who, is_owner=False, answer=answer)


@app.command("pair")
def pair(
    who: Who,
    owner: Annotated[bool, typer.Option("--owner", help="It is you: the agent takes their word for yours.")] = False,
    answer: Answer = None,
) -> None:
    """Let somebody in who was sent a code; with --owner, say that it is you who writes there.

    Give --owner only for an account that nobody else can write from.
    """
    _let_in(who, is_owner=owner, answer=answer)


def _let_in(who: str, *, is_owner: bool, answer: bool | None) -> None:
    told, up = remote.post("/v1/channels/approve", {"who": who, "owner": is_owner})
    dropped, called = told["dropped"], told["name"]
    named = f"{told['who']} ({called})" if called else told["who"]
    if dropped and answer is None:
        many = counted(len(dropped), "batch that was dropped", "batches that were dropped")
        answer = sys.stdin.isatty() and typer.confirm(f"Answer what they said before ({many})?", default=True, err=True)
    queued = [batch for batch in dropped if answer and _requeue(batch)]
    is_let_in = "is the owner now" if is_owner else "is let in"
    lines = [f"{named} {is_let_in}", *(f"{batch}  queued again" for batch in queued)]
    console.show({**told, "queued": queued}, *lines)
    if dropped and not queued:
        console.say(f"what they said before stays unanswered; to answer it: keepsaid inbox requeue {dropped[-1]}")
    if not up:
        console.say("no runtime is up: keepsaid serve")


def _requeue(batch: str) -> bool:
    return bool(remote.post(f"/v1/batches/{batch}/requeue", {"reason": "who said it was let in"})[0]["requeued"])


@app.command("revoke")
def revoke(
    who: Annotated[
        str, typer.Argument(metavar="WHO", help="CHANNEL:ACCOUNT:SENDER as `keepsaid channel ls` shows it.")
    ],
) -> None:
    """Let somebody in no longer. What they said stays."""
    gone = remote.post("/v1/channels/revoke", {"who": who})[0]["revoked"]
    console.show({"revoked": gone}, f"{gone} is let in no longer")


app.command("add")(channel_accounts.add)
app.command("test")(channel_accounts.tried)
app.command("pause")(channel_accounts.pause)
app.command("rm")(channel_accounts.rm)
