"""What crosses to another process: errors arrive whole, a memory does not, and a forked copy of one is refused at once."""

import copy
import os
import pickle
import subprocess
import sys
import threading
import time

import pytest

import pagein.facts
import pagein.integrations.langgraph
import pagein.models
import pagein.server.inspector.data  # noqa: F401 - it defines an error, too
from pagein import AgentMemory, Conflict, LogClosed, OverBudget, PageinError, TaskStep
from pagein.errors import Illegal, UnknownHandle


def subclasses(kind):
    for each in kind.__subclasses__():
        yield each
        yield from subclasses(each)


@pytest.mark.parametrize("kind", sorted(set(subclasses(PageinError)), key=lambda kind: kind.__qualname__))
@pytest.mark.parametrize("carry", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_an_error_of_every_class_arrives_with_its_facts(kind, carry):
    error = kind.__new__(kind, "what happened, and what to do")
    error.fact = ("s1", 5)
    arrived = carry(error)
    assert (type(arrived), str(arrived), arrived.fact) == (kind, "what happened, and what to do", ("s1", 5))


@pytest.mark.parametrize(
    "error", [Conflict(3, 5), OverBudget(50, 40, ("s1",)), Illegal("openai", ["no user"]), UnknownHandle("s9", 4)]
)
def test_an_error_arrives_as_it_was_raised(error):
    arrived = pickle.loads(pickle.dumps(error))
    assert (type(arrived), str(arrived), vars(arrived)) == (type(error), str(error), vars(error))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # fork beside pytest's own threads, from Python 3.12
def test_a_process_forked_in_the_middle_of_a_turn_is_refused_and_does_not_wait(tmp_path):
    begun, go_on = threading.Event(), threading.Event()

    def clock():
        begun.set()
        go_on.wait(90)
        return time.time()

    memory = AgentMemory.open(str(tmp_path / "run.db"), budget=3_000, clock=clock)
    turn = threading.Thread(target=memory.record, args=(TaskStep("a"),))
    turn.start()
    assert begun.wait(30)
    child = os.fork()
    if child == 0:
        os._exit(_use_copy(memory))
    deadline = time.monotonic() + 60
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.01)
    if ended == (0, 0):
        os.kill(child, 9)
        os.waitpid(child, 0)
    go_on.set()
    turn.join(90)
    assert ended != (0, 0), "the child waits for a lock that its parent's thread has"
    assert os.waitstatus_to_exitcode(ended[1]) == 0
    memory.record(TaskStep("b"))
    assert [step.content for step in memory.steps] == ["a", "b"]
    assert memory.verify().ok
    memory.close()


def _use_copy(memory):
    """The number of calls that the copy of a memory did not refuse."""
    calls = (lambda: memory.record(TaskStep("c")), memory.to_messages, memory.report, lambda: memory.facts)
    unrefused = 0
    for call in calls:
        try:
            call()
        except LogClosed as error:
            unrefused += "forked" not in str(error)
        except Exception:  # noqa: BLE001 - it is counted
            unrefused += 1
        else:
            unrefused += 1
    memory.close()  # what there is to close is the parent's
    return unrefused


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("is_closed", [True, False], ids=["the parent closes", "another program closes"])
def test_what_a_child_records_outlives_the_child_whoever_closes_the_file(tmp_path, is_closed):
    path = tmp_path / "run.db"
    memory = AgentMemory.open(path, session="parent")
    memory.record(TaskStep("Of the parent."))
    memory.recall("parent")
    has_recorded, goes_on = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        own = AgentMemory.open(path, session="child")
        own.record(TaskStep("one"))
        os.write(has_recorded[1], b"x")
        os.read(goes_on[0], 1)
        own.record(TaskStep("two"))
        os._exit(0)  # as a kill does it: nothing is closed
    os.read(has_recorded[0], 1)
    if is_closed:
        memory.close()
    else:
        subprocess.run([sys.executable, "-m", "pagein", "log", str(path), "--session", "child"], check=True)
    os.write(goes_on[1], b"x")
    assert os.waitpid(child, 0)[1] == 0
    if not is_closed:
        memory.record(TaskStep("And on."))
        memory.close()
    with AgentMemory.open(path, session="child") as again:
        assert [step.content for step in again.steps] == ["one", "two"]
        assert again.verify().ok
    with AgentMemory.open(path, session="parent") as parent:
        assert len(parent.steps) == (1 if is_closed else 2)
