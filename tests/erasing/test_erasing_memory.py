"""What is erased is nowhere: not in view, recall, expand, summaries, facts, export, nor in the bytes of the file."""

import asyncio
import contextlib
import json
from pathlib import Path

import pytest

from pagein import (
    ActionStep,
    AgentMemory,
    AsyncAgentMemory,
    Observation,
    PageinError,
    TaskStep,
    ToolCall,
    UnknownHandle,
)
from pagein.backends.open import open_log
from pagein.memory.export import export_session, import_session

SECRET = "xanthippe-4711"
LARGE = f"row {SECRET} " * 5_000


def everything(memory):
    """All that a memory gives out, as one text."""
    said = [str(memory.to_messages()), str(memory.get_full_steps()), str(memory.recall(SECRET))]
    said += [str(memory.expand(at)) for at in range(len(list(memory._runtime.log.read()))) if _is_step(memory, at)]
    said += [str(entry.body) for entry in memory._runtime.log.read()]
    return "\n".join(said)


def _is_step(memory, at):
    try:
        memory.expand(at)
    except UnknownHandle:
        return False
    return True


def on_disk(path):
    """Every byte that lies beside a path."""
    return b"".join(each.read_bytes() for each in Path(path).parent.glob(Path(path).name + "*"))


def turn(number, said, result):
    call = ToolCall(f"c{number}", "read", json.dumps({"path": f"file{number}.py", "why": said}))
    return [ActionStep(f"I look at {said}.", (call,)), Observation(f"c{number}", result)]


def test_a_step_in_a_file_is_erased_everywhere(tmp_path):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, budget=2_000) as memory:
        memory.record(TaskStep("Find the customer."))
        memory.record(*turn(1, SECRET, LARGE))
        for number in range(2, 30):
            memory.record(*turn(number, f"part {number}", f"line of {number}\n" * 30))
            memory.view()
        assert SECRET in everything(memory)
        assert memory.recall(SECRET)
        handle = next(each.handle for each in memory.recall(SECRET, limit=1)).partition(".")[0]
        done = memory.erase(handle, reason="asked for")
        assert done.entries == 2
        assert done.scrubbed
        assert SECRET not in everything(memory)
        found = memory.verify()
        assert (found.ok, found.erased >= 2) == (True, True)
        memory.record(TaskStep("Go on."))
        assert memory.to_messages()
    assert SECRET.encode() not in on_disk(path)
    assert b"xanthippe" not in on_disk(path).lower()
    with AgentMemory.open(path, budget=2_000) as memory:
        assert SECRET not in everything(memory)
        assert memory.verify().ok
        assert memory.to_messages("anthropic")


def small(number):
    return turn(number, f"part {number}", f"line of {number}\n" * 30)


def grown(memory, turns, first=2):
    for number in range(first, turns):
        memory.record(*small(number))
        memory.view()


def test_one_result_goes_and_the_call_stays(tmp_path):
    with AgentMemory.open(tmp_path / "run.db", budget=100_000) as memory:
        memory.record(TaskStep("Look."))
        calls = (ToolCall("a", "read", '{"path": "one"}'), ToolCall("b", "read", '{"path": "two"}'))
        memory.record(ActionStep("Both.", calls, (Observation("a", f"{SECRET} here"),)))
        memory.record(Observation("b", "harmless tetrahedron"))
        memory.recall("tetrahedron")
        assert memory.erase("s1.0").entries == 1
        action = memory.steps[1]
        assert [call.id for call in action.tool_calls] == ["a", "b"]
        assert action.tool_calls == calls
        assert [seen.result for seen in action.observations] == ["[erased]", "harmless tetrahedron"]
        assert memory.recall("tetrahedron")
        assert SECRET not in everything(memory)
        for format in ("openai", "anthropic", "openai-responses"):
            assert "[erased]" in str(memory.to_messages(format))
        assert memory.erase("s1.1").entries == 1
        assert not memory.recall("tetrahedron")
        assert memory.steps[1].observations[1].result == "[erased]"


