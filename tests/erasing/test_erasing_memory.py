"""What is erased is nowhere: not in view, recall, expand, summaries, facts, export, nor in the bytes of the file."""

import json
from pathlib import Path

from pagein import (
    ActionStep,
    AgentMemory,
    Observation,
    TaskStep,
    ToolCall,
    UnknownHandle,
)

SECRET = "xanthippe-4711"
LARGE = f"row {SECRET} " * 5_000


def everything(memory):
    """All that a memory gives out, as one text."""
    said = [str(memory.to_messages()), str(memory.get_full_steps()), str(memory.recall(SECRET))]
    said += [str(memory.expand(at)) for at in range(len(list(memory._log.read()))) if _is_step(memory, at)]
    said += [str(entry.body) for entry in memory._log.read()]
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
