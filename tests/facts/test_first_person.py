"""What people say of themselves becomes facts, without a model; what they ask, quote, suppose or keep secret does not."""

import pytest

from pagein import TaskStep
from pagein.backends.memory import InMemoryLog
from pagein.events.entries import Source
from pagein.facts.extraction.rules import Utterance, find_candidates

STATED = {
    "knowledge": (
        "Call me Ana.", "My name's Tomasz.", "Hi, I'm Priya from Leeds.", "My e-mail address is ana.ruiz@example.org.",
        "I live in Rome.", "I\u2019m based in Nairobi these days.", "We just moved to a small town near Lyon.",
        "I grew up in the north of Chile.", "I'm a nurse.", "I work as a welder at a shipyard.", "My wife Ines is a baker.",
        "I'm studying law in Ghent.", "As a single parent, I plan every hour.", "I have two daughters.",
        "By the way, my cousin Leo, who is a plumber, lives next door.", "I'm 41 years old.", "I teach chemistry at a school.",
        "I lost my job at the bank.", "My dog is called Bruno.", "I've earned a degree in botany, so can you skip the basics?",
        "I was born in 1983.", "My favourite composer is Satie.", "We got married on June 4th, 2019.", "My birthday is on 3 May.", "My boss, Karin, is from Oslo.",
    ),
    "preference": (
        "I prefer tabs over spaces.", "I'm vegetarian.", "I love hiking in the rain.", "I can't stand loud offices.",
        "I'm a big fan of board games.", "I don't eat pork.", "I hate flying.",
        "Green is my favourite colour.", "I've always been drawn to old maps.", "I enjoy cooking for friends.",
        "I'm really into birdwatching, so any suggestions would be great!", "I'd rather walk than drive.",
    ),
    "behaviour": (
        "I usually have lunch at eleven.", "I go running every morning.", "I take the train on Fridays.",
        "I've been learning Polish for two years.", "We meet once a week.", "I tend to forget names.",
        "I never drive at night.", "On weekends, I bake bread.",
    ),
    "context": (
        "I'm flying to Porto on 12 March.", "I started the course in September.",
        "I have an appointment at the clinic on April 9th.",
    ),
    "correction": (
        "Use pytest, not unittest.", "Actually, I live in Milan now, not Rome.", "Actually, I did pay for the seat.",
        "I meant the blue line, not the red one.",
    ),
}  # fmt: skip

NOT_STATED = (
    "Do I live in Rome?", "If I lived in Rome, I would walk more.", "My sister says I live in the past.",
    "I love this idea!", "I like the second option.", "I'm looking for a flat in Rome.", "I want to fly on May 20th.",
    "I'd like to book a table for 4 June.", "I'm not sure if I'm a gold member.", "I think I might be allergic.",
    "I'm a bit tired.", "I'll try to run every day.", "It's my favourite.", "They always help me.", "I'm always happy to help.",
    "Maybe I'll move to Spain.", "Can you call me back at noon?", "I'm thinking of getting a dog.", "He told me I love trains.",
    "I used to live in Bern.", "I never thought of that.", "My password is hunter2.", "My PIN code is 4711, keep it.",
    "My API key is sk-proj-abcdefghijklmnop1234.", "Here is the mail:\nI live in Paris and I love opera.",
    '"I live in Paris," she wrote.', "> I live in Paris.", "```\nI live in Paris.\n```", "I can't wait to see it.",
    "You live in Rome.", "Imagine I live on Mars.", "I need 3 eggs every time, right?",
)  # fmt: skip


def extracted(text):
    return find_candidates([Utterance("user", text, Source("s", "s0"))])


@pytest.mark.parametrize(("category", "text"), [(name, text) for name, texts in STATED.items() for text in texts])
def test_what_a_person_says_of_themselves_is_a_fact(category, text):
    (candidate,) = extracted(text)
    assert candidate.category == category
    assert candidate.content[1:] in text, "in their own words"
    assert "?" not in candidate.content


@pytest.mark.parametrize("text", NOT_STATED)
def test_what_nobody_says_of_themselves_is_none(text):
    assert extracted(text) == ()


def test_a_correction_replaces_and_the_old_words_stay_in_the_history(facts_of):
    facts = facts_of(user="ana")
    log = InMemoryLog()
    for text in ("I live in Rome.", "I prefer tea.", "Actually, I live in Milan now, not Rome."):
        log.append((TaskStep(text),), after=log.head(), at=0.0)
        facts.extract_due(log.read, log.head())
    assert [fact.content for fact in facts.list()] == ["I prefer tea", "I live in Milan now, not Rome"]
    assert facts.history(facts.list()[-1].id)[0].fact.content == "I live in Rome"
