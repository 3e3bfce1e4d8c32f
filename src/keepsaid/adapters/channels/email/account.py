"""The mailbox of the agent: its addresses, its servers, and the names of conversations with it."""

from __future__ import annotations

import re
from collections.abc import Callable
from ssl import SSLContext
from typing import Final

from keepsaid.adapters.channels.certificates import authorities
from keepsaid.errors import ChannelError
from keepsaid.values import frozen

NAME: Final = "email"

CONVERSATION: Final = "email:"
"""How a conversation begins; after it comes the sender."""

UNVERIFIED: Final = "unverified/"
"""How a sender begins whose address nobody has verified: anybody can write any address into From."""

_LOCAL_HOSTS = frozenset(("localhost", "127.0.0.1", "::1"))
_ADDRESS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@[A-Za-z0-9.-]{1,253}", re.ASCII)


STARTTLS_PORTS = frozenset((143, 587))
"""Ports on which a connection begins without TLS, and STARTTLS comes before anything else (RFC 8314, 3)."""


class MailServer:
    """A server with its login. It is reached by TLS; without TLS on this machine alone.

    With `starttls`, TLS begins with that command, and a server that does not know it gets no login. `trusted` loads
    the authorities by which its certificate is checked. Raises ChannelError for another machine without TLS.
    """

    def __init__(self, host: str, port: int, user: str, password: str, *, tls: bool = True) -> None:
        if not tls and host not in _LOCAL_HOSTS:
            raise ChannelError(
                f"the mail server {host} must be reached by TLS", hint="keepsaid config set email.tls true"
            )
        self.host = host
        self.port = port
        self.user = user
        self.password = password
        self.tls = tls
        self.starttls = tls and port in STARTTLS_PORTS
        self.trusted: Callable[[], SSLContext] = authorities

    def __repr__(self) -> str:
        """The place of the server, without the login."""
        return f"MailServer({self.host}:{self.port})"


@frozen
class EmailAccount:
    """The addresses of the agent, in lower case: `address` is the one it sends by, `others` those it also gets mail at.

    `name` is shown before the address in its mails.
    """

    address: str
    others: frozenset[str] = frozenset()
    name: str = ""

    @property
    def domain(self) -> str:
        """The domain of the address, which ends the ids of its mails."""
        return self.address.rpartition("@")[2]

    def owns(self, address: str) -> bool:
        """Whether an address in lower case is one of the agent's."""
        return address == self.address or address in self.others

    def is_own_id(self, number: str) -> bool:
        """Whether a Message-ID, without its angle brackets, has the form of one that the agent made."""
        local, _, domain = number.rpartition("@")
        return domain.lower() == self.domain and _OWN_ID.fullmatch(local) is not None


_OWN_ID = re.compile(r"k[0-9a-f]{1,16}\.[0-9]{1,6}", re.ASCII)


def is_address(text: str) -> bool:
    """Whether a text is an address that mail can be sent to, without names, quotes or letters beyond ASCII."""
    return _ADDRESS.fullmatch(text) is not None


def address_in(conversation: str) -> str:
    """The address of the person in the name of a conversation."""
    return conversation.removeprefix(CONVERSATION).removeprefix(UNVERIFIED)
