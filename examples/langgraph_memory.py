"""A graph of LangGraph whose store is keepsaid: a node finds what another run put."""

import asyncio

from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime

from keepsaid import Keepsaid
from keepsaid.frameworks.langgraph import Store


async def answer(state: MessagesState, runtime: Runtime[None]) -> dict[str, object]:
    """In place of a model: it answers with what the store finds, and puts what was said."""
    said = state["messages"][-1].text
    found = await runtime.store.asearch(("ann", "pets"), query=said)
    await runtime.store.aput(("ann", "pets"), key="cat", value={"text": said})
    return {"messages": [("ai", found[0].value["text"] if found else "I do not know.")]}


async def main() -> None:
    async with Keepsaid.open(settings={"models": {"chat": "none"}}) as ks:
        graph = StateGraph(MessagesState).add_node(answer).add_edge(START, "answer")
        compiled = graph.compile(store=Store(ks.agent("ann")))
        for said in ("My cat is called Miso.", "What is my cat called?"):
            state = await compiled.ainvoke({"messages": [("user", said)]})
        print(state["messages"][-1].text)
        assert state["messages"][-1].text == "My cat is called Miso."


asyncio.run(main())
