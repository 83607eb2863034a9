"""Conformance suite for token counters: a subclass of ``CounterTests`` with one fixture.

    class TestMyCounter(CounterTests):
        @pytest.fixture
        def counter(self) -> TokenCounter:
            return MyCounter()

The suite tests the contract, not the figures: no test expects a certain count.
"""

from __future__ import annotations

import itertools
import socket
import struct
import time
from collections.abc import Iterator
from typing import Any, ClassVar, NoReturn

import pytest

from pagein.events.messages import Message
from pagein.events.steps import Image, Opaque, Text, ToolCall
from pagein.testing._threads import run_in_threads
from pagein.tokens import TokenCounter
from pagein.tokens.counter import request_tokens

PROSE = (
    "The build failed on line 42 of settings.py, because DATABASE_URL was empty; "
    "we set it in the environment and ran the 17 tests again. "
)
SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|eot_id|>", "<|start_header_id|>", "<end_of_turn>", "<|fim_prefix|>")


def hazards() -> Iterator[tuple[str, str]]:
    """Yield texts that made counters raise, hang or use the network, each with its name."""
    yield "nothing", ""
    yield "NUL", "a\0b\0" * 500
    yield "every control character", "".join(map(chr, range(32))) * 20
    yield "a lone high surrogate", "cut off: \ud83d"
    yield "a lone low surrogate", "\ude00 the rest"
    yield "surrogates the wrong way round", "\ude00\ud83d" * 300
    yield "noncharacters", "\ufffe\uffff\U0010ffff\ufeff"
    yield "special tokens", " ".join(SPECIALS) * 50
    yield "combining marks", "e" + "\u0301" * 5_000
    yield "joined emoji", "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 1_000
    yield "Chinese without a space", "\u5929\u5730\u7384\u9ec4\u5b87\u5b99\u6d2a\u8352" * 10_000
    yield (
        "Japanese, Korean, Thai, Hindi, Arabic",
        "\u306d\u3053 \uace0\uc591\uc774 \u0e41\u0e21\u0e27 \u092c\u093f \u0642\u0637 " * 3_000,
    )
    yield "a million spaces", " " * 1_000_001
    yield "a million line ends", "\r\n" * 500_000
    yield "a megabyte of one letter", "a" * 1_000_000
    yield "a megabyte of one sign", "-" * 1_000_000
    yield "a megabyte of digits", "0123456789" * 100_000
    yield "base64", "iVBORw0KGgoAAAANSUhEUgAA/+9" * 20_000
    yield "one long line of code", "x=[" + "{'a':1,'b':[2,3]}," * 20_000 + "]"
    yield "five megabytes of prose", PROSE * 37_000


def png(width: int, height: int, padding: int = 0) -> bytes:
    """Return the header of a PNG of that size in pixels, with ``padding`` bytes behind it."""
    header = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)
    return header + b"\x08\x02\0\0\0" + bytes(padding)


