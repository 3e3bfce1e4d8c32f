"""Files that the agent attaches go out by the messenger of the conversation, from the store of the program."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.files_cast import Messenger, OnDiscord, OnSlack
from tests.unit.http_cast import site
from tests.unit.test_telegram import until

from keepsaid.testing.model_script import Call, Say, Script
from keepsaid.testing.model_server import ModelServer
from keepsaid.testing.providers.discord import DiscordServer
from keepsaid.testing.providers.forms import UploadedFile
from keepsaid.testing.providers.slack import SlackServer

_NOTES = {"name": "notes.md", "text": "# Notes\n\nmilk, bread"}


def files_of(server: object) -> list[tuple[str, bytes]]:
    """The name and the bytes of each file that was sent, in order."""
    assert isinstance(server, DiscordServer | SlackServer)
    brought: list[tuple[UploadedFile, ...]] = [one.files for one in server.sent]
    return [(file.name, file.content) for files in brought for file in files]


@pytest.mark.parametrize("on", [OnDiscord, OnSlack], ids=lambda one: one.__name__)
@pytest.mark.parametrize("words", ["here you are", ""], ids=["with words", "alone"])
async def test_the_agent_sends_a_text_that_it_writes(tmp_path: Path, on: type[Messenger], words: str) -> None:
    who = on()
    script = Script(Call("attach_file", _NOTES), Say(words))
    async with who.server, ModelServer(script) as model, site(tmp_path, **who.home(model)) as at:
        await who.ready(at)
        assert isinstance(who.server, DiscordServer | SlackServer)
        who.server.say("write it down", channel="902" if isinstance(who.server, DiscordServer) else "D1")
        await who.server.wait_for(lambda: bool(files_of(who.server)))
        assert files_of(who.server) == [("notes.md", b"# Notes\n\nmilk, bread")]
        assert who.texts == ([words, ""] if words else [""])
        await until(at, "SELECT 1 FROM reply WHERE state = 'sent'")
        assert at.rows("SELECT detail FROM reply") == [("",)]
