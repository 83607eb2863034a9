"""An agent reads a report of two dozen pages through a small window, crashes half way, resumes, and answers from page 3.

    python examples/smolagents_report.py                                       offline, with a scripted model
    python examples/smolagents_report.py --endpoint http://localhost:8000/v1   any server that speaks OpenAI's protocol

With an endpoint the model is named by --model, and the key is read from OPENAI_API_KEY. Needs pagein[smolagents], and
with an endpoint openai.
"""

import argparse
import os
import re
import tempfile
from pathlib import Path

from smolagents import Tool, ToolCallingAgent
from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole, Model
from smolagents.monitoring import LogLevel

from pagein.integrations.smolagents import PageinMemory

PAGES, BUDGET = 24, 2_500
TASK = f"Read the report with look_up, pages 1 to {PAGES}, one call each. Then say who signed page 3."


class LookUp(Tool):
    """One page of the report."""

    name = "look_up"
    description = "Gives one page of the report."
    inputs = {"page": {"type": "integer", "description": f"1 to {PAGES}"}}  # noqa: RUF012 - smolagents asks for it
    output_type = "string"

    def forward(self, page: int) -> str:
        """The page: figures, and on page 3 a name."""
        signed = "Signed: Ada Ferrante-Okafor.\n" if page == 3 else ""
        return signed + "\n".join(f"row {row}: {page * 100 + row} units in hall {row % 7}" for row in range(20))


class Script(Model):
    """Plays a model that reads page after page, then has page 3 back by its handle, and answers."""

    def generate(self, messages: list[ChatMessage], **_: object) -> ChatMessage:
        """The next call, from nothing but what the request shows."""
        shown = "\n".join(part["text"] for m in messages for part in m.content if part["type"] == "text")
        read = [int(page) for page in re.findall(r"look_up\W+(?:arguments\W+)?page\W+(\d+)", shown)]
        page = max(read, default=0) + 1
        if page <= PAGES:
            return call("look_up", {"page": page})
        signed = re.search(r"Signed: ([\w -]+)\.", shown)
        if signed:
            return call("final_answer", {"answer": signed[1]})
        # Page 3 was read in the third step. A model that does not know that asks for the range it is in.
        return call("expand", {"handle": "s12"})


def call(name: str, arguments: dict[str, object]) -> ChatMessage:
    """What a model says that calls one tool."""
    function = ChatMessageToolCallFunction(arguments, name)
    made = ChatMessageToolCall(function, f"call_{name}_{arguments.get('page', '')}", "function")
    return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[made])


def model_of(options: argparse.Namespace) -> Model:
    """The scripted model, or one behind an endpoint."""
    if not options.endpoint:
        return Script(model_id="scripted")
    from smolagents import OpenAIServerModel  # noqa: PLC0415 - needs openai

    key = os.environ.get("OPENAI_API_KEY", "none")
    return OpenAIServerModel(model_id=options.model, api_base=options.endpoint, api_key=key)


def agent_of(options: argparse.Namespace) -> ToolCallingAgent:
    """An agent that reads, quietly."""
    return ToolCallingAgent([LookUp()], model_of(options), max_steps=PAGES + 10, verbosity_level=LogLevel.OFF)


def main() -> None:
    """Read half, lose the process, read the rest, answer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--endpoint", help="a server that speaks OpenAI's protocol")
    parser.add_argument("--model", default="gpt-4o-mini", help="its model")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run(options, Path(folder) / "report.db")


def run(options: argparse.Namespace, path: Path) -> None:
    """The two halves of the run, on one file."""
    agent = agent_of(options)
    memory = PageinMemory.attach(agent, path, budget=BUDGET)
    stream = agent.run(TASK, stream=True)
    while len(memory.steps) <= PAGES // 2:
        next(stream)
    memory.close()  # the process is gone; all it did is in the file

    agent = agent_of(options)
    with PageinMemory.attach(agent, path, budget=BUDGET) as memory:
        print(f"resumed with {len(memory.steps)} steps")
        answer = agent.run("Go on with the report.", reset=False)
        sizes = [memory.cost(each.model_input_messages) for each in memory.steps if has_request(each)]
        print(f"answer: {answer}")
        print(f"{len(memory.steps)} steps; the largest of {len(sizes)} requests: {max(sizes)} of {BUDGET} tokens")
        print(f"record: {'sound' if memory.pages.verify().ok else 'damaged'}")


def has_request(step: object) -> bool:
    """True for a step that knows what its model was sent."""
    return bool(getattr(step, "model_input_messages", None))


if __name__ == "__main__":
    main()
