"""Rules for the results of tools: kept, folded to the newest, clipped once read; detectors for the usual tools."""

import json
import random

import pytest

from pagein import (
    ActionStep,
    AgentMemory,
    Compaction,
    ConfigurationError,
    Image,
    Observation,
    TaskStep,
    ToolCall,
    Tools,
)
from pagein.context.compaction.policies.window import Window
from pagein.context.tool_rules import NO_RULES
from pagein.memory.config import load

SHELL = "bash"


def call(name, **arguments):
    return ToolCall("c", name, json.dumps(arguments))


def act(name, content, **arguments):
    return ActionStep(None, (call(name, **arguments),), (Observation("c", content),))


def words(number, count=60):
    """A text of its own for each number."""
    chosen = random.Random(number)
    return " ".join(f"word{chosen.randint(0, 10**6)}" for _ in range(count))


def shown(memory):
    """What stands in the place of each result in view, by position."""
    entries = [entry for entry in memory.view().run if isinstance(entry.item, ActionStep)]
    return {entry.first: entry.item.observations[0].content for entry in entries}


def last_compaction(memory):
    return max(entry.position for entry in memory._runtime.log.read() if isinstance(entry.body, Compaction))


def play(steps, *, tools=NO_RULES, budget=3_000, policy="ladder", path=":memory:"):
    memory = AgentMemory.open(path, budget=budget, policy=policy, tool_rules=tools, page_in=0)
    memory.record(TaskStep("Work."))
    for step in steps:
        memory.record(step)
        memory.to_messages()
    return memory


@pytest.mark.parametrize(
    ("name", "arguments", "state"),
    [
        ("browser_snapshot", {"tab": 1}, "browser_snapshot"),
        ("take_screenshot", {}, "take_screenshot"),
        (SHELL, {"command": "git status -s"}, 'bash {"command": "git status -s"}'),
        (SHELL, {"command": "ls -la src"}, 'bash {"command": "ls -la src"}'),
        ("list_files", {"path": "a"}, 'list_files {"path": "a"}'),
        (SHELL, {"command": "kubectl -n shop get pods"}, 'bash {"command": "kubectl -n shop get pods"}'),
        (SHELL, {"command": "sleep 10 && gh pr checks 12"}, "bash gh pr checks 12"),
        (SHELL, {"command": "sleep 5; kubectl delete pod a"}, ""),
        (SHELL, {"command": "ls src | wc -l"}, ""),
        (SHELL, {"command": "lsof"}, ""),
        ("create_snapshot", {}, ""),
        ("read", {"path": "a.py"}, ""),
    ],
)
def test_the_usual_tools_that_show_a_state_are_recognised(name, arguments, state):
    assert NO_RULES.state_of(call(name, **arguments)) == state


def test_a_rule_goes_before_what_is_recognised():
    tools = Tools(keep=("browser_snapshot",), fold=("poll", "git log*"))
    assert tools.state_of(call("browser_snapshot")) == ""
    assert tools.state_of(call("poll", job=1)) == tools.state_of(call("poll", job=2)) == "poll"
    assert tools.state_of(call(SHELL, command="git log -3")) == "git log*"


@pytest.mark.parametrize("policy", ["window", "mask", "prune", "tiers", "ladder", "short_long"])
def test_of_a_state_only_the_newest_is_shown(policy):
    steps = [act("poll", words(number), job=number) for number in range(40)]
    with play(steps, tools=Tools(fold=("poll",)), policy=Window(10) if policy == "window" else policy) as memory:
        texts, compacted = shown(memory), last_compaction(memory)
        *older, newest = [text for position, text in texts.items() if position < compacted]
        assert len(newest) > 200
        assert all(len(text) < 200 for text in older)
        assert str(memory.expand("s3.0")) == words(2)
        assert memory.verify().ok


def test_a_screenshot_gives_way_to_a_newer_one_by_itself():
    steps = [act("screenshot", (Image(b"\x89PNG" + bytes([n] * 90), "image/png"),)) for n in range(12)]
    with play(steps, policy=Window(6), budget=40_000) as memory:
        compacted = last_compaction(memory)
        *older, newest = [pair for pair in shown(memory).items() if pair[0] < compacted]
        assert not isinstance(newest[1], str)
        assert older
        for position, text in older:
            assert text == f"[1 images masked: s{position}.0; s{newest[0]}.0 is newer]"
            assert isinstance(memory.expand(f"s{position}").steps[0].observations[0].content[0], Image)


def test_what_is_kept_stays_whole_while_other_results_leave():
    steps = [act("spec", words(0, 100)), *(act("read", words(number), path=str(number)) for number in range(1, 40))]
    with play(steps, tools=Tools(keep=("spec",))) as memory:
        assert shown(memory)[1] == words(0, 100)
        assert 2 not in shown(memory)
        memory.mark("s1", "low")
        memory.compact()
        assert shown(memory).get(1) != words(0, 100)
    with play(steps) as memory:
        assert 1 not in shown(memory)


def test_a_result_is_clipped_once_it_was_read_and_not_before():
    long = "\n".join(words(number, 12) for number in range(40))
    rules = Tools(clip={"search": 100})
    with play([act("search", long), act("read", "short")], tools=rules, budget=12_000) as memory:
        assert "characters left out: s1.0" in shown(memory)[1]
        assert len(shown(memory)[1]) < len(long) / 3
        memory.record(act("search", long))
        assert shown(memory)[max(shown(memory))] == long
    with play([act("search", long), act("read", "short")], tools=rules, budget=3_000) as memory:
        assert len(shown(memory)[1]) < len(long) / 3  # clipped already as it entered, to more


def test_rules_hold_on_another_branch():
    long = "\n".join(words(number, 12) for number in range(40))
    with play([act("search", long), act("read", "short")], tools=Tools(clip={"search": 100}), budget=12_000) as memory:
        memory.rewind(2)
        memory.record(act("read", "short"))
        assert "characters left out: s1.0" in shown(memory)[1]


def test_rules_hold_after_reopening_and_undo(tmp_path):
    tools = Tools(fold=("poll",))
    steps = [act("poll", words(number), job=number) for number in range(40)]
    with play(steps, tools=tools, policy=Window(10), path=tmp_path / "run.db") as memory:
        memory.compact()
        before = memory.view().messages()
    with AgentMemory.open(tmp_path / "run.db", budget=3_000, policy=Window(10), tool_rules=tools, page_in=0) as memory:
        assert memory.view().messages() == before
        memory.undo()
        assert memory.verify().ok


def test_wrong_rules_are_refused():
    for wrong in ({"clip": {"a": 0}}, {"clip": {"a": "x"}}, {"keep": "read"}, {"fold": (1,)}):
        with pytest.raises(ConfigurationError):
            Tools(**wrong)
    with pytest.raises(ConfigurationError, match="Tools"):
        AgentMemory.open(":memory:", tool_rules={"keep": ("read",)})


def test_rules_are_read_from_a_file_and_from_the_environment(tmp_path):
    file = tmp_path / "pagein.toml"
    file.write_text('[tool_rules]\nkeep = ["spec"]\nclip = { search = 500 }\n')
    config = load(file, environ={"PAGEIN_TOOL_RULES_FOLD": "poll,git log*"})
    assert config.options()["tool_rules"] == Tools(("spec",), ("poll", "git log*"), {"search": 500})
    with pytest.raises(ConfigurationError, match="tool_rules"):
        load(file, environ={"PAGEIN_TOOL_RULES_CLIP": '{"search": 0}'}).options()
