"""Ranking: the formula, the index against a refit, and the promised examples."""

import dataclasses
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein import ActionStep, AgentMemory, FinalAnswerStep, Opaque, SystemPromptStep, TaskStep, Text, ToolCall
from pagein.facts import Fact, Ranking, Weights, context_of, format_memory_for_injection
from pagein.search.tfidf import TfIdf, ranked_terms
from pagein.testing.search_indexes import OTHER_FORMS

SEED = {
    "facts": [
        {"content": "Uses Docker for containerization", "category": "knowledge", "confidence": 0.85},
        {"content": "Expert in Python and FastAPI", "category": "knowledge", "confidence": 0.8},
        {"content": "Prefers pytest for testing", "category": "preference", "confidence": 0.85},
        {"content": "Likes type hints in Python", "category": "preference", "confidence": 0.9},
        {"content": "Experienced with React and Next.js", "category": "knowledge", "confidence": 0.8},
        {"content": "Interested in performance optimization", "category": "goal", "confidence": 0.8},
    ]
}


def order(text):
    return [line.rsplit("] ", 1)[1] for line in text.splitlines() if line.startswith("- [")]


def test_the_promised_examples():
    python = order(format_memory_for_injection(SEED, 2000, "How should I write Python tests?"))
    assert set(python[:2]) == {"Prefers pytest for testing", "Likes type hints in Python"}
    react = order(format_memory_for_injection(SEED, 2000, "How to optimize my Next.js app?"))
    assert set(react[:2]) == {"Experienced with React and Next.js", "Interested in performance optimization"}
    turns = "I'm working on a Python project. It uses FastAPI and SQLAlchemy. How do I write tests?"
    three = order(format_memory_for_injection(SEED, 2000, turns))
    assert three.index("Uses Docker for containerization") > 2
    assert set(three[:3]) == {
        "Expert in Python and FastAPI",
        "Prefers pytest for testing",
        "Likes type hints in Python",
    }


@pytest.mark.parametrize("context", [None, "", "   ", "nothing that any of them has"])
def test_without_a_context_confidence_decides_alone(context):
    confidences = [0.9, 0.85, 0.85, 0.8, 0.8, 0.8]
    text = format_memory_for_injection(SEED, 2000, context)
    assert [float(line.split("| ")[1][:4]) for line in text.splitlines() if "| " in line] == confidences


def test_docker_is_last_when_it_is_least():
    facts = [{**fact, "confidence": 0.8} for fact in SEED["facts"]]
    last = order(
        format_memory_for_injection(
            {"facts": facts}, 2000, "How to optimize the React performance of my Python tests in Next.js?"
        )
    )
    assert last[-1] == "Uses Docker for containerization"


def test_the_score_is_the_formula():
    ranking = Ranking()
    ranking.add(Fact("fu0", "pytest tests", confidence=0.5))
    ranking.add(Fact("fu1", "docker", confidence=0.75, stated_at=86_400.0))  # another day: no neighbour
    (first, second) = ranking.rank("pytest tests", now=0.0)
    assert (first.similarity, first.score) == (pytest.approx(1.0), pytest.approx(0.6 + 0.4 * 0.5))
    assert (second.fact.id, second.score) == ("fu1", pytest.approx(0.4 * 0.75))


def test_what_was_stated_together_counts_for_each_other():
    ranking = Ranking()
    for position, (content, at) in enumerate([
        ("Has a dog", 0.0), ("She is called Luna", 0.0), ("Collects stamps", 90_000.0), ("Which tea is best?", 180_000.0),
        ("Darjeeling, with milk", 180_060.0), ("Walks to work", 180_060.0),
    ]):  # fmt: skip
        ranking.add(Fact(f"fu{position}", content, confidence=0.5, stated_at=at))
    dog = {match.fact.id: match.score for match in ranking.rank("our dog", now=0.0)}
    assert dog["fu0"] > dog["fu1"] > dog["fu2"] == dog["fu4"] == pytest.approx(0.2)
    tea = {match.fact.id: match.score for match in ranking.rank("tea", now=0.0)}
    assert tea["fu3"] > tea["fu4"] > dog["fu1"] > tea["fu5"] == tea["fu2"]


def test_the_factors_are_bounded_and_fade():
    weights = Weights()
    old = Fact("fu0", "x y", confidence=0.9)
    fresh = dataclasses.replace(old, confirmed_at=0.0, uses=1_000_000)
    assert weights.factor(old, 1e9) == 1.0
    assert 1.0 < weights.factor(fresh, 0.0) <= 1.05 * 1.05 + 1e-12
    assert weights.factor(dataclasses.replace(fresh, uses=0), 90 * 86_400.0) == pytest.approx(1.025)
    assert weights.factor(dataclasses.replace(old, disputed_by="fu9"), 0.0) == 0.5


WORDS = st.sampled_from(
    [
        "pytest",
        "tests",
        "testing",
        "Docker",
        "the",
        "of",
        "React",
        "nextJs",
        "get_user",
        "a.py",
        "3.11",
        "naïve",
        "日本",
        "é",
    ]
)
TEXTS = st.lists(WORDS, max_size=6).map(" ".join)
MOVES = st.lists(st.tuples(st.sampled_from(("put", "put", "drop")), st.integers(0, 5), TEXTS), max_size=14)


