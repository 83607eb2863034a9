"""Each clause of the definition of needs and faults, on hand-made runs."""

import json

from pagein.evaluation.needs import Faults, History, MessageText, Needs, find_faults
from pagein.events.steps import ActionStep, Observation, TaskStep, ToolCall


def said(text):
    return MessageText.from_items((TaskStep(text),))


def asked(command, **more):
    call = ToolCall("a", "bash", json.dumps({"command": command, **more}))
    return MessageText.from_items((ActionStep("thinking of app/never.py", (call,)),))


def history(*texts):
    run = History()
    for text in texts:
        run.add(said(text))
    return run


def test_a_need_is_an_identifier_of_the_arguments_that_occurred_earlier():
    run = history("look at src/app.py and user_id")
    assert run.needs(asked("cat src/app.py src/new.py")).identifiers == {"src/app.py"}


def test_what_the_model_only_says_is_no_need():
    run = history("app/never.py is there")
    assert run.needs(asked("ls")) == Needs()


def test_paths_dotted_snake_camel_names_and_long_numbers_are_identifiers():
    names = {"a/b.py", "os.path", "snake_name", "camelName", "12345"}
    text = " ".join(sorted(names))
    assert history(text + " plain words 12").needs(asked(text + " plain words 12")).identifiers == names


def test_identifiers_of_less_than_four_characters_are_not_needs():
    assert history("a_b 123").needs(asked("a_b 123")).identifiers == set()


def test_an_identifier_that_never_occurred_is_no_need():
    assert history("nothing here").needs(asked("cat src/app.py")) == Needs()


def test_a_line_of_25_characters_that_occurred_is_a_need():
    line = "return self.value + other"
    assert len(line) == 25
    assert history(f"   {line}  \nmore").needs(asked(f"\t{line}")).lines == {line}


def test_a_line_of_24_characters_is_no_need():
    line = "return self.value + othe"
    assert history(line).needs(asked(line)).lines == set()


def test_a_line_inside_a_longer_line_occurred():
    line = "return self.value + other"
    assert history(f"12: {line} # why").needs(asked(line)).lines == {line}


def test_arguments_are_read_with_their_escapes_undone():
    line = 'raise ValueError("no such user_id")'
    assert history(line).needs(asked(f"first\n{line}\nlast")).lines == {line}


def test_arguments_that_are_not_json_are_read_as_they_are():
    run = history("see src/app.py")
    reading = MessageText.from_items((ActionStep(None, (ToolCall("a", "bash", "{bad src/app.py"),)),))
    assert run.needs(reading).identifiers == {"src/app.py"}


def test_what_only_occurs_in_the_step_itself_is_no_need():
    run = history("start")
    step = asked("cat src/app.py")
    assert run.needs(step) == Needs()
    run.add(step)
    assert run.needs(step).identifiers == {"src/app.py"}


def test_an_absent_identifier_is_a_fault_both_ways():
    run = history("def load_user takes three other words")
    needs = run.needs(asked("grep load_user"))
    assert find_faults(needs, [said("nothing")], run) == Faults(
        frozenset({"load_user"}), frozenset({"load_user"}), frozenset()
    )


def test_an_identifier_in_a_bare_list_is_there_but_not_grounded():
    run = history("def load_user takes three other words")
    needs = run.needs(asked("grep load_user"))
    found = find_faults(needs, [said("names: load_user, save_user")], run)
    assert found.bare == set()
    assert found.grounded == {"load_user"}


def test_three_other_words_of_one_line_ground():
    run = history("def load_user takes three other words")
    needs = run.needs(asked("grep load_user"))
    assert find_faults(needs, [said("load_user takes other words")], run).grounded == set()


def test_two_other_words_do_not_ground():
    run = history("def load_user takes three other words")
    needs = run.needs(asked("grep load_user"))
    assert find_faults(needs, [said("load_user takes other")], run).grounded == {"load_user"}


def test_the_words_must_be_of_one_line():
    run = history("load_user takes alpha beta gamma\nload_user gives delta epsilon zeta")
    needs = run.needs(asked("grep load_user"))
    assert find_faults(needs, [said("load_user takes delta")], run).grounded == {"load_user"}


def test_the_words_must_stand_in_the_line_that_holds_the_identifier():
    run = history("def load_user takes three other words")
    needs = run.needs(asked("grep load_user"))
    assert find_faults(needs, [said("load_user\ntakes three other words")], run).grounded == {"load_user"}


def test_all_words_ground_where_the_line_has_fewer_than_three():
    run = history("load_user alpha")
    needs = run.needs(asked("grep load_user"))
    assert find_faults(needs, [said("load_user")], run).grounded == {"load_user"}
    assert find_faults(needs, [said("alpha load_user")], run).grounded == set()


def test_a_line_with_no_other_words_grounds_by_itself():
    run = history("src/app.py")
    needs = run.needs(asked("cat src/app.py"))
    assert find_faults(needs, [said("- src/app.py -")], run).grounded == set()


def test_words_of_the_identifier_itself_do_not_ground():
    run = history("load_user user load alpha beta gamma")
    needs = run.needs(asked("grep load_user"))
    assert find_faults(needs, [said("load_user from load_user")], run).grounded == {"load_user"}


def test_a_line_is_met_only_verbatim():
    line = "return self.value + other"
    run = history(line)
    needs = run.needs(asked(line))
    assert find_faults(needs, [said(f"x {line} y")], run).lines == set()
    assert find_faults(needs, [said("return self.value +  other")], run).lines == {line}


def test_what_is_asked_for_counts_as_text_of_a_request():
    run = history("see src/app.py alpha beta gamma")
    needs = run.needs(asked("cat src/app.py"))
    assert find_faults(needs, [asked("cat src/app.py")], run).bare == set()


def test_far_needs_are_those_the_newest_messages_lack():
    run = history("see src/far.py", "see src/near.py")
    needs = run.needs(asked("cat src/far.py src/near.py"))
    assert run.outside(needs, 1).identifiers == {"src/far.py"}
    assert run.outside(needs, 2) == needs


def test_results_are_read_too():
    run = History()
    run.add(MessageText.from_items((Observation("a", "found src/app.py"),)))
    assert run.needs(asked("cat src/app.py")).identifiers == {"src/app.py"}
