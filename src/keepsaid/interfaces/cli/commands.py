"""Commands: what may be typed in a chat besides talk; every one begins with a slash."""

from __future__ import annotations

from dataclasses import dataclass

from keepsaid.domain.command import COMMANDS, read_command
from keepsaid.domain.lane import Lane, lane_key
from keepsaid.errors import InputError
from keepsaid.interfaces.cli.output import show
from keepsaid.interfaces.cli.session import say, session
from keepsaid.interfaces.shapes import turn_shape

HELP = {
    "/help": "this list",
    "/why": "explain the last turn: what came to mind, what was left out, and why",
    **{f"/{name}": meaning for name, meaning in COMMANDS.items() if name != "help"},
    "/quit": "end the chat; Ctrl-D does so too",
}
"""The commands and what they do."""

_HERE = ("/help", "/why", "/quit")
"""Those that the chat carries out itself."""


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A slash command as it was typed."""

    name: str

    @staticmethod
    def read(text: str) -> SlashCommand | str:
        """The command in a line a person typed, or the line as a message; `//` begins a message with one slash.

        What the runtime carries out itself is sent like a message.
        """
        if text.startswith("//"):
            return text if read_command(text[1:]) is not None else text[1:]
        if text.split(maxsplit=1)[:1] != ["/help"] and (told := read_command(text)) is not None and told.known:
            return text
        return SlashCommand(text.split(maxsplit=1)[0]) if text.startswith("/") else text

    @staticmethod
    def piped(line: str) -> SlashCommand | str:
        """The command in a line of a pipe, or the line as a message.

        Only a whole line that is a command is one: what a program sends may begin with a slash. `//` before
        a command's name sends it.
        """
        text = line.strip()
        if text in _HERE:
            return SlashCommand(text)
        return text[1:] if text.startswith("/") and text[1:] in _HERE else line


async def obey(command: SlashCommand, conversation: str) -> bool:
    """Carry out a command; False when the chat is to end."""
    if command.name == "/quit":
        return False
    if command.name == "/help":
        show({"commands": HELP}, *(f"{name:14}{meaning}" for name, meaning in HELP.items()), "")
    elif command.name == "/why":
        await _why(conversation)
    else:
        say(f"{command.name} is no command and was not sent. /help lists them; begin with // to send it as it is.")
    return True


async def _why(conversation: str) -> None:
    from keepsaid.app.stores import reading  # noqa: PLC0415
    from keepsaid.interfaces.cli.why import explained, turn_named  # noqa: PLC0415

    lane = Lane("terminal", "default", conversation, lane_key(conversation))
    try:
        async with reading(session().home, session().config()) as stores:
            turn = await turn_named(stores, None, lane)
    except InputError as none:
        say(f"{none.what} in this conversation")
        return
    show({"turn": turn_shape(turn)}, *explained(turn), "")