@pytest.mark.parametrize("seed", range(20))
def test_after_any_changes_the_ranking_is_that_of_a_new_one(seed):
    draw, ranking, facts = random.Random(seed), Ranking(), {}
    for _ in range(60):
        scope = draw.choice(("user", "session"))
        id = f"f{scope[0]}{draw.randint(8, 14)}"
        if facts.pop(id, None) and draw.random() < 0.8:
            ranking.drop(id)
        else:
            content = draw.choice(("tea", "dog", "tea dog", "tea?", "rain"))
            facts[id] = Fact(id, content, scope=scope, stated_at=draw.choice((0.0, 9_000.0)))
            ranking.add(facts[id])
        new = Ranking()
        for same in sorted(facts):
            new.add(facts[same])
        one, other = ({match.fact.id: match.score for match in each.rank("tea", now=0.0)} for each in (ranking, new))
        assert one == pytest.approx(other, abs=1e-9)


@pytest.mark.slow
@given(MOVES, TEXTS)
def test_after_any_changes_the_cosines_are_those_of_a_refit(moves, query):
    vectorizer = pytest.importorskip("sklearn.feature_extraction.text").TfidfVectorizer
    index, texts = TfIdf(), {}
    for move, number, text in moves:
        if number in texts:
            index.drop(number)
            del texts[number]
        if move == "put":
            index.add(number, text)
            texts[number] = text
        index.similarities("docker")  # settles in between
    ours = index.similarities(query)
    if not any(map(ranked_terms, texts.values())):
        assert ours == {}
        return
    fitted = vectorizer(analyzer=ranked_terms)
    rows = fitted.fit_transform(list(texts.values()))
    theirs = (rows @ fitted.transform([query]).T).toarray().ravel()
    for number, cosine in zip(texts, theirs, strict=True):
        assert ours.get(number, 0.0) == pytest.approx(float(cosine), abs=1e-9)


def test_numpy_and_python_rank_alike():
    pytest.importorskip("numpy")
    draw = random.Random(5)
    words = [f"word{at}" for at in range(60)]
    one, other = TfIdf(), TfIdf(arrays=False)
    for number in range(900):
        text = " ".join(draw.choices(words, k=6))
        sure = draw.random()
        for index in (one, other):
            index.add(number, text)
            index.weigh(number, 0.6, sure)
            if number % 3:
                index.connect(number, number - 1, answers=number % 2 == 0)
    for number in range(0, 900, 7):
        for index in (one, other):
            index.drop(number)
            if number < 899:
                index.connect(number + 1, None)
    for query in ("word1 word2 word2 word3", "", "nowhere"):
        matches, expected = one.best(query, 40), other.best(query, 40)
        assert [match.number for match in matches] == [match.number for match in expected]
        assert all(
            math.isclose(a.score, b.score) and math.isclose(a.similarity, b.similarity, abs_tol=1e-9)
            for a, b in zip(matches, expected, strict=True)
        )
    assert len(one.best("", 10_000)) == len(one)


def test_a_fact_is_ranked_while_it_holds():
    ranking = Ranking()
    ranking.add(Fact("fu0", "moves in May", valid_from=100.0, valid_until=200.0))
    ranking.add(Fact("fu1", "stays"))
    assert [[match.fact.id for match in ranking.rank("moves", now=now)] for now in (50.0, 100.0, 200.0)] == [
        ["fu1"], ["fu0", "fu1"], ["fu1"],
    ]  # fmt: skip


def test_among_equals_the_newest_is_first():
    ranking = Ranking()
    for at in range(3):
        ranking.add(Fact(f"fu{at}", f"thing{at}", stated_at=float(at)))
    assert [match.fact.id for match in ranking.rank(now=10.0)] == ["fu2", "fu1", "fu0"]


def test_the_context_is_the_last_three_turns_of_user_words_and_answers():
    calls = ActionStep("I look.", (ToolCall("c", "bash", '{"a": "secret argument"}'),))
    steps = [
        SystemPromptStep("rules"), TaskStep("zero"), FinalAnswerStep("answer zero"), TaskStep("one"), calls,
        FinalAnswerStep("answer one"), TaskStep("two"), ActionStep((Opaque("a", "thinking", "{}", "hm"), Text("answer two"))),
        TaskStep("three"), calls,
    ]  # fmt: skip
    assert context_of(steps).splitlines() == ["one", "answer one", "two", "answer two", "three"]
    assert context_of([]) == ""


def test_facts_in_other_languages_are_found_by_other_forms_of_their_words():
    with AgentMemory.open(":memory:", user="ana") as memory:
        for text, _ in OTHER_FORMS:
            memory.facts.add(text)
        first = {query: memory.facts.search(query)[0].fact.content for _, query in OTHER_FORMS}
    assert first == {query: text for text, query in OTHER_FORMS}


def test_a_word_that_only_begins_alike_finds_no_fact():
    index = TfIdf()
    for number, text in enumerate(("Mein Reisepass ist neu.", "Ich mag Wohnungen mit Balkon.", "Passports expire")):
        index.add(number, text)
        index.weigh(number, 0.6, 0.1)
    assert [match.similarity for match in index.best("passieren", 3)] == [0, 0, 0]
    assert not any(index.similarities("passieren").values())
    assert index.best("Wohnung", 1)[0].number == 1
