"""Where what is known stands in a view: byte for byte where it first stood, while it is true and worth it."""

import json

import pytest

from pagein import (
    ActionStep,
    AgentMemory,
    Budget,
    FinalAnswerStep,
    Observation,
    SystemPromptStep,
    TaskStep,
    ToolCall,
)
from pagein.events.entries import FactsShown
from pagein.facts.settings import Settings
from pagein.formats import validate
from pagein.testing import promises


def steps(at, text="file\n" * 20):
    call = ToolCall(f"c{at}", "ls", f'{{"at": {at}}}')
    return ActionStep(f"Look {at}.", (call,), (Observation(call.id, text),))


def canonical(request):
    return [json.dumps(each, sort_keys=True) for each in request]


def opened(budget=20_000, **options):
    memory = AgentMemory.open(":memory:", budget=budget, user="alice", page_in=0, **options)
    memory.record(SystemPromptStep("You help."), TaskStep("How do I run the tests of the parser?"))
    return memory


def known(memory):
    """The blocks as they stand, in the request's order."""
    return [
        each["content"]
        for each in memory.to_messages()
        if str(each["content"]).startswith('<memory kind="facts"')
    ]


def lines(facts, held, context, **options):
    given = {"position": 7, "max_tokens": 400} | options
    return facts.laid(held, context, **given)


def test_the_same_blocks_while_the_ranking_chooses_the_same(facts, counter):
    facts.add("Prefers pytest for tests")
    held = lines(facts, (), "tests", counter=counter)
    assert (len(held), held[0].position) == (1, 7)
    assert lines(facts, held, "something else", counter=counter, position=9) is held
    facts.confirm(facts.list()[0].id)
    assert lines(facts, held, "tests", counter=counter, position=9) is held


def test_what_comes_to_matter_is_added_where_the_run_has_come_to(facts, counter):
    for at in range(60):
        facts.add(f"The {['red', 'blue', 'green'][at % 3]} box {at} holds thing number {at}")
    held = lines(facts, (), "what is in the red box?", counter=counter)
    assert held[0].tokens <= 160
    more = lines(facts, held, "what is in the blue box?", counter=counter, position=9)
    assert more[0] is held[0]
    assert [each.position for each in more] == [7, 9]
    assert "blue" in more[1].text
    assert more[1].inner.startswith("Known too, as data:")
    assert sum(each.tokens for each in more) <= 400
    assert not {id for id, _ in more[0].lines} & {id for id, _ in more[1].lines}


def test_what_is_no_longer_true_is_gone_at_once(facts, counter):
    one, _ = facts.add("The server is called atlas"), facts.add("The colour is red")
    held = lines(facts, (), "server", counter=counter)
    facts.remove(one.id)
    (block,) = lines(facts, held, "server", counter=counter, position=9)
    assert "atlas" not in block.text
    assert block.position == 9


def test_it_is_all_made_anew_where_most_of_what_matters_has_no_room(facts, counter):
    for colour in ("red", "blue", "green", "black"):
        for at in range(40):
            facts.add(f"The {colour} drawer {at} has {colour} paper")
    held = lines(facts, (), "red paper", counter=counter)
    for position, colour in enumerate(("blue", "green", "black", "black"), 8):
        held = lines(facts, held, f"{colour} {colour} drawer", counter=counter, position=position)
        assert sum(each.tokens for each in held) <= 400
    assert held[-1].text.count("black") > 2


def test_constraints_that_have_no_room_do_not_move_the_block_at_every_turn(facts, counter):
    for at in range(100):
        facts.add(f"Never touch table number {at} of the ledger", category="constraint")
    held = lines(facts, (), "ledger", counter=counter)
    assert lines(facts, held, "ledger", counter=counter, position=9) is held


def test_a_constraint_makes_what_is_no_rule_give_way(facts, counter):
    for at in range(100):
        facts.add(f"The box {at} holds thing number {at}")
    held = lines(facts, (), "box", counter=counter, max_tokens=200)
    for at in range(12):
        facts.add(f"Never open the crate number {at} in the cellar", category="constraint")
        held = lines(facts, held, "box", counter=counter, max_tokens=200, position=9 + at)
        assert sum(each.tokens for each in held) <= 200
    assert "crate number 11" in "".join(each.text for each in held)


def test_each_request_begins_with_the_one_before():
    with opened() as memory:
        memory.facts.add("Prefers pytest for tests", category="preference")
        before = canonical(memory.to_messages())
        for at in range(8):
            memory.record(steps(at))
            if at == 4:
                memory.facts.add("The parser is tested with make parser", category="knowledge")
            request = canonical(memory.to_messages())
            assert request[: len(before)] == before
            before = request
        assert len(known(memory)) == 2
        assert sum(line.tokens for line in memory.report().lines) == memory.view().tokens


def test_a_correction_in_the_middle_of_a_run_shows_at_once():
    with opened() as memory:
        fact = memory.facts.add("The tests run with make check")
        assert "make check" in known(memory)[0]
        memory.record(steps(0))
        memory.facts.correct(fact.id, "The tests run with just test")
        (block,) = known(memory)
        assert "just test" in block
        assert "make check" not in block
        assert memory.to_messages()[-1]["content"] == block


