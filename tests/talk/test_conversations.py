"""Conversations: the newest stays, the oldest turns leave together, and what is asked comes back whole."""

from itertools import takewhile

import pytest

from pagein import AgentMemory, OverBudget
from pagein.context.compaction.registry import POLICIES
from pagein.context.page_in.limits import TALK_FREE_FACTOR, TALK_MAX_TOKENS
from pagein.testing.scripted_writer import ScriptedModel

TOWNS = ("Lisbon", "Oslo", "Kyoto", "Quito", "Perth", "Malmö", "Turin", "Leeds", "Bergen", "Nantes")
PETS = ("heron", "otter", "badger", "lynx", "newt")


def trip(number):
    """The user's words about one trip, unlike those about any other."""
    return (
        f"Last month I went to {TOWNS[number % 10]} with my cousin number {number}, and we saw a {PETS[number % 5]} "
        f"near the harbour, from our window in room{number:03d}. It was a lovely trip and the weather was fine."
    )


def chat(exchanges):
    """A talk of that many exchanges, about a trip each."""
    for number in range(exchanges):
        yield {"role": "user", "content": trip(number)}
        yield {"role": "assistant", "content": f"That sounds nice, number {number}! " + "Tell me more about it. " * 6}


def play(messages, **options):
    """Record a talk, with a request before each answer."""
    memory = AgentMemory.open(":memory:", **options)
    for message in messages:
        if message["role"] == "assistant":
            memory.to_messages()
        memory.record_messages([message], whole=False)
    return memory


def ask(memory, question):
    """The request that asks a question, as one text, without the question."""
    memory.record_messages([{"role": "user", "content": question}], whole=False)
    request = memory.to_messages()
    assert request[-1]["content"].startswith("<memory") or question in request[-1]["content"]
    return "\n".join(message["content"] for message in request if message["content"] != question)


def test_a_question_has_what_is_free_beyond_half_of_the_budget():
    budget, shares = 4_000, []
    for exchanges in range(50, 60, 3):  # some have more free than others, as a compaction was longer ago
        with play(chat(exchanges), budget=budget) as memory:
            ask(memory, "Which animals did I see with my cousin near the harbour last month?")
            shares.append(memory.report().by_tier()["recalled"] / budget)
            assert memory.view().tokens <= budget
    assert 0.5 < max(shares) <= 0.65


def test_in_a_large_view_a_question_brings_back_what_says_something_about_it():
    # At 200,000 tokens each message of the user had 37,000 of old talk behind it, written anew each time.
    long = ({**message, "content": message["content"] * 3} for message in chat(110))
    with play(long, budget=24_000) as memory:
        ask(memory, "Which animals did I see with my cousin near the harbour last month?")
        assert 4_000 < memory.report().by_tier()["recalled"] <= TALK_FREE_FACTOR * TALK_MAX_TOKENS


def test_pages_that_the_user_hands_over_bring_back_little_and_a_question_brings_back_its_page():
    before, shared, sent = [], 0, 0
    with AgentMemory.open(":memory:", budget=8_000) as memory:
        for number in range(40):
            lines = "".join(f"value_{number}_{line} = lookup({number * 31 + line})\n" for line in range(50))
            memory.record_messages([{"role": "user", "content": f"Page {number}.\n{lines}"}], whole=False)
            request = memory.to_messages()
            kept = takewhile(lambda pair: pair[0] == pair[1], zip(before, request, strict=False))
            shared += sum(len(one["content"]) for one, _ in kept)
            before, sent = request, sent + len(str(request))
            memory.record_messages([{"role": "assistant", "content": f"I read page {number}."}], whole=False)
        assert "value_3_17 = lookup(110)" in ask(memory, "What is value_3_17 on page 3?")
    assert shared > 0.65 * sent, "most of a request is the one before, and in the provider's cache"


@pytest.mark.slow
@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_the_turn_that_answers_comes_back_whole_under_every_policy(policy):
    with play(chat(36), budget=2_000, policy=policy) as memory:
        text = ask(memory, "What did we see from room007?")
        assert trip(7) in text
        assert "[s14] user" in text
        assert memory.report().tokens <= 2_000


@pytest.mark.slow
@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_one_notice_stands_for_all_that_left_and_the_newest_exchange_is_whole(policy):
    with play(chat(36), budget=2_000, policy=policy, page_in=0) as memory:
        text = ask(memory, "And now?")
        notices = sum(text.count(words) for words in ("Out of view:", "Left out to fit:", "Left the window."))
        assert notices <= {"tiers": 5, "relevance": 3}.get(policy, 1), "an episode has a notice, a message has none"
        assert trip(35) in text
        assert "number 35!" in text


def test_what_the_user_said_stays_word_for_word_within_half_of_the_budget():
    talk = [*chat(8)]
    for message in talk[1::2]:
        message["content"] += " And so on, and so forth, as one says." * 40
    with play(talk, budget=2_000) as memory:
        text = ask(memory, "And now?")
        assert all(trip(number) in text for number in range(8))
        assert text.count("Out of view:") <= 2, "one extract, and one notice for all other answers"


def test_the_question_itself_is_no_answer():
    question = "What did we see from room007?"
    with play(chat(40), budget=2_000) as memory:
        assert question not in ask(memory, question)
        assert all(hit.text != question for hit in memory.recall(question))
        assert question not in memory.call_tool("recall", {"query": question})


def test_a_question_that_says_little_is_read_with_the_exchange_before():
    talk = [*chat(40), {"role": "user", "content": "Let us speak of room003 and the lynx."},
            {"role": "assistant", "content": "Gladly."}]  # fmt: skip
    with play(talk, budget=2_000) as memory:
        assert trip(3) in ask(memory, "Yes, do.")


@pytest.mark.slow
def test_a_model_is_asked_for_summaries_of_talk():
    model = ScriptedModel()
    with play(chat(60), budget=3_000, summarizer=model) as memory:
        memory.wait()
        assert model.requests, "nobody was asked"


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": f"note {number} about the garden"} for number in range(300)],
        [{"role": "user" if at % 2 == 0 else "assistant", "content": "ok"} for at in range(1_000)],
        [message for number in range(40) for message in (
            {"role": "user", "content": f"Ich war in Köln, Nummer {number}. 我去了北京。 Привет!"},
            {"role": "assistant", "content": "Gut. 好的。 Хорошо."},
        )],
    ],
    ids=["nobody answers", "one word each", "three languages"],
)  # fmt: skip
def test_odd_talks_stay_within_the_budget(messages):
    with AgentMemory.open(":memory:", budget=1_000) as memory:
        for message in messages:
            memory.record_messages([message], whole=False)
        assert memory.view().tokens <= 1_000


def test_a_message_longer_than_the_budget_is_named():
    with AgentMemory.open(":memory:", budget=1_000) as memory:
        memory.record_messages([{"role": "user", "content": "word " * 5_000}])
        with pytest.raises(OverBudget, match="s0 may not leave"):
            memory.view()
