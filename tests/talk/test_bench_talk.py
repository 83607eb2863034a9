"""``pagein bench talk`` and ``pagein demo --talk``: figures of small files and of the bundled chat."""

import json

import pytest

from pagein.cli import main
from pagein.evaluation.talk import Talk, TalkQuestion, evidence_share, newest_and_bm25
from pagein.tokens.estimates import ANY_ESTIMATE

pytestmark = pytest.mark.slow


@pytest.fixture
def locomo(tmp_path):
    """A conversation of two people in LoCoMo's shape, longer than the budget, with a question about its beginning."""
    turns = [{"speaker": "Ann", "dia_id": "D1:1", "text": "My heron painting won the first prize in Leeds."}]
    for number in range(80):
        speaker = ("Bob", "Ann")[number % 2]
        text = (
            f"Well, {number} other things happened in the garden, with tea and cake and a long talk about the weather."
        )
        turns.append({"speaker": speaker, "dia_id": f"D1:{number + 2}", "text": text})
    said = {"speaker_a": "Ann", "speaker_b": "Bob", "session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": turns}
    asked = [{"question": "What won the prize in Leeds?", "evidence": ["D1:1"], "category": 4}]
    path = tmp_path / "talk.json"
    path.write_text(json.dumps([{"sample_id": "one", "conversation": said, "qa": asked}]))
    return str(path)


def test_the_evidence_comes_back_where_the_newest_messages_lack_it(locomo, capsys):
    assert main(["bench", "talk", locomo, "--budget", "1500", "--planted", "2", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    rows = printed["files"][locomo]
    assert (rows["pagein"]["evidence"], rows["newest"]["evidence"], rows["newest + BM25"]["evidence"]) == (
        1.0,
        0.0,
        1.0,
    )
    assert rows["pagein"]["over"] == 0
    assert printed["planted"]["30%"]["survivors"] > printed["planted"]["10%"]["survivors"]
    assert printed["planted"]["30%"]["items"] == 40


def test_the_tables_stand_in_eighty_columns(locomo, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["bench", "talk", locomo, "--budget", "1500", "--planted", "1", "--policy", "tiers"]) == 0
    assert main(["demo", "--talk"]) == 0
    printed = capsys.readouterr().out
    assert "single-hop" in printed
    assert "safety rules" in printed
    assert "two-factor" in printed
    assert all(len(line) <= 80 for line in printed.splitlines())


@pytest.mark.parametrize("wrong", [["--questions", "0"], ["--length", "0"], ["--budget", "0"], ["--policy", "best"]])
def test_what_cannot_be_measured_is_refused(locomo, wrong, capsys):
    assert main(["bench", "talk", locomo, *wrong]) == 1
    assert capsys.readouterr().err


def test_a_turn_stands_in_a_request_that_has_most_of_it():
    turn = "The heron painting won the first prize in Leeds last May"
    assert evidence_share(f"user: {turn}.", [turn]) == 1.0
    assert evidence_share("The heron painting won the first prize in Leeds", [turn]) == 1.0
    assert evidence_share("The heron won a prize", [turn]) == 0.0
    assert evidence_share(turn, [turn, "Nobody said these words at all"]) == 0.5


def test_a_turn_without_spaces_between_words_is_compared_by_its_letters():
    turn = "我在图书馆看到了一本小说"
    assert evidence_share(f"他说{turn}今天", [turn]) == 1.0
    assert evidence_share("我在家看了一张画", [turn]) == 0.0


def test_the_baseline_finds_words_that_have_no_spaces_between_them():
    said = ("我在图书馆看到了一本小说", *("今天天气很好" for _ in range(40)))
    question = TalkQuestion("1", "他在图书馆看什么？", "", said[:1])
    messages = tuple({"role": "user", "content": text} for text in said)
    talk = Talk("1", messages, (0.0,) * len(said), (question,))
    ((_, text, _),) = newest_and_bm25(talk, 200, ANY_ESTIMATE)
    assert said[0] in text
