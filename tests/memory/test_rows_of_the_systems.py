"""What five systems promise, a test for each row of docs/five-systems.md that works."""

import json
import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from PIL import Image as Pillow

import pagein
from pagein import (
    ActionStep,
    AgentMemory,
    CallbackRegistry,
    Compaction,
    FinalAnswerStep,
    MemoryStep,
    NearLimit,
    Observation,
    PlanningStep,
    SummaryStep,
    SystemPromptStep,
    TaskStep,
    Timing,
    ToolCall,
    truncate_content,
)
from pagein.context.compaction.policies.rolling import Rolling
from pagein.context.compaction.policies.rounds import Rounds
from pagein.context.compaction.policies.short_long import ShortLong
from pagein.context.compaction.policies.window import Window
from pagein.context.ledger.answers import ANSWERS_MAX_TOKENS
from pagein.facts.injection import format_memory_for_injection
from pagein.testing.scripted_writer import ScriptedModel, plain_record
from pagein.tokens.encodings import Encoding

PAGE = Path(__file__).parents[2] / "docs" / "five-systems.md"

FACTS = {
    "facts": [
        {"content": "Prefers pytest for testing Python", "category": "preference", "confidence": 0.7},
        {
            "content": "Builds React and Next.js apps and cares for performance",
            "category": "knowledge",
            "confidence": 0.8,
        },
        {"content": "Uses Docker for containers", "category": "knowledge", "confidence": 0.95},
    ]
}


def call(number, result=None, name="read"):
    observation = (
        result if isinstance(result, Observation) else Observation(f"c{number}", result or f"line {number}\n" * 9)
    )
    return ActionStep(
        f"I read file{number}.py.", (ToolCall(f"c{number}", name, f'{{"path": "file{number}.py"}}'),), (observation,)
    )


def play(steps=40, budget=2_000, **options):
    memory = AgentMemory.open(":memory:", budget=budget, **options)
    memory.record(SystemPromptStep("You are careful."), TaskStep("Find the fault. Never touch production."))
    for number in range(steps):
        memory.record(call(number))
        memory.view()
    return memory


def text_of(memory, **options):
    return json.dumps(memory.to_messages(**options))


def summaries(memory):
    return [entry for entry in memory.view().run if isinstance(entry.item, SummaryStep)]


# smolagents and tinyAgent


def test_typed_steps():
    steps = (SystemPromptStep("s"), TaskStep("t"), PlanningStep("p"), call(1), FinalAnswerStep("a"))
    with AgentMemory.open(":memory:") as memory:
        memory.record(*steps)
        assert memory.steps == steps


def test_calls_and_results_in_lists():
    with AgentMemory.open(":memory:") as memory:
        memory.record(TaskStep("t"), ActionStep("x", [ToolCall("c1", "f", "{}")], [Observation("c1", "r")]))
        assert memory.steps[1] == ActionStep("x", (ToolCall("c1", "f", "{}"),), (Observation("c1", "r"),))
    for calls, results in (("f", ()), (({"name": "f"},), ()), (ToolCall("c1", "f", "{}"), ()), ((), "r"), ((), ("r",))):
        with pytest.raises(pagein.ProtocolError, match="is a tuple of"):
            ActionStep("x", calls, results)


def test_dict_and_to_messages():
    for step in (SystemPromptStep("s"), TaskStep("t"), PlanningStep("p"), call(1), FinalAnswerStep("a")):
        assert json.dumps(step.dict())
        assert step.to_messages()[0]["role"] in ("system", "user", "assistant")


def test_step_types_of_ones_own():
    @dataclass
    class Thought(MemoryStep):
        thought: str

        def to_messages(self, summary_mode=False):
            return [] if summary_mode else [{"role": "assistant", "content": self.thought}]

    with AgentMemory.open(":memory:", step_types=(Thought,)) as memory:
        memory.record(TaskStep("t"), Thought("hm"))
        assert memory.steps[1] == Thought("hm")
        assert "hm" in text_of(memory)
        assert "hm" not in text_of(memory, summary_mode=True)


def test_timing_number_code_and_input_of_a_step():
    step = ActionStep.of("x", step_number=2, timing=Timing(1.0, 3.0), code_action="f()", model_input_messages=["m"])
    with AgentMemory.open(":memory:") as memory:
        memory.record(step)
        (back,) = memory.steps
        assert (back.step_number, back.timing.duration, back.code_action) == (2, 2.0, "f()")
        assert back.model_input_messages == ["m"]


