"""The ledger's blocks in a view: what was said and holds, what failed, and what is open, in steps that are not shown as recorded. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pagein.context.compaction.base import newest_user_position
from pagein.context.compaction.episodes import protected_positions
from pagein.context.ledger.answers import answer_tokens, with_answers
from pagein.context.view.layout import ContextBlock, ViewEntry, make_entry, messages_of
from pagein.context.view.view import View, request_cost
from pagein.events.entries import Pin
from pagein.events.steps import SummaryStep

if TYPE_CHECKING:
    from pagein.context.ledger.failures import FailureLine
    from pagein.context.ledger.open_work import OpenLines
    from pagein.context.ledger.run_ledger import RunLedger

LEDGER_SHARES, SMALL_SHARES, SMALL_TOKENS = (
    (0.3, 0.06),
    (0.95, 0.92, 0.9, 0.87, 0.85, 0.82, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4, 0.3),
    1_000,
)
"""Shares of the limit for the ledger: the first that fits. Where the limit is small, up to these tokens, more. Decision 0044."""

HALVES = tuple(64 << power for power in range(10, -1, -1))
"""Tokens of the blocks that are tried where no share of the limit fits."""

HEAD = "What holds, said in steps that are out of view. The newest wording counts; expand(handle) gives the step."

SHORT_HEAD, TERSE_HEAD, SHORT_HEAD_MAX_TOKENS = "Holds now:", "Steps that hold:", 400
"""The headings where the ledger has little room, without and with terse lines, and the tokens up to which they are used."""

NOTICE = "Out of view: "
"""The beginning of a notice."""

FAILED_SHARE, FAILED_MAX_TOKENS = 0.4, 2_000
"""The largest share of the ledger's tokens for what failed, of no more than the first of ``LEDGER_SHARES``, and its most."""

OPEN_SHARE, OPEN_MAX_TOKENS = 0.25, 600
"""The same for what is open."""

WHY = "it was said and still holds, it failed, or it is open"
"""The reason given in a view's report."""

WORD_SLOTS = ("content", "arguments")
"""The slots of a stub that stands for the model's words."""

NO_POSITION = -1
"""The position of the block's entry, which is no step."""


MAX_BLOCKS = 24
"""Rendered blocks that are remembered: the two in view, and those that compactions are planned with."""

DueItems = tuple[tuple[int | str, ...], ...]
"""The places of statements with what later ones change in their lines, of errors with their counts, and of what is open."""

BlockKey = tuple[DueItems, int]
"""What is due in a block, and the tokens that it may have."""


class LedgerBlock(NamedTuple):
    """A rendered block, and its tokens in a request."""

    text: str
    tokens: int


Blocks = dict[BlockKey, LedgerBlock]
"""The last rendered blocks."""


def ledger_sizes(limit: int) -> tuple[int, ...]:
    """Return the tokens that the ledger may have of a limit, the most first."""
    small = (min(int(limit * share), SMALL_TOKENS) for share in SMALL_SHARES)
    large = tuple(int(limit * share) for share in LEDGER_SHARES)
    more = tuple(dict.fromkeys(size for size in small if size > large[0]))
    return more or large


def own_tokens(reserved: tuple[int, ...], limit: int) -> int:
    """Return the most of these tokens within the share that is the ledger's own: what is more is for what is free."""
    return max((tokens for tokens in reserved if tokens <= limit * LEDGER_SHARES[0]), default=reserved[-1])


def reserve_tokens(view: View, ledger: RunLedger, blocks: Blocks) -> tuple[int, ...]:
    """Return the tokens to leave for the blocks after a compaction of this view, with all that may leave it; most first."""
    staying = protected_positions(view) & view.verbatim_positions

    def may_leave(position: int) -> bool:
        return position not in staying

    due = _find_due(view, ledger, may_leave, may_leave)
    limit = view.full_limit
    sizes = (_build_blocks(view, ledger, blocks, due, size, limit) for size in ledger_sizes(limit))
    answers = answer_tokens(view, ledger)
    sums = (sum(entry.tokens for entry in entries) + answers for entries in sizes)
    return tuple(dict.fromkeys(tokens for tokens in sums if tokens)) or (0,)


