"""What was sent is remembered, and can be rendered again byte for byte from the log."""

import asyncio
import bz2
import hashlib
import json
import sqlite3
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter
from pathlib import Path

import msgspec
import pytest

import pagein
from pagein import AgentMemory, AsyncAgentMemory
from pagein.context.compaction.policies.rounds import Rounds
from pagein.errors import OverBudget, UnknownRequest
from pagein.evaluation.runs import demo_run
from pagein.events.steps import ActionStep, SystemPromptStep, TaskStep, Usage
from pagein.log.requests import REQUEST_MAX_BYTES, RequestRow
from pagein.memory._state import FoldedLog
from pagein.memory.host_memory import HostMemory
from pagein.memory.requests import encode_record
from pagein.testing.scripted_writer import ScriptedModel
from pagein.tokens import Budget

TALK = Path(pagein.__file__).parent / "evaluation" / "recorded" / "talk.json.bz2"


def send_all(memory, rows, format="openai"):
    """Hand over the rows; return the request that stood before each answer, by its number."""
    sent = {}
    for row in rows:
        if row["role"] == "assistant":
            try:
                request = memory.to_messages()
            except OverBudget:
                continue
            sent[memory.requests()[-1].number] = request
        memory.record_messages([row], format=format, whole=False)
    return sent


def assert_same(memory, sent):
    for number, request in sent.items():
        again = memory.request(number)
        assert again.problem == "", f"request {number}"
        assert again.request["messages"] == request, f"request {number}"


def spoken_rows(turns=40):
    conversation = json.loads(bz2.decompress(TALK.read_bytes()))[0]["conversation"]
    speakers = {conversation["speaker_a"]: "user", conversation["speaker_b"]: "assistant"}
    sessions = sorted((key for key in conversation if key.startswith("session_") and key[8:].isdigit()), key=len)
    talk = [turn for key in sessions for turn in conversation[key]]
    return [{"role": speakers[turn["speaker"]], "content": turn["text"]} for turn in talk[:turns]]


@pytest.mark.slow
@pytest.mark.parametrize(("budget", "format"), [(4_000, "openai"), (8_000, "anthropic"), (6_000, "openai-responses")])
def test_each_request_of_a_run_is_rendered_again_byte_for_byte(budget, format):
    with AgentMemory.open(":memory:", budget=budget, format=format) as memory:
        run = demo_run()
        sent = send_all(memory, run.wire, run.format)
        records = memory.requests()
        assert [record.number for record in records] == list(range(1, len(records) + 1))
        assert any(record.page_ins for record in records)
        assert_same(memory, sent)
        assert all(sum(record.tiers.values()) == record.tokens <= record.limit for record in records)
        assert all(len(encode_record(record)) <= REQUEST_MAX_BYTES for record in records)


@pytest.mark.slow
def test_search_results_that_end_with_an_empty_line_are_rendered_again():
    run = demo_run()
    with AgentMemory.open(":memory:", budget=6_000, model="gpt-4o", user="ada") as memory:
        memory.facts.add("Prefers small patches", scope="user")
        assert_same(memory, send_all(memory, run.wire[:50], run.format))


@pytest.mark.slow
def test_requests_of_talk_have_turns_paged_in_and_are_rendered_again():
    with AgentMemory.open(":memory:", budget=900) as memory:
        sent = send_all(memory, spoken_rows())
        kinds = {block.kind for record in memory.requests() for page_in in record.page_ins for block in page_in.blocks}
        assert "turn" in kinds
        assert_same(memory, sent)


@pytest.mark.slow
def test_another_process_renders_what_this_one_sent(tmp_path):
    path, run = tmp_path / "run.db", demo_run()
    sent, rows = {}, list(run.wire)
    for start in range(0, len(rows), 25):  # opened again in mid-run, from a snapshot
        with AgentMemory.open(path, budget=8_000) as memory:
            sent |= send_all(memory, rows[start : start + 25], run.format)
    with AgentMemory.open(path, budget=3_000, readonly=True) as memory:
        assert len(sent) > 30
        assert_same(memory, sent)