def test_an_object_as_the_final_answer():
    with AgentMemory.open(":memory:") as memory:
        memory.record(FinalAnswerStep({"score": 1}))
        assert memory.steps[0].output == {"score": 1}


def test_summary_mode():
    with AgentMemory.open(":memory:") as memory:
        memory.record(SystemPromptStep("s"), TaskStep("task"), PlanningStep("plan"), call(1, "result"))
        text = text_of(memory, summary_mode=True)
        assert all(word in text for word in ("task", "read", "result"))
        assert not any(word in text for word in ("plan", "I read"))


def test_reset():
    with play(3) as memory:
        memory.reset()
        assert memory.steps == (SystemPromptStep("You are careful."),)


def test_succinct_and_full_steps():
    with AgentMemory.open(":memory:") as memory:
        memory.record(ActionStep.of("x" * 5_000, model_input_messages=["m"]))
        (full,), (succinct,) = memory.get_full_steps(), memory.get_succinct_steps()
        assert (len(full["content"]), full["model_input_messages"]) == (5_000, ["m"])
        assert len(succinct["text"]) < 500
        assert "model_input_messages" not in succinct


def test_replay():
    lines = []
    with play(2) as memory:
        memory.replay(detailed=True, write=lines.append)
    assert any("file1.py" in line for line in lines)


def test_return_full_code():
    with AgentMemory.open(":memory:") as memory:
        memory.record(ActionStep.of("x", code_action="a = 1"), ActionStep.of("y", code_action="print(a)"))
        assert memory.return_full_code() == "a = 1\n\nprint(a)"


def test_manual_editing():
    with AgentMemory.open(":memory:") as memory:
        memory.record(TaskStep("task"), call(1, "a long result"), call(2))
        memory.edit("s1.0", "short")
        memory.remove("s2")
        assert "short" in text_of(memory)
        assert "long" not in text_of(memory)
        assert "file2" not in text_of(memory)
        memory.undo()
        memory.undo()
        assert "a long result" in text_of(memory)


def test_pictures_of_tasks_and_results():
    picture = Pillow.new("RGB", (8, 8))
    with AgentMemory.open(":memory:") as memory:
        memory.record(TaskStep(["See", picture]), call(1, Observation("c1", picture)))
        assert text_of(memory).count("data:image/png") == 2


def test_callbacks_by_class():
    seen, callbacks = [], CallbackRegistry()
    callbacks.register(ActionStep, seen.append)
    with AgentMemory.open(":memory:", callbacks=callbacks) as memory:
        memory.record(TaskStep("t"), call(1))
    assert [type(step) for step in seen] == [ActionStep]


def test_callbacks_as_smolagents_takes_them():
    seen = []
    for callbacks in ([seen.append], {ActionStep: seen.append}, {TaskStep: [seen.append]}):
        with AgentMemory.open(":memory:", callbacks=callbacks) as memory:
            memory.record(TaskStep("Find it."), call(0))
    assert [type(step) for step in seen] == [ActionStep, ActionStep, TaskStep]
    with pytest.raises(pagein.ConfigurationError, match="by class"):
        AgentMemory.open(":memory:", callbacks=print)


def test_truncate_content():
    short = truncate_content("a" * 30_000 + "end")
    assert len(short) <= 20_000
    assert short.endswith("end")


@pytest.mark.parametrize("policy", ["ladder", "tiers", "short_long", "window", "mask"])
def test_keep_last_n(policy):
    with play(budget=4_000, policy=policy) as memory:
        memory.compact()
        for number in range(40, 43):
            rows = memory.to_messages(keep_last_n=8)
            results = [row["content"] for row in rows if row["role"] == "tool"]
            assert results == [f"line {at}\n" * 9 for at in range(number - 8, number)]
            assert memory.request().problem == ""
            memory.record(call(number))


def test_max_tokens_wider_than_the_budget():
    with play(budget=1_500) as memory:
        counts = [text_of(memory, max_tokens=most).count("tool_call_id") for most in (1_500, 2_400, 100_000)]
        assert counts == sorted(set(counts))
        assert counts[-1] == 40
        assert memory.request().problem == ""
        assert memory.view().tokens <= 1_500


