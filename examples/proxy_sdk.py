"""An agent that never heard of pagein keeps its whole history, and goes through a small window behind the proxy.

    python examples/proxy_sdk.py --offline              a scripted model, no key, no network
    python examples/proxy_sdk.py --upstream https://api.openai.com --model gpt-4o-mini    OpenAI, with OPENAI_API_KEY

The proxy runs in this process here. As a program it is: pagein serve runs.db --upstream https://api.openai.com --window 8000
Needs pagein[openai,serve].
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from openai import BadRequestError, OpenAI
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

from pagein.server import ServerApp, ServerSettings
from pagein.testing.provider import ScriptedProvider, ToolLoop, serve_app

PAGES, WINDOW = 16, 8_000
TASK = f"Read pages 1 to {PAGES} with read_page, one call each. Then say that you are done."

TOOL: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "read_page",
        "description": "Read one page of the report.",
        "parameters": {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
    },
}


def read_page(number: int) -> str:
    """Write a page of the report."""
    return "\n".join(f"page {number}, row {row}: {number * row} units" for row in range(60))


def run_agent(client: OpenAI, model: str) -> str:
    """Run an agent as in any tutorial: a list of messages that only grows. Return what was done to its last request."""
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": TASK}]
    while True:
        answer = client.chat.completions.with_raw_response.create(model=model, tools=[TOOL], messages=messages)
        message = answer.parse().choices[0].message
        messages.append(message.to_dict())  # type: ignore[arg-type]
        if not message.tool_calls:
            return f"{message.content} {len(messages)} messages; x-pagein: {answer.headers.get('x-pagein', 'none')}"
        for call in message.tool_calls:
            page = read_page(json.loads(call.function.arguments)["number"])
            messages.append({"role": "tool", "tool_call_id": call.id, "content": page})


@contextmanager
def open_proxy(upstream: str) -> Iterator[str]:
    """Serve the proxy on a free port while the context is open; give its address."""
    with tempfile.TemporaryDirectory() as folder:
        settings = ServerSettings(str(Path(folder) / "runs.db"), {"default": upstream}, window=WINDOW)
        with serve_app(ServerApp(settings)) as url:
            yield url


def run_offline() -> None:
    """Run the agent without the proxy, which ends at the window, and with it."""
    for is_behind in (False, True):
        provider = ScriptedProvider(ToolLoop(PAGES, end="Done."), window=WINDOW)
        with serve_app(provider) as upstream, open_proxy(upstream) if is_behind else nullcontext(upstream) as url:
            try:
                print(run_agent(OpenAI(base_url=f"{url}/v1", api_key="none"), "scripted"))
            except BadRequestError as error:
                print(f"without the proxy, after {len(provider.received)} requests: {error.message}")


def main() -> None:
    """Run offline, or against a provider."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--offline", action="store_true", help="use a scripted model, without a network")
    parser.add_argument("--upstream", default="https://api.openai.com", help="the provider's address")
    parser.add_argument("--model", default="gpt-4o-mini", help="the model's name")
    options = parser.parse_args()
    if options.offline:
        run_offline()
        return
    with open_proxy(options.upstream) as url:
        print(run_agent(OpenAI(base_url=f"{url}/v1"), options.model))


if __name__ == "__main__":
    main()
