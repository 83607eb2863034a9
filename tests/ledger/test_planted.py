"""Planted statements: drawn from a seed, buried in a talk, counted in a request, and kept by the ledger."""

import pytest

from pagein.context.ledger.run_ledger import RunLedger
from pagein.context.ledger.selection import render, select_lines
from pagein.evaluation.planted import PlantedCounts, build_session, count_survivors, plant


class Letters:
    name, margin = "letters", 0.0

    def text(self, text):
        return len(text)

    def image(self, image):
        return 1


def texts_of(session):
    return [message["content"] for message in session.messages]


def test_a_seed_gives_the_same_items_and_another_one_others():
    assert plant(1) == plant(1)
    assert plant(1) != plant(2)
    assert len(plant(1)) == 20


def test_a_session_says_every_sentence_at_its_position_in_order():
    session = build_session(3, 40)
    texts = {position: message["content"] for position, message in enumerate(session.messages)}
    for item, positions in zip(session.items, session.positions, strict=True):
        assert list(positions) == sorted(positions)
        assert len(positions) == len(item.sentences)
        for position, sentence in zip(positions, item.sentences, strict=True):
            assert sentence in texts[position]
        assert session.messages[positions[0]]["role"] == item.speaker


def test_the_words_of_the_plants_are_about_a_quarter_of_a_session():
    session = build_session(5)
    chars = sum(len(text) for text in texts_of(session))
    share = sum(len(sentence) for item in session.items for sentence in item.sentences) / chars
    assert 0.15 < share < 0.35


def test_the_whole_talk_has_every_item_and_an_empty_request_none():
    session = build_session(7)
    everything = "\n".join(texts_of(session))
    whole, nothing = count_survivors(session, everything), count_survivors(session, "")
    assert whole.survivors == whole.items == 20
    assert whole.safety_survivors == whole.safety
    assert whole.stale == whole.revised > 0
    assert (nothing.survivors, nothing.stale) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize(("share", "survivors", "safety"), [(0.1, 0.5, 0.85), (0.2, 0.85, 0.9), (0.3, 0.9, 0.92)])
def test_the_ledger_keeps_what_was_planted(share, survivors, safety):
    total = PlantedCounts()
    for seed in range(12):
        session, ledger = build_session(seed), RunLedger()
        for position, message in enumerate(session.messages):
            ledger.learn(position, message["content"], message["role"])
        chars = sum(len(text) for text in texts_of(session))
        request = render(select_lines(ledger.items.values(), int(chars * share), Letters()))
        total += count_survivors(session, request)
    assert total.survivors / total.items >= survivors
    assert total.safety_survivors / total.safety >= safety
    assert total.stale / total.revised <= 0.2
