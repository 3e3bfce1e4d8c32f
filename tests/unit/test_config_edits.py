"""Edits of a config file: one key changes, and everything else stays, in every form that a file can have."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from keepsaid.config.edits import as_yaml, with_setting, without_setting


@pytest.mark.parametrize(
    ("text", "path", "left"),
    [
        ("a: 1 # one\nb: 2 # two\nc: 3\n", "b", "a: 1 # one\nc: 3\n"),
        ("a: 1\nb: 2", "b", "a: 1\n"),
        ("a:\n  b: 1\n  c: 2\n# of d\nd: 3\n", "a.c", "a:\n  b: 1\n# of d\nd: 3\n"),
        ("a:\n  b: 1\n  c: 2\n# of d\nd: 3\n", "a", "# of d\nd: 3\n"),
        ("# top\na:\n  b: 1\nd: 3\n", "a.b", "# top\nd: 3\n"),
        ("a:\n  b:\n    c: 1\n", "a.b.c", ""),
        ("a:\n  b:\n    c: 1\n  d: 2\n", "a.b.c", "a:\n  d: 2\n"),
        ("a: {b: 1, c: 2, d: 3} # of a\n", "a.b", "a: {c: 2, d: 3} # of a\n"),
        ("a: {b: 1, c: 2, d: 3} # of a\n", "a.d", "a: {b: 1, c: 2} # of a\n"),
        ("a:\n  - x: 1\n    y: 2\n  - z\n\n# of b\nb: 1\n", "a", "\n# of b\nb: 1\n"),
        ("a: |\n  one\n  two\nb: 1\n", "a", "b: 1\n"),
        ("a:\nb: 1\n", "a", "b: 1\n"),
        ("a: 1\n", "b", "a: 1\n"),
        ("a: 1\n", "a.b", "a: 1\n"),
        ("a: &x {b: 1}\nc: *x\n", "a", "c:\n  b: 1\n"),
    ],
)
def test_one_key_is_removed(text: str, path: str, left: str) -> None:
    assert without_setting(text, tuple(path.split("."))) == left


@pytest.mark.parametrize(
    ("text", "path", "value", "written"),
    [
        ("a:\n  - x\n  - y\n# of b\nb: 1\n", "a", ["z"], 'a:\n  ["z"]\n# of b\nb: 1\n'),
        ("a: 1 # one\n", "a", "yes", 'a: "yes" # one\n'),
        ("a: 1 # one\n", "a", "plain/text", "a: plain/text # one\n"),
        ("a:\n  b: 1 # one\n", "a.b", None, "a:\n  b: null # one\n"),
        ("a: |\n  one\nb: 1\n", "a", "${NAME}", 'a: "${NAME}"\nb: 1\n'),
        ("", "agent", "second", "agent: second\n"),
    ],
)
def test_one_key_is_set(text: str, path: str, value: object, written: str) -> None:
    assert with_setting(text, tuple(path.split(".")), value) == written


@pytest.mark.parametrize("text", ["yes", "null", "5", "1e3", "2031-02-03", "~", "a: b", "a #b", "- a", "${A}", "", "ö"])
def test_text_stays_text(text: str) -> None:
    assert yaml.safe_load(as_yaml(text)) == text


TREES = st.recursive(
    st.integers() | st.booleans() | st.text("ab:#- '", max_size=6) | st.lists(st.integers(), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from("abc"), TREES, min_size=1, max_size=3),
    st.booleans(),
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=3),
)
def test_what_is_set_is_removed_again_and_nothing_else_changes(tree: Any, flow: bool, path: list[str]) -> None:
    text = json.dumps(tree) if flow else yaml.safe_dump(tree, sort_keys=False)
    above: Any = tree
    for part in path[:-1]:
        above = above.get(part) if isinstance(above, dict) else None
    if not isinstance(above, dict) or path[-1] in above:
        return
    changed = with_setting(text, tuple(path), "new")
    found = yaml.safe_load(changed)
    for part in path:
        found = found[part]
    assert found == "new"
    assert yaml.safe_load(without_setting(changed, tuple(path))) == tree
