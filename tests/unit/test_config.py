"""Settings: where they come from, who wins, and how a wrong one is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.config_cast import Write, our_variables, refused, writing

from keepsaid.config import Config, load
from keepsaid.domain.batch import Window
from keepsaid.domain.message import Origin, Trust
from keepsaid.domain.route import Action, Notify, OnCrash, Rule, WorkTerms


@pytest.fixture(autouse=True)
def no_settings_of_whoever_runs_this(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in our_variables():
        monkeypatch.delenv(name)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    return writing(tmp_path)


# What is read


def test_without_a_file_everything_has_its_default(tmp_path: Path) -> None:
    config, warnings = load(tmp_path / "none.yaml")
    assert warnings == []
    assert (config.agent, config.owner, config.models.chat) == ("main", (), "auto")
    assert (config.buffer.window_ms, config.buffer.payload_bytes_max) == (500, 26_214_400)
    assert (config.server.host, config.server.port, config.server.token) == ("127.0.0.1", 7448, None)
    assert sorted(config.channels) == ["github", "http", "library", "terminal"]
    assert config.channels["terminal"].window(config.buffer.window()) == Window(0, 0, 5_000)
    assert config.channels["github"].window(config.buffer.window()) == Window(3_000, 3_000, 15_000)
    assert config.table().channel_defaults == {"github": Action.DROP}


def test_a_file_sets_what_it_names_and_leaves_the_rest(write: Write) -> None:
    config, warnings = load(
        write("agent: second\nbuffer: {window_ms: 7}\nchannels:\n  http: {quiet_ms: 9}\n  github: {priority: 60}\n")
    )
    assert warnings == []
    assert (config.agent, config.buffer.window_ms, config.buffer.quiet_ms) == ("second", 7, 0)
    assert config.channels["http"].window(config.buffer.window()) == Window(7, 9, 5_000)
    assert config.channels["github"].priority == 60
    assert config.channels["github"].trust is Trust.EXTERNAL


@pytest.mark.parametrize("text", ["# nothing yet\n", "---\n", "null\n", "\ufeffagent: main\n"])
def test_an_empty_file_sets_nothing(write: Write, text: str) -> None:
    config, warnings = load(write(text))
    assert (config, warnings) == (Config(), [])


def test_a_channel_may_stand_there_empty(write: Write) -> None:
    config, _ = load(write("channels:\n  http:\n  forum:\n"))
    assert (config.channels["http"].trust, config.channels["forum"].priority) == (Trust.KNOWN, 10)


def test_what_the_caller_sets_replaces_whole_sections_of_the_file(write: Write) -> None:
    file = write("agent: second\nbuffer: {window_ms: 7, quiet_ms: 8}\n")
    config, _ = load(file, {"buffer": {"window_ms": 1}})
    assert (config.agent, config.buffer.window_ms, config.buffer.quiet_ms) == ("second", 1, 0)


def test_the_tree_cannot_be_changed(tmp_path: Path) -> None:
    config, _ = load(tmp_path / "none.yaml")
    for part, name in ((config, "agent"), (config.buffer, "path"), (config.channels["http"], "priority")):
        with pytest.raises(ValueError, match="frozen"):
            setattr(part, name, "other")


# The environment


def test_variables_are_filled_in_wherever_text_stands(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_SECRET", "wick: [9, #")
    monkeypatch.setenv("THE_PORT", "4321")
    config, _ = load(
        write(
            "server: {port: '${THE_PORT}'}\n"
            "channels: {github: {secret: 'a-${THE_SECRET}-b'}, http: {reply_hosts: ['127.0.0.1:${THE_PORT}']}}\n"
        )
    )
    secret = config.channels["github"].secret
    assert secret is not None
    assert secret.get_secret_value() == "a-wick: [9, #-b"
    assert config.server.port == 4321
    assert config.channels["http"].reply_hosts == ("127.0.0.1:4321",)
    assert "wick" not in repr(config)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("agent: ${NO_SUCH_VARIABLE}\n", "agent"),
        ("channels: {github: {secret: '${NO_SUCH_VARIABLE}'}}\n", "channels.github.secret"),
        ("routes: {rules: [{name: a, action: drop, task: 'x ${NO_SUCH_VARIABLE}'}]}\n", "routes.rules.0.task"),
    ],
)
def test_a_variable_that_is_not_set_is_named_with_key_and_file(write: Write, text: str, key: str) -> None:
    file = write(text)
    error = refused(file)
    assert error.what == f"{key}: the environment variable NO_SUCH_VARIABLE is not set  ({file}:1)"
    assert error.hint == "export NO_SUCH_VARIABLE=VALUE, or: keepsaid config edit"


def test_a_secret_is_read_from_the_file_that_the_config_names(write: Write, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere.key"
    other.write_text("  of-another-folder\n", "utf-8")
    file = write(f"models: {{api_key: '${{file:model.key}}'}}\nmemory: {{embedder_key: '${{file:{other}}}'}}\n")
    (file.parent / "model.key").write_text("wick-123\n", "utf-8")
    config, warnings = load(file)
    assert warnings == []
    assert config.models.api_key is not None
    assert config.memory.embedder_key is not None
    assert config.models.api_key.get_secret_value() == "wick-123"
    assert config.memory.embedder_key.get_secret_value() == "of-another-folder"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "cannot be read (No such file or directory)"),
        (b" \n", "is empty"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"k" * 70_000, "holds more than 65,536 bytes, which is too long for a secret"),
    ],
)
def test_a_secret_file_that_cannot_be_used_is_named_with_its_key(write: Write, content: bytes | None, why: str) -> None:
    file = write("models: {api_key: '${file:model.key}'}\n")
    secret = file.parent / "model.key"
    if content is not None:
        secret.write_bytes(content)
    error = refused(file)
    assert error.what == f"models.api_key: {secret} {why}  ({file}:1)"
    assert error.hint == "keepsaid config edit"


def test_dollars_that_are_no_variable_stay(write: Write) -> None:
    config, _ = load(write("agent: '$HOME $5 ${} ${9} $${'\n"))
    assert config.agent == "$HOME $5 ${} ${9} $${"


def test_the_environment_wins_over_file_and_caller(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEEPSAID_BUFFER__WINDOW_MS", "3")
    monkeypatch.setenv("keepsaid_channels__http__priority", "4")
    monkeypatch.setenv("KEEPSAID_OWNER", '[{"channel": "http", "sender": "ann"}]')
    file = write("buffer: {window_ms: 7, quiet_ms: 8}\nchannels: {http: {priority: 5, quiet_ms: 6}}\n")
    config, warnings = load(file)
    assert warnings == []
    assert (config.buffer.window_ms, config.buffer.quiet_ms) == (3, 8)
    assert (config.channels["http"].priority, config.channels["http"].quiet_ms) == (4, 6)
    assert [one.sender for one in config.owner] == ["ann"]
    config, _ = load(file, {"buffer": {"window_ms": 1}})
    assert config.buffer.window_ms == 3


# Keys nobody reads


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("agnt: x", "unknown key agnt is ignored; did you mean agent?"),
        ("zzz: x", "unknown key zzz is ignored"),
        ("buffer: {windw_ms: 1}", "unknown key buffer.windw_ms is ignored; did you mean buffer.window_ms?"),
        ("buffer: {1: 2}", "unknown key buffer.1 is ignored"),
        (
            "channels: {http: {prority: 5}}",
            "unknown key channels.http.prority is ignored; did you mean channels.http.priority?",
        ),
        ("channels: {htpp: {}}", "channels.htpp is a channel of your own; did you mean channels.http?"),
        (
            "routes: {rules: [{name: a, action: drop, prioritty: 5}]}",
            "unknown key routes.rules.0.prioritty is ignored; did you mean routes.rules.0.priority?",
        ),
        (
            "owner: [{channel: http, sender: ann, acount: me}]",
            "unknown key owner.0.acount is ignored; did you mean owner.0.account?",
        ),
        ("__pydantic_self__: 1", "unknown key __pydantic_self__ is ignored"),
        ("_cli_parse_args: true", "unknown key _cli_parse_args is ignored"),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_known_one(write: Write, text: str, told: str) -> None:
    file = write(text)
    assert load(file)[1] == [f"{told}  ({file}:1)"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "channels: {github: {trust: owner}}",
            "channels.github.trust is ignored: what comes from there is external, whoever wrote it",
        ),
        (
            "channels: {github: {reply_hosts: [x]}}",
            "channels.github.reply_hosts is ignored: replies are sent as comments (github.token)",
        ),
        ("channels: {forum: {secret: x}}", "channels.forum.secret is ignored: only channels.github has a use for it"),
    ],
)
def test_a_setting_that_its_channel_ignores_is_named(write: Write, text: str, told: str) -> None:
    file = write(text)
    assert load(file)[1] == [f"{told}  ({file}:1)"]


def test_a_variable_that_its_channel_ignores_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEEPSAID_CHANNELS__GITHUB__TRUST", "owner")
    monkeypatch.setenv("KEEPSAID_CHANNELS__GITHUB__SECRET", "s")
    [told] = load(tmp_path / "none.yaml")[1]
    assert told.startswith("environment: KEEPSAID_CHANNELS__GITHUB__TRUST is ignored: ")


def test_an_owner_on_a_channel_that_is_not_there_is_named(write: Write) -> None:
    owners = "owner: [{channel: htpp, sender: ann}, {channel: forum, sender: ann}]"
    config, warnings = load(write(f"channels: {{forum: {{}}}}\n{owners}"))
    assert len(config.owner) == 2
    assert warnings == ["owner: nobody is recognised on 'htpp': there is no such channel; did you mean 'http'?"]


def test_an_owner_on_a_channel_of_an_extension_is_not_warned_of(write: Write) -> None:
    file = write("owner: [{channel: pager, sender: ann}, {channel: siren, sender: ann}]\nextensions: {siren: {}}\n")
    assert len(load(file)[1]) == 1
    (file.parent / "extensions").mkdir()
    (file.parent / "extensions" / "mine.py").write_text("@extension(id='pager')\nclass A: ...\n", "utf-8")
    assert load(file)[1] == []


def test_a_channel_of_ones_own_warns_nobody(write: Write) -> None:
    config, warnings = load(write("channels: {forum: {priority: 30}}"))
    assert (config.channels["forum"].priority, warnings) == (30, [])


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("KEEPSAID_AGNT", "unknown key KEEPSAID_AGNT is ignored; did you mean KEEPSAID_AGENT?"),
        ("KEEPSAID_ZZZ", "unknown key KEEPSAID_ZZZ is ignored"),
        (
            "KEEPSAID_BUFFER__WINDW_MS",
            "unknown key KEEPSAID_BUFFER__WINDW_MS is ignored; did you mean KEEPSAID_BUFFER__WINDOW_MS?",
        ),
        (
            "KEEPSAID_CHANNELS__HTTP__PRORITY",
            "unknown key KEEPSAID_CHANNELS__HTTP__PRORITY is ignored; did you mean KEEPSAID_CHANNELS__HTTP__PRIORITY?",
        ),
        (
            "KEEPSAID_CHANNELS__HTPP__PRIORITY",
            "KEEPSAID_CHANNELS__HTPP is a channel of your own; did you mean KEEPSAID_CHANNELS__HTTP?",
        ),
    ],
)
def test_an_unknown_variable_is_named_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, told: str
) -> None:
    monkeypatch.setenv("KEEPSAID_HOME", str(tmp_path))
    monkeypatch.setenv(name, "5")
    assert load(tmp_path / "none.yaml")[1] == [f"environment: {told}"]


# What the settings mean


def test_rules_become_the_routers_table(write: Write) -> None:
    config, _ = load(
        write(
            "routes:\n"
            "  default: drop\n"
            "  rules:\n"
            "    - {name: review, match: {channel: github, event: ['pull_request.*', push]}, action: spawn,\n"
            "       priority: 5, task: 'look at {{payload.number}}', reason: asked for, skill: reviews, tools: [x],\n"
            "       timeout_s: 60, notify: on_failure, on_crash: review, retries: 0}\n"
            "    - {name: rest, action: forward}\n"
            "channels: {github: {unmatched: forward}}\n"
        )
    )
    table = config.table()
    match = {"channel": ("github",), "event": ("pull_request.*", "push")}
    text = "look at {{payload.number}}"
    work = WorkTerms(text, "reviews", "", ("x",), 60, Notify.ON_FAILURE, OnCrash.REVIEW, 1)
    review = Rule("review", match, Action.SPAWN, 5, text, "asked for", work)
    assert table.rules == (review, Rule("rest", {}, Action.FORWARD))
    assert (table.default, table.channel_defaults) == (Action.DROP, {"github": Action.FORWARD})


def test_a_sender_is_trusted_as_owner_by_channel_account_and_name_together(write: Write) -> None:
    config, _ = load(
        write("owner:\n  - {channel: http, sender: ann}\n  - {channel: library, account: bot, sender: ann-h}\n")
    )

    def trust(channel: str, account: str, sender: str) -> Trust:
        return config.trust_of(Origin(channel, account, "room", sender))

    assert trust("http", "default", "ann") is Trust.OWNER
    assert trust("library", "bot", "ann-h") is Trust.OWNER
    assert trust("http", "default", "ann-h") is Trust.KNOWN
    assert trust("http", "other", "ann") is Trust.KNOWN
    assert trust("github", "bot", "ann-h") is Trust.EXTERNAL
    assert trust("terminal", "default", "anybody") is Trust.OWNER
