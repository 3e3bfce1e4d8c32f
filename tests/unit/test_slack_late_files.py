"""Slack sends one message in several forms, and files later than the message: each is stored once, and none is lost."""

from __future__ import annotations

import itertools
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from tests.unit.http_cast import Site, site
from tests.unit.test_files import file_rows, user_parts
from tests.unit.test_slack_events import event, read
from tests.unit.test_slack_site import _now_ms, settings
from tests.unit.test_telegram import line_that_is

from keepsaid.adapters.channels.slack_updates import SlackBot, incoming_of_event
from keepsaid.domain.line import LineState
from keepsaid.domain.message import EDITED
from keepsaid.testing.model_script import Say, Script
from keepsaid.testing.model_server import ModelServer
from keepsaid.testing.providers.kept_files import PNG
from keepsaid.testing.providers.slack import BOT, BOT_TOKEN, SECRET, TEAM, SlackServer, signed

_BOT = SlackBot(TEAM, BOT, "keepsaid")
_FILE = {
    "id": "F1",
    "name": "dog.png",
    "mimetype": "image/png",
    "mode": "hosted",
    "url_private": "https://f.slack.com/1",
}
_ROWS = "SELECT event, text FROM message ORDER BY number"


def posting(slack: SlackServer, **more: Any) -> dict[str, Any]:
    """The settings of an app whose events Slack posts; in C1 the bot may be asked by everybody."""
    by_hook = {"bot_token": BOT_TOKEN, "signing_secret": SECRET, "api_url": f"{slack.url}/api"}
    return {**settings(slack), "slack": by_hook, "channels": {"slack": {"allow": ["C1"], **more}}}


def _models(model: ModelServer) -> dict[str, str]:
    return {"chat": "openai/scripted", "base_url": model.url, "api_key": "k"}


def forms_of(files: list[dict[str, Any]], *, mention_has_files: bool = False) -> dict[str, dict[str, Any]]:
    """A message with files that mentions the bot, as Slack sends it: as a message, and as a mention."""
    base = {"channel": "C1", "user": "U7", "text": f"<@{BOT}> who is this?", "ts": "9.000001"}
    shared = {"files": files, "upload": False}
    return {
        "message": {**base, **shared, "type": "message", "subtype": "file_share", "channel_type": "channel"},
        "mention": {**base, **(shared if mention_has_files else {}), "type": "app_mention"},
    }


async def post(at: Site, slack: SlackServer, sent: dict[str, Any]) -> dict[str, Any]:
    """Post an event as Slack does; returns the answer."""
    body = json.dumps(slack.emit(sent)).encode()
    answer = await at.client.post("/hooks/slack", content=body, headers=signed(body, _now_ms()))
    assert answer.status_code in (200, 202), answer.text
    told: dict[str, Any] = answer.json()
    return told


@pytest.mark.parametrize("order", [["mention", "message"], ["message", "mention"]])
@pytest.mark.parametrize("mention_has_files", [False, True])
async def test_a_file_is_stored_once_whichever_form_comes_first(
    tmp_path: Path, order: list[str], caplog: pytest.LogCaptureFixture, *, mention_has_files: bool
) -> None:
    async with SlackServer() as slack, site(tmp_path, **posting(slack)) as at:
        await line_that_is(at, LineState.UP)
        forms = forms_of([slack.uploads.attach(slack.url, PNG)], mention_has_files=mention_has_files)
        with caplog.at_level(logging.WARNING, "keepsaid"):
            await post(at, slack, forms[order[0]])
            await slack.wait_for(lambda: len(slack.sent) == 1)
            for form in itertools.chain(order, order, reversed(order)):
                await post(at, slack, forms[form])
        assert await file_rows(at, "kept") == [("file-1", "image/png", len(PNG), "")]
        is_late = order[0] == "mention" and not mention_has_files
        assert [row[0] for row in at.rows(_ROWS)] == ["", EDITED][: 1 + is_late]
        assert len(slack.sent) == 1
    assert [one.message for one in caplog.records if "not taken" in one.message] == []


async def test_a_late_file_is_shown_to_the_model(tmp_path: Path) -> None:
    script = Script(Say("I see no file"), Say("a small dog"))
    async with (
        SlackServer() as slack,
        ModelServer(script) as model,
        site(tmp_path, **posting(slack, edits="answer"), models=_models(model)) as at,
    ):
        await line_that_is(at, LineState.UP)
        forms = forms_of([slack.uploads.attach(slack.url, PNG)])
        await post(at, slack, forms["mention"])
        await slack.wait_for(lambda: len(slack.sent) == 1)
        await post(at, slack, forms["message"])
        requests = await model.wait_for(2)
        assert [one["type"] for one in user_parts(requests[1])].count("image_url") == 1


async def test_a_key_that_another_message_has_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A provider that gives one `ts` to two people has two messages, of which nobody knows the second."""
    async with SlackServer() as slack, site(tmp_path, **posting(slack)) as at:
        await line_that_is(at, LineState.UP)
        message = forms_of([])["message"]
        await post(at, slack, message)
        assert "ignored" in await post(at, slack, {**message, "user": "U8", "text": "I am another"})
        assert len(at.rows(_ROWS)) == 1
    assert any("not taken" in one.message for one in caplog.records)


async def test_a_bot_is_not_answered_by_the_hook_either(tmp_path: Path) -> None:
    async with SlackServer() as slack, site(tmp_path, **posting(slack)) as at:
        await line_that_is(at, LineState.UP)
        said = {**forms_of([])["message"], "bot_id": "B1", "subtype": "bot_message"}
        assert await post(at, slack, said) == {"ignored": "a bot said it"}
        assert at.rows(_ROWS) == []


def changed(before: list[dict[str, Any]], after: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    """The fields of an event that says that a message changed."""
    message = {
        "type": "message",
        "user": "U7",
        "text": "see <https://scripted.slack.com/files/U7/F1>",
        "ts": "4.000005",
    }
    return {
        "subtype": "message_changed",
        "message": {**message, "files": after, **fields},
        "previous_message": {**message, "files": before},
    }


def test_files_that_a_message_gets_later_are_an_edit_of_it() -> None:
    other = {**_FILE, "id": "F2", "url_private": "https://f.slack.com/2"}
    late = read("", **changed([], [_FILE]))
    assert (late.event, late.external_id, late.provider_id) == (EDITED, "slack:C9:4.000005:files:F1", "4.000005")
    assert [one.ref for one in late.files] == ["https://f.slack.com/1"]
    assert read("", **changed([_FILE], [_FILE, other])).external_id == "slack:C9:4.000005:files:F2"


@pytest.mark.parametrize("files", [[], [_FILE]])
def test_a_new_preview_is_no_edit(files: list[dict[str, Any]]) -> None:
    assert incoming_of_event(event("", **changed(files, files)), _BOT) is None
    assert incoming_of_event(event("", **changed([_FILE], [])), _BOT) is None


def test_a_mention_that_an_edit_brings_has_the_key_of_the_edit() -> None:
    """Slack sends both, and neither is the message of before."""
    edited = {"user": "U7", "ts": "9.0"}
    mention = read(f"<@{BOT}> help", type="app_mention", edited=edited)
    edit = read("", **changed([], [], text=f"<@{BOT}> help", edited=edited))
    assert (mention.external_id, mention.event) == (edit.external_id, edit.event) == ("slack:C9:4.000005:9.0", EDITED)
