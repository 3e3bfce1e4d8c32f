"""What came in through the doors of a running server is forgotten in every place, by each way of choosing it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.unit.http_cast import Site, site
from tests.unit.test_forget_places import residue

from keepsaid.testing.model_script import ChatRequest, Reaction, Say, Script
from keepsaid.testing.model_server import ModelServer
from keepsaid.testing.webhooks import payload, sign

_WORD = "Zebraquoex7741"
_NAME = "Quastenflosser"
_SENDER = "wendel77"
_SECRET = "a lantern at the end of the pier"  # gitleaks:allow


def repeated(request: ChatRequest) -> Reaction:
    """Says what the user said last, as models do."""
    return Say(f"ok: {request.last('user')}"[:1_500])


@asynccontextmanager
async def running(root: Path) -> AsyncIterator[Site]:
    """A server that answers, with a hook of GitHub, and a channel for media."""
    channels = {"github": {"secret": _SECRET, "window_ms": 0, "quiet_ms": 0, "unmatched": "forward"}}
    async with ModelServer(Script(repeated)) as model:
        models = {"chat": "openai/scripted", "base_url": model.url, "api_key": "k"}
        async with site(root, models=models, channels=channels) as made:
            yield made


async def posted(made: Site, path: str, **fields: object) -> Any:
    """What a route of the operator answers; it takes what it is given."""
    answer = await made.client.post(path, json=fields, headers=made.owner)
    assert answer.status_code < 300, (path, answer.text)
    return answer.json()


async def said(made: Site, text: str, key: str, **fields: object) -> str:
    """The id of a message whose turn is over."""
    body = {"text": text, "sender": _SENDER, "conversation": "gym", "name": f"Wendelin {_NAME}", **fields}
    answer = await made.put(body, {"Idempotency-Key": key})
    assert answer.status_code < 300, answer.text
    told = str(answer.json()["id"])
    await made.settled(told)
    return told


async def hooked(made: Site, source: dict[str, Any], name: str) -> httpx2.Response:
    """A delivery of GitHub."""
    body = json.dumps(source).encode()
    signed = {"x-github-event": "issues", "x-hub-signature-256": sign(_SECRET, body)}
    headers = {"content-type": "application/json", "x-github-delivery": name, **signed}
    return await made.client.post("/hooks/github", content=body, headers=headers)


async def planted(made: Site) -> str:
    """Put the word through every door; returns the id of the first message."""
    files = {"attachments": [{"name": f"{_WORD}.pdf", "url": f"https://example.org/{_WORD}"}], _WORD: _WORD}
    marks = {"provider_id": f"{_WORD}-p1", "topic": "lockers", "data": files}
    first = await said(made, f"my locker code is {_WORD}", f"{_WORD}-1", **marks)
    answer = {"reply_to": f"{_WORD}-p1", "provider_id": f"{_WORD}-p2", "topic": "lockers"}
    await said(made, f'that is {_WORD}, \u00e4 "{_WORD.upper()}"', f"{_WORD}-2", **answer)
    await said(made, f"/personality set --person speak of {_WORD}", f"{_WORD}-3", direct=True, conversation="dm")
    again = {"text": f"another {_WORD}", "sender": _SENDER, "conversation": "gym"}
    assert (await made.put(again, {"Idempotency-Key": f"{_WORD}-1"})).status_code == 409
    return first


async def forgotten(made: Site, **wish: object) -> dict[str, Any]:
    """The receipt of a forgetting, once all of it is gone."""
    receipt: dict[str, Any] = await posted(made, "/v1/forget", yes=True, **wish)
    assert (await posted(made, "/v1/forget/settled", wait_s=60))["settled"]
    return receipt


@pytest.mark.parametrize("how", ["filter", "ids", "person"])
async def test_what_was_said_is_in_no_file(tmp_path: Path, how: str) -> None:
    async with running(tmp_path / "home") as made:
        first = await planted(made)
        assert residue(tmp_path, _WORD, _NAME)
        if how == "filter":
            await forgotten(made, filter=_WORD)
            assert residue(tmp_path, _WORD) == set()
        if how == "ids":
            await forgotten(made, ids=[first])
            assert residue(tmp_path, f"{_WORD}.pdf", f"org/{_WORD}") == set()
        if how == "person":
            await forgotten(made, person=f"http:default:{_SENDER}")
            assert residue(tmp_path, _WORD, _NAME, _SENDER) == set()


async def test_a_webhook_is_in_no_file(tmp_path: Path) -> None:
    async with running(tmp_path / "home") as made:
        source: dict[str, Any] = dict(payload("issues", 5))
        source["issue"] |= {
            "title": f"The {_WORD} flickers",
            "body": f"since {_WORD}",
            "user": {"login": _WORD, "id": 7},
        }
        source |= {"sender": {"login": _WORD, "id": 7}, "ref": f"refs/heads/{_WORD}"}
        first = await hooked(made, source, f"{_WORD}-1")
        assert first.status_code == 202, first.text
        await made.settled(first.json()["id"])
        assert (await hooked(made, source, f"{_WORD}-2")).json()["intake"] == "duplicate"
        assert residue(tmp_path, _WORD)
        await forgotten(made, filter=_WORD)
        assert (await hooked(made, source, f"{_WORD}-3")).json()["intake"] == "duplicate"
        assert residue(tmp_path, _WORD) == set()
