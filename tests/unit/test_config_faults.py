"""Faults of settings: all at once, each with key, value and place, in plain words and without secrets."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest
from tests.unit.config_cast import Write, our_variables, refused, writing

from keepsaid.config import load
from keepsaid.config.document import parse_document, read_document
from keepsaid.config.fields import is_secret, is_text, locate, nearest, schema
from keepsaid.config.file import read


@pytest.fixture(autouse=True)
def no_settings_of_whoever_runs_this(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in our_variables():
        monkeypatch.delenv(name)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    return writing(tmp_path)


def test_every_fault_of_a_file_is_listed_in_the_order_of_its_lines(write: Write) -> None:
    file = write(
        "server:\n  port: 70000\nbuffer:\n  window_ms: fast\nroutes:\n  rules:\n    - {name: a}\n    - {nam: b}\n"
    )
    assert refused(file).what.splitlines() == [
        "5 settings cannot be used",
        f"  server.port: expected at most 65535, got 70000  ({file}:2)",
        f'  buffer.window_ms: expected an integer, got "fast"  ({file}:4)',
        f"  routes.rules.0.action: this key is required and not set  ({file}:7)",
        f"  routes.rules.1.name: this key is required and not set  ({file}:8)",
        f"  routes.rules.1.action: this key is required and not set  ({file}:8)",
    ]


def test_faults_of_the_environment_and_of_the_file_are_listed_together(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("keepsaid_server__port", "soon")
    file = write("models: {timeout_s: '${NO_SUCH_VARIABLE}'}\nagent: [a]\n")
    error = refused(file)
    assert error.what.splitlines()[1:] == [
        '  server.port: expected an integer, got "soon"  (environment variable keepsaid_server__port)',
        f"  models.timeout_s: the environment variable NO_SUCH_VARIABLE is not set  ({file}:1)",
        f"  agent: expected text, got a list  ({file}:2)",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("buffer: {window_ms: 1.5}", "buffer.window_ms: expected an integer, got 1.5"),
        ("buffer: {window_ms: }", "buffer.window_ms: expected an integer, got nothing"),
        ("models: {timeout_s: soon}", 'models.timeout_s: expected a number, got "soon"'),
        ("models: {timeout_s: 0}", "models.timeout_s: expected more than 0, got 0"),
        ("lanes: {infer: perhaps}", 'lanes.infer: expected true or false, got "perhaps"'),
        ("agent: 5", "agent: expected text, got 5"),
        ("log: {level: loud}", 'log.level: expected debug, info, warning or error, got "loud"'),
        ("channels: {http: {busy: no}}", "channels.http.busy: expected queue, steer or interrupt, got false"),
        ("channels: 5", "channels: expected keys and values, got a value that is not shown"),
        ("memory: {embedder: foo}", "memory.embedder: expected text that matches ^(auto|none|"),
        ("routes: {rules: [{name: '', action: drop}]}", 'routes.rules.0.name: expected at least 1 characters, got ""'),
        (
            "routes: {rules: [{name: a, action: drop, match: {channel: 5}}]}",
            "routes.rules.0.match.channel: expected text or a list, got 5",
        ),
        ("priority: {age_s: {a: 5}}", 'priority.age_s.a: expected an integer as the name, got "a"'),
        ("tools: {mcp: {ok: {}}}", "tools.mcp.ok: a server needs either a command or a url"),
        ("models: {tokens_max: 'http://me:pw@host/'}", 'expected an integer, got "http://'),
        (f"agent: [{'x' * 500}]", "agent: expected text, got a list"),
        (f"buffer: {{window_ms: {'x' * 500}}}", f'buffer.window_ms: expected an integer, got "{"x" * 30}'),
    ],
)
def test_a_fault_says_what_was_expected_and_what_was_given(write: Write, text: str, told: str) -> None:
    what = refused(write(text)).what
    assert told in what
    assert "Input should" not in what
    assert len(what) < 300


@pytest.mark.parametrize(
    "text",
    [
        "models: {api_key: [hunter2]}",
        "models: {api_key: {a: hunter2}}",
        "models: hunter2",
        "server: hunter2",
        "server: {token: {hunter2: 1}}",
        "channels: {github: hunter2}",
        "channels: hunter2",
        "tools: {mcp: {ok: {url: x, headers: hunter2}}}",
        "tools: {mcp: {ok: {url: x, headers: {Authorization: [hunter2]}}}}",
        "memory: {embedder_key: 5hunter2, items_max: 'http://me:hunter2@host'}",
    ],
)
def test_no_secret_is_shown(write: Write, text: str) -> None:
    error = refused(write(text))
    assert "hunter2" not in "".join(traceback.format_exception(error))


def test_a_variable_of_a_secret_is_named_without_its_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEEPSAID_MODELS", '{"api_key": ["hunter2"], "timeout_s": "hunter2"}')
    what = refused(tmp_path / "none.yaml").what
    assert "models.api_key: expected text, got a list  (environment variable KEEPSAID_MODELS)" in what


def test_the_value_of_a_variable_is_shown_by_its_name(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_LEVEL", "hunter2")
    file = write("log:\n  level: ${SOME_LEVEL}\n")
    assert refused(file).what == (
        f'log.level: expected debug, info, warning or error, got "${{SOME_LEVEL}}"  ({file}:2)'
    )


def test_rules_of_another_file_are_named_with_its_lines(write: Write, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("routes:\n  default: shout\n", "utf-8")
    source = read(rules)
    with pytest.raises(Exception, match=r"routes\.default: expected forward, listen or drop.*rules\.yaml:2"):
        load(write("agent: x\n"), {"routes": source.keys["routes"]}, source)


def test_lines_follow_lists_anchors_and_merges(tmp_path: Path) -> None:
    channels = "channels:\n  http: &slow\n    quiet_ms: 9\n  library:\n    <<: *slow\n"
    document = parse_document(f"owner:\n  - channel: http\n    sender: a\n{channels}", tmp_path)
    assert document.lines["owner", "0", "sender"] == 3
    assert document.lines["channels", "library", "quiet_ms"] == 6
    assert document.place(("owner", "0", "account")) == f"{tmp_path}:2"
    assert document.place(("agent",)) == str(tmp_path)
    assert document.value(("owner", "0", "sender")) == "a"
    assert read_document(tmp_path / "none.yaml").keys == {}


def test_keys_lead_to_their_types() -> None:
    assert locate(("buffer", "window_ms")) == (("buffer", "window_ms"), int)
    assert locate(("channels", "http", "trusty"))[1] is None
    assert locate(("routes", "rules", 0, "match", "channel", "list[str]", 0))[0] == (
        "routes", "rules", "0", "match", "channel", "0",
    )  # fmt: skip
    assert is_secret(locate(("models", "api_key"))[1])
    assert is_secret(locate(("tools", "mcp", "x", "env", "TOKEN"))[1])
    assert not is_secret(locate(("models", "chat"))[1])
    assert is_text(locate(("log", "level"))[1])
    assert not is_text(locate(("server", "port"))[1])
    assert nearest(("bufer", "window_ms")) == ("buffer", "window_ms")
    assert nearest(("buffer", "windw_ms")) == ("buffer", "window_ms")
    assert nearest(("zzz",)) is None


def test_the_schema_has_every_setting_with_its_meaning_and_no_other() -> None:
    made = schema()
    assert made["additionalProperties"] is False
    window = made["$defs"]["BufferConfig"]["properties"]["window_ms"]
    assert (window["type"], window["default"], window["maximum"]) == ("integer", 500, 600_000)
    assert window["description"] == "Milliseconds a lane collects after its first message."
    sections = [part for part in made["$defs"].values() if "properties" in part]
    assert all("description" in field for part in sections for field in part["properties"].values())