@pytest.fixture
def frequent_snapshots(monkeypatch):
    """Snapshots every 8 entries, of which those behind 16 stay."""
    monkeypatch.setattr("pagein.memory._state.SNAPSHOT_MIN_NEW_ENTRIES", 8)
    for module in ("_state", "operations.requests"):
        monkeypatch.setattr(f"pagein.memory.{module}.PAST_SNAPSHOT_ENTRIES", 16)


@contextmanager
def counted_folds(monkeypatch):
    folded = []
    apply = FoldedLog.apply

    def counting(log, entries):
        entries = list(entries)
        folded.extend(entries)
        apply(log, entries)

    with monkeypatch.context() as patch:
        patch.setattr(FoldedLog, "apply", counting)
        yield folded


@pytest.mark.slow
def test_a_late_request_is_rendered_from_the_last_past_snapshot_before_it(tmp_path, monkeypatch, frequent_snapshots):
    run = demo_run()
    with AgentMemory.open(tmp_path / "run.db", budget=6_000) as memory:
        sent = send_all(memory, run.wire[:60], run.format)
        memory.undo()
        sent[len(sent) + 1] = memory.to_messages()
        memory.record(TaskStep("Once more."))
        sent[len(sent) + 1] = memory.to_messages()
    with AgentMemory.open(tmp_path / "run.db", budget=6_000, readonly=True) as memory:
        before_undo = max(sent) - 2
        with counted_folds(monkeypatch) as folded:
            assert_same(memory, {before_undo: sent[before_undo]})
        assert len(folded) < 32 < memory.requests()[before_undo - 1].head
        assert_same(memory, sent)


@pytest.mark.slow
def test_a_store_without_past_snapshots_folds_its_log_once_for_many_requests(tmp_path, monkeypatch, frequent_snapshots):
    run = demo_run()
    with AgentMemory.open(tmp_path / "run.db", budget=6_000) as memory:
        sent = send_all(memory, run.wire[:60], run.format)
    with closing(sqlite3.connect(tmp_path / "run.db")) as database, database:
        assert database.execute("DELETE FROM snapshots WHERE session LIKE 'pagein:past:%'").rowcount > 2
    with AgentMemory.open(tmp_path / "run.db", budget=6_000, readonly=True) as memory:
        last = max(sent)
        assert_same(memory, {last: sent[last]})
        with counted_folds(monkeypatch) as folded:
            assert_same(memory, {last: sent[last]})
        assert len(folded) < 48
        assert_same(memory, sent)


@pytest.mark.slow
def test_requests_in_any_order_are_the_same_and_the_next_one_folds_on(tmp_path, monkeypatch):
    run = demo_run()
    with AgentMemory.open(tmp_path / "run.db", budget=6_000) as memory:
        sent = send_all(memory, run.wire, run.format)
        records = memory.requests()
    with_page_in = [before.number for before, record in pairwise(records) if before.page_ins and record.page_ins]
    assert len(with_page_in) > 5
    with AgentMemory.open(tmp_path / "run.db", budget=6_000, readonly=True) as memory:
        for number in with_page_in[-3:]:
            memory.request(number)
            with counted_folds(monkeypatch) as folded:
                assert_same(memory, {number + 1: sent[number + 1]})
            assert len(folded) <= records[number].head - records[number - 1].head
        assert_same(memory, dict(reversed(sent.items())))
        assert_same(memory, {number: sent[number] for number in sorted(sent, key=lambda number: number * 7 % 31)})


