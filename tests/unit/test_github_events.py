"""What is read out of a GitHub payload: place, object and text."""

from __future__ import annotations

import pytest

from keepsaid.adapters.channels.github import TEXT_CHARS_MAX, conversation, provider_id, summary

REPOSITORY = {"id": 9, "name": "api", "full_name": "acme/api"}
SENDER = {"id": 4_711, "login": "mirelda-h"}
PULLS = [{"id": 1, "number": 6, "base": {"repo": {"id": 10}}}, {"id": 2, "number": 7, "base": {"repo": {"id": 9}}}]


def told(**fields: object) -> dict[str, object]:
    return {"repository": REPOSITORY, "sender": SENDER, **fields}


@pytest.mark.parametrize(
    ("event", "fields", "place", "mark"),
    [
        ("issues", {"issue": {"id": 31, "number": 7}}, "#7", "issue:31"),
        ("pull_request", {"pull_request": {"id": 32, "number": 7}}, "#7", "pull_request:32"),
        (
            "pull_request_review",
            {"review": {"id": 33, "body": "fine"}, "pull_request": {"id": 32, "number": 7}},
            "#7",
            "review:33",
        ),
        (
            "pull_request_review_comment",
            {"comment": {"id": 33}, "pull_request": {"id": 32, "number": 7}},
            "#7",
            "review_comment:33",
        ),
        (
            "pull_request_review_thread",
            {"thread": {}, "pull_request": {"id": 32, "number": 7}},
            "#7",
            "pull_request:32",
        ),
        ("issue_comment", {"comment": {"id": 33}, "issue": {"id": 31, "number": 7}}, "#7", "comment:33"),
        ("discussion", {"discussion": {"id": 41, "number": 7}}, "/discussions#7", "discussion:41"),
        (
            "discussion_comment",
            {"comment": {"id": 33}, "discussion": {"id": 41, "number": 7}},
            "/discussions#7",
            "discussion_comment:33",
        ),
        ("release", {"release": {"id": 61, "tag_name": "v1.2"}}, "@v1.2", "release:61"),
        ("push", {"ref": "refs/heads/main", "after": "ab12", "head_commit": {"id": "ab12"}}, "@main", "ab12"),
        ("push", {"ref": "refs/heads/fix/tide", "after": "cd34", "head_commit": None}, "@fix/tide", "cd34"),
        ("push", {"ref": "refs/tags/v1.2", "after": "0" * 40, "deleted": True, "head_commit": None}, "@v1.2", None),
        ("create", {"ref": "docs", "ref_type": "branch"}, "@docs", None),
        ("check_run", {"check_run": {"id": 71, "pull_requests": PULLS}}, "#7", "check_run:71"),
        ("check_run", {"check_run": {"id": 71, "pull_requests": PULLS[:1]}}, "#6", "check_run:71"),
        (
            "check_run",
            {"check_run": {"id": 71, "pull_requests": [], "check_suite": {"pull_requests": PULLS[1:]}}},
            "#7",
            "check_run:71",
        ),
        ("check_run", {"check_run": {"id": 71, "check_suite": {"head_branch": "main"}}}, "@main", "check_run:71"),
        ("check_suite", {"check_suite": {"id": 72, "head_branch": "main"}}, "@main", "check_suite:72"),
        ("check_suite", {"check_suite": {"id": 72, "head_branch": None}}, "", "check_suite:72"),
        (
            "workflow_run",
            {"workflow_run": {"id": 73, "head_branch": "docs", "pull_requests": PULLS[1:]}},
            "#7",
            "workflow_run:73",
        ),
        ("workflow_run", {"workflow_run": {"id": 73, "head_branch": "docs"}}, "@docs", "workflow_run:73"),
        ("workflow_job", {"workflow_job": {"id": 74, "head_branch": "docs"}}, "@docs", "workflow_job:74"),
        ("commit_comment", {"comment": {"id": 33}}, "", "commit_comment:33"),
        ("watch", {"action": "started"}, "", None),
        ("made_up_by_tomorrow", {"widget": {"id": 3}}, "", None),
    ],
)
def test_place_and_mark(event: str, fields: dict[str, object], place: str, mark: str | None) -> None:
    assert conversation(told(**fields)) == f"github:acme/api{place}"
    assert provider_id(event, told(**fields)) == mark


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"organization": {"login": "acme"}}, "github:acme"),
        ({"installation": {"id": 2, "account": {"login": "acme"}}}, "github:acme"),
        ({"enterprise": {"slug": "acme-inc"}}, "github:acme-inc"),
        ({}, "github:?"),
        ({"repository": {"name": "api"}}, "github:api"),
        ({"repository": {"full_name": " a/b\n\u202ec "}}, "github:a/b c"),
    ],
)
def test_places_without_a_repository(fields: dict[str, object], place: str) -> None:
    assert conversation(fields) == place


def test_five_events_of_a_pull_request_share_a_place() -> None:
    pull = {"id": 32, "number": 7}
    events: list[dict[str, object]] = [
        {"pull_request": pull},
        {"review": {"id": 1}, "pull_request": pull},
        {"comment": {"id": 2, "in_reply_to_id": 1}, "pull_request": pull},
        {"comment": {"id": 3}, "issue": {"id": 31, "number": 7, "pull_request": {}}},
        {"check_run": {"id": 71, "pull_requests": PULLS}},
    ]
    assert {conversation(told(**fields)) for fields in events} == {"github:acme/api#7"}


def test_text_is_bounded_and_says_what_was_written() -> None:
    pull = {"id": 32, "number": 7, "title": "t" * 5_000, "body": "b" * 50_000}
    opened = summary("pull_request", told(action="opened", pull_request=pull))
    assert len(opened) == TEXT_CHARS_MAX
    assert opened.startswith("mirelda-h: pull request opened, acme/api#7\nttt")
    labelled = summary("pull_request", told(action="labeled", pull_request=pull, label={"name": "tide"}))
    assert labelled.endswith("\nlabel: tide")
    assert "bbb" not in labelled


def test_text_of_a_push() -> None:
    commits = [{"id": f"{n:040x}", "message": f"change {n}\n\nat length"} for n in range(25)]
    text = summary("push", told(ref="refs/heads/main", forced=True, deleted=False, commits=commits))
    lines = text.splitlines()
    assert lines[:3] == ["mirelda-h: push, acme/api@main", "forced", "0000000 change 0"]
    assert lines[-2:] == ["0000000 change 19", "and 5 more commits"]


def test_text_of_a_check() -> None:
    check = {"id": 71, "name": "lint", "conclusion": "failure", "output": {"summary": "one wick too short"}}
    text = summary("check_run", told(action="completed", check_run=check))
    assert text == "mirelda-h: check run completed, acme/api\nlint\nconclusion: failure\none wick too short"
