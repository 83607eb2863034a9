"""The suite is under test: each broken counter fails exactly the tests that name its fault, and no test is idle."""

from __future__ import annotations

import inspect
import re
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from pagein.events.steps import Image
from pagein.testing.counters import SPECIALS, CounterTests
from pagein.tokens.images import CLAUDE, image_tokens


class Honest:
    """A quarter of the characters: crude, and within the contract."""

    name = "a quarter"
    margin = 0.5

    def text(self, text: str) -> int:
        return -(-len(text) // 4)

    def image(self, image: Image) -> int:
        return image_tokens(image, CLAUDE)


class Nameless(Honest):
    margin = 1.5


class Raises(Honest):
    def text(self, text: str) -> int:
        if len(text) < 1_000_000:
            text.encode()  # a lone surrogate
        return super().text(text)


class Panics(Honest):
    def text(self, text: str) -> int:
        if len(text) > 1_000_000 and text.isspace():
            raise BaseException("pyo3_runtime.PanicException")  # noqa: TRY002 - what a Rust extension raises
        return super().text(text)


class Negative(Honest):
    def text(self, text: str) -> int:
        return -1 if "\0" in text else super().text(text)


class Fractional(Honest):
    def text(self, text: str) -> int:
        return super().text(text) if text.isascii() else len(text) / 4  # type: ignore[return-value]


class FirstIsAGuess(Honest):
    def __init__(self) -> None:
        self.seen: set[str] = set()

    def text(self, text: str) -> int:
        exact = text in self.seen or not 10_000 < len(text) < 100_000
        self.seen.add(text)
        return super().text(text) + (0 if exact else 100)


class Truncates(Honest):
    def text(self, text: str) -> int:
        return super().text(text[:20_000])


class SquareWithLength(Honest):
    def text(self, text: str) -> int:
        return super().text(text) + len(text) ** 2 // 500


class NewLinesAreHalfPrice(Honest):
    def text(self, text: str) -> int:
        return super().text(text) // (2 if "\n" in text else 1)


class Quadratic(Honest):
    spent = 0.0

    def text(self, text: str) -> int:
        if text.startswith("a" * 100):
            self.spent += len(text) ** 2 / 1e9
        return super().text(text)

    def clock(self) -> float:
        return self.spent


class SpecialsAreTokens(Honest):
    def text(self, text: str) -> int:
        specials = len(re.findall("|".join(map(re.escape, SPECIALS)), text))
        return specials + super().text(re.sub("|".join(map(re.escape, SPECIALS)), "", text))


class ImagesByBytes(Honest):
    def image(self, image: Image) -> int:
        return 85 + len(image.data) // 3


class UnknownImagesAreFree(Honest):
    def image(self, image: Image) -> int:
        cost = super().image(image)
        return 0 if cost == CLAUDE.tokens(None, "") else cost  # a URL, or bytes nobody can read


class JsonIsFree(Honest):
    def text(self, text: str) -> int:
        return 0 if text.startswith('{"text') else super().text(text)


class Downloads(Honest):
    def text(self, text: str) -> int:
        with suppress(OSError):
            if text.startswith("The build"):
                self.ask()
        return super().text(text)

    def ask(self) -> None:
        if socket.create_connection.__module__ != "socket":  # only when it is watched: no test of ours goes out
            socket.create_connection(("openaipublic.blob.core.windows.net", 443))


class SharesItsScratch(Honest):
    def __init__(self) -> None:
        self.scratch = ""

    def text(self, text: str) -> int:
        self.scratch = text
        if 100 < len(text) < 1_000:
            time.sleep(0.0001)
        return super().text(self.scratch)


FAULTS: dict[Callable[[], Any], set[str]] = {
    Honest: set(),
    Nameless: {"test_it_has_a_name_and_states_its_margin"},
    Raises: {"test_it_never_raises"},
    Panics: {"test_it_never_raises"},
    Negative: {"test_a_count_is_a_positive_whole_number"},
    Fractional: {"test_a_count_is_a_positive_whole_number"},
    FirstIsAGuess: {"test_the_same_text_costs_the_same"},
    Truncates: {"test_the_whole_text_is_counted"},
    SquareWithLength: {"test_two_texts_cost_no_more_together_than_apart"},
    NewLinesAreHalfPrice: {"test_a_longer_text_costs_no_less"},
    Quadratic: {"test_a_long_text_ends"},
    SpecialsAreTokens: {"test_special_tokens_are_text"},
    ImagesByBytes: {"test_an_image_costs_by_its_pixels_and_not_by_its_bytes"},
    UnknownImagesAreFree: {"test_any_image_has_a_price"},
    JsonIsFree: {"test_a_request_costs_at_least_its_parts"},
    Downloads: {"test_it_never_opens_a_socket"},
    SharesItsScratch: {"test_threads_agree"},
}
TESTS = sorted(name for name in vars(CounterTests) if name.startswith("test_"))


def failures(counter: Any) -> set[str]:
    """The tests of the suite that the counter fails."""
    failed = set()
    for name in TESTS:
        suite = CounterTests()
        suite.clock = getattr(counter, "clock", suite.clock)
        test = getattr(suite, name)
        with pytest.MonkeyPatch.context() as monkeypatch:
            fixtures = {"monkeypatch": monkeypatch} if "monkeypatch" in inspect.signature(test).parameters else {}
            try:
                test(counter=counter, **fixtures)
            except AssertionError:
                failed.add(name)
    return failed


@pytest.mark.parametrize("broken", FAULTS, ids=lambda broken: broken.__name__)
def test_a_broken_counter_fails_exactly_the_tests_that_name_its_fault(broken):
    assert failures(broken()) == FAULTS[broken]


def test_every_test_of_the_suite_is_failed_by_some_broken_counter():
    assert set(TESTS) == set().union(*FAULTS.values())
