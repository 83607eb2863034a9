"""What goes wrong in a run of an agent of smolagents, of either kind."""

import importlib
import json
from dataclasses import dataclass, replace

import pytest
from bad_ends_play import BUDGET, BadEnds, Breaks, Call, Host, in_order, plain, recorded
from smolagents import Tool
from smolagents import memory as theirs
from smolagents.models import ChatMessage, ChatMessageStreamDelta, ChatMessageToolCallStreamDelta, MessageRole
from smolagents_scripted import Scripted, agent_of, called, check_legal, code, text_of, tokens_of

from pagein import Conflict
from pagein.integrations.smolagents import PageinMemory

pytestmark = pytest.mark.slow


@dataclass
class Hologram(theirs.MemoryStep):
    """A kind of step of somebody's own."""

    about: str

    def to_messages(self, summary_mode=False):
        said = [{"type": "text", "text": f"a hologram of {self.about}"}]
        return [ChatMessage(role=MessageRole.USER, content=said)]


@dataclass
class Silent(theirs.MemoryStep):
    """One that says nothing to a model."""

    deep: dict


class Streaming(Scripted):
    """The scripted model, whose connection may break off in the middle of what it says."""

    def generate_stream(self, messages, stop_sequences=None, **kwargs):
        check_legal(messages)
        assert tokens_of(messages) <= self.budget
        self.requests.append(list(messages))
        said = self.script(len(self.requests), messages, streaming=True)
        yield ChatMessageStreamDelta(content=said)
        raise ConnectionError("the connection is gone")


class SmolHost(Host):
    kind = "calls"
    retries_overflow = False
    reopens = False
    takes_turns = False

    def open(self):
        self.model = Streaming(self.says, BUDGET)
        host = self

        class Look(Tool):
            name, description, output_type = "look", "Look at a page.", "string"
            inputs = {"number": {"type": "integer", "description": "The page."}}  # noqa: RUF012 - as smolagents wants it

            def forward(self, number: int) -> str:
                return host.look(number)

        self.agent = agent_of(self.kind, self.model, tools=[Look()])
        self.agent.prompt_templates["system_prompt"] = "Be exact."  # theirs alone is over the budget
        self.steps = PageinMemory.attach(self.agent, self.path, budget=BUDGET, tools=False)

    def says(self, number, messages, *, streaming=False):
        match self.answer("\n".join(map(text_of, messages))):
            case Breaks(said):
                if streaming:
                    return said
                raise ConnectionError("the connection is gone")
            case Call(id, page):
                return code(f"print(look({page}))") if self.kind == "code" else called((id, "look", {"number": page}))
            case said if self.kind == "code":
                return code(f"final_answer({said!r})")
            case said:
                return called((f"end{number}", "final_answer", {"answer": said}))

    def turn(self, words, *, stream=False):
        if not stream:
            return self.agent.run(words, reset=False)
        self.agent.stream_outputs = True
        # The first request of a stream is answered whole, so that what breaks off is in the middle of the run.
        whole = self.model.generate_stream
        self.model.generate_stream = self._first_whole(whole)
        try:
            for each in self.agent.run(words, reset=False, stream=True):
                last = each
        finally:
            self.agent.stream_outputs, self.model.generate_stream = False, whole
        return last.output

    def _first_whole(self, stream):
        before = len(self.model.requests)

        def generate_stream(messages, **options):
            if len(self.model.requests) > before:
                yield from stream(messages, **options)
                return
            said = self.model.generate(messages, **options)
            calls = [delta_of(index, each) for index, each in enumerate(said.tool_calls or ())]
            yield ChatMessageStreamDelta(content=said.content, tool_calls=calls or None)

        return generate_stream

    def history(self):
        return [{"kind": type(each).__name__, **plain(_fields(each))} for each in self.agent.memory.steps]

    def plant(self):
        self.steps.steps.append(theirs.TaskStep("See:"))
        self.steps.steps.append(Hologram("the sun"))
        self.steps.steps.append(Silent({"hologram": [None]}))
        odd = [{"type": "hologram", "layers": 3}, {"type": "text", "text": "I see."}]
        self.steps.steps.append(theirs.ActionStep(step_number=1, timing=theirs.Timing(0.0, 1.0), model_output=odd))

    def edit(self, how):
        steps = self.steps.steps
        match how:
            case "removed":
                del steps[1]
            case "unanswered":
                steps[1].observations = None
            case "replaced":
                steps[0].task = "Look at page seven."
            case "reordered":
                steps[:] = [*steps[3:], *steps[:3]]
            case "renamed":
                for each in steps:
                    for call in getattr(each, "tool_calls", None) or ():
                        call.id = f"other-{call.id}"

    def memory(self):
        return self.steps.pages

    def sharing(self):
        return type(self)(self.path, is_async=self.is_async)

    def enter(self):
        importlib.reload(importlib.import_module("pagein.integrations.smolagents"))

    def overflowed(self, error):
        return self.steps.pages.handle_overflow(error) is not None

    def close(self):
        self.steps.close()


def delta_of(index, call):
    spelled = replace(call.function, arguments=json.dumps(call.function.arguments))
    return ChatMessageToolCallStreamDelta(index=index, id=call.id, type="function", function=spelled)


def _fields(step):
    return {name: str(value) for name, value in vars(step).items() if name != "model_input_messages"}


class CodeHost(SmolHost):
    kind = "code"


class TestToolCallingAgent(BadEnds):
    HOST = SmolHost

    @pytest.fixture
    def host(self, make):
        """Agents of smolagents have one colour."""
        return make()

    def test_two_agents_that_share_a_memory_take_turns(self, host):
        """Each has a memory of its own, and a session has one writer: the second is told, and loses nothing."""
        other = host.sharing()
        host.script, other.script = in_order("walrus"), in_order("osprey")
        assert host.play("For walrus.") == "walrus"
        before = plain(other.history())
        with pytest.raises(Exception, match="another writer was first") as told:
            other.play("For osprey.")
        assert isinstance(told.value, Conflict)
        assert plain(other.history())[: len(before)] == before
        assert host.play("For walrus.") == "walrus"
        assert "walrus" in recorded(host.path)

    def test_two_agents_that_share_a_memory_at_the_same_time(self, host):
        """See above: whoever is second is told."""
        other = host.sharing()
        other.script = host.script = in_order("Done.")
        assert other.play("For osprey.") == "Done."
        with pytest.raises(Conflict):
            host.play("For walrus.")
        assert other.play("For osprey.") == "Done."


class TestCodeAgent(TestToolCallingAgent):
    HOST = CodeHost