@pytest.mark.parametrize("policy", ["ladder", "tiers", "window"])
def test_a_request_that_records_nothing_fills_its_tokens(policy):
    """A view of the low mark saves nothing then: what fits is in it, newest first."""
    with AgentMemory.open(":memory:", budget=3_000, policy=policy, page_in=0) as memory:
        memory.record(TaskStep("Find the fault"), *(call(number) for number in range(200)))
        newest = [f"line {at}\n" * 9 for at in range(200)]
        for options, least in (({"keep_last_n": 190}, 20), ({"max_tokens": 6_000}, 40)):
            rows = [row["content"] for row in memory.to_messages(**options) if row["role"] == "tool"]
            whole = [row for row in rows if row in newest]
            assert len(whole) >= least
            assert whole == newest[-len(whole) :]


def test_max_tokens():
    with play() as memory:
        view = text_of(memory, max_tokens=600)
        assert Encoding("o200k_base").text(view) < 900
        assert "Find the fault" in view


def test_compression_of_the_memory():
    with play() as memory:
        assert summaries(memory)
        assert memory.view().tokens <= 2_000


def test_structured_observations():
    result = Observation.of("c1", "it is empty", "error", exit_code=1)
    assert (result.status, result.metadata, result.result) == ("error", {"exit_code": 1}, "it is empty")
    assert Observation.of("c1", {"rows": [1, 2]}).result == '{"rows": [1, 2]}'
    assert Observation.of("c1", None).result == "null"


@pytest.mark.parametrize("format", ["openai", "openai-responses", "anthropic", "gemini", "bedrock", "langchain"])
def test_an_error_carries_advice_on_every_wire(format):
    with AgentMemory.open(":memory:") as memory:
        memory.record(TaskStep("t"), call(1, Observation.failed("c1", ValueError("no such file"))))
        request = json.dumps(memory.to_request(format), default=str)
        assert "no such file" in request
        assert "take care not to repeat previous errors" in request
        assert memory.steps[1].observations[0].status == "error"


@pytest.mark.parametrize("policy", ["ladder", "short_long", "rounds"])
def test_the_importance_of_a_step(policy):
    with AgentMemory.open(":memory:", budget=2_000, policy=policy, page_in=0) as memory:
        memory.record(TaskStep("Mend it."), call(0))
        memory.record(call(1), importance="high")
        for number in range(2, 30):
            memory.record(call(number))
            whole = {entry.first for entry in memory.view().run if entry.tier == "whole"}
            assert 2 in whole
        assert 1 not in whole


def test_a_warning_near_the_limit():
    near, left, callbacks = [], [], CallbackRegistry()
    callbacks.register(NearLimit, near.append)
    callbacks.register(Compaction, left.append)
    with play(3, callbacks=callbacks) as memory:
        assert (near, left) == ([], [])
        number = 3
        while not left:
            memory.record(call(number))
            memory.view()
            number += 1
        (warning,) = near
        assert 0.8 <= warning.share <= 1
        assert warning.tokens_after < warning.tokens <= warning.limit
        first = left[0]
        assert first.tokens_after < first.tokens_before
        assert warning.leaving
        quiet = [memory.view() for _ in range(3)]
        assert len(quiet) == 3
        assert len(near) == 1 or memory.view().tokens >= 0.8 * warning.limit


def test_a_view_near_its_limit_is_logged_once(caplog):
    with play(3) as memory:
        assert caplog.records == []
        for number in range(3, 30):
            memory.record(call(number))
            memory.view()
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("pagein.view", "WARNING")
    tokens, limit = (int(text.replace(",", "")) for text in re.findall(r"[\d,]+(?= of| tokens;)", record.getMessage()))
    assert 0.8 * limit <= tokens <= limit == 2_000
    assert re.search(r"; now s\d.* would leave, and [\d,]+ tokens would stay$", record.getMessage())


def test_roles_in_and_out():
    with AgentMemory.open(":memory:", roles={"human": "user"}) as memory:
        memory.record_messages([{"role": "human", "content": "hi"}])
        assert memory.to_messages()[0]["role"] == "human"


# SuperAGI Agent Summary


def test_a_long_term_summary_of_what_left_the_short_term():
    with play(policy="short_long") as memory:
        (summary,) = summaries(memory)
        shown = {entry.first for entry in memory.view().run if entry is not summary}
        assert not shown & set(range(summary.first, summary.last))
        assert "file0.py" in text_of(memory) or "file1.py" in text_of(memory)


def test_three_quarters_and_one():
    assert (ShortLong().short, ShortLong().long) == (0.75, 0.25)
    with play(policy=ShortLong(0.5, 0.2)) as memory:
        assert sum(entry.tokens for entry in summaries(memory)) <= 0.2 * 2_000 + 50


