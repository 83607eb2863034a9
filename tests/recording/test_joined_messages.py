"""A client that makes one message of two of the user's, or two of one, says the same words: nothing is recorded again."""

import pytest

from pagein import AgentMemory
from pagein.events.steps import as_text

WORDS = ["Hi.", "Mend the fence.", "Paint it red."]
JOINS = ["\n\n".join, "\n".join, lambda texts: [{"type": "text", "text": text} for text in texts]]


def said(role, content):
    return {"role": role, "content": content}


def users(*contents):
    return [said("user", content) for content in contents]


def turns(first, second):
    """A talk in which the user says ``first`` and, behind a reply, ``second``."""
    return [*users(*first), said("assistant", "Yes?"), *users(*second), said("assistant", "Done.")]


def texts(memory):
    return [as_text(step.content) for step in memory.steps]


@pytest.fixture(params=["one process", "reopened", "with requests"])
def hand_over(request, tmp_path):
    """Hand over lists in turn, in one process or several; return the texts that were recorded, and the repairs."""

    def run(*lists, **options):
        memory = AgentMemory.open(tmp_path / "run.db", budget=4_000)
        for rows in lists:
            if request.param == "reopened":
                memory.close()
                memory = AgentMemory.open(tmp_path / "run.db", budget=4_000)
            memory.record_messages(rows, **options)
            if request.param == "with requests" and rows[-1]["role"] == "user":
                memory.to_messages()
        with memory:
            return texts(memory)

    return run


@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize("format", ["openai", "anthropic"])
@pytest.mark.parametrize("at", ["the beginning", "the second turn"])
def test_two_messages_made_one_are_the_same_words(hand_over, join, format, at):
    first, second = (WORDS, ["Go on."]) if at == "the beginning" else (["Go on."], WORDS)
    talk = turns(first, second)
    joined = turns([join(first)], second) if at == "the beginning" else turns(first, [join(second)])
    lists = [talk[:3], talk[: len(first) + 1 + len(second)], joined, [*joined, *users("And?")]]
    assert hand_over(*lists, format=format) == [row["content"] for row in [*talk, *users("And?")]]


@pytest.mark.parametrize("join", JOINS)
def test_one_message_made_two_is_the_same_words(hand_over, join):
    talk, split = turns([join(WORDS)], ["Go on."]), turns(WORDS, ["Go on."])
    expected = ["Yes?", "Go on.", "Done.", "And?"]
    assert hand_over(talk[:1], talk[:3], split, [*split, *users("And?")])[1:] == expected


def test_the_next_messages_are_joined_in_a_list_that_is_known(hand_over):
    joined = ["\n\n".join(WORDS)]
    lists = [turns(WORDS, WORDS)[:3], turns(joined, WORDS)[:-1], [*turns(joined, joined), *users("And?")]]
    assert hand_over(*lists) == [*WORDS, "Yes?", *WORDS, "Done.", "And?"]


@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize("news", [["Now."], ["Now.", "Then rest."]])
@pytest.mark.parametrize("place", ["behind", "before"])
@pytest.mark.parametrize("rest", [[], ["Done."], ["Done.", "And?"]])
def test_words_beside_joined_ones_are_recorded_alone(hand_over, join, news, place, rest):
    talk = [*users("Go on."), said("assistant", "Yes?"), *users(*WORDS)]
    joined = join([*WORDS, *news] if place == "behind" else [*news, *WORDS])
    tail = [said("assistant" if text == "Done." else "user", text) for text in rest]
    lists = [talk, *([*talk[:2], *users(joined), *tail[:stop]] for stop in range(len(tail) + 1))]
    recorded = hand_over(*lists)
    assert "".join("".join(recorded).split()) == "".join("".join(["Go on.", "Yes?", *WORDS, *news, *rest]).split())
    assert len(recorded) == 6 + len(rest)


@pytest.mark.parametrize("rest", [[], ["And?"]])
def test_words_beside_joined_ones_of_before_are_recorded_alone_and_once(hand_over, rest):
    talk = turns(WORDS, ["Go on."])
    joined = turns(["\n".join([*WORDS, "Now."])], ["Go on."])
    lists = [
        talk,
        joined,
        [*joined, *users("Next.")],
        [*joined, *users("Next."), said("assistant", "Ok."), *users(*rest)],
    ]
    assert hand_over(*lists) == [row["content"] for row in talk] + ["Now.", "Next.", "Ok.", *rest]


@pytest.mark.parametrize("join", JOINS)
def test_the_first_messages_are_joined_with_new_words_before_any_reply(hand_over, join):
    lists = [users(*WORDS), users(join([*WORDS, "Now."])), [*users(join([*WORDS, "Now."])), said("assistant", "Yes.")]]
    assert hand_over(*lists) == [*WORDS, "Now.", "Yes."]


def test_words_behind_a_divided_message_are_recorded_alone(hand_over):
    whole, parts = "Mend the fence. Paint it red.", ["Mend the fence.", "Paint it red. And blue."]
    lists = [turns(["Hi."], [whole])[:-1], turns(["Hi."], parts), [*turns(["Hi."], parts), *users("Next.")]]
    assert hand_over(*lists) == ["Hi.", "Yes?", whole, "And blue.", "Done.", "Next."]


def test_a_word_that_grew_is_an_edit(hand_over):
    recorded = hand_over(turns(["Hi."], ["Mend", "Issue 1"])[:-1], turns(["Hi."], ["Mend\nIssue 12"]))
    assert recorded == ["Hi.", "Yes?", "Mend\nIssue 12", "Done."]


def test_words_of_a_joined_message_stand_beside_a_new_system_prompt(hand_over):
    talk = turns(["Hi."], WORDS)[:-1]
    lists = [[said("system", "A"), *talk], [said("system", "B"), *talk[:2], *users("\n".join([*WORDS, "Now."]))]]
    assert hand_over(*lists)[-2:] == ["B", "Now."]


@pytest.mark.parametrize("other", [WORDS[::-1], WORDS[1:]])
def test_other_words_are_an_edit(hand_over, other):
    joined = "\n\n".join(other)
    assert hand_over(turns(["Go on."], WORDS)[:-1], turns(["Go on."], [joined])) == ["Go on.", "Yes?", joined, "Done."]


@pytest.mark.parametrize("whole", [None, False])
def test_words_that_are_said_again_in_one_message_are_recorded_again(hand_over, whole):
    talk, again = turns(WORDS, ["Go on."]), "\n\n".join(WORDS)
    assert hand_over(talk, [*talk, *users(again)])[-2:] == ["Done.", again]
    assert hand_over(users(again), whole=whole)[-1] == again
