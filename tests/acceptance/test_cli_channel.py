"""`keepsaid channel`: a bot is set up from a token, paired, paused and removed."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from tests.acceptance.program import Program

from keepsaid.testing.providers.telegram import TOKEN, TelegramServer

_CODE = re.compile(r"\b[A-Z2-9]{8}\b")


def program_of(home: Path, telegram: TelegramServer) -> Program:
    """A home that knows where the scripted Bot API is."""
    return Program(home, {"KEEPSAID_TELEGRAM__API_URL": telegram.url, "KEEPSAID_MODELS__CHAT": "none"})


async def test_a_token_is_all_it_takes(tmp_path: Path) -> None:
    """Set up, written to, paired, answered: what was said before the pairing as well."""
    async with TelegramServer() as telegram:
        program = program_of(tmp_path, telegram)
        run = program.run
        added = await asyncio.to_thread(run, "channel", "add", "telegram", "--token-file", "-", given=f"{TOKEN}\n")
        assert "@scripted_bot (4711)" in added.out
        assert (tmp_path / "config" / "telegram.token").stat().st_mode & 0o777 == 0o600
        config = (tmp_path / "config" / "config.yaml").read_text("utf-8")
        assert TOKEN.partition(":")[2] not in config + added.out + added.err
        with program.serving():
            telegram.say("my dog is called Rex")
            await telegram.wait_for(lambda: len(telegram.sent) == 1)
            [code] = _CODE.findall(telegram.sent[0].text)[:1]
            listed = (await asyncio.to_thread(run, "channel", "ls", "--json")).json
            assert [(one["who"], one["state"], one["code"]) for one in listed["people"]] == [
                ("telegram:4711:7", "pending", code)
            ]
            assert {one["channel"]: one["access"] for one in listed["channels"]}["telegram"] == "paired"
            can = {one["channel"]: one["abilities"] for one in listed["channels"]}
            assert (can["telegram"]["chars_max"], can["telegram"]["unit"], can["http"]) == (4_096, "utf16", None)
            dropped = "inbox", "ls", "--state", "dropped", "--json"
            while not (await asyncio.to_thread(run, *dropped)).json["messages"]:
                pass
            paired = await asyncio.to_thread(run, "channel", "pair", "--owner", code, "--answer")
            assert "telegram:4711:7 (Person 7) is the owner now" in paired.out
            await telegram.wait_for(lambda: len(telegram.sent) == 2)
            telegram.say("what is the name of my dog?")
            await telegram.wait_for(lambda: "Rex" in telegram.sent[-1].text)
            shown = await asyncio.to_thread(run, "channel", "ls")
            assert re.search(r"telegram +4711 +up +paired", shown.out)
            assert re.search(r"telegram:4711:7 +Person 7 +owner +-", shown.out)


async def test_what_is_wrong_with_a_token_is_said_before_anything_is_saved(tmp_path: Path) -> None:
    async with TelegramServer() as telegram:
        run = program_of(tmp_path, telegram).run
        for token, what, code in (
            ("hello", "this is not a token for telegram", 1),
            ("4711:another-token-of-a-test", "Telegram refuses the token: 401: Unauthorized", 1),
            ("", "this is not a key", 1),
        ):
            ran = await asyncio.to_thread(
                run, "channel", "add", "telegram", "--token-file", "-", given=f"{token}\n", code=code
            )
            assert what in ran.err
            assert "another-token" not in ran.err + ran.out
        assert "that listens by a token" in (await asyncio.to_thread(run, "channel", "add", "fax", code=1)).err
        assert "--token-env or --token-file" in (await asyncio.to_thread(run, "channel", "add", "telegram", code=2)).err
        assert not (tmp_path / "config" / "config.yaml").exists()
        assert not (tmp_path / "config" / "telegram.token").exists()


async def test_a_channel_is_tested_paused_and_removed(tmp_path: Path) -> None:
    async with TelegramServer() as telegram:
        program = program_of(tmp_path, telegram)
        program.configure("# mine\nagent: main\n")
        run = Program(tmp_path, {**program.variables, "BOT": TOKEN}).run
        assert "telegram.token is not set" in (await asyncio.to_thread(run, "channel", "test", "telegram", code=1)).err
        await asyncio.to_thread(run, "channel", "add", "telegram", "--token-env", "BOT")
        telegram.posts.url = "https://user:secret@hooks.example/4711"
        tested = await asyncio.to_thread(run, "channel", "test", "telegram")
        assert "a webhook sends its messages to hooks.example" in tested.out
        assert "secret" not in tested.out
        await asyncio.to_thread(run, "channel", "pause", "telegram")
        assert re.search(r"telegram +- +paused", (await asyncio.to_thread(run, "channel", "ls")).out)
        await asyncio.to_thread(run, "channel", "pause", "telegram", "--off")
        await asyncio.to_thread(run, "channel", "rm", "telegram")
        assert (tmp_path / "config" / "config.yaml").read_text("utf-8") == "# mine\nagent: main\n"
    unreachable = await asyncio.to_thread(run, "channel", "add", "telegram", "--token-env", "BOT", code=1)
    assert "Telegram cannot be reached" in unreachable.err
    assert (tmp_path / "config" / "config.yaml").read_text("utf-8") == "# mine\nagent: main\n"


@pytest.mark.parametrize("command", ["approve", "pair", "revoke"])
def test_nobody_is_let_in_by_mistake(tmp_path: Path, command: str) -> None:
    ran = Program(tmp_path).run("channel", command, "not a code", code=1)
    assert "names nobody" in ran.err
