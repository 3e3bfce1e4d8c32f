"""Projects: one name for a remote however it is written, and no user, password or path of a machine in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.unit.agent_hooks_cast import repository

from keepsaid.domain.project import folder_project, remote_in, remote_project
from keepsaid.services.agent_files import workplace


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/acme/api.git",
        "https://github.com/acme/api",
        "https://GitHub.com:443/acme/api.git/",
        "https://ann:hunter2@github.com/acme/api.git",
        "git@github.com:acme/api.git",
        "ssh://git@github.com/acme/api.git",
        "ssh://git@github.com:22//acme/api",
        "git://github.com/acme/api.git",
        "github.com:acme/api",
    ],
)
def test_a_remote_has_one_name(url: str) -> None:
    assert remote_project(url) == "github.com/acme/api"


@pytest.mark.parametrize(
    "url",
    [
        "/srv/git/api.git",
        "file:///srv/git/api.git",
        "../api.git",
        "C:\\repos\\api",
        "https://",
        "https://x/a b#c",
        "https://[broken/api",
        "ssh://ann:hunter2@/x",
        f"https://github.com/{'a' * 300}",
        "https://github.com/../x",
    ],
)
def test_a_remote_without_host_and_plain_path_is_named_by_a_hash(url: str) -> None:
    name = remote_project(url)
    assert name.startswith("remote-")
    assert len(name) == len("remote-") + 12
    assert "hunter2" not in name


def test_different_remotes_have_different_names() -> None:
    urls = ["https://a.org/x", "https://b.org/x", "https://a.org/y", "/srv/x", "/srv/y", "https://a.org/x y"]
    assert len({remote_project(url) for url in urls}) == len(urls)


@pytest.mark.parametrize(
    ("config", "url"),
    [
        ('[remote "origin"]\n\turl = git@a.org:x.git\n', "git@a.org:x.git"),
        ('[remote "up"]\nurl=https://a.org/up\n[remote "origin"]\nurl=https://a.org/x\n', "https://a.org/x"),
        ('[remote "up"]\n  URL = "https://a.org/up" ; a comment\n', "https://a.org/up"),
        ('[remote "up"] url = https://a.org/up # a comment\n', "https://a.org/up"),
        ('[core]\nurl = no\n[branch "origin"]\nurl = no\n', ""),
        ('[remote "origin"]\npushurl = https://a.org/push\n', ""),
        ("", ""),
        ("\x00[[[", ""),
    ],
)
def test_the_url_of_a_remote_is_read_from_the_config(config: str, url: str) -> None:
    assert remote_in(config) == url


def test_folders_of_one_name_are_different_projects() -> None:
    assert folder_project("/a/api") != folder_project("/b/api")
    assert folder_project("/a/api").startswith("api-")
    assert folder_project("/").startswith("folder-")


def test_a_folder_within_a_repository_belongs_to_it(tmp_path: Path) -> None:
    root = repository(tmp_path / "api", "git@a.org:acme/api.git")
    assert workplace(str(root / "src" / "not there")) == ("a.org/acme/api", False)
    assert workplace(str(root / ".." / "api")) == ("a.org/acme/api", False)


def test_a_worktree_is_the_project_of_its_repository(tmp_path: Path) -> None:
    root = repository(tmp_path / "api", "git@a.org:acme/api.git")
    inner = root / ".git" / "worktrees" / "fix"
    inner.mkdir(parents=True)
    (inner / "commondir").write_text("../..\n", "utf-8")
    (tmp_path / "fix").mkdir()
    (tmp_path / "fix" / ".git").write_text(f"gitdir: {inner}\n", "utf-8")
    assert workplace(str(tmp_path / "fix")).project == "a.org/acme/api"


def test_a_repository_without_a_remote_is_named_by_its_folder(tmp_path: Path) -> None:
    (tmp_path / "api" / ".git").mkdir(parents=True)
    assert workplace(str(tmp_path / "api" / "src")).project == folder_project(str(tmp_path / "api"))


def test_a_pipe_or_a_broken_file_in_place_of_git_holds_nothing_up(tmp_path: Path) -> None:
    (tmp_path / "a" / ".git").mkdir(parents=True)
    os.mkfifo(tmp_path / "a" / ".git" / "config")
    (tmp_path / "b").mkdir()
    os.mkfifo(tmp_path / "b" / ".git")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / ".git").write_bytes(b"\xff gitdir: \x00")
    for name in "abc":
        assert workplace(str(tmp_path / name)).project


@pytest.mark.parametrize("folder", ["", "relative/path", "\0", "/\udc80", "/a\0b", "/" + "deep/" * 500, "//"])
def test_any_text_of_a_folder_has_a_project(folder: str) -> None:
    assert workplace(folder).project
