"""How functions are given a text that cannot be called with made-up arguments, and those that need not be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request

from keepsaid.adapters.redaction.redactor import PatternRedactor
from keepsaid.config import Config
from keepsaid.interfaces.http.messages import inbound_of
from keepsaid.interfaces.http.openai.conversation import is_temporary
from keepsaid.memory.gates import Relevance
from keepsaid.text.normal import joined, parted
from keepsaid.text.references import MessageText, Names, read
from keepsaid.text.words import DocumentFrequencies

Given = Callable[[str, bool], Callable[[], Any]]


def _alone(work: Callable[[str], Any]) -> Given:
    """The recipe of a function that is given the text and nothing else."""
    return lambda text, _: lambda: work(text)


RECIPES: dict[str, Given] = {
    "keepsaid.text.references.read": _alone(
        lambda text: read(MessageText("1", "ann", text, name=text), Names([("bob", text)]))
    ),
    "keepsaid.text.normal.joined": _alone(lambda text: joined(":", text, text)),
    "keepsaid.text.normal.parted": _alone(lambda text: parted(":", text, 3)),
    "keepsaid.interfaces.http.messages.inbound_of": _alone(
        lambda text: inbound_of(Config(), {"text": text, "conversation": text}, text.encode("utf-8", "replace"), text)
    ),
    "keepsaid.adapters.redaction.redactor.PatternRedactor": _alone(
        lambda text: PatternRedactor(["a secret that is known"]).redacted(text)
    ),
    "keepsaid.interfaces.http.openai.conversation.is_temporary": _alone(
        lambda text: is_temporary(Request({"type": "http", "headers": []}), text)
    ),
    "keepsaid.memory.gates.Relevance": _alone(lambda text: Relevance(text, DocumentFrequencies())),
}
"""By the full name of the function or class; what a recipe gives is done and timed."""

EXEMPT: dict[str, str] = {
    "keepsaid.adapters.channels.email.attached.before_files": "its caller, which is measured, gives it a mail of ours",
    "keepsaid.adapters.channels.matrix.olm.signed": "the objects that are signed are the program's own",
    "keepsaid.adapters.channels.email.headers.addresses_in": "its caller, which is measured, gives it a parsed mail",
    "keepsaid.adapters.channels.email.headers.is_one_address": "its caller, which is measured, gives it a parsed mail",
    "keepsaid.adapters.channels.nostr.reactions.reaction_of": "its caller, the tool, gives it one emoji",
    "keepsaid.interfaces.mcp.server.server_of": "it is given the program's own version",
    "keepsaid.interfaces.http.openapi.document": "it is given the program's own routes and version",
    "keepsaid.interfaces.mcp.tool.returns": "it is given the program's own schemas",
    "keepsaid.adapters.sql.search.piece_index._made": "its caller gives it few neighbours; the rest is measured",
    "keepsaid.text.normal._marks_of": "its caller gives it one character",
    "keepsaid.text.styled.utf16_units": "its caller gives it one character",
    "keepsaid.extensions.discovery.scan_source": "it reads the source of an extension, as Python does before it is run",
    "keepsaid.domain.slot._number": "its caller, which is measured, gives it at most 2,000 characters",
    "keepsaid.domain.states._tables": "it reads the program's own tables, once",
    "keepsaid.domain.route._any_like": "the patterns are the owner's, and what they are held against is a short name",
    "keepsaid.adapters.redaction.formats._format": "it compiles the program's own table",
    "keepsaid.adapters.redaction.formats._token": "it compiles the program's own table",
    "keepsaid.adapters.postgres.dialect._extreme": "it writes the program's own SQL",
    "keepsaid.adapters.postgres.tables.script": "it reads the program's own tables",
    "keepsaid.adapters.sql.query.many": "it writes the program's own SQL, as often as it is told",
    "keepsaid.adapters.models.provider.build": "it makes a client from the owner's settings",
    "keepsaid.interfaces.shapes.fields_of": "the names are the program's own",
    "keepsaid.interfaces.shapes.times_of": "the names are the program's own",
    "keepsaid.adapters.channels.github_pulls.github_diff": "it makes a tool, and reads nothing yet",
    "keepsaid.interfaces.http.server._bind": "it opens a port at the owner's address",
    "keepsaid.interfaces.http.responses.read_query": "the names are the program's own; an address is at most 16 KB",
    "keepsaid.interfaces.http.responses.read_flag": "the name is the program's own; an address is at most 16 KB",
    "keepsaid.interfaces.http.responses.unauthorised": "what is needed is the program's own",
    "keepsaid.services.imports.json_items.items_in": "it reads a file, off the event loop, in a pass of its own",
    "keepsaid.services.imports.json_items.objects_in": "it reads a file, off the event loop, line by line",
    "keepsaid.extensions.manifest.read_manifest": "a manifest is the owner's, as the code beside it is",
}
"""Functions that are not measured, each with the reason."""
