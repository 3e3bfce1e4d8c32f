"""Messengers: the runtime is killed again and again while people write to its bot, and requests fail in every way."""

from __future__ import annotations

import asyncio
import random
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import apsw
import pytest
from tests.acceptance.program import WITHIN_S, Program
from tests.crash.messenger_base import Arrival
from tests.crash.messenger_cast import MESSENGERS, TROUBLE
from tests.crash.messenger_files import REPEAT, answering, check_chat, check_kept, file_of, written
from tests.figures import Figures

from keepsaid.app.stores import read_lines
from keepsaid.config import Home
from keepsaid.domain.line import LineState
from keepsaid.testing.model_server import ModelServer
from keepsaid.testing.providers.mischief import mischief_of

_KILLS, _SOAK_KILLS = 2, 50
_TROUBLE = 0.15
_EACH_MIN = 8
_LOOK_S = 0.02
"""Seconds between two looks at what the runtime wrote down: looking all the time takes the core that it works on."""

_UNSETTLED = """
SELECT ? - (SELECT count(*) FROM message) + (SELECT count(*) FROM message WHERE NOT EXISTS (
  SELECT 1 FROM batch WHERE batch.lane_id = message.lane_id AND message.number BETWEEN batch.first AND batch.last
    AND batch.state = 'done'
)) + (SELECT count(*) FROM reply WHERE state <> 'sent') + (SELECT count(*) FROM file WHERE state = 'waiting')
"""


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


async def killed(home: Path, name: str, kills: int, seed: int) -> tuple[list[str], dict[str, int]]:
    """What is wrong after so many kills, and what was counted."""
    chance = random.Random(f"{name}:{seed}")
    messenger = MESSENGERS[name](mischief_of(seed, TROUBLE.get(name, _TROUBLE)))
    said: dict[str, list[int]] = {chat: [] for chat in messenger.chats}

    def say(chat: str) -> int:
        number = 1 + sum(map(len, said.values()))
        said[chat].append(number)
        file = file_of(number) if messenger.hands_out else None
        if file is None:
            messenger.say(f"this is parcel {number}", chat)
        else:
            messenger.send(f"this is parcel {number}", chat, *file)
        return number

    async with messenger.server, ModelServer(answering(messenger.share)) as model:
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
                chats = [chance.choice(messenger.chats) for _ in range(messenger.each)]
                number = [say(chat) for chat in chats][-1]
                tried = messenger.tries + messenger.downloads
                await messenger.wait_for_tries(tried + chance.randint(1, len(set(chats))), WITHIN_S)
        messenger.calm()
        async with serving(program) as process:
            await until_settled(process, home, number)
        arrived = messenger.arrived()
        wrong, boxes, left = check_kept(Home.at(home), hands_out=messenger.hands_out)
        wrong += [f"{chat}: {one}" for chat in said for one in check_chat(arrived[chat], said[chat], boxes)]
        sent = [one for several in arrived.values() for one in several]
        files, marked = sum(len(one.files) for one in sent), sum(one.text.startswith(REPEAT) for one in sent)
        counts = {"said": number, "sent": len(sent), "marked": marked}
        return wrong, {**counts, "files_in": len(boxes), "files_left": left, "files_out": files}


def test_what_is_wrong_is_seen() -> None:
    answers = [Arrival("answer to parcel 1"), Arrival("answer to parcel 2 and answer to parcel 3")]
    assert check_chat([*answers, Arrival(f"{REPEAT}\n{answers[1].text}")], [1, 2, 3]) == []
    assert check_chat([*answers, answers[1]], [1, 2, 3]) == [f"repeated without a mark: {answers[1].text}"]
    assert check_chat(answers[::-1], [1, 2, 3]) == ["said [1, 2, 3], answered [2, 3, 1]"]
    assert check_chat(answers[:1], [1, 2]) == ["said [1, 2], answered [1]"]


def test_what_is_wrong_with_files_is_seen() -> None:
    """One is missing, cut, in another chat, or repeated without a mark."""
    whole, words = written(1)[1].encode(), Arrival("answer to parcel 1 brings answer-1.md")
    assert check_chat([words, Arrival("", (whole,)), Arrival(REPEAT, (whole,))], [1]) == []
    assert check_chat([words], [1]) == ["brought [], not ['answer-1.md']"]
    twice = [Arrival("", (whole,))] * 2
    assert check_chat([words, *twice], [1])[0].startswith("a file repeated without a mark")
    assert check_chat([words, Arrival("", (whole[1:],))], [1])[0].startswith("brought ['a foreign file")
    assert check_chat([Arrival("", (whole,))], [])[0].startswith("brought ['a foreign file")


@pytest.mark.parametrize("name", MESSENGERS)
async def test_nothing_is_lost_through_kills(tmp_path: Path, name: str) -> None:
    """Everything said is answered once, in its chat and in order, with its files; what arrived again says so."""
    wrong, counts = await killed(tmp_path, name, _KILLS, seed=1)
    assert wrong == []
    assert counts["said"] >= _KILLS * _EACH_MIN
    assert counts["files_out"] >= _KILLS


@pytest.mark.soak
@pytest.mark.parametrize("name", MESSENGERS)
async def test_nothing_is_lost_through_many_kills(tmp_path: Path, figures: Figures, name: str) -> None:
    for seed in range(10):
        (home := tmp_path / str(seed)).mkdir()
        wrong, counts = await killed(home, name, _SOAK_KILLS, seed)
        figures(messenger=name, seed=seed, **counts)
        assert wrong == []
