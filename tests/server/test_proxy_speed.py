"""What a large request costs: nothing is done twice, and what can be done while an answer is awaited is done then."""

import gc
import sys

import pytest

from pagein import AgentMemory
from pagein.formats import format_named, raw_messages
from pagein.formats.raw_messages import RawRequest
from pagein.memory.host_memory import runtime_of
from pagein.memory.run_requests import RunRequests
from pagein.server.budgets import WindowTable
from pagein.server.memories import MemoryPool, warm_up
from pagein.server.runs import RunRequest, Runs
from pagein.server.wire import CHAT
from pagein.testing.provider.agent import file_text


@pytest.fixture
def hashed(monkeypatch):
    """The messages that are hashed, in order."""
    rows, plain = [], raw_messages.hash_row
    monkeypatch.setattr(raw_messages, "hash_row", lambda row: rows.append(row) or plain(row))
    return rows


def user(text, **more):
    return {"role": "user", "content": [{"type": "text", "text": text, **more}]}


def test_messages_that_the_request_before_had_are_not_hashed_again(hashed):
    form, marker = format_named("anthropic"), {"cache_control": {"type": "ephemeral"}}
    first = RawRequest(form, [user("one"), user("two"), user("three", **marker)])
    first.list_hashes()
    hashed.clear()
    rows = [user("one"), user("two, edited"), user("three"), user("four", **marker)]
    second = RawRequest(form, rows, earlier=first)
    assert second.list_hashes() == RawRequest(form, rows).list_hashes()
    assert hashed == [*rows[1:], *rows], "the edited, the one whose marker went, the new; then all for the comparison"
    assert second.earlier is None, "no request keeps all those before it"


def test_a_host_that_changes_the_request_it_was_given_changes_no_hash():
    form, call = format_named("openai"), {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    rows = [{"role": "user", "content": "one"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    first = RawRequest(form, rows).keep_copy()
    first.list_hashes()
    rows[0]["content"], call["function"]["arguments"] = "two", "[]"
    second = RawRequest(form, rows, earlier=first).keep_copy()
    assert second.list_hashes() == RawRequest(form, rows).list_hashes() != first.list_hashes()


def test_a_view_hashes_what_is_new_in_it(hashed):
    with AgentMemory.open(":memory:", budget=9_000) as memory:
        for turn in range(3):
            memory.record_messages([{"role": "user", "content": f"question {turn}"}], whole=False)
            hashed.clear()
            memory.to_messages()
            assert [row["content"] for row in hashed] == (["answer"] if turn else []) + [f"question {turn}"]
            memory.record_messages([{"role": "assistant", "content": "answer"}], whole=False)


def call(number):
    function = {"name": "read", "arguments": f'{{"number": {number}}}'}
    return [
        {"role": "assistant", "content": None, "tool_calls": [{"id": f"call_{number}", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": file_text(number, 2_000)},
    ]  # fmt: skip


@pytest.fixture
def runs(tmp_path):
    windows, store = WindowTable(6_000), str(tmp_path / "runs.db")
    made = Runs(store, {}, windows, MemoryPool(store, {}, most=4, most_bytes=10_000_000))
    yield made
    made.close()


def request_of(rows):
    return RunRequest("", "run", "default", CHAT, {"messages": rows}, rows, 10_000, "name", model="gpt-5")


def test_a_run_hashes_each_message_once(runs, hashed):
    rows = [{"role": "user", "content": "Read."}]
    for number in range(4):
        rows = [*rows, *call(number)]
        runs.prepare(request_of([dict(row) for row in rows]))
    assert len([row for row in hashed if row == rows[0]]) == 1 + 1, "once of the client's, and once in the first view"


def test_requests_given_out_are_read_again_only_where_another_process_wrote(runs, monkeypatch):
    reads, plain = [], RunRequests.remember_recent
    monkeypatch.setattr(RunRequests, "remember_recent", lambda self: reads.append(self) or plain(self))
    rows = [{"role": "user", "content": "Read."}]
    for number in range(4):
        rows = [*rows, *call(number)]
        runs.prepare(request_of(rows))
    assert len(reads) == 1
    with AgentMemory.open(runs._url, session="run") as other:
        other.record_messages([{"role": "user", "content": "Stop."}], whole=False)
    reads.clear()
    runs.prepare(request_of([*rows, {"role": "user", "content": "Stop."}]))
    assert len(reads) == 1


def test_what_a_compaction_looks_for_was_read_while_the_answer_was_awaited(runs):
    rows = [{"role": "user", "content": "Read."}]
    for number in range(12):
        rows = [*rows, *call(number)]
        request = request_of(rows)
        prepared = runs.prepare(request)
        runs.read_ahead(request, prepared.place)
    with runs._use(prepared.place.lineage, request) as memory:
        state = runtime_of(memory).state
        view = state.usage.last_view
        assert view.has_replaced_entries
        read = state.page_in.visible._contents
        assert all(read[id(entry)][0] is entry for entry in view.entries)


def test_warming_up_says_nothing_and_the_collector_leaves_it_alone(caplog):
    gc.unfreeze()
    usual = sys.getswitchinterval()
    try:
        warm_up()
        assert gc.get_freeze_count() > 10_000
        assert sys.getswitchinterval() < usual, "an event of a stream does not wait for those who make views"
    finally:
        gc.unfreeze()
        sys.setswitchinterval(usual)
    assert caplog.records == []
