"""Blocks in a view: they stay byte for byte while their facts hold and matter."""

import json

import pytest

from pagein import ActionStep, AgentMemory, Budget, FinalAnswerStep, Observation, SystemPromptStep, TaskStep, ToolCall
from pagein.events.entries import FactsShown
from pagein.facts.settings import Settings
from pagein.formats import validate
from pagein.testing import promises


def steps(at, text="file\n" * 20):
    call = ToolCall(f"c{at}", "ls", f'{{"at": {at}}}')
    return ActionStep(f"Look {at}.", (call,), (Observation(call.id, text),))


def canonical(request):
    return [json.dumps(message, sort_keys=True) for message in request]


def open_memory(budget=20_000, **options):
    memory = AgentMemory.open(":memory:", budget=budget, user="alice", page_in=0, **options)
    memory.record(SystemPromptStep("You help."), TaskStep("How do I run the tests of the parser?"))
    return memory


def facts_blocks(memory):
    """The blocks as they stand, in the request's order."""
    return [
        message["content"]
        for message in memory.to_messages()
        if str(message["content"]).startswith('<memory kind="facts"')
    ]


def lines(facts, blocks, context, **options):
    arguments = {"position": 7, "max_tokens": 400} | options
    return facts.place_blocks(blocks, context, **arguments)


def test_the_same_blocks_while_the_ranking_chooses_the_same(facts, counter):
    facts.add("Prefers pytest for tests")
    blocks = lines(facts, (), "tests", counter=counter)
    assert (len(blocks), blocks[0].position) == (1, 7)
    assert lines(facts, blocks, "something else", counter=counter, position=9) is blocks
    facts.confirm(facts.list()[0].id)
    assert lines(facts, blocks, "tests", counter=counter, position=9) is blocks


def test_what_comes_to_matter_is_added_where_the_run_has_come_to(facts, counter):
    for at in range(60):
        facts.add(f"The {['red', 'blue', 'green'][at % 3]} box {at} holds thing number {at}")
    blocks = lines(facts, (), "what is in the red box?", counter=counter)
    assert blocks[0].tokens <= 160
    more = lines(facts, blocks, "what is in the blue box?", counter=counter, position=9)
    assert more[0] is blocks[0]
    assert [block.position for block in more] == [7, 9]
    assert "blue" in more[1].text
    assert more[1].inner.startswith("Known too, as data:")
    assert sum(block.tokens for block in more) <= 400
    assert not {id for id, _ in more[0].lines} & {id for id, _ in more[1].lines}


def test_what_is_no_longer_true_is_gone_at_once(facts, counter):
    one, _ = facts.add("The server is called atlas"), facts.add("The colour is red")
    blocks = lines(facts, (), "server", counter=counter)
    facts.remove(one.id)
    (block,) = lines(facts, blocks, "server", counter=counter, position=9)
    assert "atlas" not in block.text
    assert block.position == 9


def test_it_is_all_made_anew_where_most_of_what_matters_has_no_room(facts, counter):
    for colour in ("red", "blue", "green", "black"):
        for at in range(40):
            facts.add(f"The {colour} drawer {at} has {colour} paper")
    blocks = lines(facts, (), "red paper", counter=counter)
    for position, colour in enumerate(("blue", "green", "black", "black"), 8):
        blocks = lines(facts, blocks, f"{colour} {colour} drawer", counter=counter, position=position)
        assert sum(block.tokens for block in blocks) <= 400
    assert blocks[-1].text.count("black") > 2


def test_constraints_that_have_no_room_do_not_move_the_block_at_every_turn(facts, counter):
    for at in range(100):
        facts.add(f"Never touch table number {at} of the ledger", category="constraint")
    blocks = lines(facts, (), "ledger", counter=counter)
    assert lines(facts, blocks, "ledger", counter=counter, position=9) is blocks


def test_a_constraint_makes_what_is_no_rule_give_way(facts, counter):
    for at in range(100):
        facts.add(f"The box {at} holds thing number {at}")
    blocks = lines(facts, (), "box", counter=counter, max_tokens=200)
    for at in range(12):
        facts.add(f"Never open the crate number {at} in the cellar", category="constraint")
        blocks = lines(facts, blocks, "box", counter=counter, max_tokens=200, position=9 + at)
        assert sum(block.tokens for block in blocks) <= 200
    assert "crate number 11" in "".join(block.text for block in blocks)


