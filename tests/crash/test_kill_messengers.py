"""Messengers: the runtime is killed again and again while people write to its bot, and requests fail in every way."""

from __future__ import annotations

import asyncio
import random
import re
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import apsw
import pytest
from tests.acceptance.program import WITHIN_S, Program
from tests.crash.messenger_cast import MESSENGERS, TROUBLE
from tests.figures import Figures

from keepsaid.app.stores import read_lines
from keepsaid.config import Home
from keepsaid.domain.line import LineState
from keepsaid.testing.model_script import ChatRequest, Say
from keepsaid.testing.model_server import ModelServer
from keepsaid.testing.providers.mischief import mischief_of

_KILLS, _SOAK_KILLS = 2, 50
_TROUBLE = 0.15
_EACH = 12
"""Messages that are said between two kills."""

_LOOK_S = 0.02
"""Seconds between two looks at what the runtime wrote down: looking all the time takes the core that it works on."""

_REPEAT = "(may be a repeat)"
_NUMBER = re.compile(r"parcel (\d+)\b")
_UNSETTLED = """
SELECT ? - (SELECT count(*) FROM message) + (SELECT count(*) FROM message WHERE NOT EXISTS (
  SELECT 1 FROM batch WHERE batch.lane_id = message.lane_id AND message.number BETWEEN batch.first AND batch.last
    AND batch.state = 'done'
)) + (SELECT count(*) FROM reply WHERE state <> 'sent')
"""


def echo(request: ChatRequest) -> Say:
    """The parcels that are named in what is answered."""
    numbers = _NUMBER.findall(request.last("user"))
    return Say(" and ".join(f"answer to parcel {n}" for n in numbers) or "nothing to say")


@asynccontextmanager
async def serving(program: Program) -> AsyncIterator[Process]:
    """A runtime, until it is killed."""
    process = await asyncio.create_subprocess_exec(
        *program.command("serve", "--port", "0", "--json"),
        env=program.environment,
        stdout=DEVNULL,
        stderr=DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        await process.wait()


async def let(process: Process) -> None:
    """Let a runtime run for a moment; fails when it ends by itself."""
    with suppress(TimeoutError):
        code = await asyncio.wait_for(process.wait(), _LOOK_S)
        raise AssertionError(f"the runtime ended by itself: {code}")


async def until_up(process: Process, home: Path) -> None:
    """Wait until the line of the bot is up, as the runtime writes it down."""
    async with asyncio.timeout(WITHIN_S):
        while not any(line.state is LineState.UP for line in read_lines(Home.at(home))):
            await let(process)


def unsettled(home: Path, said: int) -> int:
    """How many of the messages that were said are not answered, with the replies that are not known to have arrived."""
    with apsw.Connection(str(Home.at(home).store("buffer.db")), flags=apsw.SQLITE_OPEN_READONLY) as db:
        db.set_busy_timeout(60_000)
        [(count,)] = db.execute(_UNSETTLED, (said,))
    return int(count)


async def until_settled(process: Process, home: Path, said: int) -> None:
    """Wait until everything said is answered."""
    async with asyncio.timeout(WITHIN_S):
        while await asyncio.to_thread(unsettled, home, said):
            await let(process)


def check_chat(texts: Sequence[str], said: Sequence[int]) -> list[str]:
    """What is wrong with what a chat was sent: something missing, a repeat without a mark, an answer out of order."""
    wrong, first = list[str](), list[int]()
    seen = set[str]()
    for text in texts:
        plain = text.removeprefix(_REPEAT).lstrip("\n")
        if plain in seen and text == plain:
            wrong.append(f"repeated without a mark: {plain}")
        if plain not in seen:
            first += map(int, _NUMBER.findall(plain))
        seen.add(plain)
    return wrong + ([] if first == list(said) else [f"said {said}, answered {first}"])


async def killed(home: Path, name: str, kills: int, seed: int) -> tuple[list[str], dict[str, int]]:
    """What is wrong after so many kills, and what was counted."""
    chance = random.Random(f"{name}:{seed}")
    messenger = MESSENGERS[name](mischief_of(seed, TROUBLE.get(name, _TROUBLE)))
    said: dict[str, list[int]] = {chat: [] for chat in messenger.chats}

    def say(chat: str) -> int:
        number = 1 + sum(map(len, said.values()))
        said[chat].append(number)
        messenger.say(f"this is parcel {number}", chat)
        return number

    async with messenger.server, ModelServer(echo) as model:
        program = Program(home, {**messenger.variables, "OPENAI_API_KEY": "k"})
        program.configure(
            f"models: {{chat: openai/scripted, base_url: {model.url}}}\n"
            f"buffer: {{window_ms: 0}}\nchannels: {{{messenger.name}: {{access: anyone, answer: always}}}}\n"
        )
        async with serving(program) as process:
            # what is said before the first contact with a chat is nobody's to answer
            await until_up(process, home)
            number = [say(chat) for chat in messenger.chats][-1]
            await until_settled(process, home, number)
        for _ in range(kills):
            async with serving(program):
                await messenger.wait_for_requests(messenger.requests + 1, WITHIN_S)
                chats = [chance.choice(messenger.chats) for _ in range(_EACH)]
                number = [say(chat) for chat in chats][-1]
                await messenger.wait_for_tries(messenger.tries + chance.randint(1, len(set(chats))), WITHIN_S)
        messenger.calm()
        async with serving(program) as process:
            await until_settled(process, home, number)
        texts = messenger.texts()
        wrong = [f"{chat}: {one}" for chat in said for one in check_chat(texts[chat], said[chat])]
        sent = [text for several in texts.values() for text in several]
        marked = sum(text.startswith(_REPEAT) for text in sent)
        return wrong, {"said": number, "sent": len(sent), "marked": marked}


def test_what_is_wrong_is_seen() -> None:
    answers = ["answer to parcel 1", "answer to parcel 2 and answer to parcel 3"]
    assert check_chat([*answers, f"{_REPEAT}\n{answers[1]}"], [1, 2, 3]) == []
    assert check_chat([*answers, answers[1]], [1, 2, 3]) == [f"repeated without a mark: {answers[1]}"]
    assert check_chat(answers[::-1], [1, 2, 3]) == ["said [1, 2, 3], answered [2, 3, 1]"]
    assert check_chat(answers[:1], [1, 2]) == ["said [1, 2], answered [1]"]


@pytest.mark.parametrize("name", MESSENGERS)
async def test_nothing_is_lost_through_kills(tmp_path: Path, name: str) -> None:
    """Everything said is answered once, in its chat and in order; what arrived again says so."""
    wrong, counts = await killed(tmp_path, name, _KILLS, seed=1)
    assert wrong == []
    assert counts["said"] >= _KILLS * _EACH


@pytest.mark.soak
@pytest.mark.parametrize("name", MESSENGERS)
async def test_nothing_is_lost_through_many_kills(tmp_path: Path, figures: Figures, name: str) -> None:
    for seed in range(10):
        (home := tmp_path / str(seed)).mkdir()
        wrong, counts = await killed(home, name, _SOAK_KILLS, seed)
        figures(messenger=name, seed=seed, **counts)
        assert wrong == []