def with_ledger(view: View, ledger: RunLedger, blocks: Blocks, has_room: Callable[[View], bool] | None = None) -> View:
    """Return the view with the blocks of what holds and what failed, and is not shown; the same view if nothing is.

    Where the bytes are limited, ``has_room`` says whether a view has them.
    """
    in_view = {entry.first for entry in view.run if not isinstance(entry.item, SummaryStep)}
    shown = view.verbatim_positions - (view.edited - in_view)
    worded = shown | {
        entry.first
        for entry in view.run
        if entry.first in in_view and not any(stub.slot in WORD_SLOTS for stub in entry.stubs)
    }
    due = _find_due(view, ledger, lambda position: position not in shown, lambda position: position not in worded)
    hidden = _hidden_handles(view)
    bare = [at for at, entry in enumerate(view.run) if hidden and _is_bare_notice(entry)]
    answered = with_answers(view, ledger, bare)
    # The sizes, and the place of the notice, do not depend on what is free, so that the request stays the same while the run grows.
    sizes = ledger_sizes(view.limit) if due.statements or due.failures or due.work.keys else ()
    shorter = tuple(size for size in HALVES if sizes and size < sizes[-1])
    for candidate in (view,) if answered is view else (answered, view):
        run = tuple(
            replace(entry, messages=(), tokens=0) if at in bare and _is_bare_notice(entry) else entry
            for at, entry in enumerate(candidate.run)
        )
        base, has_answers = replace(candidate, run=run), candidate is not view
        for size in (*sizes, *shorter, *((0,) if hidden or has_answers else ())):
            entries = _say_notice(hidden, _build_blocks(base, ledger, blocks, due, size, view.limit), base)
            with_blocks = replace(base, front=(*view.front, *entries))
            tokens = request_cost(with_blocks.request_entries, view.counter)
            fits = tokens <= view.limit or not (size or has_answers)
            if (entries or has_answers) and fits and (has_room is None or has_room(with_blocks)):
                return replace(with_blocks, tokens=tokens)
    return view


def _hidden_handles(view: View) -> str:
    """Return the handles that a small ledger's heading says are out of view; "" in a larger one: a message costs three lines."""
    handles = [entry.handle for entry in view.run if _is_bare_notice(entry)] if view.limit <= SMALL_TOKENS else []
    return ", ".join(handles)


def _say_notice(hidden: str, blocks: tuple[ViewEntry, ...], view: View) -> tuple[ViewEntry, ...]:
    """Let the ledger's block begin with what is out of view; it has nothing else where no statement fits."""
    if not hidden:
        return blocks
    texts = [
        entry.item.text for entry in blocks if isinstance(entry.item, ContextBlock) and entry.item.kind == "ledger"
    ]
    text = "".join(texts)
    if text.startswith(TERSE_HEAD):
        text = f"Of {hidden}, these hold:{text.removeprefix(TERSE_HEAD)}"
    else:
        text = f"{NOTICE}{hidden}. {text}".rstrip()
    entry = make_entry(ContextBlock("ledger", text), NO_POSITION, NO_POSITION, view.counter, tier="ledger", why=WHY)
    return (entry, *blocks[len(texts) :])


def _is_bare_notice(entry: ViewEntry) -> bool:
    return isinstance(entry.item, SummaryStep) and entry.item.content == f"{NOTICE}{entry.handle}."


class Due(NamedTuple):
    """The places of the statements that are due in a block, the errors, and what is open."""

    statements: tuple[tuple[int, int], ...]
    failures: tuple[FailureLine, ...]
    work: OpenLines


def _find_due(
    view: View, ledger: RunLedger, is_hidden: Callable[[int], bool], hides_words: Callable[[int], bool]
) -> Due:
    """Find what is due, by the steps that are not shown as recorded, and those of which the model's words are not."""
    newest = max((entry.first for entry in view.run if entry.stubs or isinstance(entry.item, SummaryStep)), default=-1)
    return Due(
        _due_statements(view, ledger, is_hidden),
        ledger.failures.find_hidden(is_hidden),
        ledger.find_open(is_hidden, hides_words, newest),
    )


