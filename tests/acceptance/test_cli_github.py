"""A pull request is reviewed across a real death of the process: its review is one comment."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from urllib.request import Request, urlopen

from tests.acceptance.program import WITHIN_S, Program
from tests.unit.github_cast import SECRET, TAKE_AND_HANG, TOKEN, GitHubServer, hook_headers, pull_event
from tests.unit.test_github_comments import REVIEW

from keepsaid.testing.model_script import Call, Say, Script
from keepsaid.testing.model_server import ModelServer


def config_of(model: str, github: str) -> str:
    told = {
        "models": {"chat": "openai/x", "base_url": model, "api_key": "k"},
        "channels": {"github": {"secret": SECRET, "window_ms": 0, "quiet_ms": 0}},
        "github": {"token": TOKEN, "api_url": github},
        "collection": {"extractor": "none"},
        "routes": {"rules": [REVIEW]},
    }
    return json.dumps(told)


async def test_a_server_killed_between_a_comment_and_its_receipt_leaves_one_comment(tmp_path: Path) -> None:
    script = Script(Call("github_diff"), Say("The lamp is on now."))
    async with GitHubServer() as github, ModelServer(script) as model:
        program = Program(tmp_path / "home", {})
        program.configure(config_of(model.url, github.url))
        github.reactions.append(("POST", TAKE_AND_HANG))
        with program.serving() as first:
            await asyncio.to_thread(post, first.url)
            await github.wait_for("POST", 1)
            first.process.kill()
            await asyncio.to_thread(first.process.wait, WITHIN_S)
        with program.serving():
            await github.wait_for("GET", 2)
    assert [one.method for one in github.requests] == ["GET", "POST", "GET"]
    assert [str(one["body"]).split("\n")[0] for one in github.comments] == ["The lamp is on now."]


def post(url: str) -> None:
    """Deliver the webhook of a pull request."""
    body = pull_event()
    with urlopen(Request(f"{url}/hooks/github", body, hook_headers("pull_request", body)), timeout=WITHIN_S) as answer:
        assert answer.status == 202