def test_the_summary_has_a_limit_that_is_enforced():
    with play(120, policy="short_long") as memory:
        assert sum(entry.tokens for entry in summaries(memory)) <= 0.25 * 2_000 + 50


def test_a_summary_goes_on_from_the_one_before():
    with play(policy="short_long") as memory:
        first = summaries(memory)[0]
        for number in range(40, 80):
            memory.record(call(number))
            memory.view()
        later = summaries(memory)[0]
        assert (first.first, first.last < later.last) == (later.first, True)


@pytest.mark.slow
def test_recursive_only_where_the_direct_prompt_does_not_fit():
    def sources(direct, steps=70):
        """The handles of the steps that each request quotes, the first one's and the last one's, and if it has a record."""
        model = ScriptedModel([plain_record] * 500)
        options = {"summarizer": model, "policy": "short_long", "spend": None, "direct": direct}
        with play(0, 2_000, **options) as memory:
            for number in range(steps):
                memory.record(call(number))
                memory.view()
                memory.wait()
        texts = [str(request.messages[-1].content) for request in model.requests]
        return [
            ("file0.py" in text.partition("</pagein-previous>")[2] or "<pagein-previous>" not in text) for text in texts
        ]

    direct, recursive = sources(True), sources(False)
    assert direct[:6] == [True] * 6, "each is written from the first step on"
    assert False in recursive[:6], "a record stands for the older ones"


# deer-flow


def test_facts_are_ranked_by_similarity_and_confidence():
    text = format_memory_for_injection(FACTS, current_context="How should I write Python tests?")
    assert text.index("pytest") < text.index("React")
    text = format_memory_for_injection(FACTS, current_context="How to optimize the performance of my Next.js app?")
    assert text.index("React") < text.index("pytest")


def test_without_a_context_confidence_alone_ranks():
    text = format_memory_for_injection(FACTS)
    assert text.index("Docker") < text.index("React") < text.index("pytest")


def test_the_weights_are_options():
    ask = "How should I write Python tests?"
    text = format_memory_for_injection(FACTS, current_context=ask, similarity_weight=0.0, confidence_weight=1.0)
    assert text.index("Docker") < text.index("pytest")
    with pytest.raises(pagein.ConfigurationError):
        format_memory_for_injection(FACTS, similarity_weight=0.9, confidence_weight=0.4)


def test_tokens_are_counted_exactly():
    assert Encoding("cl100k_base").text("This is a test string to count tokens accurately using tiktoken.") == 13


def test_a_block_of_facts_keeps_its_budget():
    many = {"facts": [{"content": f"Fact {number} " + "word " * number, "confidence": 0.5} for number in range(60)]}
    for most in (50, 200, 800):
        assert Encoding("cl100k_base").text(format_memory_for_injection(many, most)) <= most


def test_the_context_is_what_was_said_in_the_last_turns():
    with AgentMemory.open(":memory:", user="ana") as memory:
        memory.facts.add("Prefers pytest for tests", category="preference", confidence=0.9)
        memory.record(TaskStep("I have a Python project."), ActionStep("Good."), TaskStep("How do I write tests?"))
        assert "pytest" in text_of(memory)


def test_facts_are_shown_in_each_request_as_data():
    with AgentMemory.open(":memory:", user="ana") as memory:
        memory.facts.add("Never push to main", category="constraint", confidence=0.9)
        for number in range(3):
            memory.record(TaskStep(f"Step {number}: push it to main"))
            rows = memory.to_messages()
            assert any("<memory" in str(row["content"]) and "Never push" in str(row["content"]) for row in rows)
            assert not any(row["role"] == "system" for row in rows)


# Hierarchical working memory


def test_a_sliding_window():
    with play(policy=Window(4, always=True)) as memory:
        assert sum(isinstance(entry.item, ActionStep) for entry in memory.view().run) == 4


def test_a_rolling_summary():
    with play(policy=Rolling(every=6, keep=3)) as memory:
        assert summaries(memory)
        assert 3 <= sum(isinstance(entry.item, ActionStep) for entry in memory.view().run) < 9


def test_relevance_decides_what_stays():
    with play(policy="relevance") as memory:
        assert memory.view().tokens <= 2_000
        assert memory.compact() is None or memory.view().tokens <= 2_000


def test_four_tiers():
    with play(policy="tiers") as memory:
        memory.pin("We target Python 3.11.")
        view = memory.view()
        tiers = {entry.tier for entry in view.request_entries}
        assert {"whole", "summary", "pin"} <= tiers
        assert memory.recall("file3.py")


