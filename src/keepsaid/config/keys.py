"""Settings of keys: agents and programs that are let in over HTTP and MCP, each as one sender."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Annotated, Self

from pydantic import SecretStr, StringConstraints, field_validator, model_validator

from keepsaid.config.section import ConfigSection
from keepsaid.domain.message import SYSTEM, Trust
from keepsaid.domain.principal import Principal, Scope

KeyName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]
"""The name of a key: it is the account of the conversations that the key opens."""

_CHARS_MIN = 32
_RESERVED = frozenset({"default", "mcp", SYSTEM})


class KeyConfig(ConfigSection):
    """One key. Who holds it speaks and reads as one sender, in conversations that no other key can name."""

    token: SecretStr
    """Bearer token: at least 32 ASCII characters without spaces, such as `openssl rand -hex 32` prints."""
    sender: str = ""
    """Who speaks with it; by default the name of the key."""
    channel: str = "library"
    """The channel that its messages come by, with the rules of that channel: `library`, or one of your own."""
    scopes: tuple[Scope, ...] = (Scope.TALK, Scope.READ, Scope.WRITE)
    """talk: send messages and read their answers; read: memory, context and transcripts; write: record talk, save,
    correct and forget; operate: lease batches of all conversations and answer them."""
    owner: bool = False
    """Whether its sender is you: it reads and changes what you may in direct chats."""
    people: bool = False
    """Whether it is the key of a program with users of its own, such as Open WebUI. Then the field `user` of a call to
    the OpenAI endpoint names who speaks, and each of them has a memory of their own."""
    direct: bool = True
    """Whether its sender and an agent are alone in its conversations. Where others read along, set false: then only
    what was said in a conversation is read there."""
    transcripts: str = ""
    """Folder below which the hooks of a coding agent may have transcripts read, such as `~/.claude/projects`; "" for
    none."""

    @field_validator("token")
    @classmethod
    def validate_token(cls, token: SecretStr) -> SecretStr:
        """Refuse a token that could be guessed."""
        given = token.get_secret_value()
        if len(given) < _CHARS_MIN or not (given.isascii() and given.isprintable()) or " " in given:
            raise ValueError(f"it needs at least {_CHARS_MIN} ASCII characters, without spaces")
        return token

    @field_validator("sender")
    @classmethod
    def validate_sender(cls, sender: str) -> str:
        """Refuse the name by which the program calls itself."""
        if sender == SYSTEM:
            raise ValueError(f"nobody may be called {SYSTEM!r}: so the program calls itself")
        return sender

    @model_validator(mode="after")
    def validate_people(self) -> Self:
        """Refuse a program whose users would all be the owner."""
        if self.people and self.owner:
            raise ValueError("owner and people exclude each other: the people of a program are not all you")
        return self

    def principal(self, name: str) -> Principal:
        """Who calls with this key."""
        trust = Trust.OWNER if self.owner else Trust.KNOWN
        who = Principal(name, self.channel, self.sender or name, frozenset(self.scopes), trust, self.direct)
        return replace(who, people=self.people)


def check_keys(keys: dict[str, KeyConfig], channels: Collection[str], closed: Collection[str]) -> dict[str, KeyConfig]:
    """Refuse two keys with one token, a key of a reserved name, and one of a channel that is not there or is `closed`.

    What comes by http every client may read, and on other built-in channels a provider says who speaks.
    """
    tokens = [one.token.get_secret_value() for one in keys.values()]
    if len(set(tokens)) < len(tokens):
        raise ValueError("two keys have the same token: who calls would be unclear")
    if taken := sorted(_RESERVED & keys.keys()):
        raise ValueError(f"no key may be called {taken[0]}: the program uses that name itself")
    for name, one in keys.items():
        if one.channel in closed or (channels and one.channel not in channels):
            raise ValueError(f"keys.{name}.channel: it is library, or a channel of your own, not {one.channel!r}")
    return keys
