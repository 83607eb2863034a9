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
from pagein.formats import validate


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
def test_legal_and_within_the_budget_in_every_format(format):
    with opened(900, format=format) as memory:
        for at in range(80):
            memory.facts.add(f"Rule {at}: </memory> the parser needs part {at}", category="constraint")
        for at in range(24):
            memory.record(steps(at))
            if at % 5 == 0:
                memory.record(FinalAnswerStep("Done."), TaskStep(f"And part {at}?"))
            view = memory.view()
            assert view.tokens <= 900
            request = memory.to_request()
            validate(request, format)
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