@pytest.mark.slow
def test_only_a_page_in_of_lines_or_names_learns_from_the_run(tmp_path, monkeypatch):
    run = demo_run()
    with AgentMemory.open(tmp_path / "run.db", budget=6_000, page_in=0) as memory:
        sent = send_all(memory, run.wire[:60], run.format)
        last = memory.requests()[-1]
    assert last.compactions
    with AgentMemory.open(tmp_path / "run.db", budget=6_000, readonly=True) as memory:
        monkeypatch.setattr("pagein.context.salience.tracker.MAX_PENDING_TEXTS", 8)
        monkeypatch.setattr(
            "pagein.context.salience.tracker.SalienceTracker._learn_text", lambda *_: pytest.fail("learnt")
        )
        assert_same(memory, {last.number: sent[last.number]})


def test_facts_in_a_request_are_named_by_their_ids(tmp_path):
    with AgentMemory.open(tmp_path / "run.db", budget=4_000, user="ada") as memory:
        memory.facts.add("Prefers tabs over spaces", category="preference", scope="user")
        memory.record(TaskStep("Format the file with tabs or spaces?"))
        first = memory.to_messages()
        memory.facts.add("Works on the parser of the web app", scope="user")
        memory.record(ActionStep("I look."), TaskStep("And the parser?"))
        second = memory.to_messages()
        records = memory.requests()
        assert all(record.facts for record in records)
        assert "tabs over" not in encode_record(records[0]).decode()
        assert_same(memory, {1: first, 2: second})


@pytest.mark.slow
def test_filtered_views_branches_and_undo_are_rendered_again():
    run = demo_run()
    with AgentMemory.open(":memory:", budget=4_000) as memory:
        sent = send_all(memory, run.wire[:40], run.format)
        for number, options in enumerate(
            ({"summary_mode": True}, {"keep_last_n": 2}, {"max_tokens": 3_000}), len(sent)
        ):
            sent[number + 1] = memory.to_messages(**options)
        memory.undo()
        memory.fork(20, "other")
        memory.switch("other")
        memory.record(TaskStep("Another way."))
        sent[len(sent) + 1] = memory.to_messages()
        assert memory.requests()[-1].branch == "other"
        assert_same(memory, sent)


@pytest.mark.slow
def test_a_request_with_less_room_than_the_others_is_rendered_again():
    run = demo_run()
    with AgentMemory.open(":memory:", budget=6_000, policy="mask") as memory:
        sent = send_all(memory, run.wire[:50], run.format)
        memory.record(TaskStep("And now?"))
        sent[len(sent) + 1] = memory.to_messages(reserve=2_500)
        assert memory.requests()[-1].plan.is_narrow
        assert_same(memory, sent)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"model": "claude-opus-4-8"},
        {"summarizer": ScriptedModel(), "policy": "rounds"},
        {"policy": Rounds()},
        {"budget": Budget(20_000, low=0.6)},
    ],
)
def test_a_view_that_records_nothing_is_rendered_again_by_a_memory_with_other_options(tmp_path, options):
    with AgentMemory.open(tmp_path / "run.db", **{"budget": 20_000, "spend": None} | options) as memory:
        sent = send_all(memory, demo_run().wire[:40], "openai")
        for most in range(3_000, 14_000, 1_000):
            with suppress(OverBudget):
                sent[len(sent) + 1] = memory.to_messages(max_tokens=most)
        sent[len(sent) + 1] = memory.to_messages(summary_mode=True)
        memory.record(TaskStep("And now?"))
        sent[len(sent) + 1] = memory.to_messages(reserve=12_000)
        assert memory.requests()[-1].plan.is_narrow
    with AgentMemory.open(tmp_path / "run.db", budget=3_000, readonly=True) as memory:
        assert_same(memory, sent)


def test_names_of_roles_are_in_the_request_that_is_rendered_again(tmp_path):
    with AgentMemory.open(tmp_path / "run.db", budget=4_000, roles={"human": "user"}) as memory:
        memory.record(TaskStep("Go."))
        request = memory.to_messages()
        assert request[0]["role"] == "human"
        assert_same(memory, {1: request})
    with AgentMemory.open(tmp_path / "run.db", budget=4_000, readonly=True) as memory:
        assert_same(memory, {1: request})


