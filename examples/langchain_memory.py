"""An agent of LangChain that remembers across threads, in a program without an event loop."""

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import SimpleChatModel

from keepsaid import Keepsaid
from keepsaid.frameworks.blocking import opened
from keepsaid.frameworks.langchain import Middleware


class Answers(SimpleChatModel):
    """In place of a model: it knows what it is shown."""

    _llm_type = "answers"

    def _call(self, messages, *_rest, **_more):
        return "Miso!" if "called Miso" in str(messages) else "I do not know."


with opened(Keepsaid.open(settings={"models": {"chat": "none"}})) as ks:
    for conversation, said in (("monday", "My cat is called Miso."), ("tuesday", "What is my cat called?")):
        agent = create_agent(Answers(), middleware=[Middleware(ks.agent("ann"), conversation)])
        state = agent.invoke({"messages": [{"role": "user", "content": said}]})
    print(state["messages"][-1].text)
    assert state["messages"][-1].text == "Miso!"
    assert "called Miso" not in str(state["messages"])