def test_what_repeats_one_erased_result_goes_with_it(tmp_path):
    with AgentMemory.open(tmp_path / "run.db", budget=100_000) as memory:
        memory.record(ActionStep("Look.", (ToolCall("a", "read", "{}"),)))
        memory.record(Observation("a", f"{SECRET} here"))
        memory.checkpoint("seen", {"note": f"the {SECRET}"})
        assert memory.erase("s0.0").derived == 1
        assert SECRET not in everything(memory)
        assert SECRET not in memory.checkpoints()[0].state.host


def test_expanding_what_was_erased_gives_its_tombstone(tmp_path):
    with AgentMemory.open(tmp_path / "run.db", budget=100_000) as memory:
        memory.record(TaskStep(SECRET), *turn(1, "x", SECRET))
        memory.erase("s0", "s1")
        assert memory.expand("s0") == "[erased]"
        assert "[erased]" in memory.expand("s1.0")
        again = memory.erase("s0")
        assert (again.entries, again.derived) == (0, 0), "erased twice, and told of twice"


@pytest.mark.parametrize("handle", ["s9", "s0-9", -1, "", "x", None, 1.5, "f", "fu9x"])
def test_a_handle_of_nothing_erases_nothing(tmp_path, handle):

    with AgentMemory.open(tmp_path / "run.db") as memory:
        memory.record(TaskStep("here"))
        before = list(memory._runtime.log.read())
        with pytest.raises(PageinError):
            memory.erase("s0", handle)
        assert list(memory._runtime.log.read()) == before
        with pytest.raises(PageinError):
            memory.erase()


@pytest.mark.parametrize("prefix", ["", "mcp__pagein__"])
def test_what_our_tools_repeated_goes_with_it(tmp_path, prefix):
    with AgentMemory.open(tmp_path / "run.db", budget=100_000) as memory:
        memory.record(TaskStep("Look."), *turn(1, "it", f"the code is {SECRET}"))
        for number, (tool, given) in enumerate([("recall", {"query": "the code"}), ("expand", {"handle": "s1"})]):
            memory.record(ActionStep(None, (ToolCall(f"t{number}", prefix + tool, json.dumps(given)),)))
            found = memory.call_tool(tool, json.dumps(given))
            assert SECRET in found
            memory.record(Observation(f"t{number}", found))
        memory.checkpoint("half way", {"note": f"mind {SECRET}", "other": "stays"})
        memory.pin("unrelated pin")
        memory.erase("s1")
        assert SECRET not in everything(memory)
        mark = memory.checkpoints()[-1]
        assert json.loads(mark.state.host) == {"note": "[erased]", "other": "stays"}
        assert "unrelated pin" in str(memory.to_messages())


def test_the_same_words_of_another_step_are_told_of_and_stay(tmp_path):
    line = f"the customer is called {SECRET}"
    with AgentMemory.open(tmp_path / "run.db", budget=100_000) as memory:
        memory.record(TaskStep("Look."), *turn(1, "it", line), *turn(2, "it again", line))
        done = memory.erase("s1")
        assert done.elsewhere == ("s3.0",)
        assert line in memory.expand("s3.0")
        assert memory.erase(*done.elsewhere).elsewhere == ()
        assert SECRET not in everything(memory)


def test_an_extract_keeps_the_lines_of_the_others(tmp_path):
    with AgentMemory.open(tmp_path / "run.db", budget=2_500) as memory:
        memory.record(TaskStep("Look for the marmalade."), *turn(1, SECRET, f"{SECRET} is down\n" * 40))
        memory.record(*turn(2, "marmalade", "the marmalade is in cupboard_17\n" + "filler\n" * 60))
        grown(memory, 30, first=3)
        summary = next(each for each in memory.view().entries if each.tier == "summary")
        assert summary.first <= 1 < summary.last
        before = summary.item.content
        memory.erase("s1")
        after = next(each for each in memory.view().entries if each.tier == "summary").item.content
        assert SECRET not in after
        kept = [line for line in before.splitlines() if SECRET not in line and "file1" not in line]
        assert sum(line in after for line in kept) >= len(kept) // 2 > 1


