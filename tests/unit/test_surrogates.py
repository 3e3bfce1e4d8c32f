"""Half of a character, in what a model writes or a rule says, stops no lane and no stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.http_cast import site

from keepsaid.config import Config
from keepsaid.testing.model_script import Call, Say, Script
from keepsaid.testing.model_server import ModelServer
from keepsaid.text.normal import normalise_json

_HALF = "\\ud800"
_CALLS = (
    Call("task_create", f'{{"task": "find {_HALF} x", "key": "k{_HALF}"}}'),
    Call("ask_for", f'{{"question": "which {_HALF}", "type": "text"}}'),
    Call("memory_save", f'{{"text": "Ann lives in {_HALF} town", "subject": "Ann {_HALF}"}}'),
    Call("schedule_add", f'{{"what": "say", "text": "x {_HALF}", "name": "n{_HALF}", "in_s": 86400}}'),
)
_RULE = {"name": "r", "match": {"conversation": "w*"}, "action": "spawn", "task": "{{payload.data.t}}"}


async def test_a_model_that_writes_half_a_character_is_answered_for(tmp_path: Path) -> None:
    steps = [step for call in _CALLS for step in (call, Say("said"))]
    async with ModelServer(Script(Say("half \ud800 done"), *steps, default=Say("fine"))) as model:
        models = {"chat": "openai/scripted", "base_url": model.url, "api_key": "k"}
        channels = {"http": {"trust": "owner"}}
        async with site(tmp_path, models=models, channels=channels) as made:
            for n in range(1 + len(_CALLS)):
                body = {"text": f"hello {n}", "sender": "ann", "conversation": "dm", "direct": True}
                put = await made.put(body, made.owner)
                story = await made.settled(put.json()["id"])
                assert story["state"] == "done", story["batch"]
            assert made.rows("SELECT count(*) FROM task WHERE description LIKE 'find%'") == [(1,)]
            assert made.rows("SELECT count(*) FROM schedule WHERE text LIKE 'x%'") == [(1,)]


async def test_half_a_character_in_a_payload_stops_no_rule(tmp_path: Path) -> None:
    rule = {**_RULE, "reason": "it says {{payload.data.t}}"}
    async with site(tmp_path, routes={"rules": [rule]}) as made:
        body = f'{{"text": "x", "sender": "ann", "conversation": "w1", "data": {{"t": "half {_HALF}"}}}}'
        put = await made.put(body.encode())
        assert put.status_code == 201, put.text
        story = await made.settled(put.json()["id"])
        assert story["batch"]["reason"] == "it says half \ufffd"


@pytest.mark.parametrize("name", ["name", "reason", "task"])
def test_half_a_character_in_a_setting_is_refused(name: str) -> None:
    rule: dict[str, Any] = {**_RULE, name: "half \ud800"}
    with pytest.raises(ValueError, match=r"lone surrogate|unicode string"):
        Config(routes={"rules": [rule]})


def test_arguments_of_a_call_keep_what_they_say() -> None:
    said = {"text": 'a "quoted" \\ud83d word', "smile": "\U0001f600", "n": [1, None, True]}
    assert json.loads(normalise_json(json.dumps(said))) == said
    assert json.loads(normalise_json(f'{{"a{_HALF}": ["{_HALF}b"]}}')) == {"a\ufffd": ["\ufffdb"]}
    assert normalise_json(f'{{"broken": "{_HALF}') == f'{{"broken": "{_HALF}'
