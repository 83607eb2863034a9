"""Patterns of strangers find the lines that Python's own would, and never take long."""

import random
import re

import pytest

from pagein._common.line_pattern import BadPattern, LinePattern

ATOMS = ["a", "b", "c", ".", "[ab]", "[^a]", "[a-c1]", "\\d", "\\w", "\\S", "1", "ü", "[ü-ÿ]", "\\b", "\\B"]
REPEATS = ["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "*?", "+?"]


def make_pattern(draw, depth=0):
    share = draw.random()
    if depth > 3 or share < 0.4:
        return draw.choice(ATOMS)
    if share < 0.6:
        return make_pattern(draw, depth + 1) + make_pattern(draw, depth + 1)
    if share < 0.7:
        return f"({make_pattern(draw, depth + 1)}|{make_pattern(draw, depth + 1)})"
    if share < 0.9:
        return f"({make_pattern(draw, depth + 1)}){draw.choice(REPEATS)}"
    return f"^{make_pattern(draw, depth + 1)}" if share < 0.95 else f"{make_pattern(draw, depth + 1)}$"


def test_a_pattern_finds_the_lines_that_re_finds():
    draw = random.Random(3)
    for _ in range(1_500):
        text = make_pattern(draw)
        pattern, other = LinePattern(text), re.compile(text, re.IGNORECASE)
        for _ in range(5):
            line = "".join(draw.choice("abcABC1 üé-") for _ in range(draw.randrange("\\B" in text, 9)))
            assert (pattern.match_end(line) is not None) == bool(other.search(line)), (text, line)


def test_the_end_of_the_first_match_is_given():
    assert LinePattern("b+").match_end("aabbb") == 3
    assert LinePattern("x|$").match_end("aab") == 3
    assert LinePattern("").match_end("") == 0


@pytest.mark.parametrize("line", ["İstanbul", "ΟΔΟΣ", "ὈΔΥΣΣΕΎΣ", "Straße", "ﬁn", "ǅep", "٣٤", "🙂"])
def test_a_line_is_found_by_its_own_words_whatever_their_case(line):
    assert LinePattern(f"^{line}$").match_end(line) == len(line)
    assert LinePattern(line.swapcase() if len(line.swapcase()) == len(line) else line).match_end(f"a {line}")
    assert LinePattern("(?i)straße").match_end("STRAẞE") == 6


def test_a_pattern_that_costs_too_much_says_so():
    draw, pattern = random.Random(1), LinePattern("(.*a){60}(a|b){90}c")
    line = "".join(draw.choice("ab") for _ in range(40_000))
    with pytest.raises(BadPattern, match="takes too long"):
        pattern.match_end(line)