def test_facts_that_came_of_it_alone_go_with_it(tmp_path):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, user="alice", budget=100_000, facts=True) as memory:
        memory.record(TaskStep("Nothing to see."), TaskStep("Nothing here."), TaskStep("Nor here."))
        facts = memory.facts
        facts.add(f"Likes {SECRET}.", sources=["s0"])
        facts.add("Likes tea.", sources=["s0", "s1"])
        facts.add("Likes quiet.", sources=["s2"])
        old = facts.add(f"Lives at {SECRET} road.")
        new = facts.correct(old.id, "Lives by the sea.")
        done = memory.erase("s0")
        assert (done.entries, done.facts) == (1, 1)
        assert {each.content for each in memory.facts.list()} == {"Likes tea.", "Likes quiet.", "Lives by the sea."}
        assert memory.erase(new.id).facts == 2
        assert {each.content for each in memory.facts.list()} == {"Likes tea.", "Likes quiet."}
        assert SECRET not in str(memory.facts.audit())
        assert SECRET not in str(memory.to_messages())
    assert SECRET.encode() not in on_disk(path)
    with AgentMemory.open(path, user="alice", budget=100_000, facts=True) as memory:
        assert {each.content for each in memory.facts.list()} == {"Likes tea.", "Likes quiet."}
        assert memory.erase_facts("user").facts == 2
        assert memory.facts.list() == ()
    for each in open_log(path).store.sessions():
        with contextlib.closing(open_log(path, session=each)) as log:
            assert log.verify().ok


def test_branches_that_see_it_lose_it(tmp_path):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, budget=2_000) as memory:
        memory.record(TaskStep("Look."), *turn(1, SECRET, f"{SECRET} is down\n" * 20))
        memory.fork(name="other")
        grown(memory, 12)
        memory.switch("other")
        grown(memory, 12)
        memory.checkpoint("on the branch")
        assert memory.recall(SECRET)
        memory.switch("main")
        assert memory.recall(SECRET)
        memory.erase("s1")
        for name in ("main", "other"):
            memory.switch(name)
            assert SECRET not in everything(memory), name
            assert memory.verify().ok, memory.verify().problems
    assert SECRET.encode() not in on_disk(path)


def test_what_only_a_branch_has_is_erased_there(tmp_path):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, budget=2_000) as memory:
        memory.record(TaskStep("Look."))
        memory.fork(name="other")
        memory.record(TaskStep("main's own words"))
        memory.switch("other")
        memory.record(*turn(1, SECRET, "x"))
        memory.erase("s1")
        assert memory.verify().erased == 2
        assert memory.verify().ok
        memory.switch("main")
        assert "main's own words" in everything(memory)
        assert memory.verify().erased == 0
        assert export_session(open_log(path), tmp_path / "plain.jsonl").entries == 2


def test_an_export_has_the_tombstones_and_comes_back(tmp_path):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, budget=2_000) as memory:
        memory.record(TaskStep("Look."), *turn(1, SECRET, LARGE))
        memory.erase("s1")
    saved = export_session(open_log(path), tmp_path / "run.jsonl")
    assert SECRET not in (tmp_path / "run.jsonl").read_text()
    same = open_log(tmp_path / "other.db")
    assert import_session(tmp_path / "run.jsonl", same) == saved
    assert (same.verify().ok, same.verify().erased) == (True, 2)
    renamed = open_log(tmp_path / "other.db", session="renamed")
    import_session(tmp_path / "run.jsonl", renamed)
    assert renamed.verify().ok
    assert [each.body for each in renamed.read()] == [each.body for each in same.read()]


