"""The tool `github_diff`: reads the diff of the pull request that a task is about."""

from __future__ import annotations

from keepsaid.adapters.channels.github_api import DIFF, ApiRequest, ApiUnreachable, GitHubApi
from keepsaid.adapters.channels.github_comments import issue_of
from keepsaid.domain.message import Trust
from keepsaid.domain.prompt import Json, object_schema
from keepsaid.errors import ToolError
from keepsaid.ports.model import Tool

GITHUB_DIFF = "github_diff"
_PART_CHARS = 18_000
_BYTES_MAX = 2_000_000
_SCHEMA = object_schema({"start": {"type": "integer", "minimum": 0, "description": "the character to begin at"}})


def github_diff(api: GitHubApi, conversation: str) -> Tool:
    """A tool that reads the diff of the pull request of a conversation, and of no other.

    It serves anyone: all that it shows was written by those whose text began the task.
    """

    async def run(arguments: dict[str, Json]) -> str:
        start = arguments.get("start", 0)
        if isinstance(start, bool) or not isinstance(start, int) or start < 0:
            raise ToolError("start must be a whole number, 0 or more")
        if (issue := issue_of(conversation)) is None:
            raise ToolError("this task is not about a pull request")
        try:
            answer = await api.call(ApiRequest("GET", issue.pull, accept=DIFF, bytes_max=_BYTES_MAX))
        except ApiUnreachable as error:
            raise ToolError(f"GitHub cannot be reached ({error})") from error
        finally:
            await api.close()
        if answer.status != 200:
            raise ToolError(f"GitHub answered HTTP {answer.status} {answer.message}".strip())
        return _part(answer.body.decode("utf-8", "replace"), start, whole=answer.whole)

    says = "Read the diff of this pull request, in parts."
    return Tool(GITHUB_DIFF, says, _SCHEMA, run, limit_s=60.0, serves=Trust.EXTERNAL)


def _part(diff: str, start: int, *, whole: bool) -> str:
    """A part of a diff that ends with a line, and where the next begins."""
    if not diff.strip():
        return "The diff is empty."
    if start >= len(diff):
        raise ToolError(f"the diff has {len(diff):,} characters")
    end = start + _PART_CHARS
    if end >= len(diff):
        return diff[start:] + ("" if whole else f"\n[cut after {_BYTES_MAX:,} bytes]")
    end = diff.rfind("\n", start + 1, end) + 1 or end
    return f"{diff[start:end]}\n[{len(diff) - end:,} characters more: start={end}]"
