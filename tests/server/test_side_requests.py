"""Requests beside a run under its name: titles, pages to sum up, warm-up and quota. They are answered, and no run has them."""

from contextlib import closing

import pytest

from pagein.backends.open import open_store
from pagein.server.naming import name_run
from pagein.testing.provider import Answer, ToolLoop
from tests.server.sdk_agents import CHAT_TOOL, TOOL, run_messages

pytestmark = pytest.mark.slow

CLAUDE, OPENCODE = {"x-claude-code-session-id": "7f3c"}, {"x-session-id": "ses_1", "x-session-affinity": "ses_1"}
TASK = "Read all files, and say which of them calls lookup. " * 4
USER = {"role": "user", "content": TASK}
MODEL = {"model": "claude-haiku-4-5", "max_tokens": 512}
TITLE = {**MODEL, "system": "Write a title for the conversation.", "messages": [USER]}

SIDE_REQUESTS = {
    "a title of the user's words": (CLAUDE, "/v1/messages", TITLE),
    "a title with an empty list of tools": (CLAUDE, "/v1/messages", {**TITLE, "tools": []}),
    "a page to sum up": (
        CLAUDE,
        "/v1/messages",
        {**MODEL, "messages": [{"role": "user", "content": "Web page content: " + "x " * 3_000}]},
    ),
    "warm-up": (
        CLAUDE | {"x-claude-code-agent-id": "explore"},
        "/v1/messages",
        {**MODEL, "tools": [TOOL], "messages": [{"role": "user", "content": [{"type": "text", "text": "Warmup"}]}]},
    ),
    "a search of the web": (
        CLAUDE,
        "/v1/messages",
        {
            **MODEL,
            "tools": [{"type": "web_search_20250305", "name": "web_search"}],
            "messages": [{"role": "user", "content": "Perform a web search for the query: boats"}],
        },
    ),
    "quota": ({}, "/v1/messages", {**MODEL, "max_tokens": 1, "messages": [{"role": "user", "content": "quota"}]}),
    "opencode's title": (
        OPENCODE,
        "/v1/chat/completions",
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "You are a title generator."},
                {"role": "user", "content": "Generate a title for this conversation:\n"},
                USER,
            ],
        },
    ),
}


def run_names(made):
    with closing(open_store(made.store)) as store:
        return [name for name in store.sessions() if store.head(name)]


def counted(question):
    return Answer("Reading all files" if not question.tools else "Done.")


@pytest.mark.parametrize("side", SIDE_REQUESTS)
def test_a_side_request_is_answered_and_is_no_part_of_the_run_and_no_run(stack, side):
    headers, path, body = SIDE_REQUESTS[side]
    made = stack(counted)
    http = made.http()

    def ask_aside():
        answer = http.post(path, json=body, headers=headers)
        assert (answer.status_code, answer.headers["x-pagein"]) == (200, "side")
        assert made.provider.received[-1].body == body

    history = [USER]
    tools = {"tools": [TOOL if path == "/v1/messages" else CHAT_TOOL]}
    name = name_run(headers, {}) or "run-"
    for words in ("Go on.", "And now?", None):
        ask_aside()
        answer = http.post(path, json={**MODEL, **tools, "messages": history}, headers=headers)
        assert answer.headers["x-pagein"].startswith(f"view; run={name}")
        history += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": words or ""}]
    ask_aside()
    (run,) = run_names(made)
    with made.memory(run) as memory:
        assert [branch.name for branch in memory.branches()] == ["main"]
        assert [str(step.content) for step in memory.steps if type(step).__name__ == "TaskStep"] == [
            TASK,
            "Go on.",
            "And now?",
        ]
        assert len(memory.requests()) == 3


def test_a_whole_history_that_warms_the_cache_is_a_view_and_nothing_is_recorded(stack):
    made = stack(ToolLoop(14), window=3_000, provider_window=3_000)
    client = made.claude("")
    client = client.with_options(default_headers=CLAUDE)
    history = run_messages(client, stream=False, size=800)
    with made.memory("claude-code:7f3c") as memory:
        before = len(memory.steps), len(memory.requests())
    warm = {**MODEL, "max_tokens": 1, "tools": [TOOL], "system": "You read files.", "messages": [*history, USER]}
    answer = made.http().post("/v1/messages", json=warm, headers=CLAUDE)
    assert (answer.status_code, answer.headers["x-pagein"]) == (200, "side; view")
    assert made.provider.over == 0
    assert len(made.provider.received[-1].body["messages"]) < len(history)
    with made.memory("claude-code:7f3c") as memory:
        assert (len(memory.steps), len(memory.requests())) == before
    assert run_names(made) == ["claude-code:7f3c"]


@pytest.mark.parametrize("headers", [{"x-pagein-run": "chat"}, {}])
def test_a_chat_without_tools_is_a_run_from_its_first_request_on(stack, headers):
    made = stack(counted)
    made.http().post("/v1/messages", json=TITLE, headers=headers)
    (run,) = run_names(made)
    with made.memory(run) as memory:
        assert len(memory.steps) == 2