def test_a_whole_session_goes_and_the_memory_goes_on_empty(tmp_path):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, user="alice", budget=2_000, facts=True) as memory:
        memory.record(TaskStep(SECRET), *turn(1, SECRET, LARGE))
        memory.facts.add(f"Knows {SECRET}.", sources=["s0"])
        memory.facts.add("Knows the sea.")
        memory.fork(name="other")
        memory.switch("other")
        memory.record(TaskStep(f"{SECRET} again"))
        done = memory.erase_session(reason="asked for")
        assert done.entries >= 3
        assert memory.steps == ()
        assert [each.name for each in memory.branches()] == ["main"]
        memory.record(TaskStep("A new run."))
        assert "A new run." in str(memory.to_messages())
        assert memory.verify().ok
        assert [each.content for each in memory.facts.list()] == ["Knows the sea."]
    assert SECRET.encode() not in on_disk(path)


def test_a_host_that_hands_its_list_over_again_brings_nothing_back(tmp_path):
    messages = [{"role": "user", "content": f"I am {SECRET}"}, {"role": "assistant", "content": "Hello."}]
    with AgentMemory.open(tmp_path / "run.db") as memory:
        memory.record_messages(messages)
        memory.erase("s0")
        head = len(list(memory._runtime.log.read()))
        memory.record_messages([*messages, {"role": "user", "content": "Go on."}])
        assert len(list(memory._runtime.log.read())) == head + 1
        assert SECRET not in everything(memory)


def test_async_memories_erase_too(tmp_path):
    async def play():
        async with AsyncAgentMemory.open(tmp_path / "run.db") as memory:
            await memory.record(TaskStep(SECRET))
            done = await memory.erase(0, reason="asked for")
            assert done.entries == 1
            assert SECRET not in str(await memory.to_messages())
            await memory.record(TaskStep("more"))
            await memory.erase_session()
            assert await memory.steps == ()

    asyncio.run(play())
    assert SECRET.encode() not in on_disk(tmp_path / "run.db")


def test_in_memory_too():
    with AgentMemory.open(":memory:", budget=2_000, user="alice") as memory:
        memory.record(TaskStep("Look."), *turn(1, SECRET, LARGE))
        memory.facts.add(f"Knows {SECRET}.", sources=["s1"])
        grown(memory, 12)
        memory.recall(SECRET)
        done = memory.erase("s1")
        assert done.facts == 1
        assert SECRET not in everything(memory)
        assert memory.verify().ok
        memory.erase_session()
        assert memory.steps == ()


@pytest.mark.parametrize("handle", ["s0.0", "s1.1", "s1.7"])
def test_a_result_that_is_not_there_is_refused_and_nothing_is_called_erased(handle):
    with AgentMemory.open(":memory:", budget=4_000) as memory:
        memory.record(TaskStep(SECRET), ActionStep("", (ToolCall("c", "read", "{}"),)), Observation("c", SECRET))
        with pytest.raises(UnknownHandle):
            memory.erase("s1.0", handle)
        assert memory.expand("s1.0") == SECRET
        assert memory.erase("s1.0").entries == 1
        assert memory.erase("s1.0").entries == 0  # it is there, erased


@pytest.mark.parametrize("recorded", [True, False])
def test_a_note_of_the_model_goes_with_what_it_repeats_and_a_lasting_fact_is_named(tmp_path, recorded):
    words, path = f"The patient is {SECRET}.", tmp_path / "run.db"
    with AgentMemory.open(path, budget=4_000, user="ann") as memory:
        memory.record(TaskStep("Hello"), TaskStep(words))
        for name, argument in (("note", {"text": words}), ("remember", {"content": words})):
            if recorded:
                memory.record(ActionStep("", (ToolCall(name, name, json.dumps(argument)),)))
            answer = memory.call_tool(name, argument)
            if recorded:
                memory.record(Observation(name, answer))
        memory.facts.add("Likes herons.", scope="session")
        done = memory.erase("s1")
        assert done.elsewhere == (("s2", "s4") if recorded else ("fu0",))
        while done.elsewhere:
            done = memory.erase(*done.elsewhere)
        assert [fact.content for fact in memory.facts.list()] == ["Likes herons."]
        assert SECRET not in everything(memory)
    assert SECRET.encode() not in path.read_bytes()