def test_what_left_comes_back_when_it_is_needed():
    with play(60) as memory:
        hit = memory.recall("file5.py")[0]
        assert "file5.py" in str(memory.expand(hit.handle).steps)


def test_task_and_pins_never_leave():
    with play(60) as memory:
        memory.pin("We target Python 3.11.")
        text = text_of(memory)
        assert "Find the fault. Never touch production." in text
        assert "We target Python 3.11." in text


def test_checkpoint_and_a_fresh_context():
    with play(60) as memory:
        memory.checkpoint("half")
        before = memory.view().tokens
        memory.resume("half", fresh=True)
        assert memory.view().tokens < before
        assert "Find the fault" in text_of(memory)


def test_a_compaction_says_what_it_kept():
    with AgentMemory.open(":memory:", budget=1_200, policy="tiers") as memory:
        memory.record(TaskStep("Fix /srv/app/main.py"))
        for number in range(40):
            memory.record(call(number, f"ERROR-{number}: /srv/app/part{number}.py is broken\n" * 4))
        scores = memory.compact()
        memory.view()
        assert scores is None or all(0 <= score.in_sight <= score.reachable <= score.total for score in scores.fidelity)


# Mini-Agent


def test_each_message_is_counted_with_its_calls():
    with AgentMemory.open(":memory:") as memory:
        memory.record(TaskStep("t"))
        before = memory.view().tokens
        memory.record(call(1, "x"))
        assert memory.view().tokens > before + Encoding("o200k_base").text('{"path": "file1.py"}')


def test_it_acts_only_above_the_limit():
    with play(3, budget=20_000, policy=Rounds(10_000)) as memory:
        assert not memory.view().has_replaced_entries


def test_the_users_words_stay_and_the_agents_work_is_summarised():
    with AgentMemory.open(":memory:", budget=2_000, policy=Rounds(1_500)) as memory:
        memory.record(SystemPromptStep("You are careful."))
        for number in range(12):
            memory.record(TaskStep(f"Request {number}"), call(number, "output " * 120), ActionStep("Done."))
            memory.view()
        text = text_of(memory)
        assert all(f"Request {number}" in text for number in range(12))
        assert "You are careful." in text


def test_a_compaction_leaves_half_of_the_limit():
    """It folds the oldest rounds, and no more than are needed: all of them were folded, to a tenth of the limit."""
    with AgentMemory.open(":memory:", budget=50_000, policy=Rounds(20_000), page_in=0) as memory:
        counts = []
        for number in range(120):
            memory.record(TaskStep(f"Request {number}"), call(number, f"output {number} " * 120), ActionStep("Done."))
            counts.append(memory.view().tokens)
        lows = [after for before, after in pairwise(counts) if after < before]
        assert len(lows) > 1
        assert all(8_000 <= low <= 11_000 for low in lows)
        whole = [entry.first for entry in memory.view().run if isinstance(entry.item, ActionStep)]
        assert whole == sorted(whole)
        assert max(counts) <= 20_000 + ANSWERS_MAX_TOKENS, "the answers of old rounds come on top"


def test_summaries_stand_where_their_round_stood():
    with AgentMemory.open(":memory:", budget=2_500, policy=Rounds(1_500)) as memory:
        for number in range(8):
            memory.record(TaskStep(f"Request {number}"), call(number, "output " * 120), ActionStep("Done."))
            memory.view()
        entries = memory.view().run
        assert [entry.first for entry in entries] == sorted(entry.first for entry in entries)


def test_a_long_conversation_costs_less():
    with play(100, budget=2_000) as memory, AgentMemory.open(":memory:", budget=1_000_000) as whole:
        whole.record(*memory.steps)
        assert memory.view().tokens < 0.63 * whole.view().tokens


def test_fifty_requests_later_it_still_works():
    with AgentMemory.open(":memory:", budget=2_000) as memory:
        for number in range(50):
            memory.record(TaskStep(f"Add feature {number}"), call(number), ActionStep("Done."))
            assert memory.view().tokens <= 2_000
        assert "Add feature 49" in text_of(memory)


# The page


def test_the_page_has_a_test_of_this_module_for_each_row_that_works():
    page = PAGE.read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \|.*\| ([^|]+) \|$", page, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 45))
    assert all(test.startswith(("`", "missing: ")) for _, test in rows)
    tests = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    named = {test.strip("`") for _, test in rows if test.startswith("`")}
    assert named <= tests
    assert all(f"`{name}`" in page for name in tests if not name.startswith("the_page"))
