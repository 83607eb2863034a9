"""The sources of the text of a page-in: positions, and numbers of lines, instead of the text. Pure.

A request is remembered by what its page-in was made of. The text is made again from the log, so what is erased there can
not come back from here.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from pagein.events.handles import parse_handle

if TYPE_CHECKING:
    from pagein.search.base import Hit

BlockKind = Literal["search", "lines", "turn", "recent", "file"]
"""How a block came into a page-in: found for the newest step, likely lines of the run, a turn for the user's words, one of the
newest turns that left, or lines of a file that the run works on."""

WHOLE_PART = -1
"""The part of a step's own text; the part of a result is the index of its call."""

_GAP_NUMBER, _VERBATIM = -1, 2


class BlockSource(NamedTuple):
    """The source of one block: how it was found, the step, its part, and the lines of it that are shown.

    For ``search`` and ``turn`` the lines are those of the text with the checksum ``of``, as ``number_lines`` writes them; for
    ``file`` those of the result, as ``pack_numbers`` does; for ``lines`` they are the numbers under which the tracker has them.
    None where the lines are not in the text.
    """

    kind: BlockKind
    position: int
    part: int
    lines: tuple[int, ...] | None
    of: int = 0


def turn_source(hit: Hit, shown: str, whole: str) -> BlockSource:
    """The source of a turn of which this is shown of its ``whole`` text."""
    return BlockSource(
        "turn", hit.position, _part_of(hit), number_lines(whole, [whole] if shown == whole else shown.split("\n"))
    )


def passage_source(hit: Hit, shown: str) -> BlockSource:
    """The source of a block that shows lines of a hit."""
    return BlockSource(
        "search", hit.position, _part_of(hit), number_lines(hit.text, shown.split("\n")), text_checksum(hit.text)
    )


def _part_of(hit: Hit) -> int:
    handle = parse_handle(hit.handle)
    return WHOLE_PART if handle is None or handle.observation is None else handle.observation


def text_checksum(text: str) -> int:
    """A checksum of 24 bits, to tell the passages of one step apart."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass")) & 0xFFFFFF


def has_checksum(text: str, checksum: int) -> bool:
    """True for a text with this checksum; the oldest rows have its last 16 bits."""
    return checksum in (text_checksum(text), text_checksum(text) & 0xFFFF)


def number_lines(text: str, shown: Sequence[str]) -> tuple[int, ...] | None:
    r"""The numbers of the lines of a text that are shown: how they are cut (0: at ends, 1: long ones in pieces), then ranges.

    A gap is -1; 2 alone is the text as it is. None where a line is not in the text.

    >>> number_lines("a\nb\nc\nd", ["a", "c", "d"])
    (0, 0, 1, 2, 2)
    """
    if shown == [text]:
        return (_VERBATIM,)
    for cut in (0, 1):
        numbers = _find_lines(_lines_of(text, cut), shown)
        if numbers is not None:
            return (cut, *_as_ranges(numbers))
    return None


def numbered_lines(text: str, numbers: Sequence[int]) -> list[str]:
    """The lines with these numbers. Raises IndexError for a text that is another."""
    if numbers[0] == _VERBATIM:
        return [text]
    from pagein.search.snippets import GAP  # noqa: PLC0415 - loads where something left

    lines, rest = _lines_of(text, numbers[0]), iter(numbers[1:])
    shown: list[str] = []
    for first in rest:
        if first == _GAP_NUMBER:
            shown.append(GAP)
        else:
            last = first + next(rest)
            if last > len(lines):
                raise IndexError(last)
            shown += lines[first:last]
    return shown


def pack_numbers(numbers: Sequence[int]) -> tuple[int, ...]:
    """Pack ascending numbers of lines: for each stretch of them how many lines are left out before it, and how many it has.

    >>> pack_numbers((3, 4, 9))
    (3, 2, 4, 1)
    """
    packed, end, ranges = list[int](), 0, _as_ranges(numbers)
    for first, count in zip(ranges, ranges, strict=True):
        packed += (first - end, count)
        end = first + count
    return tuple(packed)


def unpack_numbers(packed: Sequence[int], line_count: int) -> list[int]:
    """The numbers that were packed. Raises IndexError where a text of that many lines has not all of them."""
    numbers, end, rest = list[int](), 0, iter(packed)
    for skipped, count in zip(rest, rest, strict=False):
        first, end = end + skipped, end + skipped + count
        if end > line_count:
            raise IndexError(end)
        numbers += range(first, end)
    return numbers


def _lines_of(text: str, cut: int) -> list[str]:
    from pagein.search.snippets import pieces_of  # noqa: PLC0415 - loads where something left

    lines = text.splitlines()
    return [piece for line in lines for piece in pieces_of(line)] if cut else lines


def _find_lines(lines: Sequence[str], shown: Sequence[str]) -> list[int] | None:
    from pagein.search.snippets import GAP  # noqa: PLC0415 - loads where something left

    numbers: list[int] = []
    at = 0
    for line in shown:
        try:
            number = lines.index(line, at)
        except ValueError:
            if line != GAP:
                return None
            number = _GAP_NUMBER
        else:
            at = number + 1
        numbers.append(number)
    return numbers


def _as_ranges(numbers: Sequence[int]) -> Iterator[int]:
    at = 0
    while at < len(numbers):
        first, count = numbers[at], 1
        if first == _GAP_NUMBER:
            yield first
        else:
            while at + count < len(numbers) and numbers[at + count] == first + count:
                count += 1
            yield from (first, count)
        at += count
