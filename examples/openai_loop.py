"""An agent of forty lines on the openai SDK reads a long report through a small window, and survives a crash.

    python examples/openai_loop.py --offline              a scripted model, no key, no network
    python examples/openai_loop.py --offline --crash 9    the process dies while page 9 is read; run it again without --crash
    python examples/openai_loop.py --model gpt-4o-mini    OpenAI, with OPENAI_API_KEY
    python examples/openai_loop.py --endpoint http://localhost:8000/v1 --model qwen3    any server that speaks its protocol

Needs pagein[openai]; --offline also pagein[serve].
"""

import argparse
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from openai import OpenAI
from openai.types.chat import ChatCompletionToolParam

from pagein import AgentMemory, Observation
from pagein.testing.provider import Answer, Call, ScriptedProvider, serve_app
from pagein.testing.provider.scripts import Question, Script

PAGES, WINDOW = 40, 6_000
SYSTEM = "You read reports. Call one tool at a time."
TASK = f"Read pages 1 to {PAGES} of the report in order. Then say who signed page 3."

TOOL: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "read_page",
        "description": "Read one page of the report.",
        "parameters": {"type": "object", "properties": {"page": {"type": "integer"}}, "required": ["page"]},
    },
}


def read_page(page: int, crash: int = 0) -> str:
    """Read one page of the report; die in the middle of it if it is page ``crash``."""
    if page == crash:
        os._exit(137)  # as kill -9: nothing is flushed, nothing is closed
    signature = "Signed: Ada Ferrante-Okafor.\n" if page == 3 else ""
    return f"Page {page}\n{signature}" + "\n".join(f"row {row}: {page * 100 + row} units" for row in range(40))


def run_agent(client: OpenAI, model: str, memory: AgentMemory, crash: int = 0) -> str:
    """Run the agent until it answers. After a crash, call it again: it goes on where it was."""
    memory.record_messages([{"role": "system", "content": SYSTEM}, {"role": "user", "content": TASK}])
    while True:
        tools = [TOOL, *memory.tools("openai", names=("recall", "expand"))]
        request = memory.to_request("openai", tools=tools)  # fits the budget and the provider's rules
        reply = client.chat.completions.create(model=model, tools=tools, **request)
        memory.record_messages(reply, usage=reply.usage)  # durable before a tool runs
        message = reply.choices[0].message
        if not message.tool_calls:
            return message.content or ""
        for call in message.tool_calls:
            arguments = json.loads(call.function.arguments)
            if call.function.name == "read_page":
                result = read_page(arguments["page"], crash)
            else:
                result = memory.call_tool(call.function.name, arguments)
            memory.record(Observation(call.id, result))


def answer_offline(question: Question) -> Answer:
    """Answer as a model would, from nothing but what the request shows."""
    pages = [int(page) for page in re.findall(r'page[\\"=:]+\s?(\d+)', question.text)]
    results = [row["content"] for row in question.body["messages"] if row["role"] == "tool"]
    is_lost = bool(results) and "It may have run" in str(results[-1])  # read the page again
    page = max(pages, default=0) + (0 if is_lost else 1)
    if page <= PAGES:
        return Answer(calls=(Call("read_page", {"page": page}),))
    signature = re.search(r"Signed: ([\w -]+)\.", question.text)
    if signature is None:
        return Answer(calls=(Call("recall", {"query": "signed page 3"}),))
    return Answer(f"Page 3 was signed by {signature[1]}.")


@contextmanager
def open_client(options: argparse.Namespace, script: Script, window: int) -> Iterator[OpenAI]:
    """Give a client of a scripted provider, of an endpoint, or of OpenAI. The provider counts JSON as tokens, a little more."""
    if not options.offline:
        yield OpenAI(base_url=options.endpoint or None)
        return
    provider = ScriptedProvider(script, window=window)
    with serve_app(provider) as url:
        yield OpenAI(base_url=f"{url}/v1", api_key="none")
    print(f"{len(provider.received)} requests, {provider.over} over the window, {len(provider.illegal)} illegal")


def main() -> None:
    """Open the run's file, run the agent, and say what the last request was made of."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--offline", action="store_true", help="use a scripted model, without a network")
    parser.add_argument("--endpoint", default="", help="a server that speaks OpenAI's protocol")
    parser.add_argument("--model", default="gpt-4o-mini", help="the model's name")
    parser.add_argument("--crash", type=int, default=0, help="die while this page is read")
    parser.add_argument("--store", default="report.db", help="the run's file")
    options = parser.parse_args()
    with (
        open_client(options, answer_offline, WINDOW + 500) as client,
        AgentMemory.open(options.store, budget=WINDOW) as memory,
    ):
        print(f"{len(memory.steps)} steps were recorded before")
        print(run_agent(client, options.model, memory, options.crash))
        report = memory.report()
        print(f"{len(memory.steps)} steps recorded, {report.tokens} tokens in the last view: {report.by_tier()}")


if __name__ == "__main__":
    main()
