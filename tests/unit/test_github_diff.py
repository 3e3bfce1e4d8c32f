"""The tool `github_diff`: the diff of the pull request of the task alone, in parts that end with a line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.github_cast import DROP, TOKEN, GitHubServer, Refused
from tests.unit.task_cast import settings

from keepsaid.adapters.channels.github_api import GitHubApi
from keepsaid.adapters.channels.github_pulls import github_diff
from keepsaid.app.opening import opened
from keepsaid.config import Home
from keepsaid.errors import ConfigError, ToolError

PLACE = "github:acme/api#7"


async def test_a_long_diff_is_read_in_parts() -> None:
    async with GitHubServer() as server:
        server.diff = "".join(f"+line {n}\n" for n in range(3_000))
        tool = github_diff(GitHubApi(TOKEN, server.url), PLACE)
        shown, start = [], 0
        for _ in range(3):
            text = await tool.run({"start": start})
            body, more, rest = text.partition("\n[")
            shown.append(body)
            if not more:
                break
            start = int(rest.rpartition("start=")[2].rstrip("]"))
        assert "".join(shown) == server.diff
        assert len(shown) == 2
        assert {one.path for one in server.requests} == {"/repos/acme/api/pulls/7"}
        assert {one.headers["accept"] for one in server.requests} == {"application/vnd.github.diff"}


@pytest.mark.parametrize(
    ("reaction", "why"),
    [
        (Refused(404, message="Not Found"), "HTTP 404 Not Found"),
        (Refused(406, message="too many files"), "HTTP 406 too many"),
        (DROP, "cannot be reached"),
    ],
)
async def test_a_diff_that_cannot_be_read_says_why(reaction: Refused, why: str) -> None:
    async with GitHubServer() as server:
        server.reactions.append(("GET", reaction))
        with pytest.raises(ToolError, match=why):
            await github_diff(GitHubApi(TOKEN, server.url), PLACE).run({})


@pytest.mark.parametrize("start", [-1, True, "7", 10_000])
async def test_a_start_that_is_not_in_the_diff_is_refused(start: int | str) -> None:
    async with GitHubServer() as server:
        with pytest.raises(ToolError):
            await github_diff(GitHubApi(TOKEN, server.url), PLACE).run({"start": start})


async def test_a_task_about_something_else_has_no_diff() -> None:
    async with GitHubServer() as server:
        with pytest.raises(ToolError, match="not about a pull request"):
            await github_diff(GitHubApi(TOKEN, server.url), "github:acme/api@main").run({})
        assert server.requests == []


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"tools": ["github_diff"]}, "it needs github.token"),
        ({"reply": True}, "replies at GitHub, which needs github.token"),
    ],
)
async def test_a_review_without_a_token_is_refused_at_the_start(
    tmp_path: Path, more: dict[str, object], why: str
) -> None:
    rule = {"name": "review", "match": {"channel": "github"}, "action": "spawn", "task": "Review it", **more}
    async with opened(Home.at(tmp_path), settings(routes={"rules": [rule]})) as instance:
        with pytest.raises(ConfigError, match=why):
            await instance.start()
