"""A scripted provider over HTTP: a window, legality, a prompt cache with prices, and streams.

    provider = ScriptedProvider(ToolLoop(calls=20, size=4_000), window=20_000)
    with serve_app(provider) as url:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="x")

It speaks Anthropic's messages, OpenAI's chat completions, the Responses API and Gemini's contents. It is an ASGI app without a
framework.
"""

from pagein.testing.provider.app import Received, ScriptedProvider, serve_app
from pagein.testing.provider.scripts import Answer, Call, ToolLoop

__all__ = ["Answer", "Call", "Received", "ScriptedProvider", "ToolLoop", "serve_app"]
