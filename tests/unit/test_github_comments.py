"""GitHub answers: a reply is one comment, whatever breaks; what cannot be sent is not asked of a model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.github_cast import (
    DROP,
    SECRET,
    TAKE_AND_HANG,
    TAKE_AND_RESET,
    TOKEN,
    GitHubServer,
    Refused,
    comment_event,
    hook_headers,
    pull_event,
)
from tests.unit.task_cast import settings, until
from tests.unit.test_forget_places import residue
from tests.waits import HANG_S

from keepsaid.adapters.channels.github import marker
from keepsaid.adapters.channels.github_api import GitHubApi
from keepsaid.adapters.channels.github_comments import GitHubChannel
from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.domain.commits import Received
from keepsaid.domain.event import ROUTED, Event
from keepsaid.domain.forgetting import ForgetSelector
from keepsaid.domain.message import Inbound, Lane
from keepsaid.domain.reply import Delivered, ReplyDraft, Sending, StoredReply
from keepsaid.domain.route import Action
from keepsaid.interfaces.cli.program import run
from keepsaid.ports.channel import MAY_SEND
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.model_script import Call, Say, Script
from keepsaid.testing.model_server import ModelServer

PLACE = "github:acme/api#7"
LANE = Lane("github", "default", PLACE, f"root:{PLACE}")
REPLY = StoredReply(0x2A, LANE, 1, "sending", ReplyDraft(0x2A, "It is mended."), created_at=1_700_000_000_000)
AGAIN = replace(REPLY, possible_duplicate=True)


@asynccontextmanager
async def posting(token: str = TOKEN, page: int = 100) -> AsyncIterator[tuple[GitHubChannel, GitHubServer]]:
    async with GitHubServer(page) as server:
        channel = GitHubChannel(SECRET, GitHubApi(token, server.url, timeout_s=5), VirtualClock(1_700_000_000_000))
        try:
            yield channel, server
        finally:
            await channel.close()


async def test_a_reply_is_a_comment_with_a_hidden_marker() -> None:
    async with posting() as (channel, server):
        result = await channel.send(REPLY)
        assert (result.outcome, result.provider_id) == (Delivered.CONFIRMED, "comment:900")
        [comment] = server.comments
        assert comment["path"] == "/repos/acme/api/issues/7/comments"
        assert comment["body"] == "It is mended.\n\n<!-- keepsaid:keepsaid-2a -->"
        assert channel.sending is Sending.PUSH


async def test_no_comment_is_made_once_others_may_have_made_it() -> None:
    async with posting() as (channel, server):
        MAY_SEND.set(lambda: False)
        assert ((await channel.send(REPLY)).outcome, server.requests) == (Delivered.RETRY, [])


@pytest.mark.parametrize(
    "place", ["github:acme/api@main", "github:acme/api/discussions#7", "github:acme", "github:?", "elsewhere"]
)
async def test_only_issues_and_pull_requests_are_answered(place: str) -> None:
    async with posting() as (channel, server):
        result = await channel.send(replace(REPLY, lane=LANE._replace(conversation=place)))
        assert (result.outcome, server.requests) == (Delivered.REFUSED, [])


@pytest.mark.parametrize(
    ("reaction", "outcome", "outage", "wait_ms"),
    [
        (Refused(500), Delivered.DOUBT, True, 5_000),
        (Refused(502), Delivered.DOUBT, True, 5_000),
        (Refused(503), Delivered.DOUBT, True, 5_000),
        (Refused(429, {"retry-after": "17"}), Delivered.RETRY, True, 17_000),
        (Refused(429), Delivered.RETRY, True, 60_000),
        (
            Refused(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1700000090"}),
            Delivered.RETRY,
            True,
            90_000,
        ),
        (Refused(403, message="You have exceeded a secondary rate limit"), Delivered.RETRY, True, 60_000),
        (Refused(403, message="Resource not accessible"), Delivered.DEAD, False, None),
        (Refused(404), Delivered.DEAD, False, None),
        (Refused(410), Delivered.DEAD, False, None),
        (Refused(422), Delivered.DEAD, False, None),
        (DROP, Delivered.DOUBT, True, 5_000),
        (TAKE_AND_RESET, Delivered.DOUBT, True, 5_000),
    ],
)
async def test_what_an_answer_means(reaction: Refused, outcome: Delivered, outage: bool, wait_ms: int | None) -> None:
    async with posting() as (channel, server):
        server.reactions.append(("POST", reaction))
        result = await channel.send(REPLY)
        assert (result.outcome, result.outage, result.retry_after_ms) == (outcome, outage, wait_ms), result.detail


async def test_a_token_that_is_not_accepted_waits_for_another() -> None:
    async with posting("another") as (channel, _):
        result = await channel.send(REPLY)
        assert (result.outcome, result.outage) == (Delivered.RETRY, True)
        assert "github.token is not accepted" in result.detail
        assert "another" not in result.detail


async def test_what_was_never_sent_is_not_in_doubt() -> None:
    async with posting() as (channel, server):
        await server.__aexit__(None, None, None)
        result = await channel.send(REPLY)
        assert (result.outcome, result.outage) == (Delivered.RETRY, True)


async def test_what_may_have_arrived_is_looked_for_before_it_is_sent_again() -> None:
    async with posting(page=2) as (channel, server):
        server.reactions.append(("POST", TAKE_AND_RESET))
        assert (await channel.send(REPLY)).outcome is Delivered.DOUBT
        found = await channel.send(AGAIN)
        assert (found.outcome, found.provider_id, len(server.comments)) == (Delivered.CONFIRMED, "comment:900", 1)
        assert server.requests[-1].query.startswith("since=2023-11-14T22%3A03%3A20Z")


async def test_what_did_not_arrive_is_sent_again() -> None:
    async with posting() as (channel, server):
        server.comments.append({"id": 5, "path": "/repos/acme/api/issues/7/comments", "body": marker("keepsaid-2b")})
        assert (await channel.send(AGAIN)).outcome is Delivered.CONFIRMED
        assert len(server.comments) == 2


@pytest.mark.parametrize(
    ("reaction", "outcome"), [(Refused(502), Delivered.RETRY), (DROP, Delivered.RETRY), (Refused(404), Delivered.DEAD)]
)
async def test_nothing_is_posted_while_it_cannot_be_looked_for(reaction: Refused, outcome: Delivered) -> None:
    async with posting() as (channel, server):
        server.reactions.append(("GET", reaction))
        assert (await channel.send(AGAIN)).outcome is outcome
        assert server.comments == []


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"It is mended.\n\n{marker('keepsaid-2a')}", False),
        (f"It is mended.\n\n{marker('keepsaid-2a')}\r\n", False),
        (f"{'long ' * 10_000}{marker('keepsaid-2a')}", False),
        (f"> {marker('keepsaid-2a')}\n\nI do not think so", True),
        ("I do not think so", True),
    ],
)
async def test_the_agents_own_comments_are_not_taken_in(text: str, kept: bool) -> None:
    async with posting() as (channel, _):
        body = comment_event(text)
        assert (channel.read(hook_headers("issue_comment", body), body) is not None) is kept


FORWARD = {"name": "talk", "match": {"channel": "github", "event": "issue_comment.created"}, "action": "forward"}
REVIEW = {
    "name": "review pull requests",
    "match": {"channel": "github", "event": "pull_request.opened"},
    "action": "spawn",
    "task": "Review pull request {{pull_request.number}}: {{pull_request.title}}",
    "tools": ["github_diff"],
    "reply": True,
}


@asynccontextmanager
async def answering(
    folder: Path, script: Script, github: dict[str, Any], rule: dict[str, Any] = FORWARD
) -> AsyncIterator[tuple[Instance, ModelServer]]:
    """A runtime with one rule for GitHub, which answers at once."""
    async with ModelServer(script) as model:
        channels = {"github": {"secret": SECRET, "window_ms": 0, "quiet_ms": 0}}
        models = {"chat": "openai/scripted", "base_url": model.url, "api_key": "k"}
        config = settings(routes={"rules": [rule]}, channels=channels, github=github, models=models)
        async with opened(Home.at(folder), config) as instance:
            await instance.start()
            yield instance, model


async def hook(instance: Instance, event: str, body: bytes) -> Received:
    """A webhook comes in."""
    inbound = instance.hooks["github"].read(hook_headers(event, body), body)
    assert isinstance(inbound, Inbound)
    return await instance.receive(inbound)


async def told(instance: Instance, topic: str) -> None:
    """The journal has an event of this topic."""
    heard = asyncio.Event()

    async def hear(_: Event) -> None:
        heard.set()

    await instance.telling.subscribe(f"until-{topic}", (topic,), hear, from_start=True)
    async with asyncio.timeout(HANG_S):
        await heard.wait()
    await instance.telling.unsubscribe(f"until-{topic}")


async def sent(instance: Instance, received: Received) -> StoredReply:
    """The reply to a message, once it has arrived."""
    await told(instance, "reply.sent")
    story = await instance.operations.story(received.id)
    assert story is not None
    return story.replies[-1]


async def test_an_issue_is_answered_by_a_comment(tmp_path: Path) -> None:
    async with GitHubServer() as server:
        github = {"token": TOKEN, "api_url": server.url}
        async with answering(tmp_path, Script(Say("It is mended.")), github) as (instance, _):
            received = await hook(instance, "issue_comment", comment_event("is the lamp mended?"))
            await sent(instance, received)
        [comment] = server.comments
        assert str(comment["body"]).startswith("It is mended.")


async def test_a_death_between_the_comment_and_its_receipt_leaves_one_comment(tmp_path: Path) -> None:
    async with GitHubServer() as server:
        github = {"token": TOKEN, "api_url": server.url}
        server.reactions.append(("POST", TAKE_AND_HANG))
        async with answering(tmp_path, Script(Say("It is mended.")), github) as (instance, _):
            received = await hook(instance, "issue_comment", comment_event("is the lamp mended?"))
            await server.wait_for("POST", 1)
        async with answering(tmp_path, Script(), github) as (instance, _):
            reply = await sent(instance, received)
        assert (len(server.comments), reply.possible_duplicate) == (1, True)
        assert [one.method for one in server.requests] == ["POST", "GET"]


async def test_without_a_token_no_model_is_asked(tmp_path: Path) -> None:
    async with answering(tmp_path, Script(), {}) as (instance, model):
        received = await hook(instance, "issue_comment", comment_event("is the lamp mended?"))
        await told(instance, ROUTED)
        story = await instance.operations.story(received.id)
        assert story is not None
        assert story.batch is not None
        assert story.batch.verdict.action is Action.LISTEN
        assert story.batch.verdict.reason == (
            'rule "talk" matched; not answered: github.token is not set, so nothing can be sent there'
        )
        assert model.requests == []


async def test_a_pull_request_is_reviewed_by_its_diff(tmp_path: Path) -> None:
    """One comment with the review, though the process dies before it knows that it was posted."""
    async with GitHubServer() as server:
        github = {"token": TOKEN, "api_url": server.url}
        script = Script(Call("github_diff"), Say("The lamp is on now. Fine."))
        server.reactions.append(("POST", TAKE_AND_HANG))
        async with answering(tmp_path, script, github, REVIEW) as (instance, model):
            await hook(instance, "pull_request", pull_event())
            story = await until(instance, "completed")
            assert story.task.result == "The lamp is on now. Fine."
            requests = await model.wait_for(2)
            assert requests[0].tool_names == ["github_diff", "set_status"]
            assert "light = on" in requests[1].last("tool")
            await server.wait_for("POST", 1)
        async with answering(tmp_path, Script(), github, REVIEW):
            await server.wait_for("GET", 2)
        [comment] = server.comments
        assert (comment["path"], str(comment["body"]).split("\n")[0]) == (
            "/repos/acme/api/issues/7/comments",
            "The lamp is on now. Fine.",
        )


async def test_a_forgotten_pull_request_takes_its_review_with_it(tmp_path: Path) -> None:
    """Of what is kept here; the comment at GitHub stays."""
    async with GitHubServer() as server:
        github = {"token": TOKEN, "api_url": server.url}
        script = Script(Say("The Zebraquox lamp is fine."))
        async with answering(tmp_path, script, github, REVIEW) as (instance, _):
            await hook(instance, "pull_request", pull_event())
            await told(instance, "reply.sent")
    async with opened(Home.at(tmp_path), Config()) as instance:
        assert "buffer.db" in {name for name, _ in residue(tmp_path, "Zebraquox")}
        done = await instance.services.forgetting.forget_selected(ForgetSelector(text="Zebraquox"), "owner")
        assert done is not None
        assert (done.state, residue(tmp_path, "Zebraquox")) == ("done", set())


def test_the_doctor_names_a_rule_that_nobody_is_answered_by(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = Home.at(tmp_path)
    home.make()
    told = {"routes": {"rules": [FORWARD]}, "channels": {"github": {"secret": SECRET}}}
    home.config.mkdir(mode=0o700, exist_ok=True)
    (home.config / "config.yaml").write_text(json.dumps(told), "utf-8")
    run(["--home", str(tmp_path), "doctor", "--offline"])
    out = capsys.readouterr().out
    assert "the rule 'talk' forwards messages of GitHub, where nothing can be sent" in out
    assert "set github.token" in out
