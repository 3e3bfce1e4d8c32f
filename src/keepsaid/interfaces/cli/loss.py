"""`keepsaid data accept-loss`: go on with what is left after a file of the stores was lost."""

from __future__ import annotations

from typing import Annotated

import typer

from keepsaid.errors import HomeBusy
from keepsaid.interfaces.cli.output import show
from keepsaid.interfaces.cli.session import say, session


def accept_loss(
    yes: Annotated[bool, typer.Option("--yes", help="Accept it, instead of only naming what is lost.")] = False,
) -> None:
    """Go on with what is left when a database or its log was lost, or belongs to another home.

    Names what is lost and, with --yes, accepts the files as they are. A missing file is created
    empty; nothing is deleted. If you have the lost file or a backup, use that instead.
    """
    from keepsaid.app.stores import accept_stores, alone, pair_trouble  # noqa: PLC0415

    home, config = session().home, session().config()
    trouble = pair_trouble(home, config)
    if trouble is None:
        show({"accepted": False, "lost": None}, "nothing is lost: the stores are as keepsaid left them")
        return
    if "accept-loss" not in trouble.hint:
        raise trouble
    if not yes:
        show({"accepted": False, "lost": trouble.what}, f"{trouble.what}.", trouble.safe)
        say("to go on with what is left: keepsaid data accept-loss --yes")
        return
    home.make()
    with alone(home, config) as is_alone:
        if not is_alone:
            raise HomeBusy("another process is running this home")
        accept_stores(home, config)
    show({"accepted": True, "lost": trouble.what}, f"accepted: {trouble.what}")
    say("try: keepsaid status")