def test_each_request_begins_with_the_one_before():
    with open_memory() as memory:
        memory.facts.add("Prefers pytest for tests", category="preference")
        before = canonical(memory.to_messages())
        for at in range(8):
            memory.record(steps(at))
            if at == 4:
                memory.facts.add("The parser is tested with make parser", category="knowledge")
            request = canonical(memory.to_messages())
            assert request[: len(before)] == before
            before = request
        assert len(facts_blocks(memory)) == 2
        assert sum(line.tokens for line in memory.report().lines) == memory.view().tokens


def test_a_correction_in_the_middle_of_a_run_shows_at_once():
    with open_memory() as memory:
        fact = memory.facts.add("The tests run with make check")
        assert "make check" in facts_blocks(memory)[0]
        memory.record(steps(0))
        memory.facts.correct(fact.id, "The tests run with just test")
        (block,) = facts_blocks(memory)
        assert "just test" in block
        assert "make check" not in block
        assert memory.to_messages()[-1]["content"] == block


@pytest.mark.slow
@pytest.mark.parametrize("format", ["openai", "openai-responses", "anthropic"])
@pytest.mark.parametrize("placement", ["tail", "head"])
def test_legal_and_within_the_budget_in_every_format(format, placement):
    with open_memory(900, format=format, facts=Settings(placement=placement)) as memory:
        for at in range(80):
            memory.facts.add(f"Rule {at}: </memory> the parser needs part {at}", category="constraint")
        for at in range(24):
            memory.record(steps(at))
            if at % 5 == 0:
                memory.record(FinalAnswerStep("Done."), TaskStep(f"And part {at}?"))
            view = memory.view()
            assert view.tokens <= 900
            promises.check_budget(view, memory._runtime.state.counter)
            promises.check_data_framing(view, [SystemPromptStep("You help.")])
            validate(memory.to_request(), format)
            assert any(entry.tier == "facts" for entry in (*view.tail, *view.entries))
        assert memory.report().out


def test_after_a_compaction_it_stands_behind_what_is_left():
    with open_memory(1_200) as memory:
        memory.facts.add("Prefers pytest for tests")
        first = memory.view()
        at = 0
        while not memory.report().out:
            memory.record(steps(at))
            view = memory.view()
            at += 1
        (block,) = [entry for entry in view.tail if entry.tier == "facts"]
        assert block.first == view.head > first.tail[0].first


def test_no_room_for_it_costs_the_run_nothing():
    with open_memory(Budget(60)) as memory:
        memory.facts.add("A long fact about nothing that matters here, and so on, and on, and on, and on")
        assert memory.view().tokens <= 60


HEAD = Settings(placement="head")


def open_head_memory(db, budget=20_000, settings=HEAD, **options):
    return AgentMemory.open(db, budget=budget, user="alice", page_in=0, facts=settings, **options)


def head_texts(memory):
    """The texts that the log says stood at the head, oldest first."""
    return [entry.body.text for entry in memory._runtime.log.read() if isinstance(entry.body, FactsShown)]


def test_at_the_head_it_is_chosen_once_and_a_reopened_run_has_the_same_bytes(tmp_path):
    db = tmp_path / "run.db"
    with open_head_memory(db) as memory:
        memory.facts.add("Prefers pytest for tests", category="preference")
        memory.record(SystemPromptStep("You help."), TaskStep("How do I run the tests?"))
        first = memory.to_messages()
        assert [message["role"] for message in first] == ["system", "user", "user"]
        assert "Prefers pytest" in first[1]["content"]
        memory.facts.add("Deploys on Fridays", category="knowledge")
        memory.record(steps(0))
        before = canonical(memory.to_messages())
        assert before[:3] == canonical(first)
        expanded = memory.expand(memory.view().front[0].handle)
        assert "Prefers pytest" in str(expanded)
    with open_head_memory(db) as again:
        assert canonical(again.to_messages()) == before
        assert len(head_texts(again)) == 1
        assert again.verify().ok
        promises.check_replay(tuple(again._runtime.log.read()), again.view(), again._runtime.state.counter)