def _build_blocks(
    view: View, ledger: RunLedger, blocks: Blocks, due: Due, tokens: int, limit: int
) -> tuple[ViewEntry, ...]:
    """Build the entries of what holds, failed and is open in at most ``tokens`` of the limit together; none that is empty."""
    statements, failures, work = due
    failed = held = open_work = LedgerBlock("", 0)
    most = min(tokens, limit * LEDGER_SHARES[0])
    if work.keys:
        room = min(int(most * OPEN_SHARE), OPEN_MAX_TOKENS)
        open_work = _remember(blocks, (work.keys, room), lambda: _render_work(view, work, room))
    if failures:
        room = min(int(most * FAILED_SHARE), FAILED_MAX_TOKENS)
        key: BlockKey = tuple(line.key for line in failures), room
        failed = _remember(blocks, key, lambda: _render_failures(view, failures, room))
    if statements:
        rest = tokens - failed.tokens - open_work.tokens
        key = tuple((*at, ledger.items[at].is_newer, ledger.items[at].about) for at in statements), rest
        held = _remember(blocks, key, lambda: _render_statements(view, ledger, frozenset(statements), rest))
    return tuple(
        ViewEntry(NO_POSITION, NO_POSITION, item, "ledger", WHY, messages_of(item), block.tokens)
        for kind, block in (("ledger", held), ("failed", failed), ("open", open_work))
        if block.text and (item := ContextBlock(kind, block.text))
    )


def _remember(blocks: Blocks, key: BlockKey, render: Callable[[], LedgerBlock]) -> LedgerBlock:
    block = blocks.get(key)
    if block is None:
        block = blocks[key] = render()
        while len(blocks) > MAX_BLOCKS:
            del blocks[next(iter(blocks))]
    return block


def _render_statements(view: View, ledger: RunLedger, due: frozenset[tuple[int, int]], tokens: int) -> LedgerBlock:
    from pagein.context.ledger.selection import render, select_lines  # noqa: PLC0415 - its patterns load where it shows

    is_short = tokens <= SHORT_HEAD_MAX_TOKENS
    head = SHORT_HEAD if is_short else HEAD
    positions = {position for position, _ in due}
    items = [item for item in ledger.items.values() if item.position in positions]
    frame = _count("ledger", f"{head}\n", view)
    lines = select_lines(items, tokens - frame, view.counter)
    if is_short and (len(lines) < len(due) or any(line.form != "full" for line in lines)):
        head = TERSE_HEAD
        frame = _count("ledger", f"{head}\n", view)
        lines = select_lines(items, tokens - frame, view.counter, is_terse=True)
    text = f"{head}\n{render(lines)}" if lines else ""
    return LedgerBlock(text, _count("ledger", text, view) if text else 0)


def _render_failures(view: View, failures: tuple[FailureLine, ...], tokens: int) -> LedgerBlock:
    from pagein.context.ledger.failures import select_failures  # noqa: PLC0415 - loads where it shows

    text = select_failures(failures, tokens - _count("failed", "", view), view.counter)
    return LedgerBlock(text, _count("failed", text, view) if text else 0)


def _render_work(view: View, work: OpenLines, tokens: int) -> LedgerBlock:
    from pagein.context.ledger.open_work import render_open  # noqa: PLC0415 - loads where it shows

    text = render_open(work, tokens - _count("open", "", view), view.counter)
    return LedgerBlock(text, _count("open", text, view) if text else 0)


def _count(kind: str, text: str, view: View) -> int:
    return make_entry(ContextBlock(kind, text), 0, 0, view.counter, tier="ledger", why=WHY).tokens


def _due_statements(view: View, ledger: RunLedger, is_hidden: Callable[[int], bool]) -> tuple[tuple[int, int], ...]:
    """Return the places of the statements whose step is hidden, and which no pin says word for word."""
    pinned = "\n".join(entry.item.text for entry in view.entries if isinstance(entry.item, Pin))
    newest = newest_user_position(view)
    return tuple(
        key
        for key, item in ledger.items.items()
        if item.position != newest and is_hidden(item.position) and item.statement.text not in pinned
    )
