"""Planted statements: drawn from a seed, buried in a talk, counted in a request, and kept by the ledger."""

import pytest

from pagein.context.ledger.run_ledger import RunLedger
from pagein.context.ledger.selection import render
from pagein.evaluation.planted import build_session, count_survivors, plant, read_texts


class Letters:
    name, margin = "letters", 0.0

    def text(self, text):
        return len(text)

    def image(self, image):
        return 1


def test_a_seed_gives_the_same_items_and_another_one_others():
    assert plant(1) == plant(1)
    assert plant(1) != plant(2)
    assert len(plant(1).items) == 20
    assert len(plant(1, count=150).items) == 150


def test_a_session_says_every_sentence_at_its_position_in_order():
    session = build_session(3, 40)
    texts = {position: text for position, _, text in read_texts(session)}
    for item, positions in zip(session.planted.items, session.positions, strict=True):
        assert list(positions) == sorted(positions)
        assert len(positions) == len(item.sentences)
        for position, sentence in zip(positions, item.sentences, strict=True):
            assert sentence in texts[position]
        assert session.messages[positions[0]]["role"] == item.speaker


def test_the_words_of_the_plants_are_about_a_quarter_of_a_session():
    session = build_session(5)
    chars = sum(len(text) for _, _, text in read_texts(session))
    share = sum(len(sentence) for item in session.planted.items for sentence in item.sentences) / chars
    assert 0.15 < share < 0.35


def test_the_whole_talk_has_every_item_and_an_empty_request_none():
    session = build_session(7)
    everything = "\n".join(text for _, _, text in read_texts(session))
    whole, nothing = count_survivors(session, everything), count_survivors(session, "")
    assert whole.survivors == whole.items == 20
    assert whole.safety_survivors == whole.safety
    assert whole.stale == whole.revised > 0
    assert (nothing.survivors, nothing.stale) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize(("share", "survivors", "safety"), [(0.1, 0.5, 0.85), (0.2, 0.85, 0.9), (0.3, 0.9, 0.92)])
def test_the_ledger_keeps_what_was_planted(share, survivors, safety):
    total = [0] * 6
    for seed in range(12):
        session, ledger = build_session(seed), RunLedger()
        for position, role, text in read_texts(session):
            ledger.learn(position, text, role)
        chars = sum(len(text) for _, _, text in read_texts(session))
        request = render(ledger.select(lambda position: True, int(chars * share), Letters()))
        counts = count_survivors(session, request)
        total = [
            old + new
            for old, new in zip(
                total,
                (counts.items, counts.survivors, counts.safety, counts.safety_survivors, counts.revised, counts.stale),
                strict=True,
            )
        ]
    assert total[1] / total[0] >= survivors
    assert total[3] / total[2] >= safety
    assert total[5] / total[4] <= 0.2
