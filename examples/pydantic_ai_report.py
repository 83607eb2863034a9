"""A pydantic-ai agent reads a report of two dozen pages through a small window, breaks off, resumes, answers from page 3.

    python examples/pydantic_ai_report.py                                       offline, with a scripted model
    python examples/pydantic_ai_report.py --endpoint http://localhost:8000/v1   any server that speaks OpenAI's protocol

With an endpoint the model is named by --model, and the key is read from OPENAI_API_KEY. Needs pagein[pydantic-ai], and
with an endpoint openai.
"""

import argparse
import os
import re
import tempfile
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import UsageLimits

from pagein.integrations.pydantic_ai import Pagein

PAGES, BUDGET = 24, 2_500
TASK = f"Read the report with look_up, pages 1 to {PAGES}, one call each. Then say who signed page 3."


class PowerCutError(Exception):
    """What stops the first run half way."""


def look_up(page: int) -> str:
    """One page of the report."""
    signed = "Signed: Ada Ferrante-Okafor.\n" if page == 3 else ""
    return signed + "\n".join(f"row {row}: {page * 100 + row} units in hall {row % 7}" for row in range(20))


def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """What a model says next, from nothing but what the request shows."""
    shown = ModelMessagesTypeAdapter.dump_json(messages).decode()
    read = [int(page) for page in re.findall(r'page[\\"=:]+\s?(\d+)', shown)]
    page = max(read, default=0) + 1
    if page <= PAGES:
        return ModelResponse(parts=[ToolCallPart("look_up", {"page": page}, f"call_{page}")])
    signed = re.search(r"Signed: ([\w -]+)\.", shown)
    if signed:
        return ModelResponse(parts=[TextPart(f"Page 3 was signed by {signed[1]}.")])
    return ModelResponse(parts=[ToolCallPart("recall", {"query": "signed page 3"}, "call_recall")])


def model_of(options: argparse.Namespace) -> Model:
    """The scripted model, or one behind an endpoint."""
    if not options.endpoint:
        return FunctionModel(answer)
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415 - needs openai
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415 - needs openai

    key = os.environ.get("OPENAI_API_KEY", "none")
    return OpenAIChatModel(options.model, provider=OpenAIProvider(base_url=options.endpoint, api_key=key))


def main() -> None:
    """Read until the power is cut, then again from the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--endpoint", default="", help="a server that speaks OpenAI's protocol")
    parser.add_argument("--model", default="gpt-4o-mini", help="its model")
    model = model_of(parser.parse_args())
    with tempfile.TemporaryDirectory() as folder:
        path, limits = Path(folder) / "run.db", UsageLimits(request_limit=3 * PAGES)
        is_cut = True

        def look_up_until_cut(page: int) -> str:
            """One page of the report."""
            if is_cut and page == PAGES // 2:
                raise PowerCutError
            return look_up(page)

        pages = Pagein(path, conversation="report", budget=BUDGET)
        agent = Agent(model, capabilities=[pages])
        agent.tool_plain(look_up_until_cut, name="look_up")
        try:
            agent.run_sync(TASK, usage_limits=limits)
        except PowerCutError:
            print(f"The power was cut in page {PAGES // 2}.")
        pages.close()
        is_cut = False
        done = agent.run_sync("Go on.", message_history=pages.history(), usage_limits=limits)
        shown = pages.memory().view().tokens
        print(f"{done.output}  ({len(pages.history())} messages recorded, {shown} tokens shown)")
        pages.close()


if __name__ == "__main__":
    main()
