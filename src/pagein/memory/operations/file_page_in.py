"""The page-in of files: what the run read of a file that it works on, and that is out of view."""

from __future__ import annotations

from pagein.context.page_in.block import FRAME_TOKENS, PageIn, SourcedBlock, build_page_in
from pagein.context.page_in.files import (
    FileUse,
    choose_file_lines,
    earlier_positions,
    file_block,
    find_file_uses,
    is_text_of,
    replaced_lines,
)
from pagein.context.page_in.limits import PAGE_IN_MIN_TOKENS, file_tokens
from pagein.context.page_in.named import newest_action
from pagein.context.salience.lines import strip_line_number
from pagein.context.view.view import View
from pagein.errors import UnknownHandle
from pagein.events.call_files import files_of
from pagein.events.handles import observation_handle
from pagein.events.steps import ActionStep
from pagein.memory._state import RunState
from pagein.memory.operations.history import expand


def find_file_lines(run: RunState, view: View) -> PageIn | None:
    """Find the lines out of view of the files that the newest action names; None where they are few."""
    entry, action = newest_action(view)
    uses = () if entry is None or action is None else find_file_uses(entry, action, view.tracker.files)
    if not uses:
        return None
    visible = run.page_in.visible.content(view).lines
    tokens = file_tokens(view, run.page_in.share, run.page_in.file_tokens)
    tokens_left, blocks = tokens - FRAME_TOKENS, list[SourcedBlock]()
    for use in uses:
        if tokens_left >= PAGE_IN_MIN_TOKENS:
            new = _lines_of_file(run, view, use, visible, tokens_left)
            tokens_left -= sum(view.counter.text(block.text) + 1 for block in new)
            blocks += new
    page_in = build_page_in(view, tokens, (), blocks=blocks)
    return page_in if page_in is not None and page_in.entry.tokens >= PAGE_IN_MIN_TOKENS else None


def _lines_of_file(run: RunState, view: View, use: FileUse, visible: frozenset[str], tokens: int) -> list[SourcedBlock]:
    """Read what earlier calls for a file gave, newest first, and choose the lines that are not ``visible``."""
    table, later, blocks = view.tracker.files, set(use.lines), list[SourcedBlock]()
    for position in earlier_positions(table, use):
        if tokens < PAGE_IN_MIN_TOKENS:
            break
        if position in run.fold.changes.removed:
            continue
        for entry in run.runtime.read_entries(position, position + 1):
            calls = entry.body.tool_calls if isinstance(entry.body, ActionStep) else ()
            for index, call in enumerate(calls):
                files = files_of(call.arguments)
                if is_text_of(files, use.path, table):
                    text = _result_text(run, position, index)
                    numbers = choose_file_lines(text, use, later, visible, tokens, view.counter)
                    if numbers:
                        lines = text.splitlines()
                        blocks.append(file_block(position, index, lines, numbers, view.head))
                        tokens -= view.counter.text(blocks[-1].text) + 1
                        later.update(strip_line_number(lines[number]) for number in numbers)
                later.update(replaced_lines(call.arguments, files, use.path, table))
    return blocks


def _result_text(run: RunState, position: int, index: int) -> str:
    """The text of a result; "" where it has none."""
    try:
        return str(expand(run, observation_handle(position, index)))
    except UnknownHandle:
        return ""
