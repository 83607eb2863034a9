"""The lines of a file that the run works on and that are out of view. Pure.

An agent often reads several files, and then changes one after the other. By then what it read of them has left the view.
An action that reads or changes a file is a page fault: the next ones are likely in the same file. Decisions 0076 and 0079
have the figures.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pagein.context.page_in.block import SourcedBlock, passage_block
from pagein.context.page_in.sources import BlockSource, pack_numbers
from pagein.context.salience.files import FileTable
from pagein.context.salience.lines import strip_line_number
from pagein.context.view.layout import ViewEntry
from pagein.events.call_files import CallFiles, files_of
from pagein.events.handles import observation_handle
from pagein.events.identifiers import argument_text
from pagein.events.steps import ActionStep, as_text
from pagein.tokens import TokenCounter

PLACE_MIN_CHARS: Final = 12
"""Characters of a line that tell a place in a file: a bracket stands everywhere."""

REPEATED_SHARE: Final = 0.5
"""Share of a result's lines above which an action that has them again replaces the file, or shows all of it."""

MAX_LINES_BETWEEN: Final = 3
"""Lines between two that come back which come with them, though they are in view elsewhere."""

MAX_CHARS = 200_000
"""Characters of a text above which it is no file that is edited."""


@dataclass(frozen=True, slots=True)
class FileUse:
    """A file that the newest action names: its path, the action's position, and the lines that it writes or shows."""

    path: str
    position: int
    lines: frozenset[str]


def find_file_uses(entry: ViewEntry, action: ActionStep, table: FileTable) -> tuple[FileUse, ...]:
    """Find the files that the calls of an action name and that were read before, each once."""
    lines: dict[str, frozenset[str]] = {}
    for call, observation in zip(action.tool_calls, action.observations, strict=False):
        files = files_of(call.arguments)
        for path in filter(None, (files.path, *files.mention_paths)):
            known = table.find(path)
            if known and table.positions(known)[0] < entry.first:
                result = "" if observation is None else as_text(observation.content)
                lines[known] = lines.get(known, frozenset()) | _own_lines(files, path, call.arguments, result)
    return tuple(FileUse(path, entry.first, own) for path, own in lines.items() if own)


def earlier_positions(table: FileTable, use: FileUse) -> tuple[int, ...]:
    """The positions of earlier calls that name the file, newest first."""
    return tuple(position for position in reversed(table.positions(use.path)) if position < use.position)


def _own_lines(files: CallFiles, path: str, arguments: str, result: str) -> frozenset[str]:
    """The lines that a call writes to a file that it names; for one that an argument names and that is read, those it shows.

    What a command only shows counts for nothing: agents read a file page by page so, and what they need next is elsewhere.
    """
    if files.path:
        return _written_lines(arguments, path) or _telling_lines(result)
    hunks = files.patches.get(path)
    return _telling_lines(_heredoc_of(files)) if hunks is None else _patch_lines(hunks, " +-")


def is_text_of(files: CallFiles, path: str, table: FileTable) -> bool:
    """True if the result of a call is the text of a file, or of a part of it."""
    return any(table.find(shown) == path for shown in files.text_paths)


def replaced_lines(arguments: str, files: CallFiles, path: str, table: FileTable) -> frozenset[str]:
    """The lines that were otherwise, or are elsewhere, since a call: what it wrote to a file, or took away by a patch."""
    if files.path:
        return _written_lines(arguments, files.path) if table.find(files.path) == path else frozenset()
    hunks = "".join(hunks for patched, hunks in files.patches.items() if table.find(patched) == path)
    is_named = bool(files.words) and any(table.find(word) == path for word in files.words)
    return _patch_lines(hunks, "-") | _telling_lines(_heredoc_of(files) if is_named else "")


def _written_lines(arguments: str, path: str) -> frozenset[str]:
    """The lines in the arguments of a call, but for the path and what is too short to tell a place."""
    return _telling_lines(argument_text(arguments)) - {path}


def _patch_lines(hunks: str, marks: str) -> frozenset[str]:
    """The lines of hunks that have one of these marks."""
    return _telling_lines("\n".join(line[1:] for line in hunks.splitlines() if line.startswith(tuple(marks))))


def _heredoc_of(files: CallFiles) -> str:
    """The lines of a command after its first: what it writes, or the program that does."""
    return files.command.partition("\n")[2]


def _telling_lines(text: str) -> frozenset[str]:
    lines = map(strip_line_number, text[:MAX_CHARS].splitlines())
    return frozenset(line for line in lines if len(line) >= PLACE_MIN_CHARS)


def choose_file_lines(
    text: str, use: FileUse, later: Collection[str], visible: Collection[str], tokens: int, counter: TokenCounter
) -> tuple[int, ...]:
    """Choose the lines of an earlier result for the file that are out of view, nearest to the use first; return their numbers.

    Lines that ``later`` calls wrote are left out: they are changed, or stand there. None are chosen where the use has no line
    of the result, or most of them.
    """
    lines = text.splitlines() if len(text) <= MAX_CHARS else []
    keys = [strip_line_number(line) for line in lines]
    used = [number for number, key in enumerate(keys) if key in use.lines]
    if not used or len(used) > REPEATED_SHARE * len(lines):
        return ()
    distances = _distances(used, len(lines))
    hidden = [number for number, key in enumerate(keys) if key and key not in visible and key not in later]
    chosen: list[int] = []
    tokens_left = tokens
    for number in sorted(hidden, key=lambda number: (distances[number], number)):
        tokens_left -= counter.text(lines[number]) + 1
        if tokens_left < 0:
            break
        chosen.append(number)
    shown = _with_lines_between(chosen, keys, later)
    while chosen and sum(counter.text(lines[number]) + 1 for number in shown) > tokens:
        chosen = chosen[: len(chosen) * 9 // 10]
        shown = _with_lines_between(chosen, keys, later)
    return shown


def _with_lines_between(chosen: Iterable[int], keys: Sequence[str], later: Collection[str]) -> tuple[int, ...]:
    """Return the chosen numbers in order, with those of a few lines between two: brackets and empty lines stand elsewhere, too.

    Where a line between them was changed since, they stay apart.
    """
    shown: list[int] = []
    for number in sorted(chosen):
        between = range(shown[-1] + 1, number) if shown else range(0)
        is_changed = any(len(keys[at]) >= PLACE_MIN_CHARS and keys[at] in later for at in between)
        if len(between) <= MAX_LINES_BETWEEN and not is_changed:
            shown.extend(between)
        shown.append(number)
    return tuple(shown)


def _distances(used: Iterable[int], count: int) -> list[int]:
    """The distance of each line to the nearest one that is used."""
    distances = [count] * count
    for number in used:
        distances[number] = 0
    for number in range(1, count):
        distances[number] = min(distances[number], distances[number - 1] + 1)
    for number in range(count - 2, -1, -1):
        distances[number] = min(distances[number], distances[number + 1] + 1)
    return distances


def file_block(position: int, index: int, lines: Sequence[str], numbers: Sequence[int], head: int) -> SourcedBlock:
    """Return the block of those lines of a result that have these numbers, with gaps where others are left out."""
    from pagein.search.snippets import join_lines  # noqa: PLC0415 - loads where something left

    shown = join_lines(lines, numbers).split("\n")
    source = BlockSource("file", position, index, pack_numbers(numbers))
    return SourcedBlock(passage_block(observation_handle(position, index), "tool", head - position, shown), source)
