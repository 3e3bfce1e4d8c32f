"""Slack with the whole runtime: what is written to the app is answered there, by Socket Mode and by the Events API."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from tests.unit.http_cast import refused, site
from tests.unit.test_telegram import line_that_is

from keepsaid.config import Config
from keepsaid.domain.line import LineState
from keepsaid.testing.providers.slack import ACCOUNT, APP_TOKEN, BOT, BOT_TOKEN, SECRET, SlackServer, signed

_OWNER = [{"channel": "slack", "account": ACCOUNT, "sender": "U7"}]


def _now_ms() -> int:
    return int(time.time() * 1_000)


def settings(slack: SlackServer, **more: Any) -> dict[str, Any]:
    tokens = {"bot_token": BOT_TOKEN, "app_token": APP_TOKEN, "api_url": f"{slack.url}/api"}
    return {"slack": tokens, "owner": _OWNER, **more}


async def test_what_is_written_to_the_app_is_answered(tmp_path: Path) -> None:
    """In a direct message flat, in a listed channel in a thread; a stranger is sent a code."""
    listed = {"channels": {"slack": {"allow": ["C1"]}}}
    async with SlackServer() as slack, site(tmp_path, **settings(slack, **listed)) as at:
        await slack.wait_for(lambda: len(slack.sockets.open_sockets) == 2)
        slack.say("my dog is called Rex", channel="D1")
        await slack.wait_for(lambda: len(slack.sent) == 1)
        assert (slack.sent[0].channel, slack.sent[0].thread) == ("D1", None)
        asked = slack.say(f"<@{BOT}> what is the name of my dog?", user="U8", channel="C1")
        slack.say("between us: not for the bot", user="U8", channel="C1")
        await slack.wait_for(lambda: len(slack.sent) == 2)
        assert (slack.sent[1].channel, slack.sent[1].thread) == ("C1", asked)
        slack.say("let me in", user="U9", channel="D9")
        await slack.wait_for(lambda: len(slack.sent) == 3)
        assert "keepsaid channel pair --owner" in slack.sent[2].text
        await slack.wait_for(lambda: slack.sockets.waiting == 0)
        assert (await line_that_is(at, LineState.UP))["channel"] == "slack"
        assert {row[0] for row in at.rows("SELECT account FROM lane")} == {ACCOUNT}
        assert {row[0] for row in at.rows("SELECT state FROM reply")} <= {"sent", "sending"}
        assert at.rows("SELECT count(*) FROM cursor WHERE name LIKE 'ts:%'")[0][0] >= 2


async def test_events_that_slack_posts_are_answered(tmp_path: Path) -> None:
    async with SlackServer() as slack:
        posted = settings(slack)
        posted["slack"] = {"bot_token": BOT_TOKEN, "signing_secret": SECRET, "api_url": f"{slack.url}/api"}
        async with site(tmp_path, **posted) as at:
            await line_that_is(at, LineState.UP)
            hook = json.dumps({"type": "url_verification", "challenge": "c-4711"}).encode()
            answer = await at.client.post("/hooks/slack", content=hook, headers=signed(hook, _now_ms()))
            assert (answer.status_code, answer.text) == (200, "c-4711")
            event = {"type": "message", "channel": "D1", "channel_type": "im", "user": "U7", "text": "hi", "ts": "9.1"}
            body = json.dumps(slack.emit(event)).encode()
            for _ in range(2):
                answer = await at.client.post("/hooks/slack", content=body, headers=signed(body, _now_ms()))
                assert answer.status_code == 202
            await slack.wait_for(lambda: len(slack.sent) == 1)
            refused(await at.client.post("/hooks/slack", content=body, headers={"x-slack-signature": "v0=00"}), 401)
            assert at.rows("SELECT count(*) FROM message") == [(1,)]


def test_a_signing_secret_is_an_account_too() -> None:
    """So that `keepsaid channel test slack` works by the Events API."""
    posted = {"bot_token": BOT_TOKEN, "signing_secret": SECRET}
    assert Config.model_validate({"slack": posted}).accounts == {"slack"}
    for half in ({"bot_token": BOT_TOKEN}, {"app_token": APP_TOKEN}, {"signing_secret": SECRET}):
        assert Config.model_validate({"slack": half}).accounts == frozenset()
