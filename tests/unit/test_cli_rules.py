"""Rules are tried on samples and on what is stored; a person drops and requeues. Each on a home of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from keepsaid.interfaces.cli.program import run
from keepsaid.testing import webhooks

RULES = """\
routes:
  rules:
    - {name: spam, match: {text: "*buy now*"}, action: drop, reason: "{{senders}} sells"}
    - {name: big, match: {payload.data.size: big}, action: spawn, task: "Look at {{payload.data.size}} of {{sender}}"}
    - {name: opened, match: {channel: github, event: "*.opened"}, action: spawn, task: "Greet {{sender}}"}
"""


class Shell:
    """The program inside this process, on one home."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._capsys = capsys

    def file(self, name: str, text: str) -> str:
        """A file beside the home."""
        path = self.home.parent / name
        path.write_text(text, "utf-8")
        return str(path)

    def text(self, *arguments: str, code: int = 0) -> str:
        """What a command prints for people."""
        found = run(["--home", str(self.home), *arguments])
        told = self._capsys.readouterr()
        assert found == code, told.err
        return told.out if code == 0 or told.out else told.err

    def json(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        """The object a command prints for programs."""
        told: dict[str, Any] = json.loads(self.text("--json", *arguments, code=code))
        return told


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A home without a model."""
    monkeypatch.setenv("KEEPSAID_MODELS__CHAT", "none")
    return Shell(tmp_path / "home", capsys)


def lines(*fields: dict[str, Any]) -> str:
    return "".join(json.dumps({"sender": "ann", "conversation": "c", **one}) + "\n" for one in fields)


def test_samples_are_judged_and_what_was_expected_is_compared(shell: Shell) -> None:
    rules = shell.file("new.yaml", RULES)
    right = lines(
        {"text": "buy now", "name": "Ann", "expect": "drop"},
        {"text": "hello", "expect": "default"},
        {"text": "see", "data": {"size": "big"}, "expect": {"rule": "big", "task": "Look at big of ann"}},
    )
    told = shell.json("inbox", "routes", "test", shell.file("right.jsonl", right), "--rules", rules)
    assert told["wrong"] == 0
    assert [one["reason"] for one in told["samples"]][:1] == ["Ann sells"]
    assert [(one["verdict"], one["rule"]) for one in told["samples"]] == [
        ("drop", "spam"),
        ("forward", "default"),
        ("spawn", "big"),
    ]
    assert told["samples"][1]["unmatched"]["spam"] == "text is not '*buy now*': it is 'hello'"
    assert not (shell.home / "data").exists()
    wrong = shell.file("wrong.jsonl", lines({"text": "hello", "expect": "drop"}))
    text = shell.text("inbox", "routes", "test", wrong, "--rules", rules, code=1)
    assert "1 sample by rules of version" in text
    assert "WRONG" in text
    assert "line 1 expected verdict 'drop'" in text
    assert shell.json("inbox", "routes", "test", wrong, "--rules", rules, code=1)["wrong"] == 1


def test_a_raw_webhook_is_a_sample_too(shell: Shell) -> None:
    rules = shell.file("new.yaml", RULES)
    payload = {**webhooks.payload("pull_request", 7), "action": "opened"}
    sample = shell.file("hook.json", json.dumps({**payload, "expect": "opened"}, indent=2))
    told = shell.json("inbox", "routes", "test", sample, "--rules", rules, "--event", "pull_request")
    (one,) = told["samples"]
    assert (one["as_expected"], one["verdict"], one["task"].startswith("Greet ")) == (True, "spawn", True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{oh\n", "line 1 is not JSON"),
        ('{"sender": "a", "conversation": "c"}\n', "line 1: the field 'text' is missing"),
        (lines({"text": "hi", "expect": 7}), "line 1: expect must be"),
        ("\n", "there is no sample in it"),
        ("[1]\n", "line 1 is not a JSON object"),
    ],
)
def test_a_sample_that_cannot_be_read_is_named(shell: Shell, text: str, said: str) -> None:
    assert said in shell.json("inbox", "routes", "test", shell.file("bad.jsonl", text), code=1)["error"]["what"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("buffer: {window_ms: 3}\n", "has no routes"),
        (
            "routes: {rules: [{name: a, action: shout}]}\n",
            "routes.rules.0.action: expected forward, listen, spawn or drop",
        ),
        ("routes: [\n", "new.yaml cannot be read"),
    ],
)
def test_rules_that_cannot_be_read_are_named(shell: Shell, text: str, said: str) -> None:
    arguments = ("inbox", "replay", "--rules", shell.file("new.yaml", text))
    assert said in shell.json(*arguments, code=4)["error"]["what"]


def test_a_replay_shows_what_would_be_decided_differently(shell: Shell) -> None:
    assert shell.json("inbox", "replay")["messages"] == 0
    for text in ("buy now", "buy now too", "hello"):
        shell.json("inbox", "send", text, "--sender", "ann")
    rules = shell.file("new.yaml", RULES)
    told = shell.json("inbox", "replay", "--rules", rules, "--since", "2d")
    assert (told["messages"], told["not_judged"]) == (3, 0)
    (change,) = told["changes"]
    assert (change["was"], change["would_be"]) == (
        {"verdict": "forward", "rule": "default"},
        {"verdict": "drop", "rule": "spam"},
    )
    assert (change["count"], [one["text"] for one in change["examples"]]) == (2, ["buy now too", "buy now"])
    text = shell.text("inbox", "replay", "--rules", rules)
    assert "3 messages since" in text
    assert "2 would be decided differently." in text
    assert [one["state"] for one in shell.json("inbox", "ls")["messages"]] == ["received"] * 3
    assert "is not a span of time" in shell.json("inbox", "replay", "--since", "soon", code=2)["error"]["what"]


def test_what_is_not_batched_or_not_queued_is_not_dropped(shell: Shell) -> None:
    waits = shell.json("inbox", "send", "hello")["id"]
    refused = shell.json("inbox", "drop", waits, "--reason", "no", code=1)["error"]
    assert refused["what"] == f"{waits} is in no batch yet"
    shell.text("chat", "-m", "hello")
    done = next(one for one in shell.json("inbox", "ls")["messages"] if one["channel"] == "terminal")
    refused = shell.json("inbox", "drop", done["id"], "--reason", "no", code=1)["error"]
    assert refused["what"] == f"{done['batch']['id']} does not wait: it is done"
    assert "is not dead, dropped or in review" in shell.json("inbox", "requeue", done["id"], code=1)["error"]["what"]
    assert "names no message" in shell.json("inbox", "why", "msg_zzz", code=1)["error"]["what"]
