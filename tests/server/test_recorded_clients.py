"""What Claude Code, Codex, opencode and Gemini CLI sent, recorded with their long texts cut: each is one run, found by its own name."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from pagein.backends.open import open_store
from pagein.server.naming import name_run
from pagein.testing.provider import ToolLoop

RECORDED = Path(__file__).parent / "recorded"
TOOLS = {
    "claude": ToolLoop(
        3, "Bash", lambda number: {"command": f"cat f{number}.txt", "description": f"Read file {number}"}
    ),
    "codex": ToolLoop(3, "exec_command", lambda number: {"cmd": f"cat f{number}.txt"}),
    "opencode": ToolLoop(
        3, "bash", lambda number: {"command": f"cat f{number}.txt", "description": f"Read file {number}"}
    ),
    "gemini": ToolLoop(
        3, "run_shell_command", lambda number: {"command": f"cat f{number}.txt", "description": f"Read file {number}"}
    ),
}


def recorded(client):
    return json.loads((RECORDED / f"{client}.json").read_text("utf-8"))


def offering(requests, tool):
    """The requests with the tool that their client has, where its list was cut."""
    for request in requests:
        tools = request["body"].get("tools")
        if tools and "functionDeclarations" not in tools[0]:
            plain = {"name": tool, "description": "Run.", "parameters": {}}
            is_claude = request["path"] == "/v1/messages"
            entry = (
                {"name": tool, "description": "Run.", "input_schema": {}}
                if is_claude
                else {"type": "function", **plain}
            )
            tools.append({"type": "function", "function": plain} if request["path"].endswith("completions") else entry)
    return requests


@pytest.mark.parametrize("client", list(TOOLS))
def test_what_a_client_sent_is_one_run(stack, client):
    loop = TOOLS[client]
    made = stack(ToolLoop(3, loop.tool, loop.arguments))
    http, headers = made.http(), {}
    requests = offering(recorded(client), loop.tool)
    for request in requests:
        answer = http.post(request["path"], json=request["body"], headers=request["headers"])
        assert answer.status_code == 200, answer.text
        is_side = client in ("opencode", "gemini") and request is requests[0]  # a title, the choice of a model
        assert answer.headers["x-pagein"].startswith("side" if is_side else "view; run="), answer.headers
        headers = request["headers"]
    name = name_run(headers, {})
    assert (
        name.split(":")[0]
        == {"claude": "claude-code", "codex": "codex", "opencode": "session", "gemini": "session"}[client]
    )
    with made.memory(name) as memory:
        steps = [type(step).__name__ for step in memory.steps]
        assert [branch.name for branch in memory.branches()] == ["main"]
    assert steps.count("ActionStep") == 4
    with closing(open_store(made.store)) as store:
        assert [run for run in store.sessions() if store.head(run)] == [name]
    assert made.provider.illegal == ()
    assert not [label for name, label in made.app.metrics.counts if name == "failures"]
