"""From the first call to the answer: sixty calls in 4,000 tokens, a crash in the middle, and a fact of step three."""

import subprocess
import sys
from pathlib import Path

import pytest
from smolagents import memory as theirs
from smolagents_scripted import SECRET, LookUp, agent_of, called, code, text_of, tokens_of

from pagein import ActionStep, AgentMemory
from pagein.integrations.smolagents import PageinMemory

pytestmark = pytest.mark.slow

CRASH = Path(__file__).with_name("smolagents_crash.py")


def crashed(kind, path):
    done = subprocess.run([sys.executable, CRASH, kind, path], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 9, done.stderr


def asking(kind, text, number):
    return code(f"print({text})") if kind == "code" else called((f"n{number}", *call_of(text)))


def call_of(text):
    name, argument = text.removesuffix(")").split("(")
    return name, ({"handle": argument.strip("'")} if name == "expand" else {"page": int(argument)})


def answering(kind, answer):
    return code(f"final_answer({answer!r})") if kind == "code" else called(("end", "final_answer", {"answer": answer}))


def third_look(memory):
    """The handle of the third action, as the record has it."""
    return [f"s{at}" for at, step in enumerate(memory.pages.log().read()) if isinstance(step.body, ActionStep)][2]


@pytest.mark.parametrize("kind", ["code", "calls"])
def test_a_run_that_crashed_at_its_twentieth_call_goes_on_to_thirty_and_answers_from_its_third(kind, tmp_path):
    path = str(tmp_path / "run.db")
    crashed(kind, path)
    found = []

    def script(number, messages):
        page = 20 + number
        if page <= 30:
            return asking(kind, f"look_up({page})", page)
        seen = "\n".join(map(text_of, messages))
        if page == 31:
            found.append(SECRET in seen)
            return asking(kind, f"expand('{third_look(memory)}')", page)
        return answering(kind, SECRET if f"The vault's word is {SECRET}." in seen else "I do not know.")

    agent = agent_of(kind, script, 4_000)
    with PageinMemory.attach(agent, path, budget=4_000) as memory:
        assert len(memory.steps) == 21
        assert memory.steps[0].task.startswith("Read the report")
        assert memory.steps[3].observations.count(SECRET) == 1
        dead = memory.steps[-1]
        assert (dead.tool_calls[0].name, dead.observations) == (
            ("python_interpreter", None) if kind == "code" else ("look_up", None)
        )
        assert agent.run("Go on where you stopped.", reset=False) == SECRET
        assert found == [False], "the fact had left the view, or this shows nothing"
        assert "It may have run" in "\n".join(map(text_of, agent.model.requests[0]))
        assert memory.pages.verify().ok
        assert sum(isinstance(step, ActionStep) for step in memory.pages.steps) == 20 + 10 + 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["code", "calls"])
def test_it_sends_less_than_two_fifths_of_what_the_bare_agent_sends(kind):
    def script(number, messages):
        return asking(kind, f"look_up({number})", number) if number <= 60 else answering(kind, "done")

    def sent(agent):
        agent.run("Read the report.")
        return sum(map(tokens_of, agent.model.requests))

    bare, ours = agent_of(kind, script), agent_of(kind, script, 4_000)
    PageinMemory.attach(ours, budget=4_000)
    assert sent(ours) <= 0.4 * sent(bare)


def test_a_new_run_begins_anew_and_the_old_one_stays_in_the_record(tmp_path):
    def script(number, messages):
        return asking("calls", f"look_up({number})", number) if number % 2 else answering("calls", "done")

    path = tmp_path / "run.db"
    agent = agent_of("calls", script, 4_000)
    with PageinMemory.attach(agent, path, budget=4_000) as memory:
        agent.run("First.")
        agent.run("Second.")
        assert [type(each) for each in memory.steps] == [theirs.TaskStep, theirs.ActionStep, theirs.ActionStep]
        assert "First." not in "\n".join(map(text_of, agent.model.requests[-1]))
    with AgentMemory.open(path, budget=4_000) as record:
        told = [step.content for step in record.steps if hasattr(step, "content")]
        assert {"New task:\nFirst.", "New task:\nSecond."} <= set(told)
    with PageinMemory("", path, budget=4_000) as again:
        assert [each.task for each in again.steps if isinstance(each, theirs.TaskStep)] == ["Second."]


def test_what_was_recorded_is_durable_before_a_tool_runs(tmp_path):
    path, there = tmp_path / "run.db", []

    class Looking(LookUp):
        def forward(self, page: int) -> str:
            with AgentMemory.open(path, readonly=True, budget=4_000) as record:
                there.append(record.steps[-1].tool_calls[0].name)
            return super().forward(page)

    def script(number, messages):
        return asking("calls", "look_up(1)", 1) if number == 1 else answering("calls", "done")

    agent = agent_of("calls", script, 4_000, [Looking()])
    with PageinMemory.attach(agent, path, budget=4_000):
        agent.run("Look.")
    assert there == ["look_up"]
