"""Help: few commands in groups, each with examples that can be typed, in whole lines of 80 columns."""

from __future__ import annotations

from shlex import split

import pytest
from tests.docs.help_texts import COLUMNS, page

from keepsaid.interfaces.cli.commands import GROUPS, NOUNS, plugin_commands, tree, walk
from keepsaid.interfaces.cli.examples import EXAMPLES
from keepsaid.interfaces.cli.program import run, shared, shared_first

_TOP_MAX = 15
_COMMANDS = {" ".join(path): command for path, command in walk(tree([], shared)) if not hasattr(command, "commands")}


def test_few_commands_stand_in_groups_that_help_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(NOUNS) <= _TOP_MAX
    assert run(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    starts = [lines.index(f"{title}:") for title in (*GROUPS, "From other packages")]
    assert starts == sorted(starts)
    listed = {line.split()[0] for line in lines[starts[0] :] if line.startswith("  ") and line[2:3].isalpha()}
    assert listed >= {*NOUNS, *plugin_commands()}


def test_every_command_has_an_example_and_no_example_is_without_a_command() -> None:
    assert sorted(_COMMANDS) == sorted(EXAMPLES)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_is_a_command_line_that_is_understood(name: str) -> None:
    for line in EXAMPLES[name]:
        words = shared_first(split(line))[1]
        assert " ".join(words[: len(name.split())]) == name
        context = _COMMANDS[name].make_context(name, words[len(name.split()) :])
        assert not context.args
    assert f"keepsaid {EXAMPLES[name][0]}" in page()


def test_no_line_of_help_is_wider_than_a_page_or_cut_short() -> None:
    lines = [line for line in page().splitlines() if not line.startswith("Usage: ")]
    assert [line for line in lines if len(line) > COLUMNS or (line.endswith("...") and line[2:3].islower())] == []


def test_values_of_options_have_readable_names() -> None:
    assert [line for line in page().splitlines() if "<str>" in line or "<int" in line or "<path>" in line] == []


@pytest.mark.parametrize(("words", "modules"), [(["inbox", "ls"], {"lanes", "tasks"}), (["status"], {"inbox"})])
def test_a_command_line_builds_only_what_it_names(words: list[str], modules: set[str]) -> None:
    built = {part for path, _ in walk(tree(words, shared)) for part in path}
    assert not built & modules
    assert words[-1] in built
