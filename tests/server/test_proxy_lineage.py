"""Whose request it is: retries, edits, forks, compactions, titles, restarts, and clients that share a name or a beginning."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import anthropic
import openai
import pytest

from benchmarks.faulty_provider import Fault, FaultyProvider
from pagein import AgentMemory
from pagein.testing.provider import Answer, ScriptedProvider, ToolLoop, serve_app
from tests.server.sdk_agents import TOOL, result_of, run_messages

pytestmark = pytest.mark.slow

ASK = {"model": "claude-opus-4-8", "max_tokens": 100}


def counting():
    numbers = iter(range(1, 1_000))
    return lambda question: Answer(f"Answer {next(numbers)}.")


def user(text):
    return {"role": "user", "content": text}


def said(message):
    return {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in message.content]}


def ask(client, history):
    return client.messages.create(**ASK, messages=history)


def sessions(made):
    with AgentMemory.open(made.store, session="look", readonly=True) as memory:
        store = memory._runtime.log.store
        return sorted(name for name in store.sessions() if not name.startswith("pagein:") and store.head(name))


def texts(made, run, branch="main"):
    with made.memory(run, branch=branch) as memory:
        return [str(step.content if isinstance(step.content, str) else step.content[0].text) for step in memory.steps]


def test_a_retry_shows_the_same_and_records_nothing_twice(stack):
    made = stack(counting())
    client = made.claude("run")
    first = ask(client, [user("One.")])
    again = ask(client, [user("One.")])
    assert made.provider.received[0].body["messages"] == made.provider.received[1].body["messages"]
    for message, name in ((first, "first"), (again, "again")):
        ask(client, [user("One."), said(message), user(f"Two of {name}.")])
    assert texts(made, "run") == ["One.", "Answer 1.", "Two of first.", "Answer 3."]
    with made.memory("run") as memory:
        branch = next(branch.name for branch in memory.branches() if branch.name != "main")
    assert texts(made, "run", branch) == ["One.", "Answer 2.", "Two of again.", "Answer 4."]
    assert sessions(made) == ["run"]


def test_an_edit_and_a_side_question_are_branches_and_the_run_goes_on(stack):
    made = stack(counting())
    client = made.claude("run")
    history = [user("One.")]
    history += [said(ask(client, history)), user("Two.")]
    history += [said(ask(client, history)), user("Three.")]
    ask(client, [*history[:2], user("Two, edited.")])
    ask(client, [*history[:4], user("What is the title of this?")])
    ask(client, history)
    with made.memory("run") as memory:
        branches = {branch.name: texts(made, "run", branch.name) for branch in memory.branches()}
    # Whoever comes first behind the last answer goes on with the branch; content cannot tell a side question.
    assert sorted(branches.values()) == [
        ["One.", "Answer 1.", "Two, edited.", "Answer 3."],
        ["One.", "Answer 1.", "Two.", "Answer 2.", "Three.", "Answer 5."],
        ["One.", "Answer 1.", "Two.", "Answer 2.", "What is the title of this?", "Answer 4."],
    ]
    assert made.provider.received[2].body["messages"][-1]["content"] == "Two, edited."
    assert sessions(made) == ["run"]


def test_a_title_and_a_compacted_history_under_the_runs_name_are_runs_of_their_own(stack):
    made = stack(counting())
    client = made.claude("run")
    ask(client, [user("Write a title for this: One.")])
    history = [user("One.")]
    history += [said(ask(client, history)), user("Two.")]
    ask(client, history)
    compacted = [user("This session is continued from another one. Summary: one and two.")]
    compacted += [said(ask(client, compacted)), user("Three.")]
    ask(client, compacted)
    assert sessions(made) == ["run", "run~2", "run~3"]
    assert texts(made, "run~2") == ["One.", "Answer 2.", "Two.", "Answer 3."]
    assert len(texts(made, "run~3")) == 4


def test_runs_without_a_name_are_told_apart_by_the_first_answer(stack):
    made = stack(counting())
    client = made.claude()
    left, right = ([user("The same words.")] for _ in range(2))
    left += [said(ask(client, left)), user("Left.")]
    right += [said(ask(client, right)), user("Right.")]
    for history in (left, right, left, right):
        history += [said(ask(client, history)), user("On.")]
    names = sessions(made)
    assert len(names) == 2
    for name in names:
        steps = texts(made, name)
        assert steps[0] == "The same words."
        assert len(steps) == 6
        assert ("Left." in steps) != ("Right." in steps)


def test_two_clients_on_one_run_part_where_they_say_something_else(stack):
    made = stack(counting())
    shared = [user("One.")]
    shared += [said(ask(made.claude("run"), shared))]
    left, right = [*shared, user("Left.")], [*shared, user("Right.")]
    for _ in range(2):
        left += [said(ask(made.claude("run"), left)), user("On.")]
        right += [said(ask(made.claude("run"), right)), user("On.")]
    with made.memory("run") as memory:
        branches = [branch.name for branch in memory.branches()]
    assert len(branches) == 2
    both = [texts(made, "run", branch) for branch in branches]
    assert sorted("Left." in steps for steps in both) == [False, True]
    assert all(len(steps) == 6 for steps in both)


def test_a_server_that_was_started_again_goes_on_with_the_run(stack):
    script = ToolLoop(10)
    made = stack(script, window=3_000)
    history = run_messages(made.claude("run"), stream=True)
    again = stack(script, window=3_000, store=made.store)
    history.append(user("And now?"))
    script.calls = 20
    history = run_messages(again.claude("run"), stream=False, history=history)
    assert again.provider.illegal == ()
    with again.memory("run") as memory:
        assert [branch.name for branch in memory.branches()] == ["main"]
        assert len([step for step in memory.steps if type(step).__name__ == "ActionStep"]) == 22


def test_cache_markers_that_wander_are_no_news(stack):
    made = stack(counting())
    client = made.claude("run")
    history = []
    for number in range(4):
        for row in history:
            if isinstance(row["content"], list):
                [block.pop("cache_control", None) for block in row["content"]]
        history.append(
            {
                "role": "user",
                "content": [{"type": "text", "text": f"{number}.", "cache_control": {"type": "ephemeral"}}],
            }
        )
        history.append(said(ask(client, history)))
    assert len(texts(made, "run")) == 8
    with made.memory("run") as memory:
        assert len(memory.branches()) == 1


def test_the_async_sdks_get_the_same(stack):
    made = stack(ToolLoop(0))

    async def run():
        head = {"x-pagein-run": "async"}
        async with anthropic.AsyncAnthropic(base_url=made.url, api_key="x", default_headers=head) as claude:
            async with claude.messages.stream(**ASK, messages=[user("Hello.")]) as stream:
                first = await stream.get_final_message()
            whole = await claude.messages.create(**ASK, messages=[user("Hello."), said(first), user("On.")])
        async with openai.AsyncOpenAI(base_url=f"{made.url}/v1", api_key="x", default_headers=head) as gpt:
            chunks = await gpt.chat.completions.create(model="gpt-4o", messages=[user("Hi.")], stream=True)
            pieces = [chunk.choices[0].delta.content async for chunk in chunks if chunk.choices]
            response = await gpt.responses.create(model="gpt-4o", input="Hi, you.")
        return (
            first.content[0].text,
            whole.content[0].text,
            "".join(piece or "" for piece in pieces),
            response.output_text,
        )

    assert asyncio.run(run()) == ("A title",) * 4
    assert made.count("answers", "recorded") == 4


def test_tokens_are_counted_of_the_view_and_nothing_is_recorded(stack):
    script = ToolLoop(12)
    made = stack(script, window=4_000)
    client = made.claude("run")
    history = run_messages(client, stream=False)
    asked = {"model": ASK["model"], "messages": [*history, user("And then?")]}
    with made.memory("run") as memory:
        before = len(memory.steps)
    counted = client.messages.count_tokens(**asked).input_tokens
    direct = ScriptedProvider(script).cache.count(asked)
    assert 300 < counted < 4_000 < direct
    with made.memory("run") as memory:
        assert len(memory.steps) == before
    assert len(made.provider.others[-1].body["messages"]) < len(history)


def test_observe_records_and_forwards_unchanged(stack):
    made = stack(ToolLoop(10), window=2_000, mode="observe")
    history = run_messages(made.claude("run"), stream=True)
    assert made.provider.received[-1].body["messages"] == history[:-1]
    with made.memory("run") as memory:
        assert len([step for step in memory.steps if type(step).__name__ == "ActionStep"]) == 11


def test_a_named_upstream_is_served_under_its_name(stack, tmp_path):
    from pagein.server import ServerApp, ServerSettings

    first, second = ScriptedProvider(counting()), ScriptedProvider(counting())
    with serve_app(first) as one, serve_app(second) as other:
        app = ServerApp(ServerSettings(str(tmp_path / "two.db"), {"default": one, "openai": f"{other}/v1"}))
        with serve_app(app) as url, openai.OpenAI(base_url=f"{url}/openai/v1", api_key="x") as gpt:
            gpt.chat.completions.create(model="gpt-4o", messages=[user("Hello.")])
    assert (len(first.received), len(second.received)) == (0, 1)


@pytest.mark.server
def test_two_servers_on_postgresql_serve_one_run(stack, postgres, schema):
    script = ToolLoop(10)
    provider = ScriptedProvider(script, window=3_000)
    first, second = (stack(provider, window=3_000, store=postgres.url, tenant=schema) for _ in range(2))
    history = [user("Read all files.")]
    for number in range(11):
        made = (first, second)[number % 2]
        message = made.claude("run").messages.create(**ASK, tools=[TOOL], messages=history)
        history.append(said(message))
        uses = [block for block in message.content if block.type == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": use.id, "content": result_of(number, 800)} for use in uses]
        if results:
            history.append({"role": "user", "content": results})
    assert (provider.over, provider.illegal) == (0, ())
    assert first.count("failures", "Conflict") == second.count("failures", "Conflict") == 0
    with AgentMemory.open(postgres.url, session="run", tenant=schema, readonly=True) as memory:
        assert [branch.name for branch in memory.branches()] == ["main"]
        assert len([step for step in memory.steps if type(step).__name__ == "ActionStep"]) == 11


def test_results_that_the_client_cleared_are_no_edit(stack):
    made = stack(counting())
    client, history = made.claude("run"), [user("Read them all.")]
    for number in range(5):
        use = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {"n": number}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"Line {number}.\n" * 60}
        history += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        for row in history[2:-2:4]:
            row["content"] = [{**row["content"][0], "content": "[Old tool result content cleared]"}]
        history += [said(ask(client, history)), user(f"Now read {number + 1}.")]
    with made.memory("run") as memory:
        assert [branch.name for branch in memory.branches()] == ["main"]
        calls = [step for step in memory.steps if getattr(step, "tool_calls", ())]
        assert [f"Line {number}.\n" * 60 for number in range(5)] == [step.observations[0].result for step in calls]
    assert sessions(made) == ["run"]


def test_a_server_that_forgot_a_name_finds_its_run_in_the_store(stack, monkeypatch):
    monkeypatch.setattr("pagein.server.runs.MAX_KNOWN_CHAINS", 3)
    made = stack(lambda question: Answer("Noted."))
    http = made.http()

    def ask(*rows):
        answer = http.post("/v1/chat/completions", json={"model": "gpt-5", "messages": list(rows)})
        assert answer.status_code == 200
        return answer.json()["choices"][0]["message"]

    talks = [[{"role": "user", "content": f"Note number {number}."}] for number in range(6)]
    for _ in range(3):
        for talk in talks:
            talk += [ask(*talk), {"role": "user", "content": "And now?"}]
    names = {name for _, name in made.app._parts.proxy._runs._names}
    assert len(names) == 3
    for name in names:
        with made.memory(name) as memory:
            assert len(memory.steps) == 6
            assert [branch.name for branch in memory.branches()] == ["main"]


def test_a_first_request_that_failed_is_the_same_run_when_it_is_asked_again(stack):
    made = stack(FaultyProvider(counting(), faults={0: Fault("rate-limit"), 1: Fault("bare-500")}))
    ask = {"model": "claude-opus-4-8", "max_tokens": 100, "messages": [{"role": "user", "content": "Hello there."}]}
    assert [made.http().post("/v1/messages", json=ask).status_code for _ in range(3)] == [429, 500, 200]
    assert len(sessions(made)) == 1
    made.http().post("/v1/messages", json=ask)  # somebody else may say the same
    assert len(sessions(made)) == 2


def test_two_first_requests_at_once_are_two_runs(stack):
    def answer_late(question):
        # The provider answers one request at a time: the first answer waits until the proxy has the other request.
        end = time.monotonic() + 300
        while len(sessions(made)) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        return Answer("Hello.")

    made = stack(answer_late)
    ask = {"model": "claude-opus-4-8", "max_tokens": 100, "messages": [{"role": "user", "content": "Hello there."}]}
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: made.http().post("/v1/messages", json=ask), range(2)))
    assert len(sessions(made)) == 2
