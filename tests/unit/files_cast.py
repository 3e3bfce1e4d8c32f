"""Messengers on which people send files: each as a scripted server, the settings of its bot, and how a file is sent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final

from tests.unit import test_discord_site, test_slack_site
from tests.unit.http_cast import Site
from tests.unit.test_telegram import line_that_is

from keepsaid.domain.line import LineState
from keepsaid.testing.listener import ListeningServer
from keepsaid.testing.model_http import Connection
from keepsaid.testing.model_server import ModelServer
from keepsaid.testing.providers import discord, matrix, slack
from keepsaid.testing.providers.discord import DiscordServer
from keepsaid.testing.providers.kept_files import KeptFiles
from keepsaid.testing.providers.matrix import MatrixServer
from keepsaid.testing.providers.matrix_rooms import USER
from keepsaid.testing.providers.slack import SlackServer

ROOM: Final = "!ann:test"


class OtherServer(ListeningServer):
    """A server that belongs to no messenger; `clients` counts who connected."""

    def __init__(self) -> None:
        super().__init__(self._serve, 0)
        self.clients = 0

    async def _serve(self, connection: Connection) -> None:
        self.clients += 1
        await connection.close()


class Messenger(ABC):
    """A messenger with one bot; `files` is what can be downloaded, `title` how refusals call who hands it out."""

    server: DiscordServer | SlackServer | MatrixServer
    title: str
    token: str

    @property
    @abstractmethod
    def files(self) -> KeptFiles:
        """The files that its server has."""

    @property
    @abstractmethod
    def texts(self) -> list[str]:
        """What the bot sent."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The settings of the bot and its owner."""

    @abstractmethod
    def send(self, content: bytes, text: str, *, kind: str = "", size: int | None = None, url: str = "") -> None:
        """The owner sends a file with a text; its type, its size and its address as they say."""

    def home(self, model: ModelServer | None = None, **files: Any) -> dict[str, Any]:
        """The settings of a home whose agent has a model, if one is given."""
        models = {"chat": "openai/scripted", "base_url": model.url, "api_key": "k"} if model else {"chat": "none"}
        return {**self.settings(), "models": models, "files": files}

    async def ready(self, at: Site) -> None:
        """Wait until what is sent from now on comes in."""
        await line_that_is(at, LineState.UP)


class OnDiscord(Messenger):
    """Discord: the CDN is sent no token."""

    title = "Discord"
    token = discord.TOKEN

    def __init__(self) -> None:
        self.server: DiscordServer = DiscordServer()

    @property
    def files(self) -> KeptFiles:
        return self.server.cdn.files

    @property
    def texts(self) -> list[str]:
        return [one.text for one in self.server.sent]

    def settings(self) -> dict[str, Any]:
        return test_discord_site.settings(self.server)

    def send(self, content: bytes, text: str, *, kind: str = "", size: int | None = None, url: str = "") -> None:
        told: dict[str, Any] = {"content_type": kind} if kind else {}
        told |= {"size": size} if size is not None else {}
        self.server.send_file(content, text, **told, **({"url": url} if url else {}))


class OnSlack(Messenger):
    """Slack, by Socket Mode."""

    title = "Slack"
    token = slack.BOT_TOKEN

    def __init__(self) -> None:
        self.server: SlackServer = SlackServer()

    @property
    def files(self) -> KeptFiles:
        return self.server.uploads.files

    @property
    def texts(self) -> list[str]:
        return [one.text for one in self.server.sent]

    def settings(self) -> dict[str, Any]:
        return test_slack_site.settings(self.server)

    def send(self, content: bytes, text: str, *, kind: str = "", size: int | None = None, url: str = "") -> None:
        told: dict[str, Any] = {"mimetype": kind} if kind else {}
        told |= {"size": size} if size is not None else {}
        self.server.send_file(content, text, **told, **({"url_private_download": url} if url else {}))

    async def ready(self, at: Site) -> None:
        await super().ready(at)
        await self.server.wait_for(lambda: len(self.server.sockets.open_sockets) == 2)


class OnMatrix(Messenger):
    """Matrix: a room of the owner and the account."""

    title = "the homeserver"
    token = matrix.TOKEN

    def __init__(self) -> None:
        self.server: MatrixServer = MatrixServer()
        self.server.room(ROOM, "@ann:test")

    @property
    def files(self) -> KeptFiles:
        return self.server.media.files

    @property
    def texts(self) -> list[str]:
        return [one.body for one in self.server.sent]

    def settings(self) -> dict[str, Any]:
        owner = [{"channel": "matrix", "account": USER, "sender": "@ann:test"}]
        return {"matrix": {"token": matrix.TOKEN, "homeserver": self.server.url}, "owner": owner}

    def send(self, content: bytes, text: str, *, kind: str = "", size: int | None = None, url: str = "") -> None:
        info: dict[str, Any] = {"mimetype": kind, "size": len(content) if size is None else size}
        self.server.send_file(content, text, ROOM, info=info, **({"url": url} if url else {}))


MESSENGERS: Final = (OnDiscord, OnSlack, OnMatrix)
