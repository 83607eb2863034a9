"""The MCP server, with the SDK's own client over both transports and both kinds of connections."""

import asyncio
import json
import os
import re
import shlex
import sys
import tomllib
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import ElicitResult

from pagein import ActionStep, AgentMemory, Observation, TaskStep, ToolCall
from pagein.server import ServerApp, ServerSettings
from pagein.server.mcp import McpSettings, build_server, tool_definitions
from pagein.testing.provider import serve_app
from pagein.tokens.encodings import Encoding

pytestmark = pytest.mark.slow


@pytest.fixture
def store(tmp_path):
    path = str(tmp_path / "runs.db")
    with AgentMemory.open(path, session="older", budget=8_000) as memory:
        memory.record(TaskStep("Never use port 9999. Paint the shed."), ActionStep("I paint it green."))
    with AgentMemory.open(path, session="a run/1", budget=8_000, user="alice") as memory:
        memory.record(TaskStep("You must keep the port 8431. Find the bug."))
        call = ToolCall("c1", "read", '{"path": "shop.py"}')
        memory.record(ActionStep("I read.", (call,), (Observation("c1", "def price(): return tax * 7391"),)))
        memory.facts.add(content="Alice prefers tea.", scope="user", author="user")
    return path


def settings(store, **more):
    return McpSettings(store, options={"user": "alice"}, **more)


@asynccontextmanager
async def connected(store, transport, **options):
    if transport == "memory":
        async with Client(build_server(settings(store)), **options) as client:
            yield client
    elif transport == "stdio":
        arguments = ["-m", "pagein", "mcp", store, "--user", "alice"]
        env = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}  # the SDK hands over little of ours
        parameters = StdioServerParameters(command=sys.executable, args=arguments, env=env)
        async with Client(parameters, **options) as client:
            yield client
    else:
        app = ServerApp(ServerSettings(store, {"default": "http://127.0.0.1:9"}, options={"user": "alice"}))
        with serve_app(app) as url:
            async with Client(f"{url}/mcp", **options) as client:
                yield client


def text(result):
    return result.content[0].text


def test_the_schemas_cost_less_than_700_tokens():
    assert [tool["name"] for tool in tool_definitions()] == ["recall", "expand", "pin", "note", "remember", "forget"]
    assert Encoding("o200k_base").text(json.dumps(tool_definitions())) < 700


@pytest.mark.parametrize(
    ("transport", "mode"), [("memory", "auto"), ("memory", "legacy"), ("stdio", "auto"), ("http", "auto")]
)
def test_every_tool_and_resource_over_every_transport(store, transport, mode):
    async def walk():
        async with connected(store, transport, mode=mode) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == [
                tool["name"] for tool in tool_definitions()
            ]
            found = text(await client.call_tool("recall", {"query": "price tax"}))
            assert "7391" in found
            assert "[s1.0]" in found
            assert "7391" in text(await client.call_tool("expand", {"handle": "s1.0"}))
            assert "green" in text(await client.call_tool("recall", {"query": "shed", "run": "older"}))
            assert text(await client.call_tool("pin", {"text": "Ship on Friday."})).startswith("Pinned as ")
            assert text(await client.call_tool("note", {"text": "The bug is in tax."})).startswith("Noted as ")
            fact = text(await client.call_tool("remember", {"content": "Alice likes short answers."}))
            assert fact.startswith("Remembered as ")
            own = fact.removeprefix("Remembered as ").rstrip(".")
            assert text(await client.call_tool("forget", {"id": own})) == f"{own} is forgotten."
            wrong = await client.call_tool("recall", {"query": "x", "run": "nobody"})
            assert wrong.is_error
            assert "there is no run 'nobody'" in text(wrong)
            uris = [str(resource.uri) for resource in (await client.list_resources()).resources]
            assert uris == ["pagein://run/a%20run%2F1/view", "pagein://run/older/view"]
            view = json.loads((await client.read_resource(uris[0])).contents[0].text)
            assert "Ship on Friday." in json.dumps(view)
            step = await client.read_resource("pagein://run/older/step/s1")
            assert "green" in step.contents[0].text
            facts = await client.read_resource("pagein://facts/user")
            assert "Alice prefers tea." in facts.contents[0].text
            with pytest.raises(Exception, match="there is no"):
                await client.read_resource("pagein://run/nobody/view")

    asyncio.run(walk())


@pytest.mark.parametrize(("transport", "mode"), [("memory", "auto"), ("memory", "legacy"), ("http", "legacy")])
def test_forgetting_what_somebody_else_stated_asks_the_user(store, transport, mode):
    asked = []

    def answering(agree):
        async def answer(context, params):
            asked.append(params.message)
            return ElicitResult(action="accept", content={"consent": agree})

        return answer

    async def forget(callback):
        options = {"elicitation_callback": callback} if callback else {}
        async with connected(store, transport, mode=mode, **options) as client:
            return await client.call_tool("forget", {"id": "fu0"})

    with AgentMemory.open(store, session="a run/1", budget=8_000, user="alice") as memory:
        assert [fact.id for fact in memory.facts.list()] == ["fu0"]
    refused = asyncio.run(forget(None))
    assert refused.is_error
    assert "cannot ask" in text(refused)
    assert "did not agree" in text(asyncio.run(forget(answering(False))))
    assert text(asyncio.run(forget(answering(True)))) == "fu0 is forgotten."
    assert len(asked) == 2
    assert "Alice prefers tea." in asked[0]


def test_two_servers_write_to_one_run_and_a_proxied_run_shows_it(store):
    async def both():
        async with connected(store, "memory") as one, connected(store, "memory") as other:
            for number in range(4):
                await asyncio.gather(
                    one.call_tool("pin", {"text": f"one {number}"}), other.call_tool("pin", {"text": f"other {number}"})
                )

    asyncio.run(both())
    with AgentMemory.open(store, session="a run/1", budget=8_000, readonly=True) as memory:
        shown = json.dumps(memory.to_messages())
        assert memory.verify().ok
    assert all(f"{name} {number}" in shown for name in ("one", "other") for number in range(4))


def test_each_block_of_configuration_starts_the_server_that_is_tested_here():
    page = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text("utf-8")
    shown = re.findall(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    command = ["pagein", "mcp", "/path/to/runs.db"]
    claude, claude_http, codex, opencode, cursor = shown
    assert shlex.split(claude.split(" -- ")[1]) == command
    assert json.loads(claude_http)["mcpServers"]["pagein"] == {"type": "http", "url": "http://127.0.0.1:8790/mcp"}
    server = tomllib.loads(codex)["mcp_servers"]["pagein"]
    assert [server["command"], *server["args"]] == command
    assert json.loads(opencode)["mcp"]["pagein"]["command"] == command
    server = json.loads(cursor)["mcpServers"]["pagein"]
    assert [server["command"], *server["args"]] == command
