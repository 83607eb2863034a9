"""A summary without a model, from the steps and the salience tracker."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from summaries_corpus import EVIL, RULES, action, round_span

from pagein import AgentMemory
from pagein.evaluation.runs import demo_run
from pagein.events.entries import Observed, Pin
from pagein.events.steps import (
    ActionStep,
    FinalAnswerStep,
    Observation,
    PlanningStep,
    SummaryStep,
    SystemPromptStep,
    TaskStep,
    ToolCall,
)
from pagein.summaries.extractive import extract_summary
from pagein.summaries.fidelity import verify_summary
from pagein.summaries.spans import Span, build_span
from pagein.summaries.summary import Summary, summary_from_dict, summary_to_dict
from pagein.tokens.encodings import Encoding


def test_a_run_is_told_by_its_own_words():
    summary = extract_summary(round_span(0))
    assert summary.objective.text.startswith("Make the importer work for order 77120.")
    assert [item.text for item in summary.constraints] == list(RULES)
    assert [item.text for item in summary.dead_ends] == ["bash: pytest tests/module_0_2.py"]
    assert summary.dead_ends[0].note.startswith("E ValueError")
    assert "bash: cat src/module_0_5.py" in [item.text for item in summary.done]
    assert summary.state.text == "Looking."
    assert summary.author == "extractive"
    assert all(item.handles for _, item in summary.entries())
    assert summary == extract_summary(round_span(0))
    assert summary_from_dict(summary_to_dict(summary)) == summary


def test_nothing_gives_the_empty_summary():
    assert extract_summary(Span(0, 0)) == Summary()


def test_what_failed_and_worked_later_is_no_dead_end():
    run = [(1, action(1, "make", "error: no rule", status="error")), (2, action(2, "make", "built"))]
    summary = extract_summary(build_span(run, 1, 3))
    assert summary.dead_ends == ()
    assert [item.text for item in summary.done] == ["bash: make"]
    assert [item.text for item in summary.errors] == ["error: no rule"]


def test_a_nod_replaces_no_objective():
    assert extract_summary(
        build_span([(0, TaskStep("Port the parser to Rust")), (3, TaskStep("yes, go on"))], 0, 4)
    ).objective.handles == ("s0",)


def test_to_do_lists_are_tasks_with_their_newest_status():
    todo = ToolCall(
        "t", "todo", '{"todos": [{"id": 7, "content": "Write docs", "status": "in_progress"}, {"content": "x"}]}'
    )
    run = [
        (1, PlanningStep("Plan:\n- [ ] T-1: fix parser\n- [x] read code\n1. [ ] ship")),
        (2, ActionStep("", (todo,), (Observation("t", "ok"),))),
        (3, ActionStep("Done with it:\n- [x] T-1: fix parser")),
    ]
    summary = extract_summary(build_span(run, 1, 4))
    assert [(task.id, task.text, task.status) for task in summary.tasks] == [
        ("T-1", "fix parser", "done"), ("", "read code", "done"), ("", "ship", "open"), ("7", "Write docs", "open"),
    ]  # fmt: skip


def test_every_kind_of_step_is_read():
    run = [
        (0, SystemPromptStep("Always answer in French.")), (1, Pin("Never push.")), (2, SummaryStep("older things in old/file.py")),
        (3, Observed(1, 0, Observation("c", "late_result_name", "error"), late=True)), (4, FinalAnswerStep("It is done. Shall I deploy?")),
    ]  # fmt: skip
    summary = extract_summary(build_span(run, 0, 5))
    assert [item.text for item in summary.constraints] == ["Always answer in French.", "Never push."]
    assert [item.text for item in summary.questions] == ["Shall I deploy?"]
    assert {"old/file.py", "late_result_name"} <= {item.text for item in summary.artifacts}


def test_long_results_are_hinted_at():
    run = [(1, action(1, "cat big", "line of text\n" * 400)), (2, action(2, "ls", "a"))]
    (hint,) = extract_summary(build_span(run, 1, 3)).hints
    assert (hint.text, hint.handles) == ("bash: cat big gave 5,200 characters", ("s1.0",))


@given(
    st.lists(st.one_of(st.text(max_size=60), st.sampled_from(EVIL)), min_size=1, max_size=5),
    st.sampled_from(["ok", "error", "unknown"]),
)
def test_any_text_is_taken(texts, status):
    call = ToolCall(texts[0], texts[-1], texts[0])
    run = [
        (0, TaskStep(texts[0])),
        *((n + 1, ActionStep(text, (call,), (Observation("c", text, status),))) for n, text in enumerate(texts)),
    ]
    span = build_span(run, 0, len(texts) + 1)
    result = verify_summary(extract_summary(span), span, 300, counter=Encoding("o200k_base"), threshold=None)
    assert "</memory" not in result.text.lower()


@pytest.fixture(scope="module")
def recorded_view():
    with AgentMemory.open(":memory:", budget=200_000) as memory:
        memory.record_messages(demo_run().messages, "openai")
        yield memory.view()


def test_a_recorded_run_in_a_fifth_of_its_tokens(recorded_view):
    counter = Encoding("o200k_base")
    items = [(entry.first, entry.item) for entry in recorded_view.run]
    span = build_span(items[1:-4], items[1][0], items[-4][0])
    result = verify_summary(extract_summary(span, recorded_view.tracker), span, 4_000, counter=counter, threshold=None)
    assert result.after.score > 0.85
    assert result.after.score_of("error").share == 1
    assert counter.text(result.text) <= 4_000
