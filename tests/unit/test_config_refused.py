"""Settings that cannot be used: told with file, key and place, and without what the file holds."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest
from tests.unit.config_cast import Write, our_variables, refused, writing

from keepsaid.config import load


@pytest.fixture(autouse=True)
def no_settings_of_whoever_runs_this(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in our_variables():
        monkeypatch.delenv(name)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    return writing(tmp_path)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("agent: [a]", "agent"),
        ("buffer: 5", "buffer"),
        ("buffer: {window_ms: soon}", "buffer.window_ms"),
        ("buffer: {window_ms: -1}", "buffer.window_ms"),
        ("server: {port: 70000}", "server.port"),
        ("memory: {injection: maybe}", "memory.injection"),
        ("owner: [{channel: http}]", "owner.0.sender"),
        ("owner: [{channel: github, sender: ann}]", "owner.0.channel: nobody can be the owner there"),
        ("channels: {http: {on_unknown_delivery: maybe}}", "channels.http.on_unknown_delivery"),
        ("routes: {default: shout}", "routes.default"),
        ("routes: {rules: [{name: a}]}", "routes.rules.0.action"),
        ("routes: {rules: [{name: a, action: drop, match: {channel: 5}}]}", "routes.rules.0.match.channel"),
        ("channels: 5", "channels"),
        ("channels: {http: yes}", "channels.http"),
        ("channels: {github: false}", "channels.github"),
        ("channels: {http: [1]}", "channels.http"),
        ("channels: {http: {trust: everybody}}", "channels.http.trust"),
        ("channels: {http: {unmatched: spawn}}", "channels.http.unmatched"),
        ("channels: {http: {window_ms: -1}}", "channels.http.window_ms"),
        ("channels: {http: {quiet_ms: 600001}}", "channels.http.quiet_ms"),
        ("channels: {http: {max_wait_ms: 3600001}}", "channels.http.max_wait_ms"),
        ("routes: {default: spawn}", "routes.default"),
        ("routes: {rules: [{name: a, action: drop, priority: -1}]}", "routes.rules.0.priority"),
        ("routes: {rules: [{name: a, action: drop, priority: 101}]}", "routes.rules.0.priority"),
        ("routes: {rules: [{name: '', action: drop}]}", "routes.rules.0.name"),
        ("routes: {rules: [{name: a, action: drop, skill: b}]}", "routes.rules.0: skill is for rules whose action"),
        ("routes: {rules: [{name: default, action: drop}]}", "routes.rules: no rule may be called"),
        (
            "routes: {rules: [{name: a, action: drop}, {name: b, action: drop}, {name: a, action: forward}]}",
            "routes.rules: two rules are called 'a'",
        ),
    ],
)
def test_a_value_of_the_wrong_type_is_named_with_file_line_and_key(write: Write, text: str, key: str) -> None:
    file = write(text)
    what = refused(file).what
    assert what.startswith(key)
    assert what.endswith(f"  ({file}:1)")


def test_what_the_caller_got_wrong_is_not_blamed_on_the_file(write: Write) -> None:
    error = refused(write("buffer: {window_ms: 5}"), {"buffer": {"window_ms": "soon"}})
    assert error.what == 'buffer.window_ms: expected an integer, got "soon"  (set by the program)'


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("KEEPSAID_SERVER__PORT", "soon", 'server.port: expected an integer, got "soon"'),
        ("KEEPSAID_OWNER", '[{"channel": 5, "sender": "a"}]', "owner.0.channel: expected text, got 5"),
        ("KEEPSAID_OWNER", "ann", "expected JSON"),
        ("KEEPSAID_BUFFER", "{", "expected JSON"),
        ("KEEPSAID_CHANNELS__HTTP__REPLY_HOSTS", "host", "expected JSON"),
    ],
)
def test_a_wrong_variable_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str
) -> None:
    monkeypatch.setenv(name, value)
    error = refused(tmp_path / "config.yaml")
    assert told in error.what
    assert f"environment variable {name}" in error.what
    assert f"unset {name}" in error.hint


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("buffer: [", "line 1"),
        ("a: b: c", "a colon where no key can stand; quote the value, or correct the indentation (line 1, column 5)"),
        ("buffer: {}\nbuffer: {window_ms: 5}", "this key is set twice (line 2, column 1)"),
        ("buffer: {window_ms: 5, window_ms: 6}", "this key is set twice"),
        ("\tagent: x", "found a tab; YAML takes spaces only (line 1, column 1)"),
        ("agent: !!python/object/apply:os.getcwd []", "python/object"),
        ("agent: !!bool maybe", "not a valid bool (line 1, column 8)"),
        ("agent: !!timestamp soon", "not a valid timestamp (line 1, column 8)"),
        ("agent: `x`", "a value cannot begin with '`' unless quoted (line 1, column 8)"),
        ("agent\nlog: {}", "line 2, column 4"),
        ("agent: x\n- y", "(line 2, column 1)"),
        ("agent: 2031-02-31", "not a valid timestamp (line 1, column 8)"),
        (f"agent: {'9' * 5_000}", "not a valid int (line 1, column 8)"),
        ("[" * 1_500, "nested too deeply"),
        (b"agent: \xff\xfe", "not UTF-8 (byte 7)"),
        (b"agent: \0", "#x0000"),
    ],
)
def test_what_is_no_yaml_is_told_with_the_file(write: Write, text: str | bytes, told: str) -> None:
    file = write(text)
    error = refused(file)
    assert error.what.startswith(f"{file} cannot be read: ")
    assert told in error.what


@pytest.mark.parametrize(
    "text",
    [
        "server: {token: hunter2\nagent: x",
        "server:\n  token: hunter2: x",
        "server:\n  token: *hunter2",
        "server:\n  token: !hunter2 x",
        "server:\n  token: !hunter2! x",
        "server:\n  token: &hunter2 x\nagent: &hunter2 y\nlog: *hunter2x",
        "server:\n  token: %hunter2",
        "server:\n  token: `hunter2`",
        'server:\n  token: "hunter2\\q"',
        "server:\n  token: hunter2\n\tagent: x",
        "server:\n  token: !!int hunter2",
        "server:\n  token: !!bool hunter2",
        "server:\n  token: !!timestamp hunter2",
        "server:\n  token: !!binary hünter2",
        "server:\n  token: hunter2\0",
    ],
)
def test_no_secret_is_told_with_what_is_wrong(write: Write, text: str) -> None:
    error = refused(write(text))
    told = "".join(traceback.format_exception(error))
    assert "hunter" not in error.what
    assert "hunter" not in told


def test_a_fault_is_told_with_its_place(write: Write) -> None:
    file = write("agent: x\nserver: {token: hunter2\nlog: y")
    assert refused(file).what == f"{file} cannot be read: expected ',' or '}}', but got ':' (line 3, column 4)"


@pytest.mark.parametrize(("text", "kind"), [("- agent\n", "list"), ("agent", "str"), ("5", "int"), ("[]", "list")])
def test_a_file_must_hold_keys_and_values(write: Write, text: str, kind: str) -> None:
    file = write(text)
    assert refused(file).what == f"{file} must hold keys and values, not a {kind}"


def test_a_directory_in_place_of_the_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").mkdir()
    assert "cannot be read" in refused(tmp_path / "config.yaml").what


def laughs(template: str) -> str:
    """Nine lines, each nine times the one before."""
    lines = [f"a0: &a0 {template.format('1')}"]
    lines += [f"a{n}: &a{n} {template.format(', '.join([f'*a{n - 1}'] * 9))}" for n in range(1, 10)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        laughs("[{}]"),
        laughs("{{<<: [{}]}}").replace("a0: &a0 {<<: [1]}", "a0: &a0 {k: v}"),
        "agent: &a [*a]",
        "agent: &a {b: *a}",
    ],
    ids=["lists", "merges", "itself", "itself by key"],
)
def test_a_file_that_unfolds_without_end_is_refused_at_once(write: Write, text: str) -> None:
    assert "aliases" in refused(write(text)).what


def test_a_few_aliases_are_welcome(write: Write) -> None:
    config, _ = load(write("channels:\n  http: &slow {quiet_ms: 9}\n  library: {<<: *slow, priority: 11}\n"))
    assert [config.channels[name].quiet_ms for name in ("http", "library")] == [9, 9]
