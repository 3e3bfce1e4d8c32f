"""Names mean something, comments say why, and nothing of one machine is kept."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from tests.tidy.source import ALL, PACKAGE, ROOT, Function, Source, apply, expect_none, kept_files, under

VAGUE = {"common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
BANNER = re.compile(r"(#|--)\s*[-=*~_+]{4,}|#{3,}")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b")
SPEAKERS = ("interfaces/cli", "testing/crash")
MACHINE = re.compile(r"(?<![\w.~/>})*-])/(?:[w]ork|[h]ome|[U]sers|[r]oot)/[\w.-]+")
REGISTRY = re.compile(
    r"\bpypi\.org|pythonhosted\.org|\bnpmjs\.|registry\.yarnpkg\.|proxy\.golang\.org|\bcrates\.io|"
    r"(?:index[-_]url|find[-_]links)\b(?!"
    r"[\"']?\s*[:=]\s*f?[\"']?http://127\.0\.0\.1[:/])",
    re.IGNORECASE,
)
"""A registry, or a setting of one; not the setting of an index that listens on this machine."""

Documented = ast.Module | ast.ClassDef | Function


def vague(name: str) -> list[str]:
    return [word for word in WORD.findall(name) if word.lower() in VAGUE]


def vague_classes(source: Source) -> Iterator[str]:
    for node in source.classes:
        for word in vague(node.name):
            yield source.at(node.lineno, f"class {node.name}: {word!r} says nothing of what it does")


def vague_path(path: str) -> Iterator[str]:
    for word in vague(path):
        yield f"{path}:1: {word!r} in the path says nothing of what is there"


def banners(source: Source) -> Iterator[str]:
    for line, comment in source.comments:
        if BANNER.match(comment):
            yield source.at(line, "banner comment; let a name or a module say it")


def docstrings(source: Source) -> Iterator[tuple[int, str]]:
    for node in source.nodes:
        if isinstance(node, Documented) and ast.get_docstring(node, clean=False) is not None:
            statement = node.body[0]
            yield statement.lineno, ast.get_docstring(node, clean=False) or ""


def unfinished(source: Source) -> Iterator[str]:
    for first, text in (*source.comments, *docstrings(source)):
        for offset, line in enumerate(text.split("\n")):
            found = UNFINISHED.search(line)
            if found:
                yield source.at(first + offset, f"{found[0]}; finish it or write an issue")


def prints(source: Source) -> Iterator[str]:
    if under(source.within, SPEAKERS):
        return
    for node in source.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            yield source.at(node.lineno, "print outside interfaces/cli and testing/crash")


def local_traces(path: str, text: str) -> Iterator[str]:
    for number, line in enumerate(text.split("\n"), start=1):
        for what, pattern in (("path of one machine", MACHINE), ("package registry", REGISTRY)):
            found = pattern.search(line)
            if found:
                yield f"{path}:{number}: {what}: {found[0]}"


def test_class_names() -> None:
    apply(vague_classes, "src")


def test_file_names() -> None:
    paths = (path.relative_to(ROOT).as_posix() for path in kept_files())
    expect_none(finding for path in paths if path.startswith(PACKAGE) for finding in vague_path(path))


def test_no_banners() -> None:
    apply(banners, *ALL)


def test_nothing_unfinished() -> None:
    apply(unfinished, *ALL)


def test_no_prints() -> None:
    apply(prints, "src")


def test_no_traces_of_a_machine() -> None:
    texts = ((path.relative_to(ROOT).as_posix(), path.read_text("utf-8", "ignore")) for path in kept_files())
    expect_none(finding for path, text in texts for finding in local_traces(path, text))


def test_rule_vague_classes() -> None:
    fine = Source("a.py", "class Commonplace: ...\nclass BaseURL: ...\ndef handler(): ...\n")
    bad = Source("a.py", "x = 1\nclass LaneManager: ...\nclass HTTPUtils: ...\n")
    assert list(vague_classes(fine)) == []
    assert list(vague_classes(bad)) == [
        "a.py:2: class LaneManager: 'Manager' says nothing of what it does",
        "a.py:3: class HTTPUtils: 'Utils' says nothing of what it does",
    ]


@pytest.mark.parametrize("path", ["src/keepsaid/utils.py", "src/keepsaid/common/a.sql", "src/keepsaid/lane_helper.py"])
def test_rule_vague_path(path: str) -> None:
    [finding] = vague_path(path)
    assert finding.startswith(f"{path}:1: ")
    assert list(vague_path("src/keepsaid/domain/base_url.py")) == []


@pytest.mark.parametrize("comment", ["# ----", "# ==== lanes ====", "#### lanes", "#----------"])
def test_rule_banners(comment: str) -> None:
    assert list(banners(Source("a.py", f"x = 1\n{comment}\n"))) == [
        "a.py:2: banner comment; let a name or a module say it"
    ]
    assert list(banners(Source("a.py", "x = 1  # -1 means none - and a dash\ny = '# ----'\n"))) == []


def test_rule_unfinished() -> None:
    text = 'def f():\n    """Say.\n\n    TODO: more.\n    """\n    return "TODO"  # FIXME later\n'
    assert list(unfinished(Source("a.py", text))) == [
        "a.py:6: FIXME; finish it or write an issue",
        "a.py:4: TODO; finish it or write an issue",
    ]


def test_rule_prints() -> None:
    text = "x = 1\nprint(x)\n"
    assert list(prints(Source("src/keepsaid/interfaces/cli/chat.py", text))) == []
    assert list(prints(Source("src/keepsaid/domain/a.py", text))) == [
        "src/keepsaid/domain/a.py:2: print outside interfaces/cli and testing/crash"
    ]


@pytest.mark.parametrize("start", ["/" + "work/main", "/" + "home/someone/x", "/" + "Users/me", "/" + "root/x"])
def test_rule_machine_paths(start: str) -> None:
    [finding] = local_traces("a.md", f"first\nsee {start} there\n")
    assert finding.startswith("a.md:2: path of one machine: ")


@pytest.mark.parametrize("host", ["https://pypi" + ".org/simple", "files.python" + "hosted.org", "--index" + "-url x"])
def test_rule_registries(host: str) -> None:
    [finding] = local_traces("a.md", f"from {host}\n")
    assert finding.startswith("a.md:1: package registry: ")


def test_rule_leaves_an_index_on_this_machine() -> None:
    text = '"PIP_INDEX_URL": f"http://127.0.0.1:{port}/simple",\nindex-url = http://127.0.0.1:8080/simple\n'
    assert list(local_traces("a.py", text)) == []
    [finding] = local_traces("a.py", text.replace("127.0.0.1:8080", "127.0.0.1.example.org"))
    assert finding.startswith("a.py:2: package registry: ")


def test_rule_leaves_ordinary_paths() -> None:
    text = "~/work/x docs/home/index.md https://example.org/home/x ${HOME}/work/x lane root/x GET /home\n"
    assert list(local_traces("a.md", text)) == []