def test_at_the_head_it_is_renewed_where_the_prefix_breaks_anyway():
    with open_head_memory(":memory:", 1_000) as memory:
        memory.record(TaskStep("How do I run the tests?"))
        memory.facts.add("Prefers pytest for tests")
        memory.view()
        memory.facts.add("Never push to main", category="constraint")
        at = 0
        while not memory.report().out:
            assert "Never push" not in str(memory.to_messages())
            memory.record(steps(at))
            view = memory.view()
            assert view.tokens <= 1_000
            at += 1
        assert "Never push" in str(memory.to_messages()[0])
        assert [("Never push" in text) for text in head_texts(memory)] == [False, True]
        assert sum(line.tokens for line in memory.report().lines) == memory.view().tokens
        promises.check_replay(tuple(memory._runtime.log.read()), memory.view(), memory._runtime.state.counter)


def test_the_head_stays_at_a_compaction_while_it_is_true_and_worth_it(facts, counter):
    for colour in ("red", "blue"):
        for at in range(60):
            facts.add(f"The {colour} drawer {at} has {colour} paper")

    def head_text(text, context):
        block = facts.place_head_block(text, context, counter=counter, max_tokens=300)
        assert block.tokens <= 300
        return block.text.removeprefix("<memory>").removesuffix("</memory>").strip()

    red = head_text("", "red paper")
    assert head_text(red, "red paper, and something else") == red
    assert "blue" in head_text(red, "blue blue paper")
    facts.add("Never open the red drawer", category="constraint")
    again = head_text(red, "red paper")
    assert "Never open" in again
    removed_fact = next(fact for fact in facts.list() if fact.content in again)
    facts.remove(removed_fact.id)
    assert removed_fact.content not in head_text(again, "red paper")


def test_the_head_is_empty_where_that_is_wanted_and_where_there_is_no_room(tmp_path):
    db = tmp_path / "run.db"
    with open_head_memory(db) as memory:
        memory.facts.add("Prefers pytest for tests, and so do all of the others who ever worked on that parser")
        memory.record(TaskStep("word " * 100))
        assert memory.view().front
    with open_head_memory(db, budget=130) as small:
        view = small.view()
        assert view.tokens <= 130
        assert not view.front
    with open_head_memory(db) as memory:
        assert not memory.view().front  # it is frozen, until something leaves
    with open_head_memory(tmp_path / "other.db") as memory:
        memory.facts.add("Prefers pytest")
        assert memory.view().front
    with open_head_memory(tmp_path / "other.db", settings=False) as off:
        assert not off.view().front
    with open_head_memory(tmp_path / "other.db", settings=Settings()) as tail:
        assert not tail.view().front
        assert tail.view().tail


def test_a_log_that_is_only_read_is_viewed_with_a_head_too(tmp_path):
    with open_head_memory(tmp_path / "run.db", settings=Settings()) as memory:
        memory.facts.add("Prefers pytest")
        memory.record(TaskStep("How do I run the tests?"))
    with open_head_memory(tmp_path / "run.db", readonly=True) as memory:
        assert "Prefers pytest" in str(memory.to_messages()[0])
        assert len(tuple(memory._runtime.log.read())) == 1


FLIGHTS = (
    "I'd like to change my reservation from Boston to Denver.", "The departure on Tuesday is too early, an evening flight is better.",
    "Can the two suitcases and the window seat be moved to the new booking, and what does economy cost?",
)  # fmt: skip


def test_facts_off_the_topic_are_not_shown_but_what_must_never_happen_is():
    with AgentMemory.open(":memory:", budget=8_000, user="ana") as memory:
        memory.facts.add("Prefers pytest and Docker", category="preference")
        memory.facts.add("Prefers a window seat on every flight", category="preference")
        memory.facts.add("Never share the passport number", category="constraint")
        for text in FLIGHTS:
            memory.record_messages([{"role": "user", "content": text}])
        text = str(memory.to_messages())
        assert "pytest" not in text
        assert "window seat on every flight" in text
        assert "Never share the passport number" in text
        assert memory.report().facts_left_out == ()


def test_a_fact_without_room_is_named_in_the_report():
    with AgentMemory.open(":memory:", budget=100, user="ana") as memory:
        ids = {
            memory.facts.add(f"Likes the number {number} best of all", category="preference").id for number in range(6)
        }
        memory.record_messages([{"role": "user", "content": "Hello."}])
        memory.to_messages()
        left = memory.report().facts_left_out
        assert {row.handle for row in left} == ids
        assert all("tokens for facts: Likes the number" in row.why for row in left)
