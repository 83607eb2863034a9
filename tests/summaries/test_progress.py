"""What the run says of itself: decisions, what was ruled out, and what comes next, by fixed rules."""

import pytest

from pagein.events.steps import ActionStep, TaskStep
from pagein.summaries.progress import (
    MAX_STATEMENTS,
    find_decisions,
    find_next_steps,
    find_refuted,
    find_standing_request,
)
from pagein.summaries.spans import build_span


def said(*texts):
    """A span in which the model says these texts; one that begins with "user: " is the user's."""
    steps = [TaskStep(text[6:]) if text.startswith("user: ") else ActionStep(text) for text in texts]
    return build_span(list(enumerate(steps)), 0, len(steps))


def texts(items):
    return [item.text for item in items]


@pytest.mark.parametrize(
    "sentence",
    [
        "I'll stick with `isinstance(attr, F)` as it is simple.",
        "I decided to use sqlite for the queue.",
        "Now I will modify `forms.py` to fix the save method.",
        "We will replace all occurrences of the old name.",
        "user: Also, I don't want to include insurance.",
        "user: Yes, please proceed with upgrading to economy class.",
    ],
)
def test_what_is_chosen_or_wanted_is_a_decision(sentence):
    (decision,) = find_decisions(said("It starts with the code here.", sentence))
    assert decision.text == sentence.removeprefix("user: ")
    assert decision.handles == ("s1",)


@pytest.mark.parametrize(
    "sentence",
    [
        "I'll add a grep for the names of the fields.",
        "Should I change the flight to another day?",
        "I need to look at the file again first.",
        "```\nI will change the code in a fence.\n```",
        "user: " + "I want this document to be read. " * 200,
    ],
)
def test_steps_that_look_and_questions_and_documents_decide_nothing(sentence):
    assert find_decisions(said(sentence)) == ()


@pytest.mark.parametrize(
    "sentence",
    [
        "The search did not yield any results.",
        "We still haven't found the compiler.",
        "The second attempt failed with a timeout.",
        "It seems that the name of the module is wrong, as the path appears to be invalid.",
        "Unfortunately, this fare is final.",
        "The environment is not readily available.",
        "I made a syntax error in the last command.",
    ],
)
def test_what_failed_in_other_words_is_ruled_out(sentence):
    assert texts(find_refuted(said(sentence), closely=True)) == [sentence]


@pytest.mark.parametrize(
    "sentence",
    [
        "Let's run the tests to make sure that nothing fails with an error.",
        "Run the script and confirm that it fails with the error.",
        "This could be due to a file that does not exist.",
        "The PR says that the option does not work.",
    ],
)
def test_what_is_only_expected_to_fail_is_not_ruled_out(sentence):
    assert find_refuted(said(sentence), closely=True) == ()


def test_a_request_stands_while_the_newest_message_only_answers():
    span = said(
        "user: I want to change my flight to Oslo.", "Which day suits you?", "user: The fourth of May, if possible.",
        "There is one at noon. Please confirm.", "user: Yes, that one is fine for me.",
    )  # fmt: skip
    (item,) = find_standing_request(span)
    assert (item.text, item.handles) == ("I want to change my flight to Oslo.", ("s0",))
    done = ("user: Book me a room in Rome.", "Done. Is there anything else?", "user: Now book a table in Rome, too.")
    assert find_standing_request(said(*done)) == ()
    assert find_standing_request(said("user: Only this one request.")) == ()


def test_what_did_not_work_is_ruled_out_and_what_is_supposed_is_not():
    span = said(
        "THOUGHT: The `sudo` command is not available in this environment. If the JDK is not installed, I install it.",
        "Without it, we cannot install the JDK. Is it not possible at all to go on here?",
        "The `sudo` command is not available in this environment.",
    )
    assert texts(find_refuted(span)) == [
        "The `sudo` command is not available in this environment.",
        "Without it, we cannot install the JDK.",
    ]
    assert find_refuted(span)[0].handles == ("s2",)


def test_the_newest_statement_that_says_so_has_the_next_step():
    span = said(
        "I'll read the parser of dates first.",
        "That worked. Now I should run the existing tests.",
        "The output is long.",
    )
    assert texts(find_next_steps(span)) == ["Now I should run the existing tests."]
    old = said("I'll read the parser of dates first.", *["The output is long, as before."] * MAX_STATEMENTS)
    assert find_next_steps(old) == ()
    assert texts(
        find_next_steps(said("Please confirm if you would like to proceed. Let me know of anything else."))
    ) == ["Please confirm if you would like to proceed."]
