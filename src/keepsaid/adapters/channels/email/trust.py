"""Whether the From address of a mail was verified: by DMARC, as the mail server of the agent wrote into the mail."""

from __future__ import annotations

from email.message import EmailMessage

from keepsaid.adapters.channels.email.headers import raw_headers
from keepsaid.values import frozen


@frozen
class MailTrust:
    """Which servers' Authentication-Results count: `servers` are their authserv-ids, in lower case (RFC 8601).

    Without `checks`, each From address counts as verified: for servers that take no mail from outside.
    """

    servers: frozenset[str] = frozenset()
    checks: bool = True

    def verifies(self, mail: EmailMessage, sender: str) -> bool:
        """Whether the address of a sender, in lower case, is that of who sent the mail.

        Only the first header of a server counts: the server adds its own above all that the mail came with.
        """
        if not self.checks:
            return True
        for value in raw_headers(mail, "authentication-results"):
            server, *results = [part.strip() for part in _without_comments(value).split(";")]
            name = server.split(" ")[0].lower()
            if name in self.servers:
                return any(_passes(result, sender.rpartition("@")[2]) for result in results)
        return False


def _passes(result: str, domain: str) -> bool:
    """Whether a result says that DMARC passed for a domain."""
    method, *properties = result.lower().split()
    if method != "dmarc=pass":
        return False
    named = [one.removeprefix("header.from=") for one in properties if one.startswith("header.from=")]
    return all(one.strip('"').rpartition("@")[2] == domain for one in named)


def _without_comments(value: str) -> str:
    """A header without what is in parentheses; what is in quotes has no semicolons that separate."""
    depth, quoted, escaped = 0, False, False
    out: list[str] = []
    for letter in value:
        if escaped:
            escaped = False
        elif letter == "\\":
            escaped = True
        elif quoted or (letter == '"' and not depth):
            quoted = letter != '"' if quoted else True
            if letter not in ";()":
                out.append(letter)
        elif letter == "(":
            depth += 1
        elif letter == ")":
            depth = max(0, depth - 1)
            out.append(" ")
        elif not depth:
            out.append(letter)
    return "".join(out)
