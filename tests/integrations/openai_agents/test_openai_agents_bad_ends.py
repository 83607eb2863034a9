"""What goes wrong in a run of an agent of the OpenAI Agents SDK."""

import asyncio
import json

import pytest
from agents import Agent, RunConfig, Runner, function_tool
from agents.testing import function_call
from bad_ends_play import BUDGET, BadEnds, Breaks, Call, Host
from openai_agents_play import Model

from pagein.integrations.openai_agents.session import PageinSession

pytestmark = pytest.mark.slow

UNKNOWN = [
    {"type": "hologram", "id": "h_1", "deep": [{"a": None}]},
    {"role": "user", "content": [{"type": "input_hologram", "layers": 3}]},
    {"type": "message", "role": "assistant", "content": [{"type": "output_hologram", "layers": 3}]},
]


class Streaming(Model):
    """The scripted model, whose connection may break off in the middle of what it says."""

    async def stream_response(self, *args, **kwargs):
        breaks = None
        async for event in super().stream_response(*args, **kwargs):
            text = getattr(event, "delta", "")
            if text.startswith("BREAKS "):
                breaks = True
            if breaks and event.type.endswith("delta"):
                yield event.model_copy(update={"delta": text.removeprefix("BREAKS ")})
                raise ConnectionError("the connection is gone")
            if "BREAKS " not in str(event):
                yield event


class SdkHost(Host):
    retries_overflow = False
    knows_open_calls = False
    is_the_state = True
    reopens = False
    shows_both = True

    def open(self):
        self.session = self.source or PageinSession("ann", self.path, budget=BUDGET)
        self.model, self.streaming = Streaming(self.says, limit=BUDGET), False

    def says(self, items):
        match self.answer("\n".join(_text(each) for each in items)):
            case Breaks(said):
                if not self.streaming:
                    raise ConnectionError("the connection is gone")
                return f"BREAKS {said}"
            case Call(id, number):
                return [function_call("look", {"number": number}, call_id=id)]
            case said:
                return said

    def agent(self):
        if self.waits():

            @function_tool
            async def look(number: int) -> str:
                """Look at a page."""
                return await self.look(number)
        else:

            @function_tool
            def look(number: int) -> str:
                """Look at a page."""
                return self.look(number)

        return Agent(name="reader", model=self.model, tools=[look], instructions="Be exact.")

    def turn(self, words, *, stream=False):
        if stream:
            return asyncio.run(self.aturn(words, stream=True))
        self.streaming = False
        given = {"session": self.session, "run_config": self.config(), "max_turns": 50}
        with asyncio.Runner() as runner:  # run_sync leaves the loop that it makes open
            asyncio.set_event_loop(runner.get_loop())
            return Runner.run_sync(self.agent(), words, **given).final_output

    async def aturn(self, words, *, stream=False):
        self.streaming = stream
        given = {"session": self.session, "run_config": self.config(), "max_turns": 50}
        if not stream:
            return (await Runner.run(self.agent(), words, **given)).final_output
        run = Runner.run_streamed(self.agent(), words, **given)
        async for _ in run.stream_events():
            pass
        return run.final_output

    def config(self) -> RunConfig:
        return self.session.run_config()

    def history(self):
        return asyncio.run(self.session.get_items(-1))

    def put(self, items):
        async def change():
            await self.session.clear_session()
            await self.session.add_items(items)

        asyncio.run(change())

    def plant(self):
        asyncio.run(self.session.add_items(UNKNOWN))

    def edit(self, how):
        old = self.history()
        match how:
            case "removed":
                new = [old[0], *old[3:]]
            case "unanswered":
                new = [each for each in old if "page 1 line" not in str(each.get("output"))]
            case "replaced":
                new = [{**old[0], "content": "Look at page seven."}, *old[1:]]
            case "reordered":
                new = [*old[4:], *old[:4]]
            case "renamed":
                new = [{**each, **_renamed(each)} for each in old]
        self.put(new)

    def sharing(self):
        return SdkHost(self.path, is_async=self.is_async, source=self.session)

    def memory(self):
        return self.session.memory

    def enter(self):
        PageinSession("ann", self.path, budget=BUDGET)

    def overflowed(self, error):
        return self.session.handle_overflow(error)

    def close(self):
        self.session.close()


def _text(item):
    return "\n".join(each if isinstance(each, str) else json.dumps(each) for each in item.values())


def _renamed(item):
    return {key: f"other-{item[key]}" for key in ("id", "call_id") if item.get(key)}


class TestOpenAIAgents(BadEnds):
    HOST = SdkHost
