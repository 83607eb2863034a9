"""What goes wrong in a run of a pydantic-ai agent."""

import asyncio
import copy
import json
from dataclasses import replace

import pytest
from bad_ends_play import BUDGET, BadEnds, Breaks, Call, Host
from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryContent,
    FilePart,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai_play import check_legal, cost, dumped

from pagein.integrations.pydantic_ai.capability import Pagein

pytestmark = pytest.mark.slow

UNKNOWN = [
    ModelRequest(parts=[UserPromptPart(["Look:", BinaryContent(b"hologram", media_type="video/hologram")])]),
    ModelResponse(
        parts=[
            ThinkingPart("a hologram", id="h", signature="s"),
            NativeToolCallPart("hologram_search", {"q": "sun"}, "n1"),
            NativeToolReturnPart("hologram_search", {"deep": [{"a": None}]}, "n1"),
            FilePart(BinaryContent(b"hologram", media_type="model/hologram")),
            TextPart("I see."),
        ]
    ),
]


class PydanticHost(Host):
    def open(self):
        self.pages = self.source or Pagein(self.path, budget=BUDGET, tools=False)
        self.messages = []
        self.model = FunctionModel(self.says, stream_function=self.streams)

    def says(self, messages, info):
        match self.asked_for(messages, info):
            case Breaks():
                raise ConnectionError("the connection is gone")
            case Call(id, number):
                return ModelResponse(parts=[ToolCallPart("look", {"number": number}, id)])
            case said:
                return ModelResponse(parts=[TextPart(said)])

    async def streams(self, messages, info):
        match self.asked_for(messages, info):
            case Breaks(said):
                yield said
                raise ConnectionError("the connection is gone")
            case Call(id, number):
                yield {0: DeltaToolCall(name="look", json_args=json.dumps({"number": number}), tool_call_id=id)}
            case said:
                yield said

    def asked_for(self, messages, info):
        check_legal(messages)
        assert cost(messages, info.instructions) <= BUDGET
        return self.answer("\n".join(json.dumps(each["parts"], ensure_ascii=False) for each in dumped(messages)))

    def agent(self):
        agent = Agent(self.model, capabilities=[self.pages], instructions="Be exact.")
        if self.waits():

            async def look(number: int) -> str:
                """Look at a page."""
                return await self.look(number)
        else:

            def look(number: int) -> str:
                """Look at a page."""
                return self.look(number)

        agent.tool_plain(look, name="look")
        return agent

    def turn(self, words, *, stream=False):
        return asyncio.run(self.aturn(words, stream=stream))

    async def aturn(self, words, *, stream=False):
        given = {"message_history": self.messages, "conversation_id": "ann"}
        try:
            if not stream:
                done = await self.agent().run(words, **given)
                self.messages = done.all_messages()
                return done.output
            async with self.agent().run_stream(words, **given) as done:
                said = await done.get_output()
            self.messages = done.all_messages()
        except BaseException:
            self.messages = self.pages.history("ann")
            raise
        return said

    def history(self):
        # The framework itself joins requests that stand side by side, and answers calls that nobody answered.
        parts = [part for each in dumped(self.messages) for part in each["parts"]]
        return [each for each in parts if "pydantic_ai_synthesized_tool_return" not in str(each)]

    def plant(self):
        self.messages = [*self.messages, *copy.deepcopy(UNKNOWN)]

    def edit(self, how):
        old = copy.deepcopy(self.messages)
        match how:
            case "removed":
                self.messages = [old[0], *old[3:]]
            case "unanswered":
                self.messages = [each for each in old if "page 1 line" not in str(each.parts)]
            case "replaced":
                self.messages = [replace(old[0], parts=[UserPromptPart("Look at page seven.")]), *old[1:]]
            case "reordered":
                self.messages = [*old[4:], *old[:4]]
            case "renamed":
                for part in (part for each in old for part in each.parts):
                    if isinstance(part, ToolCallPart | ToolReturnPart):
                        part.tool_call_id = f"other-{part.tool_call_id}"
                self.messages = old

    def take_over(self, other):
        self.messages = other.messages

    def sharing(self):
        return PydanticHost(self.path, is_async=self.is_async, source=self.pages)

    def memory(self):
        return self.pages.memory("ann")

    def enter(self):
        Pagein(self.path, budget=BUDGET)

    def close(self):
        self.pages.close()


class TestPydanticAI(BadEnds):
    HOST = PydanticHost
