"""Names of OpenTelemetry's conventions for generative AI: they are still in development, and stand in this file alone.

Source: open-telemetry/semantic-conventions-genai, docs/gen-ai/gen-ai-spans.md, read at commit
9430220eb6f3f8a0e41d2e0e548aeb5cb9ca5f14. Content (queries, records, arguments, results) is opt-in there, and is never
recorded here.
"""

from __future__ import annotations

from collections.abc import Mapping

from keepsaid.ports.telemetry import Attribute, Doing

CONVERSATION = "gen_ai.conversation.id"
_OPERATION = "gen_ai.operation.name"
_AGENT = "gen_ai.agent.name"
_TOOL_NAME = "gen_ai.tool.name"
_TOOL_TYPE = "gen_ai.tool.type"
_STORE = "gen_ai.memory.store.id"
_STORE_ID = "keepsaid"

_OPERATIONS: Mapping[Doing, str] = {
    Doing.TURN: "invoke_agent",
    Doing.TOOL: "execute_tool",
    Doing.SEARCH_MEMORY: "search_memory",
    Doing.CREATE_MEMORY: "create_memory",
    Doing.UPSERT_MEMORY: "upsert_memory",
    Doing.DELETE_MEMORY: "delete_memory",
}
_OF_CHATS = ("gen_ai.request.", "gen_ai.response.", "gen_ai.usage.", "gen_ai.client.operation.")
_OF_CHAT = frozenset(
    (_OPERATION, "gen_ai.provider.name", "gen_ai.system", "server.address", "server.port", "error.type")
)
_NOTES = {"records": "gen_ai.memory.record.count", "call_id": "gen_ai.tool.call.id"}


def span_name(doing: Doing, tool: str) -> str:
    """The name of a span by the conventions; "" where keepsaid's own name stays."""
    if doing is Doing.TOOL:
        return f"{_OPERATIONS[doing]} {tool}"
    return "" if doing is Doing.TURN else _OPERATIONS.get(doing, "")


def attributes(doing: Doing, tool: str, agent: str) -> dict[str, Attribute]:
    """The attributes by the conventions that a span begins with; none for what they do not know."""
    if (operation := _OPERATIONS.get(doing)) is None:
        return {}
    found: dict[str, Attribute] = {_OPERATION: operation}
    if doing is Doing.TURN:
        found[_AGENT] = agent
    elif doing is Doing.TOOL:
        found |= {_TOOL_NAME: tool, _TOOL_TYPE: "function"}
    else:
        found[_STORE] = _STORE_ID
    return found


def note(name: str) -> str:
    """The attribute of the conventions for a note of the core; "" where they have none."""
    return _NOTES.get(name, "")


def says_no_text(name: str) -> bool:
    """Whether an attribute that pydantic-ai sets on the call of a model holds no text of anybody.

    It also sets the messages, without content, and names, descriptions and schemas of all tools: kilobytes a call.
    """
    return name in _OF_CHAT or name.startswith(_OF_CHATS)
