"""Every counter of ours keeps the contract."""

from __future__ import annotations

import pytest

from pagein.testing.counters import CounterTests
from pagein.tokens import TokenCounter
from pagein.tokens import counter as counter_module
from pagein.tokens.counter import CachingCounter
from pagein.tokens.encodings import ENCODINGS, Encoding
from pagein.tokens.estimates import ANY_ESTIMATE, CLAUDE_4_7, GEMINI_3_ESTIMATE
from pagein.tokens.windows import MODELS


class TestO200k(CounterTests):
    @pytest.fixture
    def counter(self) -> TokenCounter:
        return Encoding("o200k_base")


class TestCl100k(CounterTests):
    @pytest.fixture
    def counter(self) -> TokenCounter:
        return Encoding("cl100k_base")


@pytest.mark.slow
class TestClaude(CounterTests):
    slack = 24  # a token at the seam may weigh three

    @pytest.fixture
    def counter(self) -> TokenCounter:
        return CLAUDE_4_7


@pytest.mark.slow
class TestGemini(CounterTests):
    @pytest.fixture
    def counter(self) -> TokenCounter:
        return GEMINI_3_ESTIMATE


@pytest.mark.slow
class TestUnknown(CounterTests):
    slack = 24

    @pytest.fixture
    def counter(self) -> TokenCounter:
        return ANY_ESTIMATE


class TestCachingCounter(CounterTests):
    @pytest.fixture
    def counter(self) -> TokenCounter:
        return CachingCounter(Encoding("o200k_base"))


def test_what_was_counted_lately_is_not_counted_again_and_what_was_long_ago_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counter_module, "CACHE_MAX_CHARS", 2_000)
    counted: list[str] = []

    class Counted(Encoding):
        def text(self, text: str) -> int:
            counted.append(text)
            return len(text)

    counter = CachingCounter(Counted("o200k_base"))
    assert [counter.text("once more") for _ in range(3)] == [9, 9, 9]
    assert counted == ["once more"]
    for number in range(100):
        counter.text(f"text {number}")
    assert counter.text("once more") == 9
    assert counted.count("once more") == 2
    assert len(counter._newer) + len(counter._older) < 50


@pytest.mark.slow
class Named(CounterTests):
    @pytest.fixture
    def counter(self, name: str) -> TokenCounter:
        return Encoding(name)


SLOW = ("gemma2", "llama2", "mistral_v1", "mistral_v2")
"""Encodings that count as gemma3 does, a second and more for a megabyte."""


@pytest.mark.parametrize("name", sorted(set(ENCODINGS) - set(SLOW)))
class TestEveryEncoding(Named):
    pass


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
class TestSlowEncoding(Named):
    longest = 100_000


def test_every_counter_in_the_table_counts():
    for counter in {model.counter for _, model in MODELS.rows}:
        assert 3 <= counter.text("The tests pass, 17 of 17.") <= 40, counter
