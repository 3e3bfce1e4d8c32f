"""What the MCP server asks of the user, and what it says of its own accord: consent, and changes of a list."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Literal

import httpx2
import mcp_types as types
import pytest
import pytest_asyncio
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourcesListChanged
from tests.unit.http_cast import Site, site
from tests.waits import HANG_S

from keepsaid.domain.principal import Principal
from keepsaid.interfaces.agent_calls import CALLS, CallSite
from keepsaid.interfaces.mcp.server import server_of
from keepsaid.interfaces.mcp.tools import FULL
from keepsaid.interfaces.shapes import Shape

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEYS = {"ann": {"token": "a" * 40}, "boss": {"token": "b" * 40, "owner": True}}
MODES: tuple[Literal["auto", "legacy"], ...] = ("auto", "legacy")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    server = {"port": 0, "mcp_tools": "full"}
    async with site(tmp_path_factory.mktemp("home"), answering=False, keys=KEYS, server=server) as running:
        yield running


def server_for(here: Site, key: str) -> Any:
    """A server in this process, as `keepsaid mcp --key` makes one, that looks for changes all the time."""
    callers = {who.name: who for who in here.instance.config.principals().values()}
    ask = partial(_asked, CallSite(here.instance), callers[key])
    return server_of(FULL, lambda _request: (ask, ""), "1", look_s=0.01)


async def _asked(here: CallSite, who: Principal, name: str, fields: Mapping[str, object]) -> Shape:
    return await CALLS[name](here, who, fields)


class User:
    """A user who is asked, and answers as they do."""

    def __init__(self, action: Literal["accept", "decline", "cancel"], *, forget: bool = True) -> None:
        self._answer = types.ElicitResult(action=action, content={"forget": forget} if action == "accept" else None)
        self.questions: list[str] = []

    async def __call__(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.questions.append(params.message)
        return self._answer


async def saved(client: Client, text: str) -> str:
    return str(((await client.call_tool("memory_add", {"text": text})).structured_content or {})["id"])


async def forgotten(client: Client, memory: str, **more: str) -> dict[str, Any]:
    answer = await client.call_tool("memory_forget", {"ids": [memory], **more})
    assert not answer.is_error, answer.content
    return dict(answer.structured_content or {})


async def is_there(client: Client, memory: str) -> bool:
    return not (await client.call_tool("memory_get", {"ids": [memory]})).is_error


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_can_ask_its_user_forgets_in_one_call(one: Site, mode: Literal["auto", "legacy"]) -> None:
    user = User("accept")
    async with Client(server_for(one, "ann"), mode=mode, elicitation_callback=user) as client:
        memory = await saved(client, f"The vase of {mode} is cracked")
        done = await forgotten(client, memory)
        assert done["id"].startswith("fgt_")
        assert not await is_there(client, memory)
    [question] = user.questions
    assert f"The vase of {mode} is cracked" in question
    assert "memories: 1" in question


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("user", [User("decline"), User("cancel"), User("accept", forget=False)])
async def test_a_user_who_does_not_agree_keeps_all(one: Site, mode: Literal["auto", "legacy"], user: User) -> None:
    async with Client(server_for(one, "ann"), mode=mode, elicitation_callback=user) as client:
        memory = await saved(client, "The lamp came from Lisbon")
        assert (await forgotten(client, memory))["state"] == "declined"
        assert await is_there(client, memory)


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_cannot_ask_is_given_the_token_of_the_dry_run(
    one: Site, mode: Literal["auto", "legacy"]
) -> None:
    async with Client(server_for(one, "ann"), mode=mode) as client:
        memory = await saved(client, f"The rug of {mode} is red")
        counted = await forgotten(client, memory)
        assert await is_there(client, memory)
        assert (await forgotten(client, memory, confirm=counted["confirm"]))["id"].startswith("fgt_")


@pytest.mark.parametrize(("mode", "asks"), [("auto", True), ("legacy", False)])
async def test_over_http_the_user_is_asked_where_a_request_can_come_again(
    one: Site, mode: Literal["auto", "legacy"], asks: bool
) -> None:
    """In the former era the server has no way back to a client of whom it keeps nothing: it gives the token."""
    user = User("accept")
    head = {"Authorization": f"Bearer {'a' * 40}"}
    async with (
        httpx2.AsyncClient(headers=head, trust_env=False) as http,
        Client(
            streamable_http_client(f"{one.address.url}/mcp", http_client=http), mode=mode, elicitation_callback=user
        ) as client,
    ):
        done = await forgotten(client, await saved(client, f"The ladder of {mode} wobbles"))
    assert ("confirm" in done, len(user.questions)) == (not asks, int(asks))


async def test_what_was_agreed_to_is_not_widened(one: Site) -> None:
    """By a client that sends the state of one question with other memories."""
    async with Client(server_for(one, "ann"), elicitation_callback=User("accept")) as client:
        first, second = await saved(client, "The key is brass"), await saved(client, "The lock is iron")
        asked = await client.session.call_tool("memory_forget", {"ids": [first]}, allow_input_required=True)
        assert isinstance(asked, types.InputRequiredResult)
        agreed = types.ElicitResult(action="accept", content={"forget": True})
        answer = await client.session.call_tool(
            "memory_forget", {"ids": [second]}, input_responses={"consent": agreed}, request_state=asked.request_state
        )
        assert answer.is_error
        assert await is_there(client, first)
        assert await is_there(client, second)


async def test_the_owner_reads_the_personality_and_hears_of_a_new_file_and_nobody_else_does(one: Site) -> None:
    folder = one.home.agent("main")
    await asyncio.to_thread(partial(folder.mkdir, parents=True, exist_ok=True))
    await asyncio.to_thread((folder / "SOUL.md").write_text, "Answer plainly.\n", "utf-8")
    async with AsyncExitStack() as closing:
        boss = await closing.enter_async_context(Client(server_for(one, "boss")))
        ann = await closing.enter_async_context(Client(server_for(one, "ann")))
        listed = await boss.list_resources()
        assert ([str(found.uri) for found in listed.resources], listed.cache_scope) == (
            ["keepsaid://identity/SOUL.md"],
            "private",
        )
        read = await boss.read_resource("keepsaid://identity/SOUL.md")
        assert "Answer plainly." in str(read.contents[0])
        assert read.cache_scope == "private"
        assert (await ann.list_resources()).resources == []
        for name in ("SOUL.md", "USER.md", "../config.yaml", ""):
            with pytest.raises(MCPError):
                await ann.read_resource(f"keepsaid://identity/{name}")
        with pytest.raises(MCPError):
            await boss.read_resource("keepsaid://identity/../config.yaml")
        async with asyncio.timeout(HANG_S), boss.listen(resources_list_changed=True) as changes:
            await asyncio.to_thread((folder / "USER.md").write_text, "Ann is the owner.\n", "utf-8")
            assert isinstance(await anext(aiter(changes)), ResourcesListChanged)
        assert len((await boss.list_resources()).resources) == 2


async def test_a_stream_of_changes_ends_with_its_client_over_http(one: Site) -> None:
    head = {"Authorization": f"Bearer {'b' * 40}"}
    async with (
        httpx2.AsyncClient(headers=head, trust_env=False) as http,
        Client(streamable_http_client(f"{one.address.url}/mcp", http_client=http)) as client,
        asyncio.timeout(HANG_S),
        client.listen(resources_list_changed=True) as changes,
    ):
        assert changes.honored.resources_list_changed
