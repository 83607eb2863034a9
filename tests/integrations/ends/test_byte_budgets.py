"""``Budget(bytes=...)`` in every framework: the frameworks' own clients send requests over HTTP, and a server measures them."""

import asyncio
import base64
import contextlib
import io

import pytest
from endpoint_play import endpoint
from PIL import Image

from pagein import AgentMemory
from pagein.backends.open import open_store
from pagein.tokens import Budget
from pagein.tokens.bytes import json_bytes

pytestmark = pytest.mark.slow

PAGES, BYTES = 14, 9_000
BUDGET = Budget(100_000, bytes=BYTES)
TASK = "Read pages 1 to 14 with look, one call each. 天地玄黄 😀"
WORDS = ("天地玄黄宇宙洪荒", "привет ", "😀👍🏽", '"\\\t', "plain words ")


def page(number):
    """A page with many bytes and few tokens, or the other way round."""
    return f"page {number}: " + WORDS[number % len(WORDS)] * (400 if number % 3 else 3)


def picture():
    file = io.BytesIO()
    Image.frombytes("RGB", (24, 24), bytes(range(256)) * 6 + bytes(192)).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


class Reader:
    """The model: it looks at one page after the other, and measures each request."""

    def __init__(self):
        self.sizes = []

    def __call__(self, asked):
        self.sizes.append(json_bytes({"messages": asked["messages"]}))
        number = len(self.sizes)
        if number <= PAGES:
            return {"name": "look", "arguments": {"number": number}}
        tools = [tool["function"]["name"] for tool in asked["tools"]]
        return {"name": "final_answer", "arguments": {"answer": "Done."}} if "final_answer" in tools else "Done."


def run_langchain(path, url):
    from langchain.agents import create_agent
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    from pagein.integrations.langchain.middleware import PageinMiddleware

    model = ChatOpenAI(model="m", base_url=url, api_key="k")
    look = tool("look", description="Look at a page.")(lambda number: page(int(number)))
    with contextlib.closing(PageinMiddleware(path, budget=BUDGET, tools=False)) as pages:
        agent = create_agent(model, [look], middleware=[pages])
        image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture()}"}}
        task = {"role": "user", "content": [{"type": "text", "text": TASK}, image]}
        agent.invoke({"messages": [task]}, {"configurable": {"thread_id": "a"}, "recursion_limit": 100})


def run_openai_agents(path, url):
    import asyncio

    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    from pagein.integrations.openai_agents.session import PageinSession

    @function_tool
    def look(number: int) -> str:
        """Look at a page."""
        return page(number)

    set_tracing_disabled(True)
    session = PageinSession("a", path, budget=BUDGET)
    agent = Agent(
        name="reader", tools=[look], model=OpenAIChatCompletionsModel("m", AsyncOpenAI(base_url=url, api_key="k"))
    )
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{picture()}", "detail": "auto"}
    task = [{"role": "user", "content": [{"type": "input_text", "text": TASK}, image]}]
    asyncio.run(Runner.run(agent, task, session=session, run_config=session.run_config(), max_turns=100))
    session.close()


def run_pydantic_ai(path, url):
    from pydantic_ai import Agent, BinaryContent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    from pagein.integrations.pydantic_ai.capability import Pagein

    with contextlib.closing(Pagein(path, budget=BUDGET, tools=False)) as pages:
        model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=url, api_key="k"))
        agent = Agent(model, capabilities=[pages], instructions="Be exact. 天地")
        agent.tool_plain(lambda number: page(int(number)), name="look")
        # run_sync leaves the loop it made open, and who collects it is warned in the middle of another test.
        asyncio.run(agent.run([TASK, BinaryContent(base64.b64decode(picture()), media_type="image/png")]))


def run_smolagents(path, url):
    from smolagents import OpenAIServerModel, Tool, ToolCallingAgent
    from smolagents.monitoring import LogLevel

    from pagein.integrations.smolagents import PageinMemory

    class Look(Tool):
        name, description, output_type = "look", "Look at a page.", "string"
        inputs = {"number": {"type": "integer", "description": "The page."}}  # noqa: RUF012 - as smolagents wants it

        def forward(self, number: int) -> str:
            return page(number)

    model = OpenAIServerModel("m", api_base=url, api_key="k")
    agent = ToolCallingAgent([Look()], model, max_steps=40, verbosity_level=LogLevel.OFF)
    with PageinMemory.attach(agent, path, budget=BUDGET):
        agent.run(TASK, images=[Image.open(io.BytesIO(base64.b64decode(picture())))])


@pytest.fixture(scope="module", params=[run_langchain, run_openai_agents, run_pydantic_ai, run_smolagents])
def played(request, tmp_path_factory):
    """The store of a run, and its model."""
    path, reader = tmp_path_factory.mktemp("run") / "run.db", Reader()
    with pytest.MonkeyPatch.context() as patch, endpoint(reader) as (url, _):
        patch.setenv("NO_PROXY", "127.0.0.1")
        request.param(path, url)
    return path, reader


def test_no_request_has_more_bytes_than_the_budget(played):
    _, reader = played
    assert len(reader.sizes) > PAGES
    assert max(reader.sizes) <= BYTES
    assert max(reader.sizes) > BYTES / 3  # what fits is shown


def test_every_request_is_rendered_again_until_something_in_it_is_erased(played):
    path, reader = played
    with contextlib.closing(open_store(str(path), readonly=True)) as store:
        (session,) = [name for name in store.sessions() if store.head(name) > PAGES]
    with AgentMemory.open(path, session=session, budget=1_000) as memory:
        records = memory.requests()
        assert len(records) == len(reader.sizes)
        before = [memory.request(record.number) for record in records]
        assert [rendered.problem for rendered in before] == [""] * len(records)
        assert any(record.compactions for record in records)
        (found,) = memory.recall("page 9")[:1]
        memory.erase(found.handle)
        after = [memory.request(record.number) for record in records]
    assert {rendered.problem for rendered in after} == {"", "something in it was erased since"}
    assert [rendered.problem == "" for rendered in after] == [
        one.request == other.request for one, other in zip(before, after, strict=True)
    ]