class CounterTests:
    """The contract of ``TokenCounter``: subclass it, and give the fixture ``counter``."""

    slack = 8
    """Tokens by which the count of a joined text may differ from the sum of its parts."""
    seconds = 60.0
    """CPU seconds allowed for half a megabyte of any text. More is a hang on any machine."""
    clock = staticmethod(time.process_time)
    longest: ClassVar[int] = 5_000_000
    """Characters of the longest text that is counted."""

    @pytest.fixture
    def counter(self) -> TokenCounter:
        raise NotImplementedError("a subclass of CounterTests gives the fixture `counter`")

    def test_it_has_a_name_and_states_its_margin(self, counter: TokenCounter) -> None:
        assert isinstance(counter.name, str)
        assert counter.name.strip()
        assert 0 <= counter.margin < 1, "0 for an exact counter, else the relative error"

    def test_it_never_raises(self, counter: TokenCounter) -> None:
        for name, text in hazards():
            self._count(counter, name, text[: self.longest])

    def test_a_count_is_a_positive_whole_number(self, counter: TokenCounter) -> None:
        assert counter.text("") == 0
        for name, text in hazards():
            count = counter.text(text[:20_000].encode("utf-8", "replace").decode())
            assert isinstance(count, int), name
            assert count >= (1 if text else 0), name

    def test_the_same_text_costs_the_same(self, counter: TokenCounter) -> None:
        texts = [PROSE, PROSE * 200, "\u732b" * 300, "{}", " " * 5_000]
        first = [counter.text(text) for text in texts]
        again = [counter.text(text) for text in reversed(texts)]
        assert again[::-1] == first

    def test_the_whole_text_is_counted(self, counter: TokenCounter) -> None:
        one = counter.text(PROSE)
        assert counter.text(PROSE * 400) >= 300 * one

    def test_two_texts_cost_no_more_together_than_apart(self, counter: TokenCounter) -> None:
        for first, second in self._pairs():
            apart = counter.text(first) + counter.text(second)
            assert counter.text(first + second) <= apart + self.slack, (first[-20:], second[:20])

    def test_a_longer_text_costs_no_less(self, counter: TokenCounter) -> None:
        for first, second in self._pairs():
            longest = max(counter.text(first), counter.text(second))
            assert counter.text(first + second) >= longest - self.slack, (first[-20:], second[:20])

    def test_a_long_text_ends(self, counter: TokenCounter) -> None:
        """Fail on quadratic time, which takes minutes here. This does not measure speed."""
        started = self.clock()
        for unit in (PROSE, "a", " ", "\u5929\u5730\u7384"):
            assert counter.text(unit * (1 + 524_288 // len(unit))) > 0
        assert self.clock() - started < self.seconds

    def test_special_tokens_are_text(self, counter: TokenCounter) -> None:
        for special in SPECIALS:
            assert counter.text(special) >= 2, f"{special} was counted as one token"
            assert counter.text(f"a {special} b") >= counter.text("a  b") + 1, special

    def test_an_image_costs_by_its_pixels_and_not_by_its_bytes(self, counter: TokenCounter) -> None:
        lean, fat = Image(png(64, 48), "image/png"), Image(png(64, 48, 3_000_000), "image/png")
        assert counter.image(lean) == counter.image(fat)
        assert counter.image(fat) <= counter.image(Image(png(800, 600), "image/png"))

    def test_any_image_has_a_price(self, counter: TokenCounter) -> None:
        odd = (b"", b"\xff\xd8\xff", b"GIF89a", b"RIFF\0\0\0\0WEBPVP8 ", b"BM", b"not an image at all", png(0, 0))
        images = [Image(data, "image/png") for data in odd]
        images += [Image(url="https://example.org/a.png"), Image(url="data:image/png;base64,%%%")]
        images += [Image(png(4_000_000_000, 1), "image/png", detail=detail) for detail in ("low", "high", "auto", "?")]
        for image in images:
            assert counter.image(image) > 0, image

    def test_a_request_costs_at_least_its_parts(self, counter: TokenCounter) -> None:
        image = Image(png(800, 600), "image/png")
        thought = Opaque("anthropic", "thinking", '{"signature": "abc"}', "first the logs")
        arguments = '{"path": "/etc/hosts", "lines": [1, 2, 3]}'
        messages = [
            Message("system", PROSE),
            Message("user", (Text(PROSE), image)),
            Message("assistant", (thought,), (ToolCall("call_1", "read_file", arguments),)),
            Message("tool", PROSE * 3, call_id="call_1"),
        ]
        texts = [PROSE, PROSE, thought.text, "read_file", arguments, PROSE * 3]
        parts = sum(map(counter.text, texts)) + counter.image(image)
        assert request_tokens(messages, counter) >= parts + len(messages)
        longer = Message("assistant", None, (ToolCall("call_1", "read_file", f'{{"text": "{PROSE * 100}"}}'),))
        shorter = Message("assistant", None, (ToolCall("call_1", "read_file", "{}"),))
        grown = request_tokens([longer], counter) - request_tokens([shorter], counter)
        assert grown > 75 * counter.text(PROSE), "the arguments of a tool call are not free"

    def test_it_never_opens_a_socket(self, counter: TokenCounter, monkeypatch: pytest.MonkeyPatch) -> None:
        attempts: list[str] = []

        def refuse(*args: Any, **kwargs: Any) -> NoReturn:
            attempts.append(f"{args} {kwargs}")
            raise OSError("no network in this test")

        for name in ("socket", "create_connection", "getaddrinfo", "gethostbyname"):
            monkeypatch.setattr(socket, name, refuse)
        counter.text(PROSE)
        counter.image(Image(url="https://example.org/a.png"))
        assert not attempts, f"used the network: {attempts[0]}"

    def test_threads_agree(self, counter: TokenCounter) -> None:
        texts = [PROSE[i:] * (1 + i % 5) for i in range(60)]
        expected = [counter.text(text) for text in texts]
        counts: list[list[int]] = []
        run_in_threads(*[lambda: counts.append([counter.text(text) for text in texts])] * 8)
        assert counts == [expected] * 8

    def _count(self, counter: TokenCounter, name: str, text: str) -> int:
        try:
            return counter.text(text)
        except (KeyboardInterrupt, SystemExit):
            raise
        # A panic in a Rust extension is a BaseException, which a caller does not expect.
        except BaseException as error:
            raise AssertionError(f"{name}: raised {error!r}") from error

    def _pairs(self) -> Iterator[tuple[str, str]]:
        texts = (
            PROSE, "def f(x):\n\treturn x\n", "  \n\n  ", "\u732b\u304c\u597d\u304d\u3067\u3059", '{"a": [1, 2.5, null]}',
            "\U0001f600\U0001f44d", "0123456789", "a" * 100, "-" * 100, "\u043f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440",
        )  # fmt: skip
        yield from itertools.product(texts, repeat=2)