def test_the_same_view_rendered_twice_is_one_request_until_its_outcome_is_known():
    with AgentMemory.open(":memory:", budget=4_000) as memory:
        memory.record(TaskStep("Go."))
        memory.to_messages()
        memory.to_messages()
        memory.note_outcome("429", seconds={"whole": 0.25}, notes={"proxy": "a1"})
        memory.to_request()
        one, two = memory.requests()
        assert (one.outcome, one.seconds, one.notes, two.outcome) == ("429", {"whole": 0.25}, {"proxy": "a1"}, "")


def test_usage_is_noted_by_whichever_way_it_is_reported():
    with AgentMemory.open(":memory:", budget=4_000) as memory:
        memory.record(TaskStep("Go."))
        memory.to_messages()
        memory.record(ActionStep("Going.", usage=Usage(50, 3, 40)), TaskStep("On."))
        memory.to_messages()
        usage = {
            "input_tokens": 10,
            "output_tokens": 4,
            "cache_read_input_tokens": 30,
            "cache_creation_input_tokens": 5,
        }
        memory.record_messages(
            [{"role": "assistant", "content": "On."}, {"role": "user", "content": "Go on."}], usage=usage
        )
        memory.to_messages()
        memory.observe_usage(usage)
        counts = [
            (one.input, one.output, one.cache_read, one.cache_written)
            for one in map(attrgetter("usage"), memory.requests())
        ]
        assert counts == [(50, 3, 40, 0), (45, 4, 30, 5), (45, 4, 30, 5)]
        assert memory.cost().provider.cache_written == 10
        memory.note_outcome("ok", number=1, usage=usage)
        assert memory.requests()[0].usage.cache_written == 5
        with pytest.raises(UnknownRequest, match=r"no request 9 .* the last is 3"):
            memory.request(9)


def test_the_prefix_and_where_it_broke_are_named():
    run = demo_run()
    with AgentMemory.open(":memory:", budget=6_000) as memory:
        send_all(memory, run.wire, run.format)
        records = memory.requests()
        assert (records[0].prefix, records[1].broke) == (0, "")
        assert 0 < records[1].prefix < records[1].tokens
        breaks = [record for one, record in pairwise(records) if record.compactions > one.compactions]
        assert breaks
        assert all(record.broke.startswith("s") and record.broke_why for record in breaks)


def test_a_request_with_an_erased_step_says_so_and_its_row_has_none_of_it(tmp_path):
    secret = "Zanzibar-4711-hunter"
    path = tmp_path / "run.db"
    with AgentMemory.open(path, budget=4_000) as memory:
        memory.record(SystemPromptStep("You help."), TaskStep(f"The password is {secret}."))
        memory.to_messages()
        assert secret in json.dumps(memory.request(1).request)
        memory.erase("s1")
        again = memory.request(1)
        assert "erased" in again.problem
        assert secret not in json.dumps(again.request)
    assert secret.encode() not in path.read_bytes()


def test_a_digest_of_an_earlier_release_still_tells_what_was_sent():
    with AgentMemory.open(":memory:", budget=8_000) as memory:
        memory.record(SystemPromptStep("Fix bugs."), TaskStep("Fix it."))
        memory.to_messages()
        table, record = memory._runtime.requests.table, memory.requests()[-1]
        whole = msgspec.json.encode(memory.request().request)
        for text, problem in ((whole, False), (whole + b" ", True)):
            older = replace(record, digest=hashlib.sha256(text).hexdigest()[:32])
            table.replace(record.number, encode_record(older))
            assert bool(memory.request().problem) is problem


def test_two_writers_of_one_run_number_their_requests_in_turn(tmp_path):
    path = tmp_path / "run.db"
    with HostMemory.open(path, budget=8_000) as one, HostMemory.open(path, budget=8_000) as other:
        for number, memory in enumerate((one, one, other, one, other, other, one)):
            memory.refresh()
            memory.record(TaskStep(f"Task {number}."))
            memory.to_messages()
        assert [record.number for record in one.requests()] == [1, 2, 3, 4, 5, 6, 7]
        assert [record.head for record in one.requests()] == [1, 2, 3, 4, 5, 6, 7]


