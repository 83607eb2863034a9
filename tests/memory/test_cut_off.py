"""A call that Ctrl-C or a time limit cuts off, at whatever line: the memory goes on, and each step is there once or not at all."""

import itertools
import shutil
import sys
import threading

import pytest

from pagein import ActionStep, AgentMemory, Observation, TaskStep, ToolCall
from pagein.backends.sqlite.connection import SharedDatabase

LONG = "why is it so? " * 20


class Cut:
    """A trace function that raises an error at the nth line within pagein, or within one function of it."""

    def __init__(self, line: int, error: type[BaseException], function=None) -> None:
        self.left, self.error, self.function = line, error, function

    def __call__(self, frame, event, argument):
        if "pagein" not in frame.f_code.co_filename:
            return None
        if self.function is not None and frame.f_code is not self.function.__code__:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                raise self.error
        return self


def cut_off(work, line, error, function=None):
    """Do the work up to the nth line; False where it has fewer."""
    cut, before = Cut(line, error, function), sys.gettrace()
    try:
        sys.settrace(cut)
        work()
    except error:
        pass
    finally:
        sys.settrace(before)
    return cut.left == 0


class TimeLimit(Exception):
    """What a task queue raises in the middle of a task, such as Celery's SoftTimeLimitExceeded."""


def opened(path):
    return AgentMemory.open(path, budget=600, synchronous="OFF", timeout=0.5, user="ann")


@pytest.fixture
def run(tmp_path):
    with opened(tmp_path / "run.db") as memory:
        for number in range(3):
            memory.record(TaskStep(f"task {number} {LONG}"), ActionStep("I look.", (ToolCall(f"c{number}", "look"),)))
            memory.record(Observation(f"c{number}", LONG))
        memory.to_messages()
    return tmp_path / "run.db"


def texts(memory):
    return [step.content for step in memory.steps if isinstance(step, TaskStep)]


WORKS = {
    "record": (29, lambda memory: memory.record(TaskStep("cut off"))),
    "view": (901, lambda memory: memory.to_messages(reserve=300)),
    "rewind": (127, lambda memory: memory.rewind(2)),
    "facts": (73, lambda memory: memory.facts.add("Likes tea.")),
}


@pytest.mark.parametrize("work", WORKS)
def test_a_call_is_cut_off_at_any_line_and_the_memory_goes_on(run, work):
    step, do = WORKS[work]
    for line, error in zip(itertools.count(2, step), itertools.cycle([KeyboardInterrupt, TimeLimit]), strict=False):
        copy = shutil.copy(run, run.with_name(f"{line}.db"))
        memory = opened(copy)
        was_cut_off = cut_off(lambda memory=memory: do(memory), line, error)
        memory.record(TaskStep("after it"))
        assert memory.view().tokens <= 600
        recorded = texts(memory)
        assert recorded.count("after it") == 1
        assert recorded.count("cut off") in ((0, 1) if work == "record" else (0,))
        do(memory)
        assert work != "facts" or [fact.content for fact in memory.facts.list()] == ["Likes tea."]
        recorded = texts(memory)
        assert memory.verify().ok
        memory.close()
        with opened(copy) as again:
            assert texts(again) == recorded
        if not was_cut_off:
            break
    assert line > 5 * step


def test_an_opening_that_was_cut_off_leaves_other_threads_free(run):
    for line in itertools.count(1):
        was_cut_off = cut_off(lambda: opened(run).close(), line, KeyboardInterrupt, SharedDatabase._connect)
        other = threading.Thread(target=lambda: opened(run).close(), daemon=True)
        other.start()
        other.join(20)
        assert not other.is_alive()
        if not was_cut_off:
            break
    assert line > 5


def test_a_write_that_was_cut_off_behind_its_commit_is_no_other_writer(run, monkeypatch):
    memory = opened(run)
    append = memory._runtime.append

    def append_and_interrupt(bodies, after):
        append(bodies, after)
        raise KeyboardInterrupt

    monkeypatch.setattr(memory._runtime, "append", append_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        memory.record(TaskStep("one"))
    monkeypatch.undo()
    memory.record(TaskStep("two"))  # a Conflict with "another writer"
    assert [step.content for step in memory.steps][-2:] == ["one", "two"]
    memory.close()
