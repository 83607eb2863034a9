"""Regular expressions of strangers, matched in time linear in the text: no backtracking, so none is catastrophic.

A pattern is compiled to states that are followed all at once; each set of states that was met is kept, so that most
characters cost one look-up. What such an automaton cannot do (backreferences, lookaround) is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

MAX_PATTERN_CHARS = 500
MAX_STATES = 1_000
"""States of a pattern: {n} makes n copies of what it repeats."""

MAX_WORK = 1_000_000
"""Tests of one character against one state, in all lines of a pattern: about a second."""

MAX_KEPT_SETS = 2_000

IsIn = Callable[[str], bool]


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


_CLASSES: dict[str, IsIn] = {
    "d": str.isdigit,
    "s": str.isspace,
    "w": _is_word,
    "D": lambda char: not char.isdigit(),
    "S": lambda char: not char.isspace(),
    "W": lambda char: not _is_word(char),
}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v"}


class BadPattern(ValueError):
    """The pattern cannot be read, or costs too much. The message says why."""


@dataclass(slots=True)
class _State:
    """A state: takes one character where ``is_in`` is given, else goes on to all of ``targets`` at once.

    ``anchor`` is "^", "$", "b" or "B": the state is passed only at that end of a line, at an end of a word, or at none.
    """

    is_in: IsIn | None = None
    targets: list[int] = field(default_factory=list)
    anchor: str = ""


@dataclass(slots=True)
class _StateSet:
    """States that a character leads to, and by the next character the set behind it: None where a match ends before it."""

    states: frozenset[int]
    is_start: bool
    is_word: bool
    following: dict[str, _StateSet | None] = field(default_factory=dict)
    is_match_at_end: bool | None = None


_MATCH = 0


class LinePattern:
    """A pattern to find in lines, whatever their case. Raises BadPattern.

    >>> pattern = LinePattern("total_(eur|usd)=[0-9]+$")
    >>> pattern.match_end("My Total_EUR=12"), pattern.match_end("total_eur=x")
    (15, None)
    """

    def __init__(self, pattern: str) -> None:
        self._states = [_State()]
        self._start = _Parser(pattern.removeprefix("(?i)"), self._states).parse()
        self._work = 0
        self._sets: dict[tuple[frozenset[int], bool, bool], _StateSet] = {}
        self._first = self._set_of(frozenset(), is_start=True, is_word=False)

    def match_end(self, line: str) -> int | None:
        """The first place in the line where a match ends, None where nothing matches.

        Raises BadPattern where that costs too much.
        """
        current = self._first
        for at, char in enumerate(_fold(line)):
            following = current.following.get(char, current)
            if following is current and char not in current.following:
                following = self._follow(current, char)
            if following is None:
                return at
            current = following
        if current.is_match_at_end is None:
            opened = self._pass_anchors(current, is_end=True, is_boundary=current.is_word)
            current.is_match_at_end = _MATCH in opened
        return len(line) if current.is_match_at_end else None

    def _follow(self, current: _StateSet, char: str) -> _StateSet | None:
        is_word = _is_word(char)
        opened = self._pass_anchors(current, is_end=False, is_boundary=is_word != current.is_word)
        following = None
        if _MATCH not in opened:
            states = (self._states[number] for number in opened)
            targets = frozenset(state.targets[0] for state in states if state.is_in is not None and state.is_in(char))
            following = self._set_of(targets, is_start=False, is_word=is_word)
        current.following[char] = following
        return following

    def _set_of(self, states: frozenset[int], *, is_start: bool, is_word: bool) -> _StateSet:
        key = states, is_start, is_word
        if key not in self._sets:
            if len(self._sets) >= MAX_KEPT_SETS:
                for old in self._sets.values():
                    old.following.clear()
                self._sets.clear()
            self._sets[key] = _StateSet(*key)
        return self._sets[key]

    def _pass_anchors(self, current: _StateSet, *, is_end: bool, is_boundary: bool) -> set[int]:
        """The states reached from these, and from the start of the pattern, without a character."""
        passed = {"": True, "^": current.is_start, "$": is_end, "b": is_boundary, "B": not is_boundary}
        reached: set[int] = set()
        waiting = [self._start, *current.states]
        while waiting:
            number = waiting.pop()
            if number in reached:
                continue
            reached.add(number)
            state = self._states[number]
            if state.is_in is None and passed[state.anchor]:
                waiting += state.targets
        self._work += len(reached)
        if self._work > MAX_WORK:
            raise BadPattern("it takes too long; write a simpler one")
        return reached


Build = Callable[[int], int]
"""Adds the states of a part of a pattern before the state that follows it; returns its first state."""


class _Parser:
    def __init__(self, pattern: str, states: list[_State]) -> None:
        if len(pattern) > MAX_PATTERN_CHARS:
            raise BadPattern(f"it is longer than {MAX_PATTERN_CHARS} characters")
        self._pattern, self._at, self._states, self._depth = pattern, 0, states, 0

    def parse(self) -> int:
        build = self._alternatives()
        if self._at < len(self._pattern):
            raise BadPattern("a ) without its (; write \\( for the character")
        return build(_MATCH)

    def _add(self, state: _State) -> int:
        if len(self._states) >= MAX_STATES:
            raise BadPattern("it repeats too much; use smaller numbers in {}")
        self._states.append(state)
        return len(self._states) - 1

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _take(self) -> str:
        char = self._peek()
        if not char:
            raise BadPattern("it ends too early")
        self._at += 1
        return char

    def _alternatives(self) -> Build:
        branches = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            branches.append(self._sequence())
        if len(branches) == 1:
            return branches[0]
        return lambda after: self._add(_State(targets=[build(after) for build in branches]))

    def _sequence(self) -> Build:
        parts: list[Build] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._repetition(self._atom()))
        return lambda after: _chain(parts, after)

    def _repetition(self, build: Build) -> Build:
        bounds = self._bounds()
        if bounds is None:
            return build
        if self._peek() in ("?", "+") and self._peek():
            self._at += 1  # lazy and possessive: the same lines match
        if self._peek() in ("*", "+", "?") and self._peek():
            raise BadPattern(f"nothing to repeat before {self._peek()}; write \\{self._peek()} for the character")
        least, most = bounds

        def build_repetition(after: int) -> int:
            start = after
            if most is None:
                start = self._add(_State(targets=[after]))
                self._states[start].targets.append(build(start))
            for _ in range(0 if most is None else most - least):
                start = self._add(_State(targets=[after, build(start)]))
            return _chain([build] * least, start)

        return build_repetition

    def _bounds(self) -> tuple[int, int | None] | None:
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        char = self._peek()
        if char in simple:
            self._at += 1
            return simple[char]
        close = self._pattern.find("}", self._at)
        least, comma, most = self._pattern[self._at + 1 : close].partition(",")
        if char != "{" or close < 0 or not (least + most).isdigit() or len(least + most) > 6:
            return None  # a brace that is no number is itself
        self._at = close + 1
        first = int(least or 0)
        last = (int(most) if most else None) if comma else first
        if last is not None and last < first:
            raise BadPattern(f"{{{least},{most}}} has its numbers in the wrong order")
        return first, last

    def _atom(self) -> Build:
        char = self._take()
        match char:
            case "(":
                return self._group()
            case "[":
                return self._one(self._char_class())
            case ".":
                return self._one(lambda _: True)
            case "^" | "$":
                return lambda after: self._add(_State(targets=[after], anchor=char))
            case "\\" if self._peek() in ("b", "B"):
                anchor = self._take()
                return lambda after: self._add(_State(targets=[after], anchor=anchor))
            case "\\":
                return self._one(self._escape())
            case "*" | "+" | "?":
                raise BadPattern(f"nothing to repeat before {char}; write \\{char} for the character")
            case _:
                return self._one(_equals(char))

    def _one(self, is_in: IsIn) -> Build:
        return lambda after: self._add(_State(is_in, [after]))

    def _group(self) -> Build:
        if self._peek() == "?":
            if self._pattern[self._at : self._at + 2] != "?:":
                raise BadPattern("(?...) is not supported; write (...)")
            self._at += 2
        self._depth += 1
        if self._depth > 50:
            raise BadPattern("its groups are too deep")
        build = self._alternatives()
        self._depth -= 1
        if self._peek() != ")":
            raise BadPattern("a ( without its ); write \\( for the character")
        self._at += 1
        return build

    def _escape(self) -> IsIn:
        char = self._take()
        if char in _CLASSES:
            return _CLASSES[char]
        if char.isalnum() and char not in _CONTROLS:
            raise BadPattern(f"\\{char} is not supported; there are \\d \\w \\s \\b and \\ before a sign")
        return _equals(_CONTROLS.get(char, char))

    def _char_class(self) -> IsIn:
        is_negated = self._peek() == "^"
        self._at += is_negated
        members: list[IsIn] = []
        while self._peek() != "]" or not members:
            members.append(self._class_member())
        self._at += 1
        if is_negated:
            return lambda char: not any(is_in(char) for is_in in members)
        return lambda char: any(is_in(char) for is_in in members)

    def _class_member(self) -> IsIn:
        char = self._take()
        if char == "\\":
            if self._peek() in _CLASSES:
                return self._escape()
            char = _CONTROLS.get(self._peek(), self._peek())
            self._take()
        if self._peek() != "-" or self._pattern[self._at + 1 : self._at + 2] in ("]", ""):
            return _equals(char)
        self._at += 1
        last = self._take()
        last = self._take() if last == "\\" else last
        if last < char:
            raise BadPattern(f"{char}-{last} is in the wrong order")
        return lambda other: char <= other <= last or char <= other.upper() <= last


def _chain(parts: Sequence[Build], after: int) -> int:
    for build in reversed(parts):
        after = build(after)
    return after


def _equals(char: str) -> IsIn:
    folded = _fold(char)
    return lambda other: other == folded


def _fold(text: str) -> str:
    """The text in lower case, each character by itself: no place in it moves, and no letter depends on the next one."""
    return text.lower() if text.isascii() else "".join(map(_fold_char, text))


@lru_cache(4096)
def _fold_char(char: str) -> str:
    folded = char.casefold()
    return folded if len(folded) == 1 else char.lower()[0]
