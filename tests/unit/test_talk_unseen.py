"""A chat shows all replies that nobody has seen, however many pages they come in."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.http_cast import site

from keepsaid.domain.message import Content, Inbound, Origin, Trust
from keepsaid.interfaces.cli.talk import ChatClient

REPLIES = 130


async def test_more_replies_than_a_page_are_all_shown_once(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        origin = Origin("terminal", "default", "me", "owner", direct=True, trust=Trust.OWNER)
        for n in range(REPLIES):
            received = await here.instance.receive(Inbound(origin, Content(b"", f"hello {n}")))
            with here.instance.hub.listening(received.id, received.lane) as heard:
                while (story := await here.instance.operations.story(received.id)) is None or not story.replies:
                    await asyncio.wait_for(heard.get(), 60)
        here.client.headers.update(here.owner)
        talk, shown = ChatClient(here.client, "me", lambda: None), list[str]()
        async for reply in talk.unseen():
            shown.append(reply["id"])
            await talk.seen(reply["id"])
        assert len(shown) == len(set(shown)) == REPLIES
        assert [reply async for reply in talk.unseen()] == []