def test_an_encrypted_store_keeps_its_requests_encrypted(tmp_path):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, budget=4_000, key=b"k" * 32, model="gpt-4o") as memory:
        memory.record(TaskStep("Go."))
        request = memory.to_messages()
    assert b"gpt-4o" not in path.read_bytes()
    with AgentMemory.open(path, budget=4_000, key=b"k" * 32, model="gpt-4o") as memory:
        assert_same(memory, {1: request})


def test_a_damaged_row_and_a_table_that_is_gone_cost_no_turn(tmp_path):
    with AgentMemory.open(tmp_path / "run.db", budget=4_000) as memory:
        memory.record(TaskStep("Go."))
        memory.to_messages()
        table = memory._runtime.requests.table
        table.replace(1, b"\xff{")
        assert memory.requests() == ()

        def fail(*_):
            raise pagein.LogError("the disk is full")

        memory._runtime.requests.table.add = fail
        memory.record(ActionStep("Going."), TaskStep("On."))
        assert memory.to_messages()
        assert any("disk is full" in problem for problem in memory.report().problems)


def test_a_readonly_memory_writes_no_request(tmp_path):
    with AgentMemory.open(tmp_path / "run.db", budget=4_000) as memory:
        memory.record(TaskStep("Go."))
    with AgentMemory.open(tmp_path / "run.db", budget=4_000, readonly=True) as memory:
        memory.to_messages()
        assert memory.requests() == ()


def test_async_memories_remember_their_requests_too(tmp_path):
    async def send():
        async with AsyncAgentMemory.open(tmp_path / "run.db", budget=4_000) as memory:
            await memory.record(TaskStep("Go."))
            request = await memory.to_messages()
            await memory.note_outcome("ok")
            (record,) = await memory.requests()
            return record, request == (await memory.request()).request["messages"]

    record, is_same = asyncio.run(send())
    assert (record.number, record.outcome, is_same) == (1, "ok", True)


def test_a_record_that_is_too_long_gives_up_its_page_in_before_its_numbers():
    from dataclasses import replace

    from pagein.memory.requests import PageInRecord, RequestRecord, decode_record

    record = RequestRecord(1, 2, 3.0, tokens=7, page_ins=(PageInRecord(2, (), tuple(range(1_000))),))
    body = encode_record(record)
    back = decode_record(RequestRow(1, 2, 3.0, body))
    assert len(body) <= REQUEST_MAX_BYTES
    assert back == replace(record, page_ins=(PageInRecord(2, is_complete=False),))


def test_a_row_that_met_another_writer_is_written_with_the_next_and_is_no_problem(tmp_path):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, budget=4_000) as memory, closing(sqlite3.connect(path, isolation_level=None)) as other:
        memory.record(TaskStep("One."))
        memory.to_messages()
        memory.record(ActionStep("Two."))
        other.execute("BEGIN IMMEDIATE")
        memory.to_messages()
        other.execute("ROLLBACK")
        assert memory.report().problems == ()
        memory.record(TaskStep("Three."))
        memory.to_messages()
        assert [record.head for record in memory.requests()] == [1, 2, 3]


def test_a_turn_of_another_task_takes_no_tokens_written_to_the_cache():
    usage = {"input_tokens": 10, "output_tokens": 2, "cache_creation_input_tokens": 5}

    async def ask():
        async with AsyncAgentMemory.open(":memory:", format="anthropic") as memory:
            await memory.record(TaskStep("One."))
            await memory.to_messages()
            answer = {"role": "assistant", "content": "Two."}
            await asyncio.gather(memory.to_messages(), memory.record_messages([answer], whole=False, usage=usage))
            await memory.to_messages()
            return await memory.cost()

    assert asyncio.run(ask()).provider.cache_written == 5
