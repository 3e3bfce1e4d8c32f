"""Traces of a running instance, as a collector on loopback receives them: names, parents, attributes, and no text."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from tests.unit.http_cast import Site, site
from tests.unit.trace_cast import Collector, attributes, collecting

from keepsaid.adapters.models.choose import FunctionModel
from keepsaid.adapters.redaction.redactor import PatternRedactor
from keepsaid.app.instance import Outside
from keepsaid.errors import ConfigError
from keepsaid.interfaces.cli.logs import JsonLines
from keepsaid.interfaces.sdk.agents import connect
from keepsaid.ports.model import AgentPrompt
from keepsaid.testing.model_script import Call, Refuse, Say, Script
from keepsaid.testing.model_server import ModelServer
from keepsaid.testing.reply_receiver import ReplyReceiver

SECRET = "the password is swordfish"
TOKEN = "collector-token-of-the-test"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as listening:
        yield listening


def traced(collector: Collector, server: ModelServer, **more: Any) -> dict[str, Any]:
    """Settings of an instance that sends its traces to a collector, and asks a scripted model."""
    telemetry = {"traces": True, "endpoint": collector.url, "headers": {"Authorization": TOKEN}, **more}
    return {"telemetry": telemetry, "models": {"chat": "openai/scripted", "base_url": server.url, "api_key": "none"}}


async def converse(root: Path, settings: dict[str, Any], text: str = SECRET) -> dict[str, Any]:
    """Say something to an instance, wait for the answer, and stop the instance; returns the story of the message."""
    async with site(root, **settings) as here:
        body = {"text": text, "sender": "zacharias", "name": "Zacharias Q", "conversation": "kitchen"}
        response = await here.put(body)
        return await here.settled(response.json()["id"])


async def test_a_message_is_traced_from_its_arrival_to_its_answer(tmp_path: Path, collector: Collector) -> None:
    script = Script(Call("memory_search", {"query": "fish"}), default=Say("done"))
    async with ModelServer(script, model="scripted") as server:
        story = await converse(tmp_path, traced(collector, server))
    assert story["state"] == "done"
    receive, turn, tool = (
        collector.only(name) for name in ("keepsaid.receive", "keepsaid.turn", "execute_tool memory_search")
    )
    assert attributes(receive) == {"keepsaid.channel": "http", "keepsaid.intake": "stored"}
    assert [link.span_id for link in turn.links] == [receive.span_id]
    found = attributes(turn)
    assert found["gen_ai.operation.name"] == "invoke_agent"
    assert found["gen_ai.agent.name"] == "main"
    assert found["gen_ai.conversation.id"] == found["keepsaid.lane"]
    assert tool.parent_span_id == turn.span_id
    called = attributes(tool)
    assert called["gen_ai.tool.name"] == "memory_search"
    assert called["gen_ai.tool.call.id"] == called["keepsaid.call_id"] != ""
    searches = collector.named("search_memory")
    assert {one.parent_span_id for one in searches} == {turn.span_id, tool.span_id}
    assert all("gen_ai.memory.record.count" in attributes(one) for one in searches)


async def test_the_call_of_the_model_has_one_span_within_its_turn(tmp_path: Path, collector: Collector) -> None:
    async with ModelServer(Script(default=Say("done")), model="scripted") as server:
        await converse(tmp_path, traced(collector, server))
        calls = len(server.requests)
    turn = collector.only("keepsaid.turn")
    chats = [one for one in collector.named("chat scripted") if one.parent_span_id == turn.span_id]
    assert len(chats) == 1
    assert len(collector.named("chat scripted")) == calls
    found = attributes(chats[0])
    assert found["gen_ai.request.model"] == "scripted"
    assert found["gen_ai.usage.input_tokens"]


async def test_no_text_and_no_name_leaves_with_a_trace(tmp_path: Path, collector: Collector) -> None:
    script = Script(Call("memory_search", {"query": "swordfish"}), default=Say("the swordfish is safe"))
    async with ModelServer(script, model="scripted") as server:
        await converse(tmp_path, traced(collector, server))
    assert collector.spans
    for body in collector.bodies:
        for word in (b"swordfish", b"kitchen", b"acharias", b"You are"):
            assert word not in body, word


async def test_the_collector_gets_its_header_and_who_sends(tmp_path: Path, collector: Collector) -> None:
    async with ModelServer(Script(default=Say("done")), model="scripted") as server:
        await converse(tmp_path, traced(collector, server))
    assert {one["authorization"] for one in collector.headers} == {TOKEN}
    assert {one["service.name"] for one in collector.resources} == {"keepsaid"}


async def test_a_delivery_is_traced_and_counted(tmp_path: Path, collector: Collector) -> None:
    async with (
        ModelServer(Script(default=Say("done")), model="scripted") as server,
        ReplyReceiver() as receiver,
        site(tmp_path, channels={"http": {"reply_hosts": [receiver.host]}}, **traced(collector, server)) as here,
    ):
        await here.put({"text": SECRET, "sender": "ann", "conversation": "kitchen", "reply_url": receiver.url})
        await receiver.wait_for(1)
        counted = await _until_counted(here, "keepsaid_delivery_seconds_count 1.0")
    assert 'keepsaid_replies_total{channel="http",outcome="confirm"} 1.0' in counted
    assert 'keepsaid_model_tokens_total{kind="input",model="openai/scripted"}' in counted
    found = attributes(collector.only("keepsaid.deliver"))
    assert found == {"keepsaid.channel": "http", "keepsaid.outcome": "confirm", "keepsaid.attempt": 1}


async def _until_counted(here: Site, line: str) -> str:
    async with asyncio.timeout(120):
        while True:
            text = (await here.client.get("/metrics")).text
            if line in text:
                return text


async def test_a_turn_that_fails_says_so_without_the_words_of_the_failure(tmp_path: Path, collector: Collector) -> None:
    async with ModelServer(Script(default=Refuse(400, message="swordfish is not allowed")), model="scripted") as server:
        story = await converse(tmp_path, traced(collector, server))
    assert story["state"] == "dead"
    turn = collector.only("keepsaid.turn")
    assert attributes(turn)["error.type"] == "ModelRejected"
    assert turn.status.code == turn.status.STATUS_CODE_ERROR
    assert not [body for body in collector.bodies if b"swordfish" in body]


async def test_a_line_of_the_log_names_its_trace(tmp_path: Path, collector: Collector) -> None:
    lines: list[dict[str, Any]] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.loads(JsonLines(PatternRedactor()).format(record)))

    handler, log = Kept(), logging.getLogger("keepsaid.test")

    async def answer(_prompt: AgentPrompt) -> str:
        log.warning("within the turn")
        return "done"

    log.addHandler(handler)
    try:
        async with ModelServer(Script(), model="scripted") as server:
            settings = traced(collector, server)
            outside = Outside(answerer=FunctionModel(answer))
            async with site(tmp_path, outside=outside, **settings) as here:
                await here.settled((await here.say("hello")).json()["id"])
        log.warning("outside of it")
    finally:
        log.removeHandler(handler)
    assert lines[0]["trace_id"] == collector.only("keepsaid.turn").trace_id.hex()
    assert "trace_id" not in lines[1]


async def test_traces_without_their_library_say_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("keepsaid.adapters.telemetry.otel", raising=False)
    monkeypatch.setitem(sys.modules, "keepsaid.adapters.telemetry.otel", None)
    with pytest.raises(ConfigError, match="traces need libraries") as refused:
        async with site(tmp_path, telemetry={"traces": True}):
            pass
    assert "keepsaid[otel]" in refused.value.hint


async def test_without_the_conventions_spans_have_own_names_alone(tmp_path: Path, collector: Collector) -> None:
    script = Script(Call("memory_search", {"query": "fish"}), default=Say("done"))
    async with ModelServer(script, model="scripted") as server:
        await converse(tmp_path, traced(collector, server, genai="off"))
    assert {one.name.partition(".")[0] for one in collector.spans} == {"keepsaid"}
    assert collector.only("keepsaid.tool")
    assert not [name for one in collector.spans for name in attributes(one) if not name.startswith("keepsaid.")]


async def test_the_lane_of_two_messages_has_one_hash_and_that_of_another_has_another(
    tmp_path: Path, collector: Collector
) -> None:
    async with (
        ModelServer(Script(default=Say("done")), model="scripted") as server,
        site(tmp_path, **traced(collector, server)) as here,
    ):
        for conversation in ("kitchen", "kitchen", "hall"):
            response = await here.say("hello", conversation=conversation)
            await here.settled(response.json()["id"])
    hashes = [attributes(one)["keepsaid.lane"] for one in collector.named("keepsaid.turn")]
    assert [hashes[0] == one for one in hashes] == [True, True, False]


async def test_a_share_of_nothing_sends_nothing(tmp_path: Path, collector: Collector) -> None:
    async with ModelServer(Script(default=Say("done")), model="scripted") as server:
        await converse(tmp_path, traced(collector, server, share=0.0))
    assert collector.spans == []


async def test_a_collector_that_is_away_holds_nothing_up(tmp_path: Path) -> None:
    async with ModelServer(Script(default=Say("done")), model="scripted") as server:
        with collecting() as gone:
            settings = traced(gone, server)
        story = await converse(tmp_path, settings)
    assert story["state"] == "done"


async def test_a_trace_that_an_mcp_client_began_goes_on(tmp_path: Path, collector: Collector) -> None:
    """By the `traceparent` in `_meta` of its request (W3C Trace Context)."""
    trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    settings: dict[str, Any] = {"keys": {"ann": {"token": "a" * 40}}, "server": {"port": 0, "mcp_tools": "full"}}
    telemetry = {"traces": True, "endpoint": collector.url, "headers": {"Authorization": TOKEN}}
    async with site(tmp_path, telemetry=telemetry, **settings) as here:
        call = {"name": "inbox_put", "arguments": {"text": SECRET, "conversation": "kitchen"}}
        given = {**call, "_meta": {"traceparent": f"00-{trace}-{parent}-01"}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": given}
        head = {"Authorization": f"Bearer {'a' * 40}", "Accept": "application/json, text/event-stream"}
        response = await here.client.post("/mcp", json=body, headers=head)
        assert response.status_code == 200, response.text
        assert not response.json()["result"]["isError"], response.text
    receive = collector.only("keepsaid.receive")
    assert (receive.trace_id.hex(), receive.parent_span_id.hex()) == (trace, parent)
    assert SECRET not in str(collector.spans)


async def test_a_trace_goes_on_from_a_program_to_the_instance_it_asks(tmp_path: Path, collector: Collector) -> None:
    """As `keepsaid mcp` asks, in the trace of its client; a header that is none begins a trace of its own."""
    number, parent = 0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7
    flags = trace.TraceFlags(trace.TraceFlags.SAMPLED)
    span = trace.NonRecordingSpan(trace.SpanContext(number, parent, is_remote=True, trace_flags=flags))
    telemetry = {"traces": True, "endpoint": collector.url, "headers": {"Authorization": TOKEN}}
    async with (
        site(tmp_path, telemetry=telemetry, keys={"ann": {"token": "a" * 40}}) as here,
        connect(url=here.address.url, key="a" * 40) as memory,
    ):
        with trace.use_span(span):
            await memory.inbox.put("kitchen", SECRET)
        head = {"Authorization": f"Bearer {'a' * 40}", "traceparent": "nonsense"}
        said = {"conversation": "kitchen", "text": "hello"}
        assert (await here.client.post("/v1/agent/put", json=said, headers=head)).status_code == 200
    first, second = collector.named("keepsaid.receive")
    assert (int(first.trace_id.hex(), 16), int(first.parent_span_id.hex(), 16)) == (number, parent)
    assert (second.trace_id != first.trace_id, second.parent_span_id) == (True, b"")