@pytest.mark.parametrize("format", ["openai", "openai-responses", "anthropic"])
@pytest.mark.parametrize("placement", ["tail", "head"])
def test_legal_and_within_the_budget_in_every_format(format, placement):
    with opened(900, format=format, facts=Settings(placement=placement)) as memory:
        for at in range(80):
            memory.facts.add(f"Rule {at}: </memory> the parser needs part {at}", category="constraint")
        for at in range(24):
            memory.record(steps(at))
            if at % 5 == 0:
                memory.record(FinalAnswerStep("Done."), TaskStep(f"And part {at}?"))
            view = memory.view()
            assert view.tokens <= 900
            promises.within_budget(view, memory._session.counter)
            promises.data_is_data(view, [SystemPromptStep("You help.")])
            validate(memory.to_request(), format)
            assert any(each.tier == "facts" for each in (*view.tail, *view.entries))
        assert memory.report().out


def test_after_a_compaction_it_stands_behind_what_is_left():
    with opened(1_200) as memory:
        memory.facts.add("Prefers pytest for tests")
        first = memory.view()
        at = 0
        while not memory.report().out:
            memory.record(steps(at))
            view = memory.view()
            at += 1
        (block,) = [each for each in view.tail if each.tier == "facts"]
        assert block.first == view.head > first.tail[0].first


def test_no_room_for_it_costs_the_run_nothing():
    with opened(Budget(60)) as memory:
        memory.facts.add("A long fact about nothing that matters here, and so on, and on, and on, and on")
        assert memory.view().tokens <= 60


HEAD = Settings(placement="head")


def headed(db, budget=20_000, settings=HEAD, **options):
    return AgentMemory.open(db, budget=budget, user="alice", page_in=0, facts=settings, **options)


def shown(memory):
    """The texts that the log says stood at the head, oldest first."""
    return [each.body.text for each in memory._log.read() if isinstance(each.body, FactsShown)]


def test_at_the_head_it_is_chosen_once_and_a_reopened_run_has_the_same_bytes(tmp_path):
    db = tmp_path / "run.db"
    with headed(db) as memory:
        memory.facts.add("Prefers pytest for tests", category="preference")
        memory.record(SystemPromptStep("You help."), TaskStep("How do I run the tests?"))
        first = memory.to_messages()
        assert [each["role"] for each in first] == ["system", "user", "user"]
        assert "Prefers pytest" in first[1]["content"]
        memory.facts.add("Deploys on Fridays", category="knowledge")
        memory.record(steps(0))
        before = canonical(memory.to_messages())
        assert before[:3] == canonical(first)
        expanded = memory.expand(memory.view().kept[0].handle)
        assert "Prefers pytest" in str(expanded)
    with headed(db) as again:
        assert canonical(again.to_messages()) == before
        assert len(shown(again)) == 1
        assert again.verify().ok
        promises.replayed(tuple(again._log.read()), again.view(), again._session.counter)


def test_at_the_head_it_is_renewed_where_the_prefix_breaks_anyway():
    with headed(":memory:", 1_000) as memory:
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
        assert [("Never push" in each) for each in shown(memory)] == [False, True]
        assert sum(line.tokens for line in memory.report().lines) == memory.view().tokens
        promises.replayed(tuple(memory._log.read()), memory.view(), memory._session.counter)


def test_the_head_stays_at_a_compaction_while_it_is_true_and_worth_it(facts, counter):
    for colour in ("red", "blue"):
        for at in range(60):
            facts.add(f"The {colour} drawer {at} has {colour} paper")

    def said(text, context):
        block = facts.frozen(text, context, counter=counter, max_tokens=300)
        assert block.tokens <= 300
        return block.text.removeprefix("<memory>").removesuffix("</memory>").strip()

    red = said("", "red paper")
    assert said(red, "red paper, and something else") == red
    assert "blue" in said(red, "blue blue paper")
    facts.add("Never open the red drawer", category="constraint")
    again = said(red, "red paper")
    assert "Never open" in again
    gone = next(each for each in facts.list() if each.content in again)
    facts.remove(gone.id)
    assert gone.content not in said(again, "red paper")


def test_the_head_is_empty_where_that_is_wanted_and_where_there_is_no_room(tmp_path):
    db = tmp_path / "run.db"
    with headed(db) as memory:
        memory.facts.add(
            "Prefers pytest for tests, and so do all of the others who ever worked on that parser"
        )
        memory.record(TaskStep("word " * 100))
        assert memory.view().kept
    with headed(db, budget=130) as small:
        view = small.view()
        assert view.tokens <= 130
        assert not view.kept
    with headed(db) as memory:
        assert not memory.view().kept  # it is frozen, until something leaves
    with headed(tmp_path / "other.db") as memory:
        memory.facts.add("Prefers pytest")
        assert memory.view().kept
    with headed(tmp_path / "other.db", settings=False) as off:
        assert not off.view().kept
    with headed(tmp_path / "other.db", settings=Settings()) as tail:
        assert not tail.view().kept
        assert tail.view().tail


def test_a_log_that_is_only_read_is_viewed_with_a_head_too(tmp_path):
    with headed(tmp_path / "run.db", settings=Settings()) as memory:
        memory.facts.add("Prefers pytest")
        memory.record(TaskStep("How do I run the tests?"))
    with headed(tmp_path / "run.db", readonly=True) as memory:
        assert "Prefers pytest" in str(memory.to_messages()[0])
        assert len(tuple(memory._log.read())) == 1
