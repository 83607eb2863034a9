"""A coding agent repairs 100 modules in 300 steps through a window of 8,000 tokens, and still knows what it read first.

    python examples/coding_agent.py --offline              a scripted model, no key, no network
    python examples/coding_agent.py --offline --modules 9  a short run
    python examples/coding_agent.py --model gpt-4o-mini    OpenAI, with OPENAI_API_KEY
    python examples/coding_agent.py --endpoint http://localhost:8000/v1 --model qwen3    any server with its protocol

The project is in memory: nothing on your disk is changed but the run's file. Needs pagein[openai]; --offline also pagein[serve].
"""

import argparse
import json
import re
import tempfile
from pathlib import Path

from openai import OpenAI
from openai.types.chat import ChatCompletionToolParam
from openai_loop import open_client

from pagein import AgentMemory, Observation
from pagein.testing.provider import Answer, Call
from pagein.testing.provider.scripts import Question, Script
from pagein.tokens.encodings import Encoding

WINDOW = 8_000
SYSTEM = "You repair code. Call one tool at a time: read a module, edit it, test it, then go on with the next."
TASK = (
    "Each of the modules src/part_000.py to src/part_{last:03}.py subtracts the tax where it must add it. Repair all of them "
    "in order. Never touch src/part_000.py's line RELEASE. At the end, say which release you worked on."
)


def tool(name: str, description: str, *parameters: str) -> ChatCompletionToolParam:
    """Describe a tool whose parameters are all strings."""
    schema = {
        "type": "object",
        "properties": {key: {"type": "string"} for key in parameters},
        "required": [*parameters],
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


TOOLS = [
    tool("read_file", "Read a file.", "path"),
    tool("edit_file", "Replace text in a file.", "path", "old", "new"),
    tool("run_test", "Run the test of a module.", "path"),
]


class Project:
    """The files of a project, and the tools that work on them."""

    def __init__(self, modules: int) -> None:
        self.files = {path_of(number): source_of(number) for number in range(modules)}

    def call(self, name: str, arguments: dict[str, str]) -> str:
        """Run one tool; give what the model reads."""
        path = arguments.get("path", "")
        if path not in self.files:
            return f"No such file: {path}"
        if name == "read_file":
            return self.files[path]
        if name == "edit_file":
            if arguments["old"] not in self.files[path]:
                return "The text to replace is not in the file."
            self.files[path] = self.files[path].replace(arguments["old"], arguments["new"])
            return f"Edited {path}."
        is_right = "price + tax_" in self.files[path]
        return f"{path}: 12 passed" if is_right else f"{path}: 1 failed: the total is too small"


def path_of(number: int) -> str:
    """Name a module."""
    return f"src/part_{number:03}.py"


def source_of(number: int) -> str:
    """Write a module of 80 lines with one mistake; the first has the release."""
    release = 'RELEASE = "heron-4.2"\n' if number == 0 else ""
    lines = [f"LIMIT_{number}_{line} = {number * 31 + line * 7}" for line in range(80)]
    return release + "\n".join(
        [*lines, f"def total_{number}(price, tax_{number}):", f"    return price - tax_{number}"]
    )


def run_agent(client: OpenAI, model: str, memory: AgentMemory, project: Project) -> str:
    """Run the agent until it answers."""
    task = TASK.format(last=len(project.files) - 1)
    memory.record_messages([{"role": "system", "content": SYSTEM}, {"role": "user", "content": task}])
    while True:
        tools = [*TOOLS, *memory.tools("openai", names=("recall", "expand"))]
        reply = client.chat.completions.create(model=model, tools=tools, **memory.to_request("openai", tools=tools))
        memory.record_messages(reply, usage=reply.usage)
        message = reply.choices[0].message
        if not message.tool_calls:
            return message.content or ""
        for call in message.tool_calls:
            arguments = json.loads(call.function.arguments)
            own = call.function.name in ("recall", "expand")
            run_tool = memory.call_tool if own else project.call
            memory.record(Observation(call.id, run_tool(call.function.name, arguments)))


def script(modules: int) -> Script:
    """Make a model that works module by module, from nothing but what the request shows."""

    def answer(question: Question) -> Answer:
        rows = question.body["messages"]
        calls = [call["function"] for row in rows for call in row.get("tool_calls") or ()]
        if not calls:
            return Answer(calls=(Call("read_file", {"path": path_of(0)}),))
        name, arguments = calls[-1]["name"], json.loads(calls[-1]["arguments"])
        number = int(re.findall(r"\d+", arguments.get("path", "0"))[0])
        if name == "read_file":
            source = [row["content"] for row in rows if row["role"] == "tool"][-1]
            old = re.findall(r"price - tax_\d+", source)[0]
            edit = {"path": path_of(number), "old": old, "new": old.replace("-", "+")}
            return Answer(calls=(Call("edit_file", edit),))
        if name == "edit_file":
            return Answer(calls=(Call("run_test", {"path": path_of(number)}),))
        if name == "run_test" and number + 1 < modules:
            return Answer(calls=(Call("read_file", {"path": path_of(number + 1)}),))
        release = re.search(r'RELEASE = \\*"([\w.-]+)', question.text)
        if release is None and name != "recall":
            return Answer(calls=(Call("recall", {"query": "RELEASE"}),))
        return Answer(f"I worked on {release[1] if release else 'a release that I do not know'}.")

    return answer


def main() -> None:
    """Run the agent, and say what it needed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--offline", action="store_true", help="use a scripted model, without a network")
    parser.add_argument("--endpoint", default="", help="a server that speaks OpenAI's protocol")
    parser.add_argument("--model", default="gpt-4o-mini", help="the model's name")
    parser.add_argument("--modules", type=int, default=100, help="how many modules to repair, three steps each")
    options = parser.parse_args()
    project = Project(options.modules)
    with (
        tempfile.TemporaryDirectory() as folder,
        open_client(options, script(options.modules), WINDOW + 500) as client,
        AgentMemory.open(Path(folder) / "run.db", budget=WINDOW) as memory,
    ):
        print(run_agent(client, options.model, memory, project))
        repaired = sum("price + tax_" in source for source in project.files.values())
        whole = Encoding("o200k_base").text(str(memory.get_full_steps()))
        print(f"{repaired} of {len(project.files)} modules repaired in {len(memory.steps)} steps")
        print(f"the run has {whole:,} tokens, the last request {memory.report().tokens:,} of {WINDOW:,}")


if __name__ == "__main__":
    main()
