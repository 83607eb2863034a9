"""The benchmark that kills the proxy: it finds nothing wrong, and would."""

import multiprocessing

import pytest

pytest.importorskip("starlette")
from benchmarks.server_crash import StreamingAgent, _find_faults, bench_server_crash
from pagein import AgentMemory
from pagein.events.steps import ActionStep, TaskStep, ToolCall


@pytest.mark.skipif("forkserver" not in multiprocessing.get_all_start_methods(), reason="kills processes")
def test_a_proxy_that_is_killed_loses_nothing_that_a_client_had_whole():
    told = []
    found = bench_server_crash(1, seed=7, tick=lambda result: told.append(result.kills))
    assert (told, found.faults, found.illegal, found.over) == ([1], [], (), 0)
    assert found.is_ok
    assert found.acknowledged > 2


def test_an_answer_that_is_lost_or_recorded_twice_is_a_fault(tmp_path):
    store = str(tmp_path / "runs.db")
    with AgentMemory.open(store, session="r", budget=4_000) as memory:
        memory.record(TaskStep("Go."), ActionStep("", (ToolCall("a", "read", "{}"),)))
    agent = StreamingAgent("r", answers=["a"])
    assert list(_find_faults(store, agent)) == []
    agent.answers.append("b")
    assert list(_find_faults(store, agent)) == ["b was acknowledged, and is recorded 0 times"]
