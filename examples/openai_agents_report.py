"""An agent of the OpenAI Agents SDK reads a report through a small window, in two sittings, and answers from page 3.

    python examples/openai_agents_report.py                                       offline, with a scripted model
    python examples/openai_agents_report.py --endpoint http://localhost:8000/v1   any server that speaks OpenAI's protocol

With an endpoint the model is named by --model, and the key is read from OPENAI_API_KEY. Needs pagein[openai-agents].
"""

import argparse
import asyncio
import json
import os
import re
import tempfile
from pathlib import Path

from agents import Agent, Model, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call

from pagein.integrations.openai_agents import PageinSession

PAGES, BUDGET = 24, 2_500
HALF = f"Read the report with look_up, pages 1 to {PAGES // 2}, one call each. Then say that you did."
REST = "Read on, to the end. Then say who signed page 3."


@function_tool
def look_up(page: int) -> str:
    """One page of the report."""
    signed = "Signed: Ada Ferrante-Okafor.\n" if page == 3 else ""
    return signed + "\n".join(f"row {row}: {page * 100 + row} units in hall {row % 7}" for row in range(20))


def answer(call: ModelCall) -> list[object]:
    """What a model says next, from nothing but what the request shows."""
    shown = json.dumps(call.input)
    words = [each["content"] for each in call.input if each.get("role") == "user"]
    last = PAGES if any(REST in str(each) for each in words) else PAGES // 2
    read = [int(page) for page in re.findall(r'page[\\"=:]+\s?(\d+)', shown)]
    page = max(read, default=0) + 1
    if page <= last:
        return [function_call("look_up", {"page": page}, call_id=f"call_{page}")]
    signed = re.search(r"Signed: ([\w -]+)\.", shown)
    if last < PAGES:
        return [assistant_message("I read the first half.")]
    if signed:
        return [assistant_message(f"Page 3 was signed by {signed[1]}.")]
    return [function_call("recall", {"query": "signed page 3"}, call_id="call_recall")]


def model_of(options: argparse.Namespace) -> Model:
    """The scripted model, or one behind an endpoint."""
    if not options.endpoint:
        return ScriptedModel([ModelStep.respond(answer) for _ in range(2 * PAGES)])
    from openai import AsyncOpenAI  # noqa: PLC0415 - the offline run needs no client

    client = AsyncOpenAI(base_url=options.endpoint, api_key=os.environ.get("OPENAI_API_KEY", "none"))
    return OpenAIChatCompletionsModel(model=options.model, openai_client=client)


async def read(path: Path, task: str, model: Model) -> str:
    """One run, on a session opened anew from the file."""
    session = PageinSession("report", path, budget=BUDGET)
    agent = Agent(name="reader", model=model, tools=[look_up, *session.tools()])
    done = await Runner.run(agent, task, session=session, run_config=session.run_config(), max_turns=2 * PAGES)
    whole = await session.get_items(-1)
    print(f"{done.final_output}  ({len(whole)} items recorded, {session.memory.view().tokens} tokens shown)")
    session.close()
    return str(done.final_output)


def main() -> None:
    """Read the first half, let go of the session, read the rest and answer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--endpoint", default="", help="a server that speaks OpenAI's protocol")
    parser.add_argument("--model", default="gpt-4o-mini", help="its model")
    options = parser.parse_args()
    set_tracing_disabled(True)
    model = model_of(options)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.db"
        asyncio.run(read(path, HALF, model))
        asyncio.run(read(path, REST, model))


if __name__ == "__main__":
    main()
