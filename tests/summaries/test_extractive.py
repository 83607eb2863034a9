"""A summary without a model, from the steps and the memo."""

import pytest
from hypothesis import given, settings
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
from pagein.summaries.extractive import extracted
from pagein.summaries.fidelity import verified
from pagein.summaries.spans import Span, span_of
from pagein.summaries.summary import Summary, from_json, to_json
from pagein.tokens.encodings import Encoding


def test_a_run_is_told_by_its_own_words():
    found = extracted(round_span(0))
    assert found.objective.text.startswith("Make the importer work for order 77120.")
    assert [each.text for each in found.constraints] == list(RULES)
    assert [each.text for each in found.dead_ends] == ["bash: pytest tests/module_0_2.py"]
    assert found.dead_ends[0].note.startswith("E ValueError")
    assert "bash: cat src/module_0_5.py" in [each.text for each in found.done]
    assert found.state.text == "Looking."
    assert found.author == "extractive"
    assert all(each.handles for _, each in found.entries())
    assert found == extracted(round_span(0))
    assert from_json(to_json(found)) == found


def test_nothing_gives_the_empty_summary():
    assert extracted(Span(0, 0)) == Summary()


def test_what_failed_and_worked_later_is_no_dead_end():
    run = [(1, action(1, "make", "error: no rule", status="error")), (2, action(2, "make", "built"))]
    found = extracted(span_of(run, 1, 3))
    assert found.dead_ends == ()
    assert [each.text for each in found.done] == ["bash: make"]
    assert [each.text for each in found.errors] == ["error: no rule"]


def test_a_nod_replaces_no_objective():
    assert extracted(
        span_of([(0, TaskStep("Port the parser to Rust")), (3, TaskStep("yes, go on"))], 0, 4)
    ).objective.handles == ("s0",)


def test_to_do_lists_are_tasks_with_their_newest_status():
    todo = ToolCall(
        "t",
        "todo",
        '{"todos": [{"id": 7, "content": "Write docs", "status": "in_progress"}, {"content": "x"}]}',
    )
    run = [
        (1, PlanningStep("Plan:\n- [ ] T-1: fix parser\n- [x] read code\n1. [ ] ship")),
        (2, ActionStep("", (todo,), (Observation("t", "ok"),))),
        (3, ActionStep("Done with it:\n- [x] T-1: fix parser")),
    ]
    found = extracted(span_of(run, 1, 4))
    assert [(each.id, each.text, each.status) for each in found.tasks] == [
        ("T-1", "fix parser", "done"), ("", "read code", "done"), ("", "ship", "open"), ("7", "Write docs", "open"),
    ]  # fmt: skip


def test_every_kind_of_step_is_read():
    run = [
        (0, SystemPromptStep("Always answer in French.")), (1, Pin("Never push.")), (2, SummaryStep("older things in old/file.py")),
        (3, Observed(1, 0, Observation("c", "late_result_name", "error"), late=True)), (4, FinalAnswerStep("It is done. Shall I deploy?")),
    ]  # fmt: skip
    found = extracted(span_of(run, 0, 5))
    assert [each.text for each in found.constraints] == ["Always answer in French.", "Never push."]
    assert [each.text for each in found.questions] == ["Shall I deploy?"]
    assert {"old/file.py", "late_result_name"} <= {each.text for each in found.artifacts}


def test_long_results_are_hinted_at():
    run = [(1, action(1, "cat big", "line of text\n" * 400)), (2, action(2, "ls", "a"))]
    (hint,) = extracted(span_of(run, 1, 3)).hints
    assert (hint.text, hint.handles) == ("bash: cat big gave 5,200 characters", ("s1.0",))


@settings(max_examples=60)
@given(
    st.lists(st.one_of(st.text(max_size=60), st.sampled_from(EVIL)), min_size=1, max_size=5),
    st.sampled_from(["ok", "error", "unknown"]),
)
def test_any_text_is_taken(texts, status):
    call = ToolCall(texts[0], texts[-1], texts[0])
    run = [
        (0, TaskStep(texts[0])),
        *(
            (n + 1, ActionStep(each, (call,), (Observation("c", each, status),)))
            for n, each in enumerate(texts)
        ),
    ]
    span = span_of(run, 0, len(texts) + 1)
    result = verified(extracted(span), span, 300, counter=Encoding("o200k_base"), threshold=None)
    assert "</memory" not in result.text.lower()


@pytest.fixture(scope="module")
def recorded():
    with AgentMemory.open(":memory:", budget=200_000) as memory:
        memory.record_messages(demo_run().messages, "openai")
        yield memory.view()


def test_a_recorded_run_in_a_fifth_of_its_tokens(recorded):
    counter = Encoding("o200k_base")
    items = [(each.first, each.item) for each in recorded.run]
    span = span_of(items[1:-4], items[1][0], items[-4][0])
    result = verified(extracted(span, recorded.memo), span, 4_000, counter=counter, threshold=None)
    assert result.after.score > 0.85
    assert result.after.of("error").share == 1
    assert counter.text(result.text) <= 4_000
